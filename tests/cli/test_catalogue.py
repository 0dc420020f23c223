"""``jaxaudit list``: everything there is, by the names that the other commands take."""

from typing import get_args

from jaxaudit.design import PredictorName
from jaxaudit.scores import SCORES
from jaxaudit.unlearn import METHODS


def test_every_name_is_listed(cli):
    document = cli("list", "--json").document
    assert list(document["methods"]) == list(METHODS)
    assert list(document["scores"]) == list(SCORES)
    assert list(document["predictors"]) == list(get_args(PredictorName))
    assert "digits" in document["data"]
    text = " ".join(cli("list").out.split())
    for name, facts in document["methods"].items():
        assert f"{name} {facts['description']}" in text
        assert f"{facts['gradients']:,.0f} gradients; {facts['reference']}]" in text
    for section in ("scores", "predictors", "data"):
        for name, description in document[section].items():
            assert f"{name} {description}" in text


def test_what_is_proved_and_what_it_costs(cli):
    methods = cli("list", "--json").document["methods"]
    assert (methods["clipping"]["epsilon"], methods["clipping"]["delta"]) == (1.0, 1e-5)
    assert methods["ascent"]["epsilon"] is None
    assert methods["none"]["gradients"] == 0
    assert methods["retrain"]["gradients"] == 100 * 16 * 64  # 100 epochs of 16 batches of 64
