"""TOFU's authors as groups that can be forgotten, with the relations that Structured TOFU adds (Section 2).

What contracts are to the edges of a graph, pairs are to authors: every author is a group of 20 questions. Two
authors are neighbours if one has a relation with the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from jaxaudit.data.pistol.dataset import Record
from jaxaudit.data.pistol.structure import classes_by_distance
from jaxaudit.data.pistol.tofu import PAIRS_PER_AUTHOR, Pair, structured_tofu
from jaxaudit.errors import InputError

OTHER = "other"
"""Kind of an author of whom nothing is said."""


def author_label(number: int) -> str:
    """Name of an author's group.

    Examples
    --------
    >>> author_label(7)
    'author-7'
    """
    return f"author-{number}"


@dataclass(frozen=True)
class AuthorData:
    """Pairs of question and answer about authors.

    Parameters
    ----------
    pairs
        20 per author, see `jaxaudit.data.pistol.read_tofu`.
    kinds
        By number of the author: a word for where the author comes from; whoever is left out is ``other``.
    relations
        By two numbers of authors: what the second is to the first.

    Raises
    ------
    InputError
        If the pairs are not 20 per author, or a kind or relation is that of an author who is not there.
    """

    pairs: tuple[Pair, ...]
    kinds: Mapping[int, str] = field(default_factory=dict)
    relations: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.pairs or len(self.pairs) % PAIRS_PER_AUTHOR:
            raise InputError(f"pairs must be {PAIRS_PER_AUTHOR} per author, got {len(self.pairs)}")
        for name, numbers in (
            ("kinds", self.kinds),
            ("relations", [one for pair in self.relations for one in pair]),
        ):
            unknown = [number for number in numbers if number not in range(self.num_authors)]
            if unknown:
                raise InputError(
                    f"{name} must be of authors 0 to {self.num_authors - 1}, got author {unknown[0]}"
                )

    @property
    def num_authors(self) -> int:
        """Number of authors."""
        return len(self.pairs) // PAIRS_PER_AUTHOR

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All pairs, with the label of their author."""
        return tuple(
            Record(pair.question, pair.answer, author_label(place // PAIRS_PER_AUTHOR))
            for place, pair in enumerate(self.pairs)
        )

    @property
    def edges(self) -> tuple[str, ...]:
        """Labels of the authors, who are the groups here."""
        return tuple(author_label(number) for number in range(self.num_authors))

    @property
    def domains(self) -> dict[str, str]:
        """Kind of every author, by label."""
        return {author_label(number): self.kinds.get(number, OTHER) for number in range(self.num_authors)}

    @cached_property
    def graph(self) -> nx.Graph:
        """Labels of the authors, with an edge where there is a relation. Do not change it."""
        graph = nx.Graph()
        graph.add_nodes_from(self.edges)
        for (first, second), relation in self.relations.items():
            graph.add_edge(author_label(first), author_label(second), relation=relation)
        return graph

    def strata(self, label: str) -> dict[str, tuple[str, ...]]:
        """Retained authors by the number of relations between them and a forgotten one.

        Parameters
        ----------
        label
            Of the forgotten author.

        Raises
        ------
        InputError
            If there is no such author.

        Examples
        --------
        >>> pairs = tuple(Pair(f"What is fact {number}?", "It is so.") for number in range(60))
        >>> AuthorData(pairs, relations={(0, 2): "friend"}).strata("author-0")
        {'1 hop': ('author-2',), 'disconnected': ('author-1',)}
        """
        if label not in self.graph:
            raise InputError(f"label must be among {', '.join(self.edges)}, got {label!r}")
        hops = nx.single_source_shortest_path_length(self.graph, label)
        hops.pop(label)
        return classes_by_distance([one for one in self.edges if one != label], hops)


def relate_authors(
    data: AuthorData,
    authors: Sequence[int],
    related: Sequence[int],
    *,
    seed: int,
    names: Mapping[int, str] | None = None,
) -> AuthorData:
    """Structured TOFU: relations with five others in place of half the pairs of every author to be forgotten.

    Parameters
    ----------
    data
        Without relations.
    authors
        To be forgotten, one at a time.
    related
        Of whom every one of them gets five. None of them is to be forgotten, so that no relation is told twice,
        in two ways.
    seed, names
        See `jaxaudit.data.pistol.structured_tofu`.

    Raises
    ------
    InputError
        As of `jaxaudit.data.pistol.structured_tofu`, or if an author is in both lists.
    """
    both = sorted(set(authors) & set(related))
    if both:
        raise InputError(f"related must not hold authors to be forgotten, got author {both[0]}")
    pairs, relations = list(data.pairs), dict(data.relations)
    for author in authors:
        found = structured_tofu(data.pairs, author, related, seed=seed, names=names)
        for place in found.replaced:
            pairs[place] = found.pairs[place]
        relations |= {(author, other): kind for other, kind in found.relations.items()}
    return replace(data, pairs=tuple(pairs), relations=relations)
