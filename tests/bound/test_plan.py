"""Plans: against direct calls of the bounds, the exact law of the bound, and simulation."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binomtest

from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.bound.law import OverlapLaw, null_law, sample, worst_case_law
from jaxaudit.bound.lower_bound import epsilon_lower_bound, p_value
from jaxaudit.bound.plan import plan
from jaxaudit.bound.rule import OverlapRule
from jaxaudit.errors import InputError

DESIGN = {"num_groups": 45, "num_guesses": 40, "num_runs": 10}


def bound_of(total, **changes):
    overlaps = (total + np.arange(10)) // 10
    return epsilon_lower_bound(overlaps, num_groups=45, num_guesses=40, **changes).epsilon


@pytest.mark.parametrize("settings", [{}, {"delta": 0.01}, {"significance": 1e-4}, {"method": "theorem-4.2"}])
def test_minimum_ceiling_and_curve_are_what_the_bound_says(settings):
    outlook = plan(**DESIGN, **settings)
    assert outlook.ceiling == bound_of(400, **settings)
    least = round(10 * outlook.minimum_observed)
    assert bound_of(least, **settings) > 0
    assert bound_of(least - 1, **settings) == 0
    assert outlook.curve[0][0] == outlook.minimum_observed
    assert outlook.curve[-1] == (40, outlook.ceiling)
    assert len(outlook.curve) == 11
    for observed, epsilon in outlook.curve:
        assert epsilon == bound_of(round(10 * observed), **settings)
    assert outlook.power is None


def test_the_other_statistics():
    median = plan(**DESIGN, statistic="median")
    assert epsilon_lower_bound([23] * 10, num_groups=45, num_guesses=40, statistic="median").epsilon > 0
    assert median.minimum_observed == 23
    tail = plan(**DESIGN, statistic="tail", threshold=26)
    assert [observed for observed, _ in tail.curve] == list(range(3, 11))
    settings = {"num_groups": 45, "num_guesses": 40, "statistic": "tail", "threshold": 26}
    assert tail.curve[0][1] == epsilon_lower_bound([40] * 3 + [0] * 7, **settings).epsilon > 0
    assert epsilon_lower_bound([40] * 2 + [0] * 8, **settings).epsilon == 0


def test_only_possible_overlaps_are_listed():
    """With a guess for every group overlaps are even."""
    outlook = plan(num_groups=6, num_guesses=6, num_runs=10)
    assert outlook.minimum_observed == 3.8
    assert {round(10 * observed) % 2 for observed, _ in outlook.curve} == {0}


def test_limits_of_the_design():
    outlook = plan(num_groups=20, num_guesses=10, num_runs=5, significance=0.02)
    assert outlook.chance_mean_overlap == 5
    assert outlook.log_num_sign_vectors == pytest.approx(np.log(184756))
    assert outlook.soft_ceiling == pytest.approx(log_num_sign_vectors(20) - np.log(50) / 5, rel=1e-9)
    assert outlook.soft_ceiling < outlook.log_num_sign_vectors


def test_counted_guesses_exceed_the_limit_of_soft_evidence():
    """r right guesses in every run: 1 - e^-eps 19/20 = 0.05^(1/500)."""
    outlook = plan(num_groups=6, num_guesses=6, num_runs=500)
    assert outlook.ceiling == pytest.approx(np.log(0.95 / (1 - 0.05 ** (1 / 500))), rel=1e-9)
    assert outlook.ceiling > 5 > outlook.log_num_sign_vectors > outlook.soft_ceiling
    assert "limit of soft evidence, many runs (log M')" in outlook.text()


def test_a_design_that_can_show_nothing():
    outlook = plan(num_groups=4, num_guesses=4, num_runs=1, true_epsilon=9.0, claim_epsilon=0.0)
    assert outlook.ceiling == 0.0
    assert outlook.minimum_observed is None
    assert outlook.curve == ()
    assert (outlook.power.detection, outlook.power.falsification, outlook.power.expected_epsilon) == (0, 0, 0)
    assert "none" in outlook.text()


# m, r, L, true epsilon, delta, and from the exact law of the bound at that epsilon: rejection rate and mean.
EXACT = [
    ((6, 6, 100, 1.0, 0.0), "direct", 0.046, 0.703),
    ((6, 6, 100, 3.0, 0.0), "direct", 0.026, 2.880),
    ((45, 40, 10, 2.0, 0.0), "direct", 0.035, 1.320),
    ((400, 100, 10, 10.0, 0.0), "direct", 0.034, 9.408),
    ((400, 100, 10, 10.0, 1e-5), "direct", 0.035, 9.408),
    ((4500, 3000, 10, 80.0, 0.0), "direct", 0.043, 79.42),
    ((6, 6, 100, 1.0, 0.0), "theorem-4.2", 0.000, 0.098),
    ((6, 6, 100, 3.0, 0.0), "theorem-4.2", 0.008, 1.799),
    ((45, 40, 10, 2.0, 0.0), "theorem-4.2", 0.000, 0.386),
    ((400, 100, 10, 10.0, 0.0), "theorem-4.2", 0.000, 4.156),
    ((4500, 3000, 10, 80.0, 0.0), "theorem-4.2", 0.000, 38.6),
]


@pytest.mark.parametrize(("case", "method", "rejection", "mean"), EXACT)
def test_power_against_the_published_law(case, method, rejection, mean):
    num_groups, num_guesses, num_runs, epsilon, delta = case
    power = plan(
        num_groups=num_groups,
        num_guesses=num_guesses,
        num_runs=num_runs,
        delta=delta,
        method=method,
        true_epsilon=epsilon,
        claim_epsilon=epsilon,
    ).power
    digits = 1 if mean == 38.6 else 2 if mean == 79.42 else 3
    assert power.expected_epsilon == pytest.approx(mean, abs=0.51 * 10**-digits)
    assert power.falsification == pytest.approx(rejection, abs=0.00051)


@pytest.mark.parametrize(
    "settings", [{}, {"delta": 0.02}, {"statistic": "median"}, {"statistic": "tail", "threshold": 4}]
)
def test_power_against_simulated_audits(settings):
    design = {"num_groups": 7, "num_guesses": 4, "num_runs": 6}
    power = plan(**design, **settings, true_epsilon=1.5, claim_epsilon=0.5).power
    law = worst_case_law(7, 4, 1.5, settings.get("delta", 0.0))
    audits, counts = np.unique(
        np.sort(sample(law, np.random.default_rng(4), (3000, 6)), axis=1), axis=0, return_counts=True
    )
    arguments = {"num_groups": 7, "num_guesses": 4} | settings
    bounds = np.array([epsilon_lower_bound(audit, **arguments).epsilon for audit in audits])
    falsified = np.array([p_value(audit, 0.5, **arguments) <= 0.05 for audit in audits])
    for expected, happened in ((power.detection, bounds > 0), (power.falsification, falsified)):
        interval = binomtest(int(counts @ happened), 3000).proportion_ci(0.999)
        assert interval.low <= expected <= interval.high
        assert 0.05 < expected < 0.999
    mean = counts @ bounds / 3000
    error = np.sqrt(counts @ (bounds - mean) ** 2) / 3000
    assert abs(power.expected_epsilon - mean) < 3.5 * error


def test_interpolated_mean_against_the_full_sum():
    """The mean bound is interpolated between 129 of the possible sums."""
    design = {"num_groups": 200, "num_guesses": 100, "num_runs": 10}
    expected = plan(**design, true_epsilon=1.0).power.expected_epsilon
    law = worst_case_law(200, 100, 1.0)
    sums = np.exp(law.log_pmf)
    for _ in range(9):
        sums = np.convolve(sums, np.exp(law.log_pmf))
    likely = np.flatnonzero(sums > 1e-9)
    bounds = [
        epsilon_lower_bound((total + np.arange(10)) // 10, num_groups=200, num_guesses=100).epsilon
        for total in likely
    ]
    assert len(likely) > 150
    assert expected == pytest.approx(sums[likely] @ bounds, abs=1e-5)


def test_power_grows_with_runs_and_shrinks_with_the_claim():
    def falsification(num_runs, claim):
        design = {"num_groups": 10, "num_guesses": 10, "num_runs": num_runs}
        return plan(**design, true_epsilon=2.0, claim_epsilon=claim).power.falsification

    assert falsification(5, 1.0) < falsification(10, 1.0) < falsification(20, 1.0)
    assert falsification(10, 0.5) > falsification(10, 1.0) > falsification(10, 1.9) > 0.01
    assert falsification(10, 50.0) == 0.0


def test_another_number_of_guesses_or_statistic_may_see_more():
    def falsification(num_groups, num_guesses, true_epsilon, claim_epsilon, statistic="mean"):
        return plan(
            num_groups=num_groups,
            num_guesses=num_guesses,
            num_runs=10,
            statistic=statistic,
            true_epsilon=true_epsilon,
            claim_epsilon=claim_epsilon,
        ).power.falsification

    assert falsification(500, 2, 10.0, 3.0) == 0
    assert falsification(500, 20, 10.0, 3.0) > 0.999
    assert falsification(45, 40, 2.0, 1.0) < falsification(45, 40, 2.0, 1.0, "median")
    text = plan(**DESIGN, true_epsilon=2.0).text()
    assert "If the true epsilon is 2, at most (another number of guesses or statistic may see more):" in text


def test_no_mechanism_that_meets_the_claim_has_more_power():
    """Laws whose ratio to chance stays within e^-eps and e^eps, from slowly rising ones to a step."""
    rule = OverlapRule(12, 8, 6)
    critical = rule.critical_value(0.5)
    power = plan(num_groups=12, num_guesses=8, num_runs=6, true_epsilon=1.5, claim_epsilon=0.5).power
    chance = np.exp(null_law(12, 8).log_pmf)
    others = []
    for slope in np.geomspace(0.05, 20, 30):

        def log_mass(shift, slope=slope):
            return np.log(chance) + np.clip(slope * np.arange(9) + shift, -1.5, 1.5)

        shift = brentq(lambda x, log_mass=log_mass: np.exp(log_mass(x)).sum() - 1, -200, 10)
        log_pmf = log_mass(shift)
        others.append(rule.tail_probabilities(OverlapLaw(log_pmf, log_pmf, log_pmf, log_pmf))[critical])
    assert max(others) == pytest.approx(power.falsification, rel=1e-9)
    assert others[0] < 0.05


def test_json_and_text():
    outlook = plan(**DESIGN, true_epsilon=2.0, claim_epsilon=1.0)
    written = json.loads(json.dumps(outlook.as_dict(), allow_nan=False))
    assert written["num_guesses"] == 40
    assert written["curve"][-1] == [40, outlook.ceiling]
    assert written["power"]["falsification"] == outlook.power.falsification
    text = outlook.text()
    assert text.isascii()
    assert max(map(len, text.splitlines())) < 100
    assert f"ceiling (perfect guesses) {outlook.ceiling:28.2f}" in text
    assert f"probability of falsifying 1 {outlook.power.falsification:26.4f}" in text
    assert "falsifying" not in plan(**DESIGN, true_epsilon=2.0).text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_runs": 0}, "num_runs"),
        ({"num_guesses": 46}, "num_guesses"),
        ({"delta": 1.0}, "delta"),
        ({"significance": 0}, "significance"),
        ({"statistic": "tail"}, "threshold must be given"),
        ({"true_epsilon": -1.0}, "true_epsilon must not be negative, got -1.0"),
        (
            {"true_epsilon": 1.0, "claim_epsilon": float("nan")},
            "claim_epsilon must be a finite number, got nan",
        ),
        ({"claim_epsilon": 1.0}, "claim_epsilon = 1.0 needs true_epsilon"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(InputError, match=message):
        plan(**DESIGN | changes)
