"""A data set: records and graph follow from entities and contracts; an entity can be replaced."""

import pytest

from jaxaudit.data.pistol import (
    GOLDMAN_SACHS,
    WILLIAM_SHAKESPEARE,
    check_values,
    dataset_1,
    dataset_2,
    parse,
    replace_entity,
)
from jaxaudit.errors import InputError

DATA = dataset_1()


def test_records_follow_the_contracts():
    assert [record.edge for record in DATA.records] == [edge for edge in DATA.edges for _ in range(20)]


def test_graph_carries_kinds_and_contracts():
    assert DATA.graph.nodes["A"] == {"kind": "company"}
    assert DATA.graph.nodes["m"] == {"kind": "person"}
    assert DATA.graph.edges["A", "m"] == {"name": "A_m", "contract": "employment"}


@pytest.mark.parametrize("known", [GOLDMAN_SACHS, WILLIAM_SHAKESPEARE])
def test_replacing_an_entity_changes_its_texts_alone(known):
    before = dataset_2()
    after = replace_entity(before, "25", name=known.name, address=known.address)
    old = before.entities["25"]
    texts = [
        (
            record.question.replace(old.name, known.name),
            record.answer.replace(old.name, known.name).replace(old.address, known.address),
            record.edge,
        )
        for record in before.records
    ]
    assert [(record.question, record.answer, record.edge) for record in after.records] == texts
    changed = {old.edge for old, new in zip(before.records, after.records, strict=True) if old != new}
    assert changed == {edge for edge in before.edges if "25" in edge.split("_")}
    assert len(changed) == 9
    check_values(after)
    assert parse(after.records) == after


@pytest.mark.parametrize(
    ("node", "name", "address", "message"),
    [
        ("Z", "Bank", "1 Lane", "node must be one of A, B, .*, got 'Z'"),
        ("A", " ", "1 Lane", "name must not be empty"),
        ("A", "Bank", "", "address must not be empty"),
        ("A", DATA.entities["B"].name, "1 Lane", "is that of another entity"),
        ("A", "Bank", DATA.entities["m"].address, "is that of another entity"),
    ],
)
def test_bad_replacements(node, name, address, message):
    with pytest.raises(InputError, match=message):
        replace_entity(DATA, node, name=name, address=address)


def test_an_entity_may_keep_its_name_and_move():
    moved = replace_entity(DATA, "A", name=DATA.entities["A"].name, address="1 Lane")
    changed = [new for old, new in zip(DATA.records, moved.records, strict=True) if old != new]
    # One address in each of the eight contracts of A.
    assert [record.answer for record in changed] == ["1 Lane."] * 8
