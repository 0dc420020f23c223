"""Facts about the graph, against the line graph, against the texts themselves, and against brute force."""

from collections import Counter

import networkx as nx
import pytest

from jaxaudit.data.pistol import (
    barabasi_albert,
    chain,
    complete,
    dataset_1,
    dataset_2,
    edge_degrees,
    edge_distances,
    edge_domains,
    erdos_renyi,
    generate,
    guessing_floor,
    make_graph,
    shared_questions,
    split_records,
    star,
    strata,
    summary,
)
from jaxaudit.data.pistol.values import Address
from jaxaudit.errors import InputError

DATA = dataset_1()
RANDOM = [
    generate(erdos_renyi(12, num_edges=11, seed=3), seed=0),
    generate(barabasi_albert(10, 2, seed=3), seed=0),
]


def exact(truth, guess):
    return float(truth == guess)


@pytest.mark.parametrize("data", [DATA, *RANDOM])
def test_degree_is_the_number_of_edges_that_touch(data):
    degrees = edge_degrees(data)
    for contract in data.contracts:
        touching = [other for other in data.contracts if set(other.nodes) & set(contract.nodes)]
        assert degrees[contract.edge] == len(touching)


def test_degrees_of_the_paper():
    degrees = edge_degrees(DATA)
    assert {name: degrees[name] for name in ("A_B", "A_C", "A_n", "B_p", "E1_F1")} == {
        "A_B": 14,
        "A_C": 8,
        "A_n": 8,
        "B_p": 7,
        "E1_F1": 2,
    }
    degrees = edge_degrees(dataset_2())
    of_part = [Counter(d for e, d in degrees.items() if int(e.split("_")[0]) // 10 == k) for k in range(3)]
    assert of_part[0] == {2: 2, 3: 7}
    assert set(of_part[1]) == {5, 7, 9}
    assert of_part[2] == {17: 45}


def test_domains():
    assert Counter(edge_domains(DATA).values()) == {"sales": 10, "employment": 10}
    assert edge_domains(DATA)["E1_q1"] == "employment"


@pytest.mark.parametrize("data", [DATA, *RANDOM])
@pytest.mark.parametrize("count", [1, 2])
def test_distances_are_those_of_the_line_graph(data, count):
    line = nx.line_graph(data.graph)
    node = {
        contract.edge: next(n for n in line if set(n) == set(contract.nodes)) for contract in data.contracts
    }
    forget = data.edges[:: len(data.edges) - 1][:count]
    expected = {}
    for edge in data.edges:
        hops = [
            nx.shortest_path_length(line, node[edge], node[gone])
            for gone in forget
            if nx.has_path(line, node[edge], node[gone])
        ]
        if edge not in forget and hops:
            expected[edge] = min(hops)
    assert edge_distances(data, forget) == expected


def test_strata_are_a_partition():
    for data in (DATA, *RANDOM):
        hops = edge_distances(data, data.edges[:1])
        classes = strata(data, data.edges[:1])
        assert sorted(edge for edges in classes.values() for edge in edges) == sorted(data.edges[1:])
        for name, edges in classes.items():
            assert edges
            for edge in edges:
                wanted = f"{hops[edge]} hop{'s' * (hops[edge] > 1)}" if edge in hops else "disconnected"
                assert name == wanted


def test_strata_are_in_order_of_distance():
    assert list(strata(generate(chain(5), seed=0), ["0_1"])) == ["1 hop", "2 hops", "3 hops"]
    assert strata(DATA, ["E1_F1"]) == {
        "1 hop": ("E1_q1",),
        "disconnected": tuple(e for e in DATA.edges if e not in ("E1_F1", "E1_q1")),
    }


@pytest.mark.parametrize("data", [DATA, *RANDOM])
@pytest.mark.parametrize("count", [1, 3])
def test_shared_questions_are_those_whose_address_is_in_a_retained_answer(data, count):
    """Read off the texts: all addresses are different, so equal addresses are one entity's."""
    forget = data.edges[:count]
    retained = {record.answer for record in data.records if record.edge not in forget}
    expected = tuple(
        Address().accepts(record.answer[:-1], {}) and record.answer in retained
        for record in data.records
        if record.edge in forget
    )
    assert shared_questions(data, forget) == expected


def test_counts_of_shared_questions():
    counts = {edge: sum(shared_questions(DATA, [edge])) for edge in DATA.edges}
    assert counts.pop("A_B") == 2
    assert set(counts.values()) == {1}
    assert sum(shared_questions(generate(complete(4), seed=0), ["0_1"])) == 2
    alone = generate(make_graph([("A", "B", "sales"), ("C", "D", "sales")]), seed=0)
    assert sum(shared_questions(alone, ["A_B"])) == 0


def test_split_records():
    split = split_records(DATA, ["A_B", "A_m"])
    flags = shared_questions(DATA, ["A_B", "A_m"])
    forget = [record for record in DATA.records if record.edge in ("A_B", "A_m")]
    assert list(split.shared) == [record for record, flag in zip(forget, flags, strict=True) if flag]
    assert sorted(map(str, sum(split, ()))) == sorted(map(str, DATA.records))
    assert {record.edge for record in split.retained} == set(DATA.edges) - {"A_B", "A_m"}


def test_guessing_floor_by_brute_force():
    data = generate(star(5), seed=1)
    forget, others = "0_2", ("0_1", "0_3", "0_4")
    rows = {edge: [r.answer for r in data.records if r.edge == edge] for edge in data.edges}
    expected = []
    for place, truth in enumerate(rows[forget]):
        seen = [rows[edge][place] for edge in others]
        guess = max(seen, key=seen.count)
        expected.append(exact(truth, guess))
    place = next(p for p, shared in enumerate(shared_questions(data, [forget])) if shared)
    expected[place] = 1.0
    assert guessing_floor(data, [forget], exact) == tuple(expected)


def test_guessing_floor_keeps_the_domains_apart():
    """From sales nothing is known about employment; and nothing to guess from is an error."""
    data = generate(make_graph([("A", "B", "sales"), ("A", "m", "employment")]), seed=0)
    with pytest.raises(InputError, match="no employment contract is retained to guess A_m from"):
        guessing_floor(data, ["A_m"], exact)
    scores = guessing_floor(DATA, ["A_m", "A_B"], lambda truth, guess: 0.25)
    assert scores == (0.25,) * 40


@pytest.mark.parametrize("function", [edge_distances, strata, shared_questions, split_records])
@pytest.mark.parametrize(
    ("forget", "message"),
    [
        ((), "forget_edges must be at least one of the 20 edges and not all, got 0"),
        (DATA.edges, "and not all, got 20"),
        (("A_Z",), "forget_edges must be among A_B, .*, got 'A_Z'"),
        ("A_B", "forget_edges must be a list of edges, got the text 'A_B'"),
    ],
)
def test_bad_edges(function, forget, message):
    with pytest.raises(InputError, match=message):
        function(DATA, forget)


def test_summary():
    facts = summary(dataset_2())
    assert (facts["nodes"], facts["edges"], facts["questions"]) == (30, 75, 1500)
    assert [part["edges"] for part in facts["parts"]] == [9, 21, 45]
    # Of all pairs: 9 / 45, 21 / 45, 45 / 45.
    assert [part["density"] for part in facts["parts"]] == [0.2, 0.4667, 1.0]
