"""Graphs: sizes and degrees against counting formulas, order of edges, and what no graph may be."""

from collections import Counter
from math import comb

import networkx as nx
import pytest

from jaxaudit.data.pistol.contracts import ContractType, Party, Question
from jaxaudit.data.pistol.graphs import (
    barabasi_albert,
    chain,
    check_graph,
    combine,
    complete,
    dataset_1_graph,
    dataset_2_graph,
    edges_in_order,
    erdos_renyi,
    make_graph,
    read_graph,
    regular,
    ring,
    semi_dense,
    star,
)
from jaxaudit.errors import InputError


def degrees(graph):
    return sorted(degree for _, degree in graph.degree)


def test_dataset_1_as_in_the_paper():
    graph = dataset_1_graph()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (24, 20)
    assert Counter(degrees(graph)) == {1: 19, 2: 3, 7: 1, 8: 1}
    assert Counter(contract for *_, contract in edges_in_order(graph)) == {"sales": 10, "employment": 10}
    assert Counter(kind for _, kind in graph.nodes(data="kind")) == {"company": 14, "person": 10}
    # E_i, F_i and q_i are on their own.
    assert sorted(map(len, nx.connected_components(graph))) == [3, 3, 3, 15]


def test_dataset_2_as_in_the_paper():
    graph = dataset_2_graph()
    parts = [graph.subgraph(part) for part in nx.connected_components(graph)]
    assert [sorted(part) for part in parts] == [list(range(start, start + 10)) for start in (0, 10, 20)]
    assert [part.number_of_edges() for part in parts] == [9, 21, 45]
    ladder = nx.grid_2d_graph(2, 5)
    ladder.add_edges_from(((0, i), (1, i + 1)) for i in range(4))
    ladder.add_edges_from(((1, i), (0, i + 1)) for i in range(4))
    assert nx.is_isomorphic(parts[1], ladder)


@pytest.mark.parametrize("num_nodes", [3, 7])
def test_families_against_networkx(num_nodes):
    assert nx.utils.graphs_equal(_plain(chain(num_nodes)), nx.path_graph(num_nodes))
    assert nx.utils.edges_equal(ring(num_nodes).edges, nx.cycle_graph(num_nodes).edges)
    assert nx.utils.graphs_equal(_plain(star(num_nodes)), nx.star_graph(num_nodes - 1))
    assert nx.utils.edges_equal(complete(num_nodes).edges, nx.complete_graph(num_nodes).edges)


def _plain(graph):
    plain = nx.Graph()
    plain.add_nodes_from(graph)
    plain.add_edges_from(graph.edges)
    return plain


def test_random_families():
    assert degrees(regular(18, 5, seed=1)) == [5] * 18
    assert erdos_renyi(12, num_edges=20, seed=1).number_of_edges() == 20
    assert erdos_renyi(6, probability=1.0, seed=1).number_of_edges() == comb(6, 2)
    counts = [erdos_renyi(20, probability=0.5, seed=seed).number_of_edges() for seed in range(10)]
    # The sum of 1,900 fair coins: mean 950, standard deviation 22.
    assert abs(sum(counts) - 950) < 88
    assert barabasi_albert(15, 3, seed=1).number_of_edges() == 3 * 12
    assert nx.is_connected(barabasi_albert(15, 3, seed=1))


@pytest.mark.parametrize(
    "family",
    [
        lambda seed: regular(10, 3, seed=seed),
        lambda seed: erdos_renyi(10, num_edges=15, seed=seed),
        lambda seed: erdos_renyi(10, probability=0.5, seed=seed),
        lambda seed: barabasi_albert(10, 2, seed=seed),
    ],
)
def test_random_families_follow_their_seed(family):
    assert edges_in_order(family(3)) == edges_in_order(family(3))
    assert edges_in_order(family(3)) != edges_in_order(family(4))
    assert all(first < second for first, second, _ in edges_in_order(family(3)))


