"""Roles and their texts: who is drawn, what of it is trained on, and whose text can be forgotten."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxaudit.checks import check_integer
from jaxaudit.data.shakespeare.speech import Speech
from jaxaudit.errors import InputError

LEAST_SPEECHES = 2
_TRAINED, _VALIDATED = 0.8, 0.1


class Role(NamedTuple):
    """One speaking role, the paper's client."""

    play: str
    """Empty if the same label in several plays is one role."""
    name: str
    speeches: tuple[Speech, ...]
    """In the order of the play."""

    @property
    def title(self) -> str:
        """Name and play."""
        return f"{self.name}, {self.play}" if self.play else self.name

    @property
    def train(self) -> tuple[Speech, ...]:
        """The first 80 % of the speeches."""
        return self.speeches[: self._ends[0]]

    @property
    def validation(self) -> tuple[Speech, ...]:
        """The next 10 %."""
        return self.speeches[slice(*self._ends)]

    @property
    def test(self) -> tuple[Speech, ...]:
        """The rest, the last 10 % or a little more."""
        return self.speeches[self._ends[1] :]

    @property
    def _ends(self) -> tuple[int, int]:
        trained, validated = (int(share * len(self.speeches)) for share in (_TRAINED, _VALIDATED))
        return trained, trained + validated


def text_of(speeches: Sequence[Speech]) -> str:
    """Speeches one below the other.

    Examples
    --------
    >>> text_of([Speech("Hamlet", "BERNARDO", "Who's there?"), Speech("Hamlet", "BERNARDO", "He.")])
    "Who's there?\\nHe."
    """
    return "\n".join(speech.text for speech in speeches)


def find_roles(speeches: Sequence[Speech], *, merge_labels: bool = False) -> tuple[Role, ...]:
    """Roles with at least 2 speeches, in the order of play and name.

    Parameters
    ----------
    speeches
        In the order of the plays.
    merge_labels
        Whether equal labels in different plays are one role, as in the reference code; the paper has one role per play.

    Examples
    --------
    >>> said = [Speech(play, "PAGE", "Ay.") for play in ("Hamlet", "Hamlet", "Macbeth", "Macbeth")]
    >>> [role.title for role in find_roles(said)], len(find_roles(said, merge_labels=True)[0].speeches)
    (['PAGE, Hamlet', 'PAGE, Macbeth'], 4)
    """
    found: dict[tuple[str, str], list[Speech]] = {}
    for speech in speeches:
        found.setdefault(("" if merge_labels else speech.play, speech.role), []).append(speech)
    return tuple(
        Role(play, name, tuple(said))
        for (play, name), said in sorted(found.items())
        if len(said) >= LEAST_SPEECHES
    )


def draw_roles(rng: np.random.Generator, roles: Sequence[Role], num_roles: int) -> tuple[Role, ...]:
    """Some roles, uniformly at random and without replacement, in the order drawn.

    Raises
    ------
    InputError
        Fewer than 2 roles are asked for, or more than there are.

    Examples
    --------
    >>> said = [Speech("Hamlet", name, "Ay.") for name in "AABBCC"]
    >>> [role.name for role in draw_roles(np.random.default_rng(0), find_roles(said), 2)]
    ['B', 'C']
    """
    if len(roles) < 2:
        raise InputError(
            f"the text must have at least 2 roles with {LEAST_SPEECHES} speeches or more, got {len(roles)}"
        )
    check_integer("num_roles", num_roles, low=2, high=len(roles))
    return tuple(roles[place] for place in rng.choice(len(roles), num_roles, replace=False))


def split_roles(
    rng: np.random.Generator, roles: Sequence[Role], forget_share: float
) -> tuple[tuple[Role, ...], tuple[Role, ...]]:
    """Retain and forget roles: in random order, every role that still fits joins the forget roles.

    Parameters
    ----------
    rng
        Draws the order.
    roles
        All roles.
    forget_share
        Largest share of the characters to train on that the forget roles may have, in (0, 1).

    Returns
    -------
    Retain roles and forget roles, each in the order drawn.

    Raises
    ------
    InputError
        If no role is left on one of the two sides.

    Examples
    --------
    >>> said = [Speech("Hamlet", name, "Ay, " * count) for name, count in [("A", 9), ("A", 9), ("B", 1), ("B", 1)]]
    >>> retain, forget = split_roles(np.random.default_rng(0), find_roles(said), 0.2)
    >>> [role.name for role in retain], [role.name for role in forget]
    (['A'], ['B'])
    """
    if not 0 < forget_share < 1:
        raise InputError(f"forget_share must be above 0 and below 1, got {forget_share}")
    sizes = [len(text_of(role.train)) for role in roles]
    room = int(forget_share * sum(sizes))
    retain: list[Role] = []
    forget: list[Role] = []
    for place in rng.permutation(len(roles)):
        fits = sizes[place] <= room
        room -= fits * sizes[place]
        (forget if fits else retain).append(roles[place])
    if not forget or not retain:
        side = "forget" if not forget else "retain"
        raise InputError(
            f"forget_share must leave a role to {side}, got {forget_share} for {len(roles)} roles"
        )
    return tuple(retain), tuple(forget)
