"""The bound from soft evidence: validity by enumeration and simulation, closed forms, known numbers."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.bound.evidence import EvidenceSequence, evidence_lower_bound, log_wealth
from jaxaudit.bound.likelihood import log_evidence
from jaxaudit.errors import InputError

FORMS = ("product", "betting")
FAILED = -math.inf


def all_signs(num_groups):
    """Every balanced sign vector, (M', m)."""
    members = itertools.combinations(range(num_groups), num_groups // 2)
    return np.array([[1 if j in chosen else -1 for j in range(num_groups)] for chosen in members])


def worst_case_tail(null_tail, epsilon, delta):
    """Equation (*): the direct bound on P[V >= v]."""
    rise = math.exp(epsilon) * null_tail + delta
    return np.minimum(1, np.minimum(rise, 1 - math.exp(-epsilon) * (1 - null_tail - delta)))


@pytest.mark.parametrize("num_groups", [2, 4, 5, 6])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.02, 0.2])
def test_capped_expectation_under_the_two_level_mechanism(num_groups, epsilon, delta):
    signs = all_signs(num_groups)
    guesses = np.array(list(itertools.product((-1, 0, 1), repeat=num_groups)))
    half = num_groups // 2
    guesses = guesses[((guesses == 1).sum(axis=1) == half) & ((guesses == -1).sum(axis=1) == half)]
    overlaps = (signs[:, None] == guesses).sum(axis=2)
    null_pmf = np.bincount(overlaps.ravel(), minlength=2 * half + 1) / overlaps.size
    tail = worst_case_tail(null_pmf[::-1].cumsum()[::-1], epsilon, delta)
    pmf = tail - np.append(tail[1:], 0)
    # P[guess | signs]: draw V from the worst-case law, then a uniform guess with that overlap.
    mechanism = pmf[overlaps] / (overlaps[:, :, None] == overlaps[:, None, :]).sum(axis=2)
    evidence = np.exp([log_evidence(1.3 * guesses, np.tile(s, (len(guesses), 1))) for s in signs])
    for cap in (0.5, 1.0, 1.5, 3.0, math.inf if delta == 0 else len(signs)):
        expectation = (mechanism * np.minimum(evidence, cap)).sum(axis=1).mean()
        limit = math.exp(epsilon) + (delta * cap if delta else 0)
        assert expectation <= limit * (1 + 1e-12)
    if epsilon == delta == 0:  # the last cap caps nothing
        assert expectation == pytest.approx(1, rel=1e-12)


# Randomised response on the 20 sign vectors of 6 groups: the true one comes out with probability
# e^eps' / (e^eps' + 19), every other one equally often. With eps' = 3 that is exactly e^2.33 / 20.
HIT = math.exp(3) / (math.exp(3) + 19)
TRUE_EPSILON = math.log(20 * HIT)
# Log evidence of a right and of a wrong output: from the mechanism's own likelihoods, and at a temperature so
# high that only the right one counts.
LIKELIHOOD = (math.log(20 * HIT), math.log(20 * (1 - HIT) / 19))
ALL_OR_NOTHING = (math.log(20), FAILED)


def mean_bound(values, form, num_runs=100):
    """Exact mean of the bound after num_runs runs, without the running maximum."""
    hits = np.arange(33, 71)
    # With the hits last, wealth is largest at the end.
    bounds = [
        evidence_lower_bound(np.repeat(values[::-1], [num_runs - k, k]), num_groups=6, form=form).epsilon
        for k in hits
    ]
    return binom.pmf(hits, num_runs, HIT) @ bounds


def test_randomised_response_numbers():
    assert pytest.approx(2.33, abs=0.001) == TRUE_EPSILON
    assert mean_bound(LIKELIHOOD, "product") == pytest.approx(0.84, abs=0.005)
    assert mean_bound(ALL_OR_NOTHING, "betting") == pytest.approx(1.98, abs=0.005)


def test_betting_beats_the_product_and_both_stay_below_the_truth():
    assert mean_bound(LIKELIHOOD, "product") + 0.4 < mean_bound(LIKELIHOOD, "betting") < TRUE_EPSILON
    assert mean_bound(ALL_OR_NOTHING, "product") < 1e-6


