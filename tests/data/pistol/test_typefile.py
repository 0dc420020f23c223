"""Contract types from JSON: the built-in ones survive the way there and back; faults are named."""

import json
from dataclasses import asdict

import pytest

from jaxaudit.data.pistol.templates import EMPLOYMENT, SALES
from jaxaudit.data.pistol.typefile import contract_type, read_contract_type
from jaxaudit.errors import InputError


def document(source):
    return {
        "name": source.name,
        "parties": [asdict(party) for party in source.parties],
        "attributes": {
            name: {"kind": type(value).__name__.lower(), **asdict(value)}
            for name, value in source.attributes.items()
        },
        "questions": [asdict(question) for question in source.questions],
    }


@pytest.mark.parametrize("source", [SALES, EMPLOYMENT])
def test_built_in_types_as_files(tmp_path, source):
    path = tmp_path / "type.json"
    path.write_text(json.dumps(document(source)))
    assert read_contract_type(path) == source


def changed(**parts):
    return document(SALES) | parts


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "a contract type must be an object"),
        ({"name": "x"}, "contract type: keys lack 'parties', 'attributes', 'questions'"),
        (changed(parties=[{"role": "a", "kind": "person"}]), "parties must be two, got 1"),
        (changed(parties=[{"role": "a", "knd": "person"}] * 2), "is 'knd' meant to be 'kind'"),
        (changed(parties="ab"), "parties must be a list, got 'ab'"),
        (changed(questions=[{"answer": "law", "text": 3}]), "text of question 0 must be a text"),
        (changed(name=""), "name must be a text that is not empty, got ''"),
        (changed(attributes=[]), r"attributes must be an object, got \[\]"),
        (changed(attributes={"law": 3}), "attribute 'law' must be an object with a kind, got 3"),
        (
            changed(attributes={"law": {"kind": "float"}}),
            "kind of attribute 'law' must be one of address, choice",
        ),
        (changed(attributes={"law": {"kind": "date", "year": 3}}), "attribute 'law': .*year"),
        (changed(attributes={"law": {"kind": "integer", "low": 3}}), "attribute 'law': .*high"),
        (
            changed(attributes={"law": {"kind": "integer", "low": 3, "high": "x"}}),
            "attribute 'law': high must be",
        ),
        (changed(attributes={}), "has no field"),
    ],
)
def test_faults(data, message):
    with pytest.raises(InputError, match=message):
        contract_type(data)


def test_files_that_are_not_types(tmp_path):
    path = tmp_path / "type.json"
    path.write_text("{")
    with pytest.raises(InputError, match=r"type\.json is not JSON"):
        read_contract_type(path)
    path.write_text("[]")
    with pytest.raises(InputError, match=r"type\.json: a contract type must be an object"):
        read_contract_type(path)
