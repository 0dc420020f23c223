"""The counting test as a rule on one integer, against the functions of overlaps and against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from jaxaudit.bound.law import worst_case_law
from jaxaudit.bound.lower_bound import epsilon_lower_bound, p_value
from jaxaudit.bound.rule import OverlapRule
from jaxaudit.errors import InputError

RULES = [
    OverlapRule(6, 6, 4),
    OverlapRule(6, 6, 4, significance=0.3, statistic="median"),
    OverlapRule(7, 4, 5, significance=0.2, statistic="median"),
    OverlapRule(7, 4, 3, delta=0.02),
    OverlapRule(6, 6, 4, statistic="tail", threshold=6),
    OverlapRule(6, 4, 5, method="odds"),
    OverlapRule(9, 6, 4, method="theorem-4.2"),
]


def arguments(rule):
    return {
        "num_groups": rule.num_groups,
        "num_guesses": rule.num_guesses,
        "delta": rule.delta,
        "method": rule.method,
        "statistic": rule.statistic,
        "threshold": rule.threshold,
    }


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_critical_value_decides_like_the_bound(rule):
    rng = np.random.default_rng(0)
    # With a guess for every group overlaps are even.
    step = 2 if rule.num_guesses == rule.num_groups else 1
    audits = step * rng.integers(
        rule.num_guesses // (2 * step), rule.num_guesses // step + 1, (40, rule.num_runs)
    )
    audits[0] = rule.num_guesses
    values = rule.values(audits)
    decisions = set()
    for claim in (0.0, 0.4, 1.5):
        critical = rule.critical_value(claim)
        for overlaps, value in zip(audits, values, strict=True):
            rejected = p_value(overlaps, claim, **arguments(rule)) <= rule.significance
            bound = epsilon_lower_bound(overlaps, significance=rule.significance, **arguments(rule))
            assert (value >= critical) == rejected
            assert rejected == (bound.epsilon > claim)
            decisions.add(rejected)
    assert decisions == {True, False}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_examples_have_their_value(rule):
    assert rule.values(np.full((1, rule.num_runs), rule.num_guesses)) == [rule.most]
    for value in range(rule.most + 1):
        assert rule.values(rule.example(value)[None]) == [value]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.8, 2.0])
def test_tail_probabilities_against_all_outcomes(rule, epsilon):
    law = worst_case_law(rule.num_groups, rule.num_guesses, epsilon, rule.delta)
    outcomes = np.array(list(product(range(rule.num_guesses + 1), repeat=rule.num_runs)))
    probabilities = np.exp(law.log_pmf)[outcomes].prod(axis=1)
    pmf = np.bincount(rule.values(outcomes), weights=probabilities, minlength=rule.most + 1)
    np.testing.assert_allclose(rule.tail_probabilities(law), pmf[::-1].cumsum()[::-1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("num_runs", [40, 400, 4000])
def test_the_median_of_many_runs_lies_between_its_two_middle_runs(num_runs):
    law = worst_case_law(20, 10, 0.05)
    tails = OverlapRule(20, 10, num_runs, statistic="median").tail_probabilities(law)
    upper = binom.sf(num_runs // 2 - 1, num_runs, np.exp(law.log_tail))
    lower = binom.sf(num_runs // 2, num_runs, np.exp(law.log_tail))
    assert (tails <= upper + 1e-12).all()
    assert (tails >= lower - 1e-12).all()
    assert tails[5] > 0.9 > tails[6] > 0


def test_the_tail_of_the_mean_is_the_direct_p_value():
    rule = OverlapRule(45, 40, 10)
    tails = rule.tail_probabilities(worst_case_law(45, 40, 2.0))
    for value in (150, 240, 270):
        p = p_value(rule.example(value), 2.0, num_groups=45, num_guesses=40)
        assert tails[value] == pytest.approx(p, abs=1e-13)


def test_a_design_that_can_reject_nothing():
    rule = OverlapRule(4, 4, 1)
    assert rule.critical_value(0.0) == rule.most + rule.step == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_groups": 1}, "num_groups"),
        ({"num_guesses": 3}, "num_guesses must be even, got 3"),
        ({"num_runs": 0}, "num_runs must be an integer of at least 1, got 0"),
        ({"delta": -0.1}, "delta must be in"),
        ({"significance": 1.0}, "significance must be in"),
        ({"method": "best"}, "method must be one of"),
        ({"statistic": "tail"}, "threshold must be given"),
        ({"statistic": "mode"}, "statistic must be one of"),
        ({"method": "odds", "delta": 0.1}, "delta must be 0 for method='odds', got 0.1"),
        ({"method": "theorem-4.2", "statistic": "tail", "threshold": 4}, "theorem-4.2"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(InputError, match=message):
        OverlapRule(**{"num_groups": 6, "num_guesses": 6, "num_runs": 3} | changes)