def rejections(log_evidence, epsilon, delta, form, significance):
    """How many of many audits (rows) reject the claim at any time."""
    wealth = log_wealth(log_evidence, epsilon, delta, 6, form)
    return (wealth.max(axis=1) >= math.log(1 / significance)).sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values", [LIKELIHOOD, ALL_OR_NOTHING])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_false_alarms_at_any_time_under_randomised_response(form, values, delta):
    num_audits, significance = 3000, 0.05
    hits = np.random.default_rng(5).random((num_audits, 60)) < HIT + delta
    log_evidence = np.where(hits, *values)
    alarms = rejections(log_evidence, TRUE_EPSILON, delta, form, significance)
    assert binom.sf(alarms - 1, num_audits, significance) > 0.001
    if (form, values) != ("product", ALL_OR_NOTHING):
        assert rejections(log_evidence, 0.2, delta, form, significance) > num_audits / 3


# Several runs


def plain_wealth(log_evidence, epsilon, delta, num_groups, bets):
    """The definition in plain numbers."""
    most = math.comb(num_groups, num_groups // 2)
    cap = min(0.1 * math.exp(epsilon) / delta, most) if delta else most
    factors = np.minimum(np.exp(log_evidence), cap) / (math.exp(epsilon) + delta * cap)
    return np.mean([np.cumprod(1 - b + b * factors) for b in bets], axis=0)


log_evidence_lists = st.lists(
    st.one_of(st.floats(-20, log_num_sign_vectors(12)), st.just(FAILED)), min_size=1, max_size=12
)


@given(
    log_evidence_lists, st.floats(0, 7), st.sampled_from([0.0, 1e-5, 0.01, 0.08, 0.5]), st.sampled_from(FORMS)
)
def test_p_value_is_one_over_the_largest_wealth(values, epsilon, delta, form):
    bets = [1.0] if form == "product" else [100 ** (-i / 19) for i in range(20)]
    result = evidence_lower_bound(np.array(values), num_groups=12, delta=delta, form=form)
    wealth = plain_wealth(np.array(values), epsilon, delta, 12, bets).max()
    assert math.exp(result.log_p_value(epsilon, delta)) == pytest.approx(
        min(1, 1 / max(wealth, 1)), rel=1e-10
    )


@given(log_evidence_lists, st.floats(0.001, 0.5))
def test_product_without_delta_has_a_closed_form(values, significance):
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    expected = np.maximum.accumulate(means - math.log(1 / significance) / np.arange(1, len(values) + 1))
    result = evidence_lower_bound(np.array(values), num_groups=12, significance=significance)
    np.testing.assert_allclose(result.trajectory, np.maximum(expected, 0), rtol=1e-12, atol=1e-11)
    assert result.epsilon == result.trajectory[-1]


@settings(max_examples=50)
@given(log_evidence_lists, st.sampled_from([0.0, 1e-5, 0.01, 0.08]), st.sampled_from(FORMS))
def test_bound_is_where_the_p_value_meets_the_significance(values, delta, form):
    values = [*values, 6.5, 6.0, 6.0]
    result = evidence_lower_bound(np.array(values), num_groups=12, delta=delta, form=form)
    if result.epsilon > 0:
        assert result.log_p_value(result.epsilon, delta) == pytest.approx(math.log(0.05), abs=1e-9)
    else:
        assert result.log_p_value(0.0, delta) >= math.log(0.05)
    # Monotone: a larger epsilon, a larger delta are easier to claim; more significance shows more.
    grid = [result.log_p_value(epsilon, delta) for epsilon in np.linspace(0, 8, 60)]
    assert (np.diff(grid) >= -1e-12).all()
    options = {"num_groups": 12, "form": form}
    larger_delta = evidence_lower_bound(values, delta=min(3 * delta + 1e-6, 0.5), **options)
    assert larger_delta.epsilon <= result.epsilon + 1e-9
    lenient = evidence_lower_bound(values, delta=delta, significance=0.2, **options)
    assert lenient.epsilon >= result.epsilon - 1e-9
    # Anytime: each entry of the trajectory is the bound of the runs so far.
    assert (np.diff(result.trajectory) >= 0).all()
    prefix = evidence_lower_bound(values[:-2], delta=delta, **options)
    assert prefix.trajectory == result.trajectory[:-2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_failed_run_counts_and_never_makes_nan(form, delta):
    runs = [40.0, 41.0, FAILED, 42.0, 41.0, 40.0]
    result = evidence_lower_bound(np.array(runs), num_groups=100, delta=delta, form=form)
    assert np.isfinite(result.trajectory).all()
    assert result.trajectory[2] == result.trajectory[1] > 0
    without = evidence_lower_bound(
        np.array([40.0, 41.0, 42.0, 41.0, 40.0]), num_groups=100, delta=delta, form=form
    )
    if form == "product":
        assert result.epsilon == result.trajectory[1]
    else:
        assert result.trajectory[1] < result.epsilon < without.epsilon
    assert result.log_p_value(result.epsilon / 2, delta) < math.log(0.05)
    nothing = evidence_lower_bound(np.full(4, FAILED), num_groups=100, delta=delta, form=form)
    assert (nothing.epsilon, nothing.log_p_value(0.0, delta)) == (0.0, 0.0)


def test_ceiling_is_perfect_evidence():
    log_most = log_num_sign_vectors(100)
    perfect = evidence_lower_bound(np.full(10, log_most), num_groups=100)
    assert perfect.ceiling == perfect.epsilon == pytest.approx(log_most - math.log(20) / 10, rel=1e-12)
    assert perfect.saturated
    one_less = evidence_lower_bound([log_most] * 9 + [log_most - 1], num_groups=100)
    assert one_less.ceiling == perfect.ceiling
    assert not one_less.saturated
    capped = evidence_lower_bound(np.full(10, log_most), num_groups=100, delta=1e-5)
    # e^epsilon + delta M' = M' 20^(-1/10)
    expected = log_most + math.log(20 ** (-1 / 10) - 1e-5)
    assert capped.epsilon == pytest.approx(expected, rel=1e-12)
    assert capped.saturated


def test_large_delta_and_tiny_designs_show_nothing():
    runs = np.full(50, log_num_sign_vectors(100))
    assert evidence_lower_bound(runs, num_groups=100, delta=0.1).epsilon == 0
    assert evidence_lower_bound(runs, num_groups=100, delta=0.08).epsilon > 0
    assert evidence_lower_bound([math.log(2)], num_groups=2).ceiling == 0


def test_sequence_is_the_batch_bound_at_every_run():
    runs = [9.0, 3.0, 8.0, FAILED, 11.0, 11.5]
    sequence = EvidenceSequence(num_groups=20, form="betting")
    for i, value in enumerate(runs, 1):
        assert sequence.add(value) == evidence_lower_bound(runs[:i], num_groups=20, form="betting").epsilon
    assert sequence.result() == evidence_lower_bound(runs, num_groups=20, form="betting")
    assert sequence.result().log_evidence == sequence.log_evidence == tuple(runs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evidence_lower_bound([], num_groups=6), "log_evidence must have at least one run, got none"),
        (
            lambda: evidence_lower_bound([1.0, np.nan], num_groups=6),
            "log_evidence must be at most .* got nan in run 1",
        ),
        (
            lambda: evidence_lower_bound([3.1], num_groups=6),
            "at most .* = 2.99573 for num_groups = 6, got 3.1 in run 0",
        ),
        (
            lambda: evidence_lower_bound([1.0], num_groups=1),
            "num_groups must be an integer of at least 2, got 1",
        ),
        (lambda: evidence_lower_bound([1.0], num_groups=6, delta=1.0), r"delta must be in \[0, 1\), got 1.0"),
        (
            lambda: evidence_lower_bound([1.0], num_groups=6, significance=0.0),
            r"significance must be in \(0, 1\), got 0.0",
        ),
        (
            lambda: evidence_lower_bound([1.0], num_groups=6, form="sum"),
            "form must be one of product, betting, got 'sum'",
        ),
        (
            lambda: evidence_lower_bound([1.0], num_groups=6).log_p_value(-1, 0),
            "epsilon must not be negative",
        ),
        (
            lambda: evidence_lower_bound([1.0], num_groups=6).log_p_value(1, 2),
            r"delta must be in \[0, 1\), got 2",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
