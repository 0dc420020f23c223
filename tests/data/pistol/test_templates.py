"""The two contract types: their questions are those of the paper, their tables those of its data."""

import hashlib

import pytest

from jaxaudit.data.pistol.templates import CONTRACT_TYPES, EMPLOYMENT, SALES
from jaxaudit.data.pistol.words import GOODS, JOBS

# SHA-256 of the 20 lines of the paper's Appendix B, placeholders as printed, apostrophes straight, joined by "\n".
PAPER = {
    "sales": "a31ccd0d364f3ec90191e4185fe75f67b4fa27acde6c93722a6397380cbdcd0b",
    "employment": "0c700c0560eddeb9bb87c1bacae6a81e88d1d8525c3258e323bc888699bd7b64",
}


@pytest.mark.parametrize("name", PAPER)
def test_questions_are_those_of_appendix_b(name):
    contract_type = CONTRACT_TYPES[name]
    printed = {party.role: f"[{party.role} name]" for party in contract_type.parties}
    printed |= {date: f"[{date}]" for date in ("effective date", "start date")}
    lines = [question.text.format_map(printed) for question in contract_type.questions]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == PAPER[name]


@pytest.mark.parametrize("contract_type", [SALES, EMPLOYMENT])
def test_twenty_attributes_each_asked_once(contract_type):
    answers = [question.answer for question in contract_type.questions]
    assert len(answers) == 20
    assert sorted(answers) == sorted(contract_type.fields)


def test_roles():
    assert [(party.role, party.kind) for party in SALES.parties] == [
        ("seller", "company"),
        ("customer", "company"),
    ]
    assert [(party.role, party.kind) for party in EMPLOYMENT.parties] == [
        ("employer", "company"),
        ("employee", "person"),
    ]


def test_each_good_and_job_is_used_once():
    assert SALES.attributes["good"].words == GOODS
    assert EMPLOYMENT.attributes["job"].words == JOBS
    assert SALES.attributes["good"].unique
    assert EMPLOYMENT.attributes["job"].unique
