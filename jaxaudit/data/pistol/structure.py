"""Facts about the graph that every evaluation of structural unlearning needs.

Two of them change what forgetting an edge means, and the paper discusses neither. An entity's address is
an answer in all its contracts, so part of the answers of a forgotten edge are legitimately retained
(`shared_questions`). And whoever never saw the edge still guesses part of the rest from the other contracts
(`guessing_floor`), so that zero is not what a model retrained without the edge scores.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from jaxaudit.data.pistol.contracts import Contract
from jaxaudit.data.pistol.dataset import PistolData, Record
from jaxaudit.errors import InputError

DISCONNECTED = "disconnected"


def edge_degrees(data: PistolData) -> dict[str, int]:
    """The degree of every edge e, deg(e) = deg(u) + deg(v) - 1 with u, v its ends (Section 4.1).

    It is the number of edges that touch e, e itself included.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> degrees = edge_degrees(dataset_1())
    >>> degrees["A_B"], degrees["A_C"], degrees["B_D"], degrees["E1_F1"]
    (14, 8, 7, 2)
    """
    degree = data.graph.degree
    return {
        contract.edge: degree[contract.nodes[0]] + degree[contract.nodes[1]] - 1
        for contract in data.contracts
    }


def edge_domains(data: PistolData) -> dict[str, str]:
    """The contract type of every edge: ``sales`` or ``employment``, the paper's domains.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> domains = edge_domains(dataset_1())
    >>> domains["A_B"], domains["A_n"]
    ('sales', 'employment')
    """
    return {contract.edge: contract.contract_type.name for contract in data.contracts}


def edge_distances(data: PistolData, forget_edges: Iterable[str]) -> dict[str, int]:
    """Hops from each retained edge to the nearest forgotten one; edges that cannot be reached are left out.

    Hops are counted in the line graph: 1 if the edges share a node.

    Raises
    ------
    InputError
        A forgotten edge that the data do not have, no edge, or all of them.

    Examples
    --------
    >>> from jaxaudit.data.pistol import chain, generate
    >>> edge_distances(generate(chain(5), seed=0), ["0_1"])
    {'1_2': 1, '2_3': 2, '3_4': 3}
    """
    forgotten = _check_edges(data, forget_edges)
    nodes = {node for contract in data.contracts if contract.edge in forgotten for node in contract.nodes}
    hops = nx.multi_source_dijkstra_path_length(data.graph, nodes)
    return {
        contract.edge: 1 + min(hops[node] for node in contract.nodes)
        for contract in data.contracts
        if contract.edge not in forgotten and contract.nodes[0] in hops
    }


def strata(data: PistolData, forget_edges: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Retained edges by distance: ``1 hop``, ``2 hops``, ..., ``disconnected``; classes without edges are left out.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> {name: len(edges) for name, edges in strata(dataset_1(), ["A_C"]).items()}
    {'1 hop': 7, '2 hops': 6, 'disconnected': 6}
    """
    forgotten = _check_edges(data, forget_edges)
    retained = [edge for edge in data.edges if edge not in forgotten]
    return classes_by_distance(retained, edge_distances(data, forgotten))


