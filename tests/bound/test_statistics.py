import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc
from scipy.stats import binom

from jaxaudit.bound.counts import log_overlap_counts
from jaxaudit.bound.law import null_law, odds_law, worst_case_law
from jaxaudit.bound.statistics import (
    OverlapSummary,
    check_statistic,
    log_choose,
    log_count_tail,
    log_p_value,
    log_sum_tail,
    summarise,
    tilt,
)
from jaxaudit.errors import InputError


def tails_of_sum(pmf, num_runs):
    """P[sum >= total] for total = 0..L r by adding up products of exact numbers."""
    sums = [1]
    for _ in range(num_runs):
        wider = [0] * (len(sums) + len(pmf) - 1)
        for i, a in enumerate(sums):
            for j, b in enumerate(pmf):
                wider[i + j] += a * b
        sums = wider
    tails, tail = [], 0
    for probability in reversed(sums):
        tail += probability
        tails.append(tail)
    return tails[::-1]


@pytest.mark.parametrize(
    ("num_groups", "num_guesses", "num_runs"),
    [(2, 2, 1), (6, 6, 10), (7, 6, 9), (45, 40, 7), (9, 8, 150), (400, 100, 10)],
)
def test_sum_under_chance_equals_exact_integers_at_every_total(
    num_groups, num_guesses, num_runs, exact_counts
):
    mpmath.mp.dps = 40
    tails = tails_of_sum(exact_counts(num_groups, num_guesses), num_runs)
    log_pmf = null_law(num_groups, num_guesses).log_pmf
    step = max(1, len(tails) // 100)
    for total in [*range(0, len(tails), step), len(tails) - 2, len(tails) - 1]:
        exact = mpmath.log(mpmath.mpf(tails[total]) / tails[0])
        assert abs(log_sum_tail(log_pmf, num_runs, total) - exact) < 1e-11


@pytest.mark.parametrize(("num_groups", "num_guesses", "num_runs"), [(6, 6, 8), (9, 8, 6), (45, 40, 4)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 4.0, 40.0])
@pytest.mark.parametrize("delta", [0.0, 1e-60, 1e-5, 0.01, 0.6])
def test_sum_under_the_worst_case_equals_400_digits_at_every_total(
    num_groups, num_guesses, num_runs, epsilon, delta, exact_worst_case
):
    worst = [*exact_worst_case(num_groups, num_guesses, epsilon, delta), mpmath.mpf(0)]
    mpmath.mp.dps = 40
    tails = tails_of_sum([+(worst[v] - worst[v + 1]) for v in range(num_guesses + 1)], num_runs)
    log_smooth = worst_case_law(num_groups, num_guesses, epsilon, delta).log_smooth
    for total, tail in enumerate(tails):
        assert abs(log_sum_tail(log_smooth, num_runs, total, delta) - mpmath.log(tail)) < 1e-11


def test_sum_is_exact_hundreds_of_digits_into_the_tail(exact_counts):
    counts = exact_counts(400, 100)
    tails = tails_of_sum(counts, 10)
    log_pmf, depths = null_law(400, 100).log_pmf, []
    for total in (850, 950, 999, 1000):
        exact = mpmath.log(mpmath.mpf(tails[total]) / tails[0])
        assert abs(log_sum_tail(log_pmf, 10, total) - exact) < 1e-11
        depths.append(float(exact) / np.log(10))
    assert depths[0] < -100
    assert depths[-1] < -290


@settings(max_examples=200, deadline=None)
@given(
    half=st.integers(1, 12),
    rest=st.integers(0, 12),
    num_runs=st.integers(1, 4),
    epsilon=st.floats(0, 200),
    delta=st.sampled_from([0.0, 1e-300, 1e-9, 0.01, 0.9]),
    form=st.sampled_from(["direct", "odds"]),
    data=st.data(),
)
def test_sum_of_any_law_equals_a_convolution_in_logs(half, rest, num_runs, epsilon, delta, form, data):
    design, delta = (2 * half + rest, 2 * half), delta if form == "direct" else 0.0
    law = worst_case_law(*design, epsilon, delta) if form == "direct" else odds_law(*design, epsilon)
    sums = np.zeros(1)
    for _ in range(num_runs):
        wider = np.full(len(sums) + 2 * half, -np.inf)
        for v, log_probability in enumerate(law.log_pmf):
            part = slice(v, v + len(sums))
            wider[part] = np.logaddexp(wider[part], sums + log_probability)
        sums = wider
    total = data.draw(st.integers(0, len(sums) - 1))
    exact = np.logaddexp.reduce(sums[total:])
    assert log_sum_tail(law.log_smooth, num_runs, total, delta) == pytest.approx(exact, abs=1e-10)


def test_count_tail_equals_beta_function_and_exact_sum():
    for p in (1e-3, 0.2, 0.5, 0.97):
        for count in range(1, 21):
            log_p = log_count_tail(np.log(p), np.log1p(-p), 20, count)
            assert log_p == pytest.approx(np.log(betainc(count, 21 - count, p)), abs=1e-12)
            assert log_p == pytest.approx(binom.logsf(count - 1, 20, p), abs=1e-12)
    mpmath.mp.dps = 40
    tiny = mpmath.mpf(10) ** -200
    exact = mpmath.log(sum(mpmath.binomial(9, k) * tiny**k * (1 - tiny) ** (9 - k) for k in range(5, 10)))
    assert log_count_tail(float(mpmath.log(tiny)), float(mpmath.log1p(-tiny)), 9, 5) == pytest.approx(
        float(exact), abs=1e-11
    )


def test_count_tail_at_certain_and_impossible_events():
    assert log_count_tail(-np.inf, 0.0, 5, 0) == 0.0
    assert log_count_tail(-np.inf, 0.0, 5, 1) == -np.inf
    assert log_count_tail(0.0, -np.inf, 5, 5) == 0.0


def test_median_and_tail_are_binomial_tails_of_one_run():
    law = worst_case_law(45, 40, 2.0)
    median = summarise(np.array([20, 26, 28, 30]), 40, "median")
    assert (median.value, median.most) == (27, 40)
    expected = binom.logsf(1, 4, np.exp(law.log_tail[27]))
    assert log_p_value(law, median) == pytest.approx(expected, abs=1e-12)
    odd = summarise(np.array([20, 26, 28]), 40, "median")
    assert log_p_value(law, odd) == pytest.approx(binom.logsf(1, 3, np.exp(law.log_tail[26])), abs=1e-12)
    tail = summarise(np.array([20, 26, 28, 30]), 40, "tail", 26)
    assert (tail.value, tail.most) == (3, 4)
    assert log_p_value(law, tail) == pytest.approx(binom.logsf(2, 4, np.exp(law.log_tail[26])), abs=1e-12)


@pytest.mark.parametrize("num_runs", [1, 2, 3, 4, 5])
def test_median_event_never_exceeds_its_bound(num_runs):
    """For any law, P[ceil(median) >= v] is at most the probability that ceil(L/2) runs reach v."""
    pmf = np.exp(null_law(6, 4).log_pmf)
    outcomes = np.stack(np.meshgrid(*[np.arange(5)] * num_runs, indexing="ij"), axis=-1).reshape(-1, num_runs)
    probabilities = pmf[outcomes].prod(axis=1)
    for v in range(5):
        reached = np.array([summarise(row, 4, "median").value >= v for row in outcomes])
        bound = np.exp(log_p_value(null_law(6, 4), OverlapSummary("median", num_runs, v, 4)))
        assert probabilities[reached].sum() <= bound + 1e-12


def test_perfect_summary_is_all_right_in_every_run():
    perfect = np.full(7, 40)
    for statistic, threshold in [("mean", None), ("median", None), ("tail", 30)]:
        summary = summarise(np.full(7, 20), 40, statistic, threshold)
        assert summary != summary.perfect
        assert summary.perfect == summarise(perfect, 40, statistic, threshold)


def test_tilt_gives_the_mean_and_is_zero_below_it():
    log_weights = log_overlap_counts(45, 40)
    for mean in (20.1, 26, 39.9):
        log_tilted = log_weights + tilt(log_weights, mean) * np.arange(41)
        weights = np.exp(log_tilted - log_tilted.max())
        assert weights @ np.arange(41) / weights.sum() == pytest.approx(mean, abs=1e-9)
    assert tilt(log_weights, 20.0) == pytest.approx(0.0, abs=1e-12)
    assert tilt(log_weights, 12.0) == 0.0


def test_log_choose_is_the_binomial_coefficient():
    np.testing.assert_allclose(np.exp(log_choose(6)), [1, 6, 15, 20, 15, 6, 1], rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mode", None, 6), "statistic must be one of mean, median, tail, got 'mode'"),
        (("tail", None, 6), "threshold must be given for statistic='tail', got None"),
        (("tail", 0, 6), "threshold must be an integer between 1 and 6, got 0"),
        (("tail", 7, 6), "threshold must be an integer between 1 and 6, got 7"),
        (("tail", 2.5, 6), "threshold must be an integer between 1 and 6, got 2.5"),
        (("mean", 3, 6), "threshold is only used by statistic='tail', got 3 for 'mean'"),
    ],
)
def test_bad_statistics_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        check_statistic(*arguments)
