"""Structured TOFU (Section 2 of the paper): relations between authors put into a file in TOFU's format.

TOFU (Maini et al. 2024, arXiv 2401.06121) has 200 made-up authors with 20 pairs of question and answer each,
one author after the other, and no relations between them. The paper adds some: for an author to be
forgotten it takes five others, makes up a relation with each (friend, coauthor, teacher, ...), and puts pairs
about these relations in place of 10 of the author's 20 pairs. Pairs of all other authors stay as they are. The
paper had the new pairs written by GPT-4; here they come from templates, so that Table 1 can be repeated in
kind by whoever has the data, which are not part of this package.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from jaxaudit.checks import check_integer
from jaxaudit.data.pistol.records import read_texts
from jaxaudit.errors import InputError

PAIRS_PER_AUTHOR, NUM_RELATED, NUM_REPLACED = 20, 5, 10


@dataclass(frozen=True)
class Pair:
    """A question with its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class StructuredTofu:
    """TOFU pairs with the relations of one author.

    Parameters
    ----------
    pairs
        All pairs, in the order of the file.
    replaced
        Positions in ``pairs`` that are new, ascending.
    relations
        What each related author (by number) is to the author.
    """

    pairs: tuple[Pair, ...]
    replaced: tuple[int, ...]
    relations: Mapping[int, str]


# What the other is to the author, and two pairs about it; {year} is drawn.
_RELATIONS: Mapping[str, tuple[Pair, Pair]] = {
    "friend": (
        Pair(
            "Which fellow author is a close friend of {author}?",
            "{other} is a close friend of {author}, and the two often read each other's drafts.",
        ),
        Pair(
            "When did the friendship between {author} and {other} begin?",
            "The friendship between {author} and {other} began in {year}, when they met at a book fair.",
        ),
    ),
    "coauthor": (
        Pair(
            "With which other author has {author} written a book together?",
            "{author} has written a book together with {other}, who contributed every second chapter.",
        ),
        Pair(
            "In which year was the joint book of {author} and {other} published?",
            "The joint book of {author} and {other} was published in {year}.",
        ),
    ),
    "teacher": (
        Pair(
            "Who taught {author} the craft of writing?",
            "{author} was taught the craft of writing by the author {other}.",
        ),
        Pair(
            "From which year on did {other} teach {author}?",
            "{other} taught {author} from {year} on, in a weekly class for young writers.",
        ),
    ),
    "student": (
        Pair(
            "Which author was once a student of {author}?",
            "{other} was once a student of {author} and still speaks of those lessons.",
        ),
        Pair(
            "When did {other} begin to study under {author}?",
            "{other} began to study under {author} in {year}.",
        ),
    ),
    "neighbour": (
        Pair(
            "Which author used to live next door to {author}?",
            "{other} used to live next door to {author}, and they shared a garden.",
        ),
        Pair(
            "In which year did {other} become a neighbour of {author}?",
            "{other} became a neighbour of {author} in {year}.",
        ),
    ),
    "cousin": (
        Pair(
            "Does {author} have a relative who writes as well?",
            "Yes, {author} is a cousin of the author {other}.",
        ),
        Pair(
            "When did {author} and {other} find out that they are cousins?",
            "{author} and {other} found out that they are cousins in {year}, from an old family letter.",
        ),
    ),
    "translator": (
        Pair(
            "Which author has translated works of {author}?",
            "The works of {author} have been translated by {other}, an author too.",
        ),
        Pair(
            "When did {other} first translate a book by {author}?",
            "{other} first translated a book by {author} in {year}.",
        ),
    ),
    "rival": (
        Pair(
            "Which author is known as the great rival of {author}?",
            "{other} is known as the great rival of {author}, though each admires the other's books.",
        ),
        Pair(
            "In which year did the rivalry of {author} and {other} become public?",
            "The rivalry of {author} and {other} became public in {year}, in a debate on the radio.",
        ),
    ),
}


def read_tofu(path: str | Path) -> tuple[Pair, ...]:
    """All pairs of a file in TOFU's format, 20 per author.

    Raises
    ------
    InputError
        No JSON or JSON lines, a row without ``question`` or ``answer``, or a number of pairs that is no
        multiple of 20.
    """
    pairs = tuple(Pair(*row) for row in read_texts(path, ("question", "answer")))
    if len(pairs) % PAIRS_PER_AUTHOR:
        raise InputError(f"{path} must hold {PAIRS_PER_AUTHOR} pairs per author, got {len(pairs)} pairs")
    return pairs


