"""The pairwise audit: known numbers, exact coverage, brute-force thresholds, the Gaussian mechanism."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, norm

from jaxaudit.bound.gaussian import gaussian_sigma
from jaxaudit.bound.lower_bound import epsilon_lower_bound
from jaxaudit.bound.pairwise import (
    accuracy_epsilon,
    log10_draws_needed,
    optimised_pairwise_epsilon,
    pairwise_epsilon,
)
from jaxaudit.errors import InputError


def bound(hits, misses, alarms, rejections, **options):
    return pairwise_epsilon(
        true_positives=hits,
        false_negatives=misses,
        false_positives=alarms,
        true_negatives=rejections,
        **options,
    )


def test_ceiling_of_the_convex_audits():
    result = bound(100_000, 0, 0, 100_000, delta=0.01)
    assert result.epsilon == result.ceiling == pytest.approx(10.1975, abs=5e-5)


@given(st.integers(0, 60), st.integers(2, 60), st.integers(0, 60), st.integers(2, 60), st.floats(0, 0.3))
def test_equals_equation_3_with_scipys_exact_limits(misses, positives, alarms, negatives, delta):
    misses, alarms = min(misses, positives), min(alarms, negatives)
    result = bound(positives - misses, misses, alarms, negatives - alarms, delta=delta, significance=0.1)
    # The upper end of a two-sided 90 % interval is the one-sided limit at 95 %.
    fn = binomtest(misses, positives).proportion_ci(0.9).high
    fp = binomtest(alarms, negatives).proportion_ci(0.9).high
    arguments = [max(1 - delta - fp, 0) / fn, max(1 - delta - fn, 0) / fp]
    assert result.false_negative_upper == pytest.approx(fn, rel=1e-9)
    assert result.false_positive_upper == pytest.approx(fp, rel=1e-9)
    assert result.epsilon == pytest.approx(math.log(max(*arguments, 1)), abs=1e-8)
    assert math.isfinite(result.ceiling)
    assert result.ceiling >= result.epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.05)])
def test_coverage_is_exact_by_enumeration(epsilon, delta):
    # The extreme mechanism: 1 - FN = e^epsilon FP + delta and 1 - FP = e^epsilon FN + delta.
    error, draws = (1 - delta) / (1 + math.exp(epsilon)), 30
    pmf = binom.pmf(np.arange(draws + 1), draws, error)
    false_alarm = sum(
        pmf[misses] * pmf[alarms]
        for misses, alarms in itertools.product(range(draws + 1), repeat=2)
        if bound(draws - misses, misses, alarms, draws - alarms, delta=delta).epsilon > epsilon
    )
    assert 0.001 < false_alarm <= 0.05


def test_no_evidence_and_extremes_are_numbers():
    assert bound(1, 1, 1, 1).epsilon == 0.0
    assert bound(0, 10, 10, 0, delta=0.5).epsilon == 0.0
    assert bound(0, 10, 10, 0).epsilon == 0.0
    assert bound(2, 0, 0, 2, significance=1e-300).epsilon == 0.0
    assert 20 < bound(10**10, 0, 0, 10**10).epsilon < 25
    one_sided = bound(1000, 0, 500, 500)
    assert one_sided.epsilon == pytest.approx(
        math.log((1 - beta.isf(0.025, 501, 500)) / beta.isf(0.025, 1, 1000)), rel=1e-12
    )


def test_monotone_in_errors_delta_and_significance():
    for errors in range(20):
        here = bound(100 - errors, errors, 5, 95)
        assert here.epsilon >= bound(99 - errors, errors + 1, 5, 95).epsilon
        assert here.epsilon >= bound(100 - errors, errors, 5, 95, delta=0.01).epsilon
        assert here.epsilon <= bound(100 - errors, errors, 5, 95, significance=0.1).epsilon


# Two unlearned models


def test_two_unlearned_models_bound_twice_epsilon():
    hits = {"hits": 900, "misses": 100, "alarms": 50, "rejections": 950}
    reference, unlearned = bound(**hits), bound(**hits, compare="unlearned")
    assert (reference.compare, reference.epsilon_ldp) == ("reference", None)
    assert (unlearned.compare, unlearned.epsilon_ldp) == ("unlearned", 2 * unlearned.epsilon)
    assert unlearned.epsilon_ldp == pytest.approx(reference.epsilon, rel=1e-12)
    assert unlearned.ceiling == pytest.approx(reference.ceiling / 2, rel=1e-12)


@pytest.mark.parametrize("errors", [(0, 0), (5, 40), (40, 5), (200, 3), (500, 500)])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-4, 0.01, 0.2, 0.9])
def test_two_unlearned_models_against_a_grid(errors, delta):
    misses, alarms = errors
    grid = np.linspace(0, 6, 600_001)
    result = bound(1000 - misses, misses, alarms, 1000 - alarms, delta=delta, compare="unlearned")
    room = 1 - (1 + np.exp(grid)) * delta
    fn, fp = result.false_negative_upper, result.false_positive_upper
    # Every epsilon at which equation (3), with delta' in the place of delta, is at least 2 epsilon.
    rejected = np.maximum((room - fp) / fn, (room - fn) / fp) >= np.exp(2 * grid)
    largest = grid[rejected].max(initial=0.0)
    assert result.epsilon == pytest.approx(largest, abs=1.01e-5)
    assert (result.epsilon > 0) == rejected[0]
    assert not rejected[-1]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.03)])
def test_coverage_between_two_unlearned_models_by_enumeration(epsilon, delta):
    # The extreme pair: 1 - FN = e^epsilon' FP + delta', and the same exchanged.
    delta_ldp, draws = (1 + math.exp(epsilon)) * delta, 30
    error = (1 - delta_ldp) / (1 + math.exp(2 * epsilon))
    pmf = binom.pmf(np.arange(draws + 1), draws, error)

    def false_alarm(compare):
        return sum(
            pmf[misses] * pmf[alarms]
            for misses, alarms in itertools.product(range(draws + 1), repeat=2)
            if bound(draws - misses, misses, alarms, draws - alarms, delta=delta, compare=compare).epsilon
            > epsilon
        )

    assert 0.001 < false_alarm("unlearned") <= 0.05
    assert false_alarm("reference") > 0.1


# The threshold


@pytest.mark.parametrize("compare", ["reference", "unlearned"])
def test_threshold_is_the_best_of_all_cuts(compare):
    rng = np.random.default_rng(0)
    for shift, delta in [(0.5, 0.0), (2.0, 0.02), (-1.0, 0.0)]:
        # Rounded: with ties.
        positive, negative = np.round(rng.normal(shift, 1, 60), 1), np.round(rng.normal(0, 1, 50), 1)
        everything = np.append(positive, negative)
        options = {"delta": delta, "compare": compare}
        result = optimised_pairwise_epsilon(positive, negative, positive, negative, **options)

        def at(cut, positive=positive, negative=negative, options=options):
            hits, alarms = (positive >= cut).sum(), (negative >= cut).sum()
            return bound(hits, 60 - hits, alarms, 50 - alarms, **options).epsilon

        assert result.epsilon == max(at(cut) for cut in [*everything, math.inf])
        assert result.epsilon == at(result.threshold)
        assert result.baseline == at(0.0)


@pytest.mark.parametrize(("compare", "size"), [("reference", 900), ("unlearned", 150)])
@pytest.mark.parametrize(("shift", "digits", "delta"), [(0.0, 9, 0.0), (1.5, 2, 0.01), (4.0, 9, 0.2)])
def test_skipped_stretches_never_hold_the_best_cut(compare, size, shift, digits, delta):
    rng = np.random.default_rng(3)
    draws = rng.normal([[shift], [0]], 1, (2, size))
    positive, negative = np.round(draws, digits)
    options = {"delta": delta, "compare": compare}
    result = optimised_pairwise_epsilon(positive, negative, positive, negative, **options)
    scores = np.unique(np.append(positive, negative))
    cuts = np.append(scores[0], (scores[:-1] + scores[1:]) / 2)
    misses, alarms = (positive[:, None] < cuts).sum(axis=0), (negative[:, None] >= cuts).sum(axis=0)
    every = [bound(size - m, m, a, size - a, **options).epsilon for m, a in zip(misses, alarms)]
    assert result.epsilon == max(every)
    if result.epsilon > 0:
        assert result.threshold == cuts[np.argmax(every)]


def test_threshold_never_sees_the_evaluation_scores():
    rng = np.random.default_rng(1)
    calibration = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    results = [
        optimised_pairwise_epsilon(*calibration, rng.normal(scale, 1, 400), rng.normal(0, scale, 300))
        for scale in (0.1, 1, 10)
    ]
    assert len({result.threshold for result in results}) == 1
    assert results[0].true_positives + results[0].false_negatives == 400
    assert results[0].false_positives + results[0].true_negatives == 300


def test_separated_scores_are_cut_in_the_middle_and_equal_scores_show_nothing():
    low, high = np.zeros(1000), np.ones(1000)
    result = optimised_pairwise_epsilon(high, low, high - 0.4, low + 0.4)
    assert result.threshold == 0.5
    assert result.epsilon == result.ceiling > 5
    assert optimised_pairwise_epsilon(low, low, low, low).epsilon == 0.0


SENSITIVITY, DELTA, DRAWS = 0.2, 0.01, 100_000


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 5, 10, 20])
def test_the_threshold_at_e_to_the_epsilon_recovers_epsilon_exactly(epsilon):
    sigma = gaussian_sigma(SENSITIVITY, epsilon, DELTA)
    cut = SENSITIVITY / 2 + epsilon * sigma**2 / SENSITIVITY
    tpr, fpr = norm.sf([cut - SENSITIVITY, cut], scale=sigma)
    assert math.log((tpr - DELTA) / fpr) == pytest.approx(epsilon, rel=1e-10)


# epsilon; optimised and baseline bound of one known simulated audit; standard deviation of each over 30
# audits (their means: 0.444, 0.916, 1.851, 4.425, 7.206, 9.242 and 0.223, 0.397, 0.695, 1.426, 2.463, 4.379).
GAUSSIAN_AUDITS = [
    (0.5, 0.44, 0.22, 0.020, 0.0047),
    (1, 0.89, 0.39, 0.029, 0.0048),
    (2, 1.84, 0.70, 0.040, 0.0050),
    (5, 4.35, 1.42, 0.22, 0.0069),
    (10, 7.16, 2.48, 0.28, 0.0085),
    (20, 9.13, 4.41, 0.26, 0.0193),
]


@pytest.mark.parametrize(("epsilon", "optimised", "baseline", "spread", "baseline_spread"), GAUSSIAN_AUDITS)
def test_audit_of_the_gaussian_mechanism(epsilon, optimised, baseline, spread, baseline_spread):
    sigma = gaussian_sigma(SENSITIVITY, epsilon, DELTA)
    rng = np.random.default_rng(7)
    draws = rng.normal([[SENSITIVITY], [0], [SENSITIVITY], [0]], sigma, (4, DRAWS))
    log_ratios = (SENSITIVITY * draws - SENSITIVITY**2 / 2) / sigma**2
    result = optimised_pairwise_epsilon(*log_ratios, delta=DELTA)
    # The difference of two simulated audits spreads sqrt(2) times as much, and the known ones are rounded.
    assert result.epsilon == pytest.approx(optimised, abs=3 * math.sqrt(2) * spread + 0.005)
    assert result.baseline == pytest.approx(baseline, abs=3 * math.sqrt(2) * baseline_spread + 0.005)
    assert result.baseline < result.epsilon < epsilon


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound(1, 0, 5, 5), "must be at least 2 draws each, got 1 and 10"),
        (lambda: bound(5, 5, 0, 0), "must be at least 2 draws each, got 10 and 0"),
        (lambda: bound(-1, 5, 5, 5), "true_positives must be an integer of at least 0, got -1"),
        (lambda: bound(5, 0.5, 5, 5), "false_negatives must be an integer of at least 0, got 0.5"),
        (lambda: bound(5, 5, 5, 5, delta=1), r"delta must be in \[0, 1\), got 1.0"),
        (lambda: bound(5, 5, 5, 5, significance=1.5), r"significance must be in \(0, 1\), got 1.5"),
        (
            lambda: bound(5, 5, 5, 5, compare="both"),
            "compare must be one of reference, unlearned, got 'both'",
        ),
        (
            lambda: optimised_pairwise_epsilon([0, 1], [0, 1], [0, 1], [0, 1], compare="both"),
            "compare must be one of reference, unlearned, got 'both'",
        ),
        (lambda: scored([0, math.nan], [0, 1]), "calibration_positive must be finite, got nan at draw 1"),
        (lambda: scored([0, 1], [math.inf, 1]), "calibration_negative must be finite, got inf at draw 0"),
        (lambda: scored([0], [1, 2]), r"calibration_positive must be at least 2 scores .*, got shape \(1,\)"),
        (
            lambda: scored([[0, 1]], [1, 2]),
            r"calibration_positive must be .* in one dimension, got shape \(1, 2\)",
        ),
        (
            lambda: optimised_pairwise_epsilon([0, 1], [0, 1], [0, 1], []),
            "evaluation_negative must be at least 2",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def scored(positive, negative):
    return optimised_pairwise_epsilon(positive, negative, [0, 1], [0, 1])


# The share of right guesses


@given(st.integers(0, 80), st.integers(1, 80), st.floats(0, 0.3))
def test_share_of_right_guesses_with_scipys_exact_limit(right, draws, delta):
    right = min(right, draws)
    result = accuracy_epsilon(right, draws, delta=delta, significance=0.05)
    # The lower end of a two-sided 90 % interval is the one-sided limit at 95 %.
    low = binomtest(right, draws).proportion_ci(0.9).low
    assert result.error_upper == pytest.approx(1 - low, rel=1e-9)
    expected = math.log(max((low - delta) / (1 - low), 1))
    assert result.epsilon == pytest.approx(expected, abs=1e-9)
    assert result.ceiling >= result.epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.05), (3.0, 0.01)])
def test_coverage_of_the_share_by_enumeration(epsilon, delta):
    # The extreme mechanism is right with probability (e^epsilon + delta) / (1 + e^epsilon).
    draws, chance = 300, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    false_alarm = sum(
        binom.pmf(right, draws, chance)
        for right in range(draws + 1)
        if accuracy_epsilon(right, draws, delta=delta).epsilon > epsilon + 1e-12
    )
    assert 0.005 < false_alarm <= 0.05


def test_the_share_is_tighter_than_the_direct_bound_for_two_groups():
    for right in (60, 75, 99, 100):
        overlaps = 2 * (np.arange(100) < right)
        direct = epsilon_lower_bound(overlaps, num_groups=2, num_guesses=2, delta=0.01).epsilon
        assert accuracy_epsilon(right, 100, delta=0.01).epsilon > direct
    assert accuracy_epsilon(50, 100).epsilon == accuracy_epsilon(0, 100).epsilon == 0.0


def test_bad_shares_are_named():
    with pytest.raises(InputError, match="num_draws must be an integer of at least 1, got 0"):
        accuracy_epsilon(0, 0)
    with pytest.raises(InputError, match="num_right must be an integer between 0 and 5, got 6"):
        accuracy_epsilon(6, 5)
    with pytest.raises(InputError, match=r"delta must be in \[0, 1\), got 1"):
        accuracy_epsilon(5, 5, delta=1)
    with pytest.raises(InputError, match=r"significance must be in \(0, 1\), got 0"):
        accuracy_epsilon(5, 5, significance=0)


# The draws that an epsilon takes


@pytest.mark.parametrize("draws", [10, 1000, 100_000, 10**9])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_draws_needed_invert_the_ceiling(draws, delta):
    ceiling = bound(draws, 0, 0, draws, delta=delta, significance=0.1).ceiling
    assert 10 ** log10_draws_needed(ceiling, delta=delta, significance=0.1) == pytest.approx(draws, rel=1e-7)


def test_draws_needed_grow_like_the_exponential():
    for epsilon in (39.5, 300.0, 5000.0):
        doubled = log10_draws_needed(epsilon + math.log(2)) - log10_draws_needed(epsilon)
        assert doubled == pytest.approx(math.log10(2), rel=1e-9)
    with pytest.raises(InputError, match="epsilon must not be negative, got -1"):
        log10_draws_needed(-1.0)
