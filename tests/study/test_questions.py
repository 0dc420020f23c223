"""The data as tokens: parts against brute force, the pool, names of edges."""

import numpy as np
import pytest

from jaxaudit.data.pistol import dataset_1
from jaxaudit.errors import InputError
from jaxaudit.study import QuestionSet


@pytest.fixture(scope="module")
def first(micro):
    return QuestionSet(dataset_1(), micro.model)


def hops(edges, edge):
    """Distances between edges by repeated growth of the set of edges that touch."""
    reached, distance = {edge}, {edge: 0}
    while True:
        nodes = {node for one in reached for node in one.split("_")}
        new = {one for one in edges if set(one.split("_")) & nodes} - reached
        if not new:
            return distance
        distance |= dict.fromkeys(new, max(distance.values()) + 1)
        reached |= new


@pytest.mark.parametrize("edge", ["A_B", "A_C", "A_n", "E1_F1"])
def test_parts_are_those_of_brute_force(first, edge):
    parts, records = first.parts(edge), first.data.records
    distance = hops(first.data.edges, edge)
    for number, record in enumerate(records):
        own = record.edge == edge
        assert parts["forget"][number] == own
        assert parts["retain"][number] == (not own)
        for name in ("1 hop", "2 hops", "disconnected"):
            far = distance.get(record.edge)
            expected = {"1 hop": far == 1, "2 hops": far == 2, "disconnected": far is None}[name]
            assert parts.get(name, np.zeros(400, bool))[number] == expected
    retained = {record.answer for record in records if record.edge != edge and " " in record.answer}
    known = {entity.address for entity in first.data.entities.values()}
    addresses = [
        number
        for number in np.flatnonzero(parts["forget"])
        if records[number].answer in retained and records[number].answer.removesuffix(".") in known
    ]
    assert np.flatnonzero(parts["shared"]).tolist() == addresses
    assert (parts["exclusive"] == (parts["forget"] & ~parts["shared"])).all()


def test_domains_and_the_first_200(first):
    parts = first.parts("A_C")
    assert (parts["retain sales"].sum(), parts["retain employment"].sum()) == (180, 200)
    assert (parts["disconnected sales"].sum(), parts["disconnected employment"].sum()) == (60, 60)
    # As the authors' code: nine sales edges, then the first of employment.
    assert set(first.edges[parts["first 200"]]) == {*first.data.edges[:10], "A_m"} - {"A_C"}


def test_the_pool_ends_with_an_example_of_weight_0(micro):
    pool = micro.pool
    assert pool.weights.tolist() == [1.0] * 80 + [0.0]
    assert _texts(micro, pool.x.truth)[:-1] == micro.answers
    assert len(set(_texts(micro, pool.x.alternative)[:-1])) == 80


def _texts(questions, tokens):
    rows = zip(np.asarray(tokens.ids), np.asarray(tokens.answer))
    return [questions.model.tokenizer.decode(row[mask > 0].tolist()) for row, mask in rows]


def test_an_unknown_edge_is_named(micro):
    with pytest.raises(InputError, match=r"edge must be among 0_1, .* got 'A_B'"):
        micro.of_edges(["A_B"])
