"""Graphs whose edges are contracts: those of the paper's two data sets, and families for sweeps.

A graph is a `networkx.Graph`. Each edge carries ``contract``, the name of its contract type, and
optionally ``name`` and ``position`` (its place in the file); each node optionally carries ``kind``,
``company`` (the default) or ``person``. Families number their nodes from 0 and hold one type of contract.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from jaxaudit.border import check_names, read_csv
from jaxaudit.checks import check_integer, check_real
from jaxaudit.data.pistol.contracts import ContractType
from jaxaudit.data.pistol.templates import CONTRACT_TYPES
from jaxaudit.errors import InputError

Edge = tuple[Any, Any, str]
Types = Mapping[str, ContractType]


def make_graph(edges: Iterable[Edge], contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """A graph from triples: two nodes and the contract type between them, in the order of the file.

    The nodes of an edge are given in the order of the type's parties (employer, employee), from which each
    node's kind follows.

    Raises
    ------
    InputError
        An unknown contract type, an edge given twice, a node with a contract with itself, or a node that
        would have to be both a company and a person.

    Examples
    --------
    >>> graph = make_graph([("A", "B", "sales"), ("A", "m", "employment")])
    >>> graph.nodes["m"], graph.edges["A", "B"]
    ({'kind': 'person'}, {'contract': 'sales', 'name': 'A_B', 'position': 0})
    """
    graph = nx.Graph()
    for position, (first, second, contract) in enumerate(edges):
        contract_type = find_type(contract, f"{first}_{second}", contract_types)
        if graph.has_edge(first, second):
            raise InputError(f"edge {first}_{second} is given twice; a pair of nodes has one contract")
        for node, party in zip((first, second), contract_type.parties, strict=True):
            if node in graph and graph.nodes[node]["kind"] != party.kind:
                raise InputError(
                    f"node {node} is a {graph.nodes[node]['kind']}, but edge {first}_{second} "
                    f"({contract}) needs a {party.kind}"
                )
            graph.add_node(node, kind=party.kind)
        graph.add_edge(first, second, contract=contract, name=f"{first}_{second}", position=position)
    check_graph(graph)
    return graph


def read_graph(path: str | Path, contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """A graph from a CSV file with columns ``first``, ``second`` and ``contract``, see `make_graph`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "edges.csv"
    ...     _ = path.write_text("first,second,contract\\nA,B,sales\\nA,m,employment\\n")
    ...     list(read_graph(path))
    ['A', 'B', 'm']
    """
    rows = [row for _, row in read_csv(path)]
    columns = ("first", "second", "contract")
    check_names(f"{path}: columns", rows[0], columns)
    first, second, contract = (rows[0].index(name) for name in columns)
    return make_graph(((row[first], row[second], row[contract]) for row in rows[1:]), contract_types)


def find_type(contract: Any, edge: str, contract_types: Types) -> ContractType:
    """The contract type of an edge, by name."""
    if contract not in contract_types:
        raise InputError(
            f"contract of edge {edge} must be one of {', '.join(contract_types)}, got {contract!r}"
        )
    return contract_types[contract]


def check_graph(graph: nx.Graph) -> None:
    """Raise unless edges can be told apart by ``first_second`` and each has two ends."""
    if graph.is_directed() or graph.is_multigraph():
        raise InputError(f"graph must be a networkx.Graph, got {type(graph).__name__}")
    if not graph.number_of_edges():
        raise InputError("graph must have at least one edge, got none")
    loops = list(nx.selfloop_edges(graph))
    if loops:
        raise InputError(f"node {loops[0][0]} has a contract with itself")
    labels = [str(node) for node in graph]
    for label in labels:
        if not label or "_" in label:
            raise InputError(f"a node must have a label without '_', got {label!r}")
    if len(set(labels)) < len(labels):
        raise InputError(f"nodes must have different labels, got {', '.join(labels)}")


def dataset_1_graph() -> nx.Graph:
    """The graph of the paper's Dataset 1: 24 nodes, 10 sales and then 10 employments (Figure 3a).

    Examples
    --------
    >>> graph = dataset_1_graph()
    >>> graph.number_of_nodes(), graph.number_of_edges(), graph.degree["A"], graph.degree["B"]
    (24, 20, 8, 7)
    """
    sales = "A_B A_C A_C2 A_C3 B_D B_D2 B_D3 E1_F1 E2_F2 E3_F3"
    employments = "A_m A_n A_n2 A_n3 B_p B_p2 B_p3 E1_q1 E2_q2 E3_q3"
    return make_graph(
        (*name.split("_"), contract)  # type: ignore[misc]
        for contract, names in (("sales", sales), ("employment", employments))
        for name in names.split()
    )


def dataset_2_graph() -> nx.Graph:
    """The graph of the paper's Dataset 2: a chain, a semi-dense and a complete graph of 10 nodes each.

    They have 9, 21 and 45 edges; the 27 of the paper's Appendix C is wrong (its Section 3.2 and its data
    have 21).

    Examples
    --------
    >>> [graph.number_of_edges() for graph in (chain(10), semi_dense(), complete(10))]
    [9, 21, 45]
    """
    return combine(chain(10), semi_dense(), complete(10))


def chain(num_nodes: int, *, contract: str = "sales", contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """Nodes in a row: ``num_nodes - 1`` edges."""
    check_integer("num_nodes", num_nodes, low=2)
    return _of_one_type(pairwise(range(num_nodes)), contract, contract_types)


def ring(num_nodes: int, *, contract: str = "sales", contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """Nodes in a circle: as many edges as nodes, all of degree 3."""
    check_integer("num_nodes", num_nodes, low=3)
    return _of_one_type([*pairwise(range(num_nodes)), (0, num_nodes - 1)], contract, contract_types)


def star(num_nodes: int, *, contract: str = "sales", contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """Node 0 in a contract with every other: ``num_nodes - 1`` edges, any two of which touch."""
    check_integer("num_nodes", num_nodes, low=2)
    return _of_one_type(((0, node) for node in range(1, num_nodes)), contract, contract_types)


def complete(num_nodes: int, *, contract: str = "sales", contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """Every pair of nodes in a contract: ``num_nodes (num_nodes - 1) / 2`` edges."""
    check_integer("num_nodes", num_nodes, low=2)
    return _of_one_type(combinations(range(num_nodes), 2), contract, contract_types)


def semi_dense() -> nx.Graph:
    """The middle part of Dataset 2: a ladder of 2 x 5 nodes with both diagonals of each square, 21 edges.

    Examples
    --------
    >>> sorted(degree for _, degree in semi_dense().degree)
    [3, 3, 3, 3, 5, 5, 5, 5, 5, 5]
    """
    # In file order: chain, rungs, diagonals; rung i joins nodes i and 9 - i, the chain holds the one of 4 and 5.
    rungs = [(node, 9 - node) for node in range(4)]
    diagonals = [(node, 8 - node) for node in range(4)], [(4, 6), (3, 7), (2, 8), (1, 9)]
    return _of_one_type([*pairwise(range(10)), *rungs, *diagonals[0], *diagonals[1]], "sales", CONTRACT_TYPES)


def regular(
    num_nodes: int, degree: int, *, seed: int, contract: str = "sales", contract_types: Types = CONTRACT_TYPES
) -> nx.Graph:
    """A random graph in which every node has ``degree`` contracts.

    With `chain` and `complete`, graphs of equal numbers of edges and different density, which is how data
    sets must be compared.

    Examples
    --------
    >>> regular(18, 5, seed=0).number_of_edges(), complete(10).number_of_edges(), chain(46).number_of_edges()
    (45, 45, 45)
    """
    check_integer("num_nodes", num_nodes, low=2)
    check_integer("degree", degree, low=1, high=num_nodes - 1)
    if num_nodes * degree % 2:
        raise InputError(f"num_nodes times degree must be even, got {num_nodes} times {degree}")
    return _of_one_type(
        _sorted_pairs(nx.random_regular_graph(degree, num_nodes, _seed(seed))), contract, contract_types
    )


def erdos_renyi(
    num_nodes: int,
    *,
    num_edges: int | None = None,
    probability: float | None = None,
    seed: int,
    contract: str = "sales",
    contract_types: Types = CONTRACT_TYPES,
) -> nx.Graph:
    """A uniform graph with ``num_edges`` edges, or each pair independently with ``probability`` in (0, 1].

    Nodes without a contract are not in the graph.

    Raises
    ------
    InputError
        Not exactly one of the two sizes; a size out of range; or no edge at all was drawn.

    Examples
    --------
    >>> erdos_renyi(10, num_edges=21, seed=0).number_of_edges()
    21
    """
    check_integer("num_nodes", num_nodes, low=2)
    if (num_edges is None) == (probability is None):
        raise InputError(
            f"give either num_edges or probability, got num_edges = {num_edges}, probability = {probability}"
        )
    if num_edges is not None:
        check_integer("num_edges", num_edges, low=1, high=num_nodes * (num_nodes - 1) // 2)
        return _of_one_type(
            _sorted_pairs(nx.gnm_random_graph(num_nodes, num_edges, _seed(seed))), contract, contract_types
        )
    probability = check_real("probability", probability)
    if not 0 < probability <= 1:
        raise InputError(f"probability must be in (0, 1], got {probability}")
    return _of_one_type(
        _sorted_pairs(nx.gnp_random_graph(num_nodes, probability, _seed(seed))), contract, contract_types
    )


def barabasi_albert(
    num_nodes: int,
    num_links: int,
    *,
    seed: int,
    contract: str = "sales",
    contract_types: Types = CONTRACT_TYPES,
) -> nx.Graph:
    """Preferential attachment: each new node signs ``num_links`` contracts, busy nodes are preferred.

    It has ``num_links * (num_nodes - num_links)`` edges and a few hubs of high degree.

    Examples
    --------
    >>> barabasi_albert(20, 2, seed=0).number_of_edges()
    36
    """
    check_integer("num_nodes", num_nodes, low=2)
    check_integer("num_links", num_links, low=1, high=num_nodes - 1)
    return _of_one_type(
        _sorted_pairs(nx.barabasi_albert_graph(num_nodes, num_links, _seed(seed))), contract, contract_types
    )


def combine(*graphs: nx.Graph, contract_types: Types = CONTRACT_TYPES) -> nx.Graph:
    """Graphs side by side, nodes numbered from 0 in the order given.

    Examples
    --------
    >>> [data["name"] for _, _, data in combine(chain(3), ring(3)).edges(data=True)]
    ['0_1', '1_2', '3_4', '3_5', '4_5']
    """
    edges: list[Edge] = []
    offset = 0
    for graph in graphs:
        number = {node: offset + index for index, node in enumerate(graph)}
        edges += [(number[u], number[v], contract) for u, v, contract in edges_in_order(graph)]
        offset += len(number)
    return make_graph(edges, contract_types)


def edges_in_order(graph: nx.Graph) -> list[Edge]:
    """Triples of a graph, by ``position`` where the edges have one, else in networkx's order.

    Nodes are in the order of the edge's ``name`` where it has one.
    """
    found = sorted(graph.edges(data=True), key=lambda edge: edge[2].get("position", 0))
    return [
        (v, u, data.get("contract")) if data.get("name") == f"{v}_{u}" else (u, v, data.get("contract"))
        for u, v, data in found
    ]


def _of_one_type(pairs: Iterable[tuple[int, int]], contract: str, contract_types: Types) -> nx.Graph:
    return make_graph(((first, second, contract) for first, second in pairs), contract_types)


def _sorted_pairs(graph: nx.Graph) -> list[tuple[int, int]]:
    """Edges in the order of the other families: the smaller node first, and edges by their nodes."""
    return sorted((min(pair), max(pair)) for pair in graph.edges)


def _seed(seed: int) -> np.random.Generator:
    check_integer("seed", seed, low=0, high=2**32 - 1)
    return np.random.default_rng([seed, *b"graph"])
