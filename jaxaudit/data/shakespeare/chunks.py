"""Chunks, the candidate groups: shuffled speeches of the forget roles, and windows of characters of a text."""

import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from jaxaudit.data.shakespeare.roles import Role, text_of
from jaxaudit.data.shakespeare.speech import Speech
from jaxaudit.errors import InputError


class Chunk(NamedTuple):
    """Some speeches, forgotten together: one candidate group."""

    number: int
    speeches: tuple[Speech, ...]

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"chunk {self.number}"

    @property
    def text(self) -> str:
        """Its speeches one below the other."""
        return text_of(self.speeches)

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """Play and role of its speeches, the one with most characters first."""
        said: Counter[tuple[str, str]] = Counter()
        for speech in self.speeches:
            said[speech.play, speech.role] += len(speech.text)
        return tuple(role for role, _ in said.most_common())

    def snippet(self, length: int = 80) -> str:
        """The beginning of its text on one line, with a slash between speeches.

        Examples
        --------
        >>> Chunk(0, (Speech("Hamlet", "HAMLET", "To be, or not to be,\\nthat is the question"),)).snippet(24)
        'To be, or not to be,...'
        """
        text = " / ".join(" ".join(speech.text.split()) for speech in self.speeches)
        return text if len(text) <= length else f"{text[: length - 3].rstrip()}..."


def split_speech(speech: Speech, longest: int) -> list[Speech]:
    """A speech in parts of at most ``longest`` characters: whole lines, or words of a line that is longer itself.

    Examples
    --------
    >>> [part.text for part in split_speech(Speech("Hamlet", "HAMLET", "To be,\\nor\\nnot to be"), 9)]
    ['To be,\\nor', 'not to be']
    """
    parts: list[str] = []
    lines = [textwrap.wrap(line, longest, break_on_hyphens=False) for line in speech.text.split("\n")]
    for line in chain.from_iterable(lines):
        if parts and len(parts[-1]) + 1 + len(line) <= longest:
            parts[-1] += f"\n{line}"
        else:
            parts.append(line)
    return [speech._replace(text=part) for part in parts]


def make_chunks(
    rng: np.random.Generator, roles: Sequence[Role], num_chunks: int, least: int, longest: int | None = None
) -> tuple[Chunk, ...]:
    """Shuffle the speeches of the roles, and cut their sequence into chunks, the shortest of them as long as possible.

    Where that gives more chunks than wanted, neighbours are joined where the joint chunk is shortest.

    Parameters
    ----------
    rng
        Shuffles the speeches.
    roles
        Roles whose training speeches are cut.
    num_chunks
        Number of chunks, the paper's 400.
    least
        Characters that every chunk has at least.
    longest
        Longer speeches are first cut into parts of at most so many characters, see `split_speech`: chunks are then
        nearly equal. ``None``: no speech is cut.

    Raises
    ------
    InputError
        If there is too little text for so many chunks.

    Examples
    --------
    >>> words = "to be or not to be".split()
    >>> role = Role("Hamlet", "HAMLET", tuple(Speech("Hamlet", "HAMLET", word) for word in words))
    >>> [chunk.text.split() for chunk in make_chunks(np.random.default_rng(0), [role], 2, least=4)]
    [['or', 'to'], ['be', 'not']]
    """
    speeches = [speech for role in roles for speech in role.train]
    if longest is not None:
        speeches = [part for speech in speeches for part in split_speech(speech, longest)]
    queue = [speeches[place] for place in rng.permutation(len(speeches))]
    lengths = [len(speech.text) for speech in queue]
    if len(_ends(lengths, least)) < num_chunks:
        raise InputError(
            f"num_groups must be smaller: the {len(speeches)} speeches of {len(roles)} forget roles do not fill "
            f"{num_chunks} chunks of at least {least} characters"
        )
    fitting = range(least, sum(lengths) + len(lengths))
    # The longer a chunk must be, the fewer there are: the last length at which there are enough.
    place = bisect_right(fitting, -num_chunks, key=lambda length: -len(_ends(lengths, length))) - 1
    ends = [*_ends(lengths, fitting[place])[:-1], len(queue)]
    characters = np.cumsum([0, *lengths])
    while len(ends) > num_chunks:
        sizes = np.diff(characters[[0, *ends]])
        del ends[int(np.argmin(sizes[:-1] + sizes[1:]))]
    return tuple(
        Chunk(number, tuple(queue[start:end])) for number, (start, end) in enumerate(pairwise([0, *ends]))
    )


def _ends(lengths: Sequence[int], least: int) -> list[int]:
    """Where chunks end if each one ends as soon as it is long enough; a line feed joins two speeches."""
    ends, size = [], -1
    for place, length in enumerate(lengths, 1):
        size += 1 + length
        if size >= least:
            ends.append(place)
            size = -1
    return ends


def window_starts(length: int, window: int, stride: int) -> Int[np.ndarray, " windows"]:
    """First characters of the windows of a text; a window needs one character more, the last target.

    Examples
    --------
    >>> window_starts(10, window=4, stride=2).tolist(), window_starts(4, window=4, stride=1).tolist()
    ([0, 2, 4], [])
    """
    return np.arange(0, length - window, stride)


def cut_windows(
    ids: Int[np.ndarray, " characters"], starts: Int[np.ndarray, " windows"], window: int
) -> tuple[Int[np.ndarray, "windows window"], Int[np.ndarray, "windows window"]]:
    """Windows, and the same one character later: what is to be predicted.

    Examples
    --------
    >>> [part.tolist() for part in cut_windows(np.arange(5), np.array([0, 1]), 3)]
    [[[0, 1, 2], [1, 2, 3]], [[1, 2, 3], [2, 3, 4]]]
    """
    places = starts[:, None] + np.arange(window)
    return ids[places], ids[places + 1]
