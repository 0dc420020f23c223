"""The choice of learning rates, on made-up results."""

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.study import Case, Study, Tried, choose_rates, tuning_cases
from jaxaudit.study.rates import best_rate, strongest_rate


def tried(rate, forget, retain, allowed):
    return Tried("npo", rate, forget, retain, allowed)


def test_the_allowed_rate_that_forgets_most_is_taken():
    rows = [tried(1e-4, 0.9, 1.0, True), tried(1e-3, 0.3, 0.9, True), tried(1e-2, 0.0, 0.2, False)]
    assert best_rate(rows) == 1e-3
    assert best_rate(rows[::-1]) == 1e-3


def test_of_equals_the_smallest_and_without_allowed_ones_the_most_useful():
    assert best_rate([tried(1e-2, 0.3, 0.9, True), tried(1e-3, 0.3, 0.9, True)]) == 1e-3
    assert best_rate([tried(1e-2, 0.0, 0.1, False), tried(1e-3, 0.4, 0.7, False)]) == 1e-3


def test_the_strong_rule_takes_the_smallest_rate_that_forgets_enough():
    rows = [tried(1e-4, 0.9, 1.0, False), tried(1e-3, 0.3, 0.9, True), tried(1e-2, 0.0, 0.2, True)]
    assert strongest_rate(rows[::-1]) == 1e-3
    assert strongest_rate([tried(1e-2, 0.4, 0.9, False), tried(1e-3, 0.4, 0.1, False)]) == 1e-3


@pytest.mark.parametrize("rule", [best_rate, strongest_rate])
def test_a_model_that_diverged_is_the_last_resort(rule):
    diverged = Tried("npo", 1e-4, 0.0, 1.0, False, finite=False)
    assert rule([diverged, tried(1e-2, 0.9, 0.1, False)]) == 1e-2
    assert rule([diverged]) == 1e-4


@pytest.fixture
def made_up(micro, micro_spec):
    """Everything known before; the larger rate forgets all and spoils a third of the retained answers by one token."""
    study = Study(micro, micro_spec)
    for case in tuning_cases(study, ["0_1", "1_2"]):
        hits = np.ones(80)
        if case.kind == "tried":
            parts = micro.parts(case.edge)
            hits[parts["exclusive"]] = 0.5 if case.rate == 1e-3 else 0.0
            if case.rate == 1e-2:
                hits[np.flatnonzero(parts["retain"])[::3]] = 0.9
        study.store.put(study._place(case), {"first hits": hits})
    return study


def test_retained_answers_count_only_if_they_are_known_to_the_last_token(made_up):
    choices = choose_rates(made_up, ["0_1", "1_2"])
    assert set(choices) == set(made_up.spec.methods)
    for choice in choices.values():
        assert choice.rate == 1e-3
        assert choice.met
        assert choice.at_end
        assert choice.threshold == pytest.approx(0.8)
        gentle, strong = choice.tried
        assert (gentle.forget, gentle.retain, gentle.allowed) == (0.5, 1.0, True)
        assert (strong.forget, strong.retain, strong.allowed) == (0.0, pytest.approx(2 / 3), False)


def test_no_edge_is_an_error(micro, micro_spec):
    with pytest.raises(InputError, match="edges must hold at least one edge, got none"):
        choose_rates(Study(micro, micro_spec), [])
    assert Case("before", 0) in tuning_cases(Study(micro, micro_spec), ["0_1"])
