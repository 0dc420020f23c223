"""Reading data back: any generated data come back whole, and what is not such data is refused."""

from dataclasses import replace

import pytest

from jaxaudit.data.pistol import (
    barabasi_albert,
    chain,
    check_values,
    complete,
    dataset_1,
    generate,
    make_graph,
    parse,
    ring,
)
from jaxaudit.data.pistol.dataset import PistolData, Record
from jaxaudit.errors import InputError

DATA = dataset_1(2)


@pytest.mark.parametrize(
    "graph",
    [
        chain(2),
        chain(4),
        ring(3),
        complete(4),
        barabasi_albert(8, 2, seed=0),
        make_graph([("A", "m", "employment"), ("B", "m", "employment"), ("C", "D", "sales")]),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_records_are_the_same_again(graph, seed):
    data = generate(graph, seed=seed)
    again = parse(data.records)
    assert again.records == data.records
    assert dict(again.graph.edges) == dict(data.graph.edges)
    # The ends of a sale without neighbours cannot be told apart: there the seller is the first.
    alone = {
        node for c in data.contracts for node in c.nodes if all(data.graph.degree[n] == 1 for n in c.nodes)
    }
    for node, entity in data.entities.items():
        if node not in alone:
            assert again.entities[node] == entity
    assert set(again.entities.values()) == set(data.entities.values())


def test_edges_may_be_mixed_in_the_file():
    records = [*DATA.records[::2], *DATA.records[1::2]]
    by_edge = sorted(records, key=lambda record: DATA.records.index(record))
    assert parse(by_edge) == DATA
    mixed = [DATA.records[20 * edge + place] for place in range(20) for edge in range(20)]
    assert parse(mixed) == DATA


def changed(place, **texts):
    records = list(DATA.records)
    records[place] = replace(records[place], **texts)
    return records


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            changed(2, question="Where?"),
            "edge A_B is no known contract: as sales, question 3 of 20 should be 'What",
        ),
        (changed(203, question="Where?"), "as employment, question 4 of 20 should be .*, got 'Where\\?'"),
        (changed(6, answer="3"), "question 7 of 20 should be answered with a full stop"),
        (DATA.records[:-1], "edge E3_q3 .* question 20 of 20 should be .*, got 19 questions"),
        ([*DATA.records, DATA.records[-1]], "edge E3_q3 .*question 21 of 20 should be nothing, got"),
        (changed(1, answer="Nobody Ltd."), "edge A_B is no known contract: as sales, question 1 of 20"),
        (
            [replace(r, edge="A") for r in DATA.records[:20]],
            "edge must be the labels of two nodes .*, got 'A'",
        ),
        ([replace(r, edge="A_A") for r in DATA.records[:20]], "edge must be the labels of two nodes"),
        ([replace(r, edge="A_B_C") for r in DATA.records[:20]], "edge must be the labels of two nodes"),
    ],
)
def test_what_is_not_pistol_data(records, message):
    with pytest.raises(InputError, match=message):
        parse(records)


def test_an_entity_with_two_addresses():
    """B is in A_B and elsewhere, so a new address in A_B alone is a contradiction."""
    for place in (2, 4):
        with pytest.raises(InputError, match="has no one name and address in all its edges"):
            parse(changed(place, answer="999 Zzzzzz Lane."))


def rename(records, edges):
    return [Record(r.question, r.answer, edges.get(r.edge, r.edge)) for r in records]


def test_nodes_that_are_not_where_their_names_are():
    data = generate(chain(4), seed=0)
    with pytest.raises(
        InputError, match=r"has no one name and address|are not those of its nodes' other edges"
    ):
        parse(rename(data.records, {"1_2": "0_2", "0_1": "1_2"}))
    lone = generate(make_graph([("A", "B", "sales"), ("C", "D", "sales")]), seed=0)
    twice = [*lone.records[:20], *(replace(r, edge="C_D") for r in lone.records[:20])]
    with pytest.raises(InputError, match="two nodes have the name"):
        parse(twice)


def with_value(name, text):
    first, *others = DATA.contracts
    return PistolData(DATA.entities, (replace(first, values={**first.values, name: text}), *others))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quantity", "101"),
        ("total price", "0"),
        ("effective date", "31-02-2000"),
        ("late rate", "2"),
        ("shipping payer", "Nobody"),
        ("law", "The State of Utah"),
        ("delivery address", "nowhere"),
    ],
)
def test_values_that_cannot_be(name, text):
    check_values(DATA)
    with pytest.raises(InputError, match=f"edge A_B: .* must be a value of .*, got '{text}'|total price"):
        check_values(with_value(name, text))


def test_entities_that_share_a_name_or_an_address():
    for what in ("name", "address"):
        twin = replace(DATA.entities["B"], **{what: getattr(DATA.entities["A"], what)})
        with pytest.raises(InputError, match=f"two entities have the {what}"):
            check_values(PistolData({**DATA.entities, "B": twin}, DATA.contracts))
