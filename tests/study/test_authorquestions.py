"""Questions about authors: the same parts as of contracts, and what asks for a graph of contracts refuses them."""

import numpy as np
import pytest

from jaxaudit.data.pistol import AuthorData, relate_authors
from jaxaudit.errors import InputError
from jaxaudit.study import AuthorQuestions, QuestionSet, Study, choose_rates, outcomes_of
from jaxaudit.study.languagemodel import make_background, small_model
from jaxaudit.study.outcome import model_cases
from tests.cli.test_pistol_run import _params
from tests.data.pistol.test_tofu import PAIRS

DATA = relate_authors(AuthorData(tuple(PAIRS), {0: "USA"}), [0], [1, 2, 3, 4, 5], seed=0)


@pytest.fixture
def authors(monkeypatch):
    monkeypatch.setattr("jaxaudit.study.languagemodel._pretrain", lambda spec, *args: _params(spec))
    return AuthorQuestions(DATA, small_model(DATA))


def test_parts(authors):
    parts = authors.parts("author-0")
    numbers = {name: sorted(set(np.flatnonzero(flags) // 20)) for name, flags in parts.items()}
    assert numbers == {
        "forget": [0],
        "exclusive": [0],
        "retain": [1, 2, 3, 4, 5, 6],
        "1 hop": [1, 2, 3, 4, 5],
        "disconnected": [6],
        "retain other": [1, 2, 3, 4, 5, 6],
        "disconnected other": [6],
        "first 200": [1, 2, 3, 4, 5, 6],
    }
    assert authors.parts("author-6")["retain USA"].sum() == 20
    assert authors.description == "7 authors, 5 relations, 140 questions"


def test_a_study_of_authors_makes_the_same_models(authors, fakes, micro_spec, tmp_path):
    study = Study(authors, micro_spec, store=tmp_path)
    rates = {method: choice.rate for method, choice in choose_rates(study, ["author-6"]).items()}
    outcomes = outcomes_of(study, ["author-0", "author-1"], rates)
    assert [one.method for one in outcomes] == ["base", "before", "retrained", *rates]
    assert all(one.forget.shape == (4, 20) and one.retain.shape == (4, 120) for one in outcomes)
    method, rate = list(rates.items())[-1]
    recall = study.result(model_cases(study, ["author-0"], method, rate)[0])["recall"]
    assert outcomes[-1].forget[0].tolist() == recall[:20].tolist()


def test_who_needs_contracts_says_so(authors, micro_spec):
    study = Study(authors, micro_spec)
    with pytest.raises(InputError, match="data must be contracts between entities, got AuthorData"):
        _ = study.data
    with pytest.raises(InputError, match=r"edge must be among author-0, .* got 'A_B'"):
        authors.parts("A_B")
    with pytest.raises(InputError, match="data must be contracts between entities, got AuthorData"):
        QuestionSet(DATA, authors.model).parts("author-0")


def test_the_background_is_made_of_contracts():
    background = make_background(DATA, seed=0, num_contracts=5)
    assert {contract.contract_type.name for contract in background.answered.contracts} == {
        "sales",
        "employment",
    }
