"""The audit of a Gaussian pair: exact laws, other derivations of each bound, coverage, the paper's cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, multivariate_normal, norm

from jaxaudit.bound import epsilon_lower_bound
from jaxaudit.convex.audit import (
    _log_ratio,
    audit_gaussian_pair,
    direct_epsilon,
    joint_epsilon,
    repeat_baseline,
)
from jaxaudit.convex.mechanisms import GaussianPair
from jaxaudit.errors import InputError

PAIR = GaussianPair(np.array([0.2]), np.zeros(1), sensitivity=0.2)
DELTA = 0.01


def test_scores_are_scipys_log_likelihood_ratios():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, [[1], [2], [3]], (3, 40)), rng.normal(0, [[2], [1], [1]], (3, 30))
    new = rng.normal(size=(3, 20))
    expected = [
        multivariate_normal(draws.mean(axis=1), np.cov(draws)).logpdf(new.T) for draws in (first, second)
    ]
    np.testing.assert_allclose(_log_ratio(first, second).score(new), expected[0] - expected[1], rtol=1e-10)


def test_scores_do_not_depend_on_units():
    rng = np.random.default_rng(1)
    first, second, new = rng.normal(1, 1, (2, 50)), rng.normal(0, 1, (2, 50)), rng.normal(size=(2, 20))
    scaled = _log_ratio(1e-4 * first, 1e-4 * second).score(1e-4 * new)
    np.testing.assert_allclose(scaled, _log_ratio(first, second).score(new), rtol=1e-9)


# The bounds from right guesses


@given(st.integers(0, 300), st.integers(1, 300), st.floats(0, 0.2))
def test_direct_bound_equals_the_general_one(right, draws, delta):
    right = min(right, draws)
    overlaps = 2 * (np.arange(draws) < right)
    design = {"num_groups": 2, "num_guesses": 2, "delta": delta}
    general = epsilon_lower_bound(overlaps, statistic="tail", threshold=2, **design).epsilon
    assert direct_epsilon(right, draws, delta=delta) == pytest.approx(general, abs=1e-8)


def test_joint_bound_at_delta_0_is_theorem_4_2():
    for right in (0, 50, 51, 80, 99, 100):
        overlaps = 2 * (np.arange(100) < right)
        theorem = epsilon_lower_bound(overlaps, num_groups=2, num_guesses=2, method="theorem-4.2")
        assert joint_epsilon(right, 100, delta=0.0) == pytest.approx(theorem.epsilon_ldp, abs=1e-9)


@pytest.mark.parametrize("right", [70, 90, 97])
def test_joint_bound_with_delta_by_numerical_chernoff(right):
    delta, draws = 0.01, 100

    def log_p_value(epsilon):
        ratio = (math.exp(epsilon) + delta / 2) / (math.exp(epsilon) + 1)

        def chernoff(tilt):
            return draws * math.log(ratio * (1 + math.exp(2 * tilt))) - tilt * 2 * right

        return minimize_scalar(chernoff, bounds=(0, 20), method="bounded", options={"xatol": 1e-10}).fun

    expected = brentq(lambda epsilon: log_p_value(epsilon) - math.log(0.05), 0, 20)
    assert joint_epsilon(right, draws, delta=delta) == pytest.approx(expected, abs=1e-6)


def test_ceiling_of_the_papers_joint_column():
    assert joint_epsilon(200_000, 200_000, delta=0.01) == pytest.approx(11.1039, abs=5e-5)
    assert joint_epsilon(200_000, 200_000, delta=0.0) == pytest.approx(11.1089, abs=5e-5)


# The audit


def test_guesses_follow_the_exact_error_rates():
    sigma = 0.1
    audit = audit_gaussian_pair(
        np.random.default_rng(0), PAIR, sigma, delta=DELTA, num_calibration=100_000, num_draws=100_000
    )
    error = norm.cdf(-PAIR.distance / 2 / sigma)
    wrong = 100_000 - audit.accuracy.num_right
    # The fit moves the threshold by 1e-3 standard deviations, which costs errors only in the second order.
    assert binom.ppf(1e-6, 100_000, error) <= wrong <= binom.isf(1e-6, 100_000, error)
    best = audit.optimised
    hits = norm.sf((best.threshold - PAIR.distance**2 / sigma**2 / 2) / (PAIR.distance / sigma))
    alarms = norm.sf((best.threshold + PAIR.distance**2 / sigma**2 / 2) / (PAIR.distance / sigma))
    positives = best.true_positives + best.false_negatives
    negatives = best.false_positives + best.true_negatives
    assert best.true_positives / positives == pytest.approx(hits, abs=0.01)
    assert best.false_positives / negatives == pytest.approx(alarms, abs=0.002)
    assert positives + negatives == 100_000
    assert abs(positives - 50_000) < 5 * math.sqrt(25_000)
    assert audit.limit == pytest.approx(PAIR.limit(sigma, DELTA))


def test_the_ways_to_bound_are_ordered():
    for seed, certified in enumerate((1.0, 5.0, 20.0)):
        audit = audit_gaussian_pair(
            np.random.default_rng(seed), PAIR, PAIR.sigma(certified, DELTA), delta=DELTA, num_draws=50_000
        )
        assert 0 < audit.printed < audit.direct < audit.accuracy.epsilon < audit.optimised.epsilon
        assert audit.optimised.baseline < audit.optimised.epsilon < certified


def test_an_audit_seldom_claims_more_than_the_truth():
    sigma = PAIR.sigma(1.0, DELTA)
    audits = [
        audit_gaussian_pair(stream, PAIR, sigma, delta=DELTA, num_calibration=500, num_draws=500)
        for stream in np.random.default_rng(0).spawn(200)
    ]
    for value in (lambda audit: audit.optimised.epsilon, lambda audit: audit.accuracy.epsilon):
        false_alarms = sum(value(audit) > audit.limit for audit in audits)
        assert false_alarms <= binom.isf(1e-4, 200, 0.05)
    assert max(audit.optimised.epsilon for audit in audits) > 0.5


def test_evaluation_draws_play_no_part_in_the_threshold():
    thresholds = {
        audit_gaussian_pair(
            np.random.default_rng(1), PAIR, 0.1, delta=DELTA, num_calibration=1000, num_draws=size
        ).optimised.threshold
        for size in (200, 201, 5000)
    }
    assert len(thresholds) == 1


def test_same_seed_same_audit():
    def once(seed):
        return audit_gaussian_pair(
            np.random.default_rng(seed), PAIR, 0.1, delta=DELTA, num_calibration=1000, num_draws=1000
        )

    assert once(1) == once(1) != once(2)


@pytest.mark.parametrize(
    ("certified", "pairwise", "joint"), [(1.0, 0.3901, 0.0307), (5.0, 1.4534, 0.4547), (20.0, 4.4305, 2.6972)]
)
def test_the_papers_cells_lie_within_three_standard_errors(certified, pairwise, joint):
    means = np.array([-0.09802019, 0.0191624, -0.00498437]), np.array([0.09687538, -0.02475995, 0.00145098])
    pair = GaussianPair(*means, sensitivity=0.2)
    audits = repeat_baseline(
        np.random.default_rng(5), pair, pair.sigma(certified, DELTA), delta=DELTA, num_repeats=10
    )
    assert audits.shape == (10, 2)
    distance = np.abs(audits.mean(axis=0) - [pairwise, joint])
    assert (distance <= 3 * audits.std(axis=0, ddof=1) + 5e-5).all()
    assert (audits.std(axis=0, ddof=1) < [0.03 * pairwise + 0.03, 0.03 * joint + 0.005]).all()


def test_bad_input_is_named():
    rng = np.random.default_rng(0)
    options = {"delta": DELTA, "num_calibration": 100, "num_draws": 100}
    for name, value, message in [
        ("delta", 0.0, "delta must be positive, got 0"),
        ("delta", 1.0, r"delta must be in \[0, 1\), got 1"),
        ("significance", 0.0, r"significance must be in \(0, 1\), got 0"),
        ("num_calibration", 2, "num_calibration must be an integer of at least 3, got 2"),
        ("num_draws", 10, "num_draws must be an integer of at least 100, got 10"),
    ]:
        with pytest.raises(InputError, match=message):
            audit_gaussian_pair(rng, PAIR, 0.1, **{**options, name: value})
        with pytest.raises(InputError, match=message):
            repeat_baseline(rng, PAIR, 0.1, num_repeats=2, **{**options, name: value})
    with pytest.raises(InputError, match="sigma must be positive, got 0"):
        audit_gaussian_pair(rng, PAIR, 0.0, **options)
    with pytest.raises(InputError, match="num_repeats must be an integer of at least 2, got 1"):
        repeat_baseline(rng, PAIR, 0.1, num_repeats=1, **options)
    with pytest.raises(InputError, match="num_right must be an integer between 0 and 5, got 6"):
        joint_epsilon(6, 5, delta=0.0)
