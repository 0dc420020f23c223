"""The learning rates of an audit of edges, on made-up models."""

from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.study import EdgeAudit
from jaxaudit.study.edgerates import _place

METHODS = ("gradient_ascent", "npo")


def test_rates_are_those_that_forget_most_and_retain(candidates, spec, edge_fakes):
    """The made-up ascent retains everything at every rate, and forgets everything."""
    audit = EdgeAudit(candidates, spec)
    choices = audit.rates()
    assert {method: choice.rate for method, choice in choices.items()} == dict.fromkeys(METHODS, 1e-3)
    (first, second) = choices["gradient_ascent"].tried
    assert (first.forget, first.retain, first.allowed) == (0.0, 1.0, True)
    assert (first.rate, second.rate) == (1e-3, 1e-2)
    assert choices["npo"].tried[0].forget == 1.0
    assert edge_fakes.unlearned == [("gradient_ascent", (1e-3, 1e-2)), ("npo", (1e-3, 1e-2))]


def test_the_strong_rule_forgets_as_much_as_retraining(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, replace(spec, rules=("strong",)))
    choices = audit.rates()
    assert set(choices) == {"gradient_ascent (strong)", "npo (strong)"}
    ascent, npo = choices.values()
    assert (ascent.rate, ascent.threshold, ascent.met) == (1e-3, 0.0, True)
    assert (npo.rate, npo.met) == (1e-3, False)  # it forgets nothing at any rate
    both = EdgeAudit(candidates, replace(spec, rules=("utility", "strong")))
    edge_fakes.unlearned.clear()
    both.ensure(["npo", "npo (strong)"])
    same = [both.scored(row).scores for row in ("npo", "npo (strong)")]
    np.testing.assert_array_equal(*same)
    # Every rate is tried once, and one set of runs is made.
    assert edge_fakes.unlearned[0] == ("npo", (1e-3, 1e-2))
    assert edge_fakes.unlearned[1:] == [("npo", (1e-3, 1e-3))] * 4


@pytest.mark.parametrize("rule", ["utility", "strong"])
def test_a_rate_at_which_the_model_diverged_is_not_taken(candidates, spec, edge_fakes, monkeypatch, rule):
    """It knows nothing, and seems to have forgotten most."""

    def unlearn(models, method, reading, rates, keys, whole, label):
        after = np.array(whole)
        after[np.asarray(rates) == 1e-3] = 0.0
        return after, [np.inf if rate == 1e-3 else 1.0 for rate in rates]

    monkeypatch.setattr("jaxaudit.study.edgemodels.EdgeModels.unlearn", unlearn)
    (choice,) = EdgeAudit(candidates, replace(spec, methods=("npo",), rules=(rule,))).rates().values()
    assert [(one.rate, one.finite) for one in choice.tried] == [(1e-3, False), (1e-2, True)]
    assert not choice.tried[0].allowed
    assert choice.rate == 1e-2


def test_rates_that_differ_late_have_other_places(candidates, spec, edge_fakes):
    """Seven digits and more count."""
    close = replace(spec, methods=("npo",), study=replace(spec.study, rates=(1.0000001e-3, 1.0000002e-3)))
    assert len(EdgeAudit(candidates, close).rates()["npo"].tried) == 2
    assert edge_fakes.unlearned == [("npo", (1.0000001e-3, 1.0000002e-3))]
    assert len({_place("npo", rate) for rate in close.study.rates}) == 2