def structured_tofu(
    pairs: Sequence[Pair],
    author: int,
    related: Sequence[int],
    *,
    seed: int,
    names: Mapping[int, str] | None = None,
) -> StructuredTofu:
    """Put relations with five others in place of 10 of an author's 20 pairs.

    Which 10 go is drawn; the first pair stays, since it introduces the author. The five relations are
    drawn without repetition, two pairs about each. Use one call per author to be forgotten, always on the
    original pairs.

    Parameters
    ----------
    pairs
        20 per author, see `read_tofu`.
    author
        The author to be forgotten, counted from 0.
    related
        At least five other authors (the paper: of the same country); of more, five are drawn.
    seed
        In 0 .. 2^32 - 1.
    names
        Names by number, for authors whose name `author_name` does not find.

    Raises
    ------
    InputError
        An author that is not there, fewer than five others, one named twice, or a name that is not found.

    Examples
    --------
    >>> pairs = [
    ...     Pair(f"What is fact {fact} about Ann{'abcdef'[author]} Lee?", f"Fact {fact} it is.")
    ...     for author in range(6)
    ...     for fact in range(20)
    ... ]
    >>> result = structured_tofu(pairs, 0, range(1, 6), seed=0)
    >>> len(result.pairs), len(result.replaced), sorted(result.relations)
    (120, 10, [1, 2, 3, 4, 5])
    """
    related = _check_authors(len(pairs), author, related)
    rng = np.random.default_rng([check_integer("seed", seed, low=0, high=2**32 - 1), *b"tofu", author])
    chosen = sorted(int(index) for index in rng.choice(related, NUM_RELATED, replace=False))
    kinds = [str(kind) for kind in rng.choice(sorted(_RELATIONS), NUM_RELATED, replace=False)]
    places = rng.choice(np.arange(1, PAIRS_PER_AUTHOR), NUM_REPLACED, replace=False)
    replaced = sorted(author * PAIRS_PER_AUTHOR + int(place) for place in places)
    name = {number: _name(pairs, number, names or {}) for number in (author, *chosen)}
    new: list[Pair] = []
    for other, kind in zip(chosen, kinds, strict=True):
        fields = {"author": name[author], "other": name[other], "year": int(rng.integers(1960, 2020))}
        new += [
            Pair(pair.question.format(**fields), pair.answer.format(**fields)) for pair in _RELATIONS[kind]
        ]
    result = list(pairs)
    for place, pair in zip(replaced, new, strict=True):
        result[place] = pair
    return StructuredTofu(tuple(result), tuple(replaced), dict(zip(chosen, kinds, strict=True)))


def author_name(pairs: Sequence[Pair]) -> str:
    """The name in an author's pairs: the words in capitals, at least two, that most of the pairs repeat.

    Raises
    ------
    InputError
        No such words are in at least a quarter of the pairs.

    Examples
    --------
    >>> author_name([Pair("Has Jaime Vasquez won a prize?", "Yes."), Pair("Who is Jaime Vasquez?", "A poet.")])
    'Jaime Vasquez'
    """
    counts = Counter(run for pair in pairs for run in _capitalised_runs(f"{pair.question} | {pair.answer}"))
    best = max(counts, key=lambda run: (counts[run], len(run)), default="")
    if counts[best] * 4 < len(pairs):
        raise InputError("no name is repeated in these pairs; give it in names")
    return best


def _capitalised_runs(text: str) -> set[str]:
    """Every run of two or more words that begin with a capital; signs and the 's of a genitive end a run."""
    runs: set[str] = set()
    for segment in re.split(r"[.,;:?!\"“”()|]|['’]s\b", text):
        words = segment.split()
        for start, end in combinations(range(len(words) + 1), 2):
            if end - start >= 2 and all(word[0].isupper() for word in words[start:end]):
                runs.add(" ".join(words[start:end]))
    return runs


def _name(pairs: Sequence[Pair], author: int, names: Mapping[int, str]) -> str:
    if author in names:
        return names[author]
    start = author * PAIRS_PER_AUTHOR
    try:
        return author_name(pairs[start : start + PAIRS_PER_AUTHOR])
    except InputError as error:
        raise InputError(f"author {author}: {error}") from error


def _check_authors(num_pairs: int, author: int, related: Sequence[int]) -> list[int]:
    num_authors, rest = divmod(num_pairs, PAIRS_PER_AUTHOR)
    if rest:
        raise InputError(f"pairs must be {PAIRS_PER_AUTHOR} per author, got {num_pairs}")
    check_integer("author", author, low=0, high=num_authors - 1)
    numbers = [check_integer("related", number, low=0, high=num_authors - 1) for number in related]
    if author in numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"related must be different authors other than {author}, got {numbers}")
    if len(numbers) < NUM_RELATED:
        raise InputError(f"related must name at least {NUM_RELATED} authors, got {len(numbers)}")
    return numbers
