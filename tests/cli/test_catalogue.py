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
    text = cli("list").out
    for names in document.values():
        for name, description in names.items():
            assert name in text
            assert description in text