def classes_by_distance(retained: Iterable[str], hops: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Names by distance, the nearest first, and those without a distance last; classes without members are left out.

    Parameters
    ----------
    retained
        Names in the order of the data.
    hops
        Distance, at least 1, of those that can be reached.

    Examples
    --------
    >>> classes_by_distance(["a", "b", "c"], {"c": 1, "a": 3})
    {'1 hop': ('c',), '3 hops': ('a',), 'disconnected': ('b',)}
    """
    names = {number: "1 hop" if number == 1 else f"{number} hops" for number in sorted(set(hops.values()))}
    classes: dict[str, list[str]] = {name: [] for name in (*names.values(), DISCONNECTED)}
    for one in retained:
        classes[names[hops[one]] if one in hops else DISCONNECTED].append(one)
    return {name: tuple(members) for name, members in classes.items() if members}


def shared_questions(data: PistolData, forget_edges: Iterable[str]) -> tuple[bool, ...]:
    """For each question of the forgotten edges, in file order: is its answer also that of a retained question?

    True where the answer is the address of an entity that has a retained contract. Forgetting may not touch
    these; the others are exclusive to the forgotten edges.

    Raises
    ------
    InputError
        As in `edge_distances`.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> data = dataset_1()
    >>> sum(shared_questions(data, ["A_B"])), sum(shared_questions(data, ["A_C"]))
    (2, 1)
    >>> sum(shared_questions(data, ["E1_F1", "E1_q1"]))
    0
    """
    forgotten = _check_edges(data, forget_edges)
    retained = _retained_nodes(data, forgotten)
    return _flags(data, forgotten, lambda contract: _shared(contract, retained))


def address_questions(data: PistolData, edges: Iterable[str]) -> tuple[bool, ...]:
    """For each question of some edges, in file order: does it ask for an address, the same in all contracts of a party?

    Raises
    ------
    InputError
        As in `edge_distances`.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> sum(address_questions(dataset_1(), ["A_B", "E1_q1"]))
    4
    """
    return _flags(
        data, _check_edges(data, edges), lambda contract: [owner is not None for owner in _owners(contract)]
    )


class RecordSplit(NamedTuple):
    """All records, by what forgetting an edge may do to them."""

    exclusive: tuple[Record, ...]
    """To be forgotten: the answer is in the forgotten edges alone."""
    shared: tuple[Record, ...]
    """Of forgotten edges, but the answer is legitimately retained."""
    retained: tuple[Record, ...]
    """Of the other edges."""


def split_records(data: PistolData, forget_edges: Iterable[str]) -> RecordSplit:
    """Records of the forgotten edges, exclusive ones and shared ones (see `shared_questions`), and the rest.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> tuple(map(len, split_records(dataset_1(), ["A_B"])))
    (18, 2, 380)
    """
    forgotten = _check_edges(data, forget_edges)
    forget = [record for record in data.records if record.edge in forgotten]
    flags = shared_questions(data, forgotten)
    return RecordSplit(
        tuple(record for record, shared in zip(forget, flags, strict=True) if not shared),
        tuple(record for record, shared in zip(forget, flags, strict=True) if shared),
        tuple(record for record in data.records if record.edge not in forgotten),
    )


def guessing_floor(
    data: PistolData, forget_edges: Iterable[str], score: Callable[[str, str], float]
) -> tuple[float, ...]:
    """What a guesser who never saw the forgotten edges scores on each of their questions, in file order.

    It answers every question with one text: the address where that is retained; otherwise, out of the
    answers to the same question in retained contracts of the same type, the one that scores best on
    these contracts (the first of equals). The mean is the floor of a forgotten edge; with ROUGE-1 recall it
    is 0.317 for A_B and 0.263 for A_C of the published data, not 0. A model trained without the edge is the
    reference proper; this is what it can be expected to know.

    Parameters
    ----------
    data, forget_edges
        The data, and the names of the edges that are forgotten.
    score
        Of an answer given (second argument) when the first argument is right, in [0, 1].

    Raises
    ------
    InputError
        As in `edge_distances`, or no contract of a forgotten edge's type is retained.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> floor = guessing_floor(dataset_1(), ["A_B"], lambda truth, guess: float(truth == guess))
    >>> len(floor), floor[2], floor[4]
    (20, 1.0, 1.0)
    """
    forgotten = _check_edges(data, forget_edges)
    retained = _retained_nodes(data, forgotten)
    answers = {
        contract.edge: [answer for _, answer in contract.questions_and_answers(data.entities)]
        for contract in data.contracts
    }
    scores: list[float] = []
    for contract in data.contracts:
        if contract.edge not in forgotten:
            continue
        alike = [
            answers[other.edge]
            for other in data.contracts
            if other.edge not in forgotten and other.contract_type.name == contract.contract_type.name
        ]
        if not alike:
            raise InputError(
                f"no {contract.contract_type.name} contract is retained to guess {contract.edge} from"
            )
        shared = _shared(contract, retained)
        for truth, known, seen in zip(answers[contract.edge], shared, zip(*alike), strict=True):
            scores.append(score(truth, truth if known else _best_constant(seen, score)))
    return tuple(scores)


def summary(data: PistolData) -> dict[str, Any]:
    """Sizes of the data and of each connected part, as plain numbers.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_2
    >>> [part["mean_edge_degree"] for part in summary(dataset_2())["parts"]]
    [2.78, 7.86, 17.0]
    """
    degrees = edge_degrees(data)
    parts = []
    for nodes in nx.connected_components(data.graph):
        graph = data.graph.subgraph(nodes)
        edges = [contract.edge for contract in data.contracts if contract.nodes[0] in nodes]
        parts.append(
            {
                "nodes": graph.number_of_nodes(),
                "edges": len(edges),
                "density": round(nx.density(graph), 4),
                "mean_edge_degree": round(float(np.mean([degrees[edge] for edge in edges])), 2),
            }
        )
    return {
        "nodes": len(data.entities),
        "edges": len(data.contracts),
        "questions": len(data.records),
        "domains": dict(Counter(edge_domains(data).values())),
        "parts": parts,
    }


def _check_edges(data: PistolData, forget_edges: Iterable[str]) -> set[str]:
    if isinstance(forget_edges, str):
        raise InputError(f"forget_edges must be a list of edges, got the text {forget_edges!r}")
    forgotten = set(forget_edges)
    unknown = sorted(forgotten.difference(data.edges))
    if unknown:
        raise InputError(f"forget_edges must be among {', '.join(data.edges)}, got {unknown[0]!r}")
    if not 0 < len(forgotten) < len(data.edges):
        raise InputError(
            f"forget_edges must be at least one of the {len(data.edges)} edges and not all, got {len(forgotten)}"
        )
    return forgotten


def _retained_nodes(data: PistolData, forgotten: Collection[str]) -> set[str]:
    return {node for contract in data.contracts if contract.edge not in forgotten for node in contract.nodes}


def _flags(
    data: PistolData, edges: Collection[str], flags_of: Callable[[Contract], list[bool]]
) -> tuple[bool, ...]:
    """Of every question of some edges, in file order."""
    return tuple(flag for contract in data.contracts if contract.edge in edges for flag in flags_of(contract))


def _owners(contract: Contract) -> list[int | None]:
    """Whose address each question asks for."""
    return [contract.contract_type.owner(question) for question in contract.contract_type.questions]


def _shared(contract: Contract, retained_nodes: Collection[str]) -> list[bool]:
    return [owner is not None and contract.parties[owner] in retained_nodes for owner in _owners(contract)]


def _best_constant(answers: Iterable[str], score: Callable[[str, str], float]) -> str:
    counts = Counter(answers)
    return max(
        counts, key=lambda guess: sum(number * score(truth, guess) for truth, number in counts.items())
    )