def test_families_hold_any_contract_type():
    graph = star(4, contract="employment")
    assert dict(graph.nodes(data="kind")) == {0: "company", 1: "person", 2: "person", 3: "person"}
    pact = ContractType("pact", (Party("one", "person"), Party("two", "person")), {}, (Question("one", "?"),))
    types = {"pact": pact}
    assert edges_in_order(chain(3, contract="pact", contract_types=types))[0] == (0, 1, "pact")
    assert (
        combine(ring(3, contract="pact", contract_types=types), contract_types=types).number_of_edges() == 3
    )
    with pytest.raises(InputError, match=r"node 1 is a person, but edge 1_2 \(employment\) needs a company"):
        chain(3, contract="employment")


def test_combine_keeps_order_and_contracts():
    graph = combine(chain(2), star(3, contract="employment"))
    assert edges_in_order(graph) == [(0, 1, "sales"), (2, 3, "employment"), (2, 4, "employment")]


def test_order_is_that_of_the_file_and_foreign_graphs_have_networkx_order():
    edges = [("B", "C", "sales"), ("A", "C", "sales"), ("A", "B", "sales")]
    assert edges_in_order(make_graph(edges)) == edges
    foreign = nx.Graph()
    foreign.add_edge(1, 0, contract="sales")
    assert edges_in_order(foreign) == [(1, 0, "sales")]


def test_file(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("contract,first,second\nsales,A,B\nemployment,B,m\n")
    assert edges_in_order(read_graph(path)) == [("A", "B", "sales"), ("B", "m", "employment")]
    path.write_text("first,second,contarct\nA,B,sales\n")
    with pytest.raises(InputError, match="lack 'contract'"):
        read_graph(path)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "graph must have at least one edge, got none"),
        ([("A", "A", "sales")], "node A has a contract with itself"),
        ([("A", "B", "sales"), ("B", "A", "sales")], "edge B_A is given twice"),
        ([("A", "B", "loan")], "contract of edge A_B must be one of sales, employment, got 'loan'"),
        (
            [("A", "m", "employment"), ("m", "B", "sales")],
            r"node m is a person, but edge m_B \(sales\) needs",
        ),
        ([("A_1", "B", "sales")], "a node must have a label without '_', got 'A_1'"),
        ([("1", 1, "sales")], "nodes must have different labels, got 1, 1"),
    ],
)
def test_bad_edges(edges, message):
    with pytest.raises(InputError, match=message):
        make_graph(edges)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph])
def test_other_kinds_of_graphs(kind):
    with pytest.raises(InputError, match=f"graph must be a networkx.Graph, got {kind.__name__}"):
        check_graph(kind([(0, 1)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chain(1), "num_nodes must be an integer of at least 2, got 1"),
        (lambda: ring(2), "num_nodes must be an integer of at least 3, got 2"),
        (lambda: regular(5, 3, seed=0), "num_nodes times degree must be even, got 5 times 3"),
        (lambda: regular(4, 4, seed=0), "degree must be an integer between 1 and 3, got 4"),
        (lambda: erdos_renyi(5, seed=0), "give either num_edges or probability"),
        (
            lambda: erdos_renyi(5, num_edges=3, probability=0.5, seed=0),
            "give either num_edges or probability",
        ),
        (
            lambda: erdos_renyi(5, num_edges=11, seed=0),
            "num_edges must be an integer between 1 and 10, got 11",
        ),
        (lambda: erdos_renyi(5, probability=0.0, seed=0), r"probability must be in \(0, 1\], got 0.0"),
        (lambda: barabasi_albert(5, 5, seed=0), "num_links must be an integer between 1 and 4, got 5"),
        (lambda: regular(4, 3, seed=-1), "seed must be an integer between 0"),
    ],
)
def test_bad_sizes(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_semi_dense_is_in_file_order():
    names = [f"{first}_{second}" for first, second, _ in edges_in_order(semi_dense())]
    assert names[9:] == ["0_9", "1_8", "2_7", "3_6", "0_8", "1_7", "2_6", "3_5", "4_6", "3_7", "2_8", "1_9"]
