import json
from dataclasses import FrozenInstanceError
from math import comb, exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from jaxaudit.bound.law import worst_case_law
from jaxaudit.bound.lower_bound import epsilon_lower_bound, p_value, predicted_epsilon
from jaxaudit.errors import InputError

PAPER_TABLES = json.loads((Path(__file__).parent / "paper_tables.json").read_text())

# m, r, L, mean overlap; Theorem 4.2 (halved); direct at delta = 0, 1e-5, 1e-2.
NUMBERS = [
    (6, 6, 10, 6, 1.998, 2.696, 2.696, 2.683),
    (6, 6, 10, 5, 0.467, 1.628, 1.628, 1.590),
    (6, 6, 100, 3.6, 0.037, 0.360, 0.360, 0.306),
    (6, 6, 500, 4, 0.146, 1.062, 1.062, 1.011),
    (9, 8, 10, 7, 0.993, 2.576, 2.576, 2.536),
    (45, 40, 10, 26, 0.744, 2.134, 2.133, 1.769),
    (400, 100, 10, 65, 2.130, 5.123, 5.122, 3.454),
    (400, 100, 10, 80, 9.464, 20.346, 20.346, 17.991),
    (4500, 3000, 10, 1700, 13.220, 28.098, 28.098, 3.029),
    (4500, 3000, 10, 2000, 84.780, 172.074, 172.073, 104.548),
    (100, 100, 10, 100, 33.918, 66.484, 66.484, 66.471),
]


def runs_with_mean(mean, num_runs):
    """Whole overlaps with this mean, as equal as possible; for half a step also with this median."""
    total = round(mean * num_runs)
    return [total // num_runs + (i < total % num_runs) for i in range(num_runs)]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_reference_numbers(numbers):
    num_groups, num_guesses, num_runs, mean, by_paper, *by_delta = numbers
    overlaps = runs_with_mean(mean, num_runs)
    design = {"num_groups": num_groups, "num_guesses": num_guesses}
    result = epsilon_lower_bound(overlaps, **design, method="theorem-4.2")
    assert result.epsilon == pytest.approx(by_paper, abs=5.001e-4)
    assert result.epsilon_ldp == 2 * result.epsilon
    for delta, expected in zip((0.0, 1e-5, 1e-2), by_delta, strict=True):
        result = epsilon_lower_bound(overlaps, **design, delta=delta)
        assert result.epsilon == pytest.approx(expected, abs=5.001e-4)
        assert result.epsilon_ldp is None
        assert result.saturated == (mean == num_guesses)
        assert result.ceiling >= result.epsilon


def test_statistics_at_a_large_delta():
    design = {"num_groups": 4500, "num_guesses": 3000, "delta": 0.01}
    for statistic, threshold, expected in [
        ("mean", None, 3.03),
        ("median", None, 27.98),
        ("tail", 1700, 29.2),
    ]:
        result = epsilon_lower_bound([1700] * 10, **design, statistic=statistic, threshold=threshold)
        assert result.epsilon == pytest.approx(expected, abs=0.05 if statistic == "tail" else 0.005)


@pytest.mark.parametrize(
    ("num_groups", "num_guesses", "printed"), [(6, 6, 4.00), (100, 60, 40.83), (100, 100, 67.836)]
)
def test_appendix_f_prints_the_ldp_epsilon_of_perfect_guesses(num_groups, num_guesses, printed):
    result = epsilon_lower_bound(
        [num_guesses] * 10, num_groups=num_groups, num_guesses=num_guesses, method="theorem-4.2"
    )
    assert result.epsilon_ldp == pytest.approx(printed, abs=0.0051 if printed < 60 else 5e-4)
    vectors, count = (
        comb(num_groups, num_groups // 2),
        comb(num_groups - num_guesses, (num_groups - num_guesses) // 2),
    )
    ratio = 0.05**0.1 / count
    assert result.epsilon_ldp == pytest.approx(log(ratio * (vectors - 1) / (1 - ratio)), rel=1e-10)
    assert result.saturated
    assert result.epsilon == result.ceiling


@pytest.mark.parametrize("cell", PAPER_TABLES["cells"], ids=str)
def test_cells_of_the_papers_tables(cell):
    cell = dict(zip(PAPER_TABLES["columns"], cell, strict=True))
    result = epsilon_lower_bound(
        runs_with_mean(cell["overlap"], 10),
        num_groups=cell["num_groups"],
        num_guesses=cell["num_guesses"],
        method="theorem-4.2",
        statistic=cell["statistic"],
    )
    assert result.observed == pytest.approx(cell["overlap"])
    assert result.epsilon == pytest.approx(cell["bound"], abs=5.1e-6)
    assert abs(result.epsilon - cell["printed"]) <= cell["resolution"] / 2


def test_every_non_zero_cell_is_there():
    assert len(PAPER_TABLES["cells"]) == 179


# m, r, L, true epsilon, delta; rejection rate and mean of the direct bound; mean of Theorem 4.2 at delta = 0.
TWO_LEVEL = [
    (6, 6, 100, 1.0, 0.0, 0.046, 0.703, 0.098),
    (6, 6, 100, 3.0, 0.0, 0.026, 2.880, 1.799),
    (45, 40, 10, 2.0, 0.0, 0.035, 1.320, 0.386),
    (400, 100, 10, 10.0, 0.0, 0.034, 9.408, 4.156),
    (400, 100, 10, 10.0, 1e-5, 0.035, 9.408, None),
    (4500, 3000, 10, 80.0, 0.0, 0.043, 79.42, 38.6),
]


def law_of_sum(pmf, num_runs):
    """The likely values of the sum of independent overlaps, and their probabilities."""
    transform = np.fft.rfft(pmf, num_runs * (len(pmf) - 1) + 1)
    sums = np.fft.irfft(transform**num_runs, num_runs * (len(pmf) - 1) + 1)
    totals = np.flatnonzero(sums > 1e-7)
    return totals, sums[totals]


@pytest.mark.parametrize("numbers", TWO_LEVEL, ids=str)
def test_exact_law_of_the_bound_for_the_worst_case_mechanism(numbers):
    """The overlaps of the mechanism that attains the direct bound follow its law, so all is known exactly."""
    num_groups, num_guesses, num_runs, epsilon, delta, rejection, by_direct, by_paper = numbers
    pmf = np.exp(worst_case_law(num_groups, num_guesses, epsilon, delta).log_pmf)
    totals, weights = law_of_sum(pmf, num_runs)
    design = {"num_groups": num_groups, "num_guesses": num_guesses}

    def bounds(method):
        results = (
            epsilon_lower_bound(runs_with_mean(t / num_runs, num_runs), **design, delta=delta, method=method)
            for t in totals
        )
        return np.array([result.epsilon for result in results])

    direct = bounds("direct")
    assert weights[direct > epsilon].sum() == pytest.approx(rejection, abs=5.1e-4)
    half_digit = 5.1e-3 if epsilon == 80 else 5.1e-4
    assert weights @ direct == pytest.approx(by_direct, abs=half_digit)
    if by_paper is not None:
        paper = bounds("theorem-4.2")
        assert weights @ paper == pytest.approx(by_paper, abs=0.051 if epsilon == 80 else 5.1e-4)
        assert weights[paper > epsilon].sum() == pytest.approx(0.0 if epsilon != 3 else 0.008, abs=5.1e-4)


# m, r, true epsilon; mean of the direct bound after 10, 30, 100 runs: exact, and of some hundred simulated audits.
DECLARED_RUNS = [
    (6, 6, 3.0, (2.551, 2.779, 2.880), (2.54, 2.77, 2.87)),
    (45, 40, 2.0, (1.320, 1.604, 1.778), (1.31, 1.62, 1.79)),
    (400, 100, 10.0, (9.408, 9.696, 9.854), (9.36, 9.67, 9.84)),
]


@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon", "exact", "simulated"), DECLARED_RUNS)
def test_mean_bound_of_declared_runs(num_groups, num_guesses, epsilon, exact, simulated):
    pmf = np.exp(worst_case_law(num_groups, num_guesses, epsilon).log_pmf)
    for num_runs, mean, other in zip((10, 30, 100), exact, simulated, strict=True):
        totals, weights = law_of_sum(pmf, num_runs)
        nodes = totals[:: max(1, len(totals) // 60)]
        results = (
            epsilon_lower_bound(
                runs_with_mean(t / num_runs, num_runs), num_groups=num_groups, num_guesses=num_guesses
            )
            for t in nodes
        )
        bounds = np.interp(totals, nodes, [result.epsilon for result in results])
        assert weights @ bounds == pytest.approx(mean, abs=1.1e-3)
        spread = np.sqrt(weights @ (bounds - mean) ** 2)
        # Three standard errors of the mean of 400 audits, and the rounding of the last digit.
        assert abs(mean - other) < 3 * spread / np.sqrt(400) + 0.005


def test_randomised_response_on_the_sign_vectors_of_six_groups():
    """The true one of 20 comes out with probability e^3 / (e^3 + 19), all others equally often."""
    hit = exp(3) / (exp(3) + 19)
    pmf = np.array([1, 0, 9, 0, 9, 0, 0]) * (1 - hit) / 19
    pmf[6] = hit
    totals, weights = law_of_sum(pmf, 100)
    design = {"num_groups": 6, "num_guesses": 6}

    def mean_bound(method):
        runs = (runs_with_mean(t / 100, 100) for t in totals)
        return weights @ [epsilon_lower_bound(each, **design, method=method).epsilon for each in runs]

    assert log(20 * hit) == pytest.approx(2.33, abs=0.001)
    assert mean_bound("direct") == pytest.approx(1.57, abs=0.005)
    assert mean_bound("theorem-4.2") == pytest.approx(0.32, abs=0.005)
    hits = np.arange(20, 85)
    tails = [
        epsilon_lower_bound([6] * k + [0] * (100 - k), **design, statistic="tail", threshold=6).epsilon
        for k in hits
    ]
    assert binom.pmf(hits, 100, hit) @ tails == pytest.approx(2.14, abs=0.005)


def designs_and_overlaps():
    def with_overlaps(design):
        half, rest = design
        overlaps = st.lists(st.integers(0, 2 * half), min_size=1, max_size=12)
        return st.tuples(st.just((2 * half + rest, 2 * half)), overlaps)

    return st.tuples(st.integers(1, 30), st.integers(0, 40)).flatmap(with_overlaps)


@settings(max_examples=60, deadline=None)
@given(case=designs_and_overlaps(), statistic=st.sampled_from(["mean", "median"]))
def test_paper_is_at_most_odds_is_at_most_direct(case, statistic):
    (num_groups, num_guesses), overlaps = case
    design = {"num_groups": num_groups, "num_guesses": num_guesses, "statistic": statistic}
    paper, odds, direct = (
        epsilon_lower_bound(overlaps, **design, method=method) for method in ("theorem-4.2", "odds", "direct")
    )
    assert 0 <= paper.epsilon <= odds.epsilon + 1e-9
    assert odds.epsilon <= direct.epsilon + 1e-9
    assert odds.epsilon_ldp == 2 * odds.epsilon
    assert direct.epsilon <= direct.ceiling + 1e-9


@settings(max_examples=60, deadline=None)
@given(
    case=designs_and_overlaps(),
    statistic=st.sampled_from(["mean", "median", "tail"]),
    delta=st.sampled_from([0.0, 1e-9, 1e-3, 0.2]),
    epsilon=st.floats(0, 20),
    step=st.floats(0, 5),
    data=st.data(),
)
def test_bound_is_monotone_in_everything(case, statistic, delta, epsilon, step, data):
    (num_groups, num_guesses), overlaps = case
    threshold = data.draw(st.integers(1, num_guesses)) if statistic == "tail" else None
    test = {
        "num_groups": num_groups,
        "num_guesses": num_guesses,
        "statistic": statistic,
        "threshold": threshold,
    }
    assert p_value(overlaps, epsilon, delta=delta, **test) <= p_value(
        overlaps, epsilon + step, delta=delta, **test
    ) * (1 + 1e-9)
    result = epsilon_lower_bound(overlaps, delta=delta, **test)
    run = data.draw(st.integers(0, len(overlaps) - 1))
    better = [v + (i == run and v < num_guesses) for i, v in enumerate(overlaps)]
    assert epsilon_lower_bound(better, delta=delta, **test).epsilon >= result.epsilon - 1e-9
    assert (
        epsilon_lower_bound(overlaps, delta=min(2 * delta + 1e-6, 0.9), **test).epsilon
        <= result.epsilon + 1e-9
    )
    assert (
        epsilon_lower_bound(overlaps, delta=delta, significance=0.01, **test).epsilon <= result.epsilon + 1e-9
    )
    if result.epsilon > 0:
        assert exp(result.log_p_value(result.epsilon, delta)) == pytest.approx(0.05, rel=1e-8)


@pytest.mark.parametrize("method", ["direct", "odds", "theorem-4.2"])
@pytest.mark.parametrize("overlaps", [[0] * 5, [3] * 5, [2, 3, 4, 3], [3]])
def test_chance_and_below_is_exactly_zero(method, overlaps):
    for statistic in ("mean", "median"):
        result = epsilon_lower_bound(
            overlaps, num_groups=10, num_guesses=6, method=method, statistic=statistic
        )
        assert result.epsilon == 0.0
        assert result.epsilon_ldp in (None, 0.0)
        assert not result.saturated


def test_one_run_of_a_coin_gives_no_evidence_even_when_perfect():
    result = epsilon_lower_bound([2], num_groups=2, num_guesses=2)
    assert (result.epsilon, result.ceiling, result.saturated) == (0.0, 0.0, True)


def test_p_value_is_the_chance_probability_at_epsilon_zero():
    assert p_value([6] * 3, 0.0, num_groups=6, num_guesses=6) == pytest.approx(1 / 20**3, rel=1e-12)
    tail = {"num_groups": 6, "num_guesses": 6, "statistic": "tail", "threshold": 6}
    assert p_value([6, 6, 0], 0.0, **tail) == pytest.approx(3 * 0.05**2 * 0.95 + 0.05**3, rel=1e-12)
    assert p_value([0, 0], 3.0, num_groups=6, num_guesses=6) == 1.0


def test_p_value_agrees_with_the_result_for_every_method():
    design = {"num_groups": 45, "num_guesses": 40}
    for method, delta in [("direct", 0.0), ("direct", 1e-3), ("odds", 0.0), ("theorem-4.2", 0.0)]:
        result = epsilon_lower_bound([30] * 5, **design, method=method, delta=delta)
        assert result.epsilon > 0
        p = p_value([30] * 5, result.epsilon, **design, method=method, delta=delta)
        assert p == pytest.approx(0.05, rel=1e-8)
        assert p == exp(result.log_p_value(result.epsilon, delta))


def test_below_chance_is_seen():
    design = {"num_groups": 100, "num_guesses": 60}
    wrong_sign = epsilon_lower_bound([10] * 10, **design)
    assert wrong_sign.below_chance
    assert wrong_sign.epsilon == 0.0
    # The same distance on the other side of chance is what the bound takes as evidence at epsilon 0.
    assert wrong_sign.below_chance_p_value == pytest.approx(p_value([50] * 10, 0.0, **design), rel=1e-10)
    assert not epsilon_lower_bound([30] * 10, **design).below_chance
    assert epsilon_lower_bound([60] * 10, **design).below_chance_p_value == 1.0


def test_lemma_c1_is_flagged_when_it_says_nothing():
    small = {"num_groups": 6, "num_guesses": 6, "method": "theorem-4.2"}
    without = epsilon_lower_bound([6] * 10, **small)
    informative = epsilon_lower_bound([6] * 10, **small, delta=1e-3)
    assert not without.vacuous
    assert not informative.vacuous
    assert 0 < informative.epsilon < without.epsilon
    # The p-value is the lemma's at epsilon' = 2 epsilon and delta' = (1 + e^epsilon) delta. There are 20 sign
    # vectors and 20 guess vectors, of which one agrees everywhere.
    e = np.exp(informative.epsilon)
    ratio = (e**2 + 19 / 20 * 20 * (1 + e) * 1e-3) / (e**2 + 19)
    assert ratio**10 == pytest.approx(0.05, rel=1e-9)
    vacuous = epsilon_lower_bound([60] * 10, num_groups=100, num_guesses=60, method="theorem-4.2", delta=1e-5)
    assert vacuous.vacuous
    assert (vacuous.epsilon, vacuous.epsilon_ldp, vacuous.ceiling) == (0.0, 0.0, 0.0)
    assert not epsilon_lower_bound([60] * 10, num_groups=100, num_guesses=60, delta=1e-5).vacuous


def test_result_says_what_it_was_computed_from():
    result = epsilon_lower_bound(
        np.array([4.0, 5.0, 6.0, 6.0]), num_groups=8, num_guesses=6, statistic="tail", threshold=5, delta=1e-6
    )
    assert result.overlaps == (4, 5, 6, 6)
    assert (result.num_runs, result.num_groups, result.num_guesses) == (4, 8, 6)
    assert (result.method, result.statistic, result.threshold, result.observed) == ("direct", "tail", 5, 3.0)
    assert (result.delta, result.significance) == (1e-6, 0.05)
    assert epsilon_lower_bound([4, 5, 6, 6], num_groups=8, num_guesses=6, statistic="median").observed == 5.5
    with pytest.raises(FrozenInstanceError):
        result.epsilon = 1.0


def test_predicted_epsilon_is_the_bound_of_runs_with_that_mean():
    design = {"num_groups": 45, "num_guesses": 40}
    expected = epsilon_lower_bound([29, 29, 28], **design, delta=1e-4, significance=0.01).epsilon
    for mean in (86 / 3, 86.9 / 3):
        predicted = predicted_epsilon(mean, num_runs=3, **design, delta=1e-4, significance=0.01)
        assert predicted == pytest.approx(expected, rel=1e-12)
    assert predicted_epsilon(20.0, num_runs=3, **design) == 0.0
    # In float64 (230 / 7) * 7 < 230, but seven runs with sum 230 have this mean.
    predicted = predicted_epsilon(230 / 7, num_runs=7, **design)
    assert predicted == epsilon_lower_bound([32, 33, 33, 33, 33, 33, 33], **design).epsilon


DESIGN = {"num_groups": 6, "num_guesses": 6}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_groups": 1}, "num_groups must be an integer of at least 2, got 1"),
        ({"num_guesses": 3}, "num_guesses must be even, got 3"),
        ({"num_guesses": 0}, "num_guesses must be an integer between 2 and 6, got 0"),
        ({"num_guesses": 8}, "num_guesses must be an integer between 2 and 6, got 8"),
        ({"overlaps": []}, "at least one run"),
        ({"overlaps": [7]}, "overlaps must be integers between 0 and num_guesses = 6, got 7"),
        ({"overlaps": [-1]}, "got -1"),
        ({"overlaps": [2.5]}, "got 2.5"),
        ({"overlaps": [float("nan")]}, "got nan"),
        ({"delta": 1.0}, r"delta must be in \[0, 1\), got 1.0"),
        ({"delta": float("nan")}, "delta must be a finite number, got nan"),
        ({"method": "best"}, "method must be one of direct, odds, theorem-4.2, got 'best'"),
        ({"method": "odds", "delta": 1e-5}, "delta must be 0 for method='odds', got 1e-05"),
        ({"statistic": "mode"}, "statistic must be one of mean, median, tail, got 'mode'"),
        ({"statistic": "tail"}, "threshold must be given for statistic='tail', got None"),
        ({"statistic": "tail", "threshold": 7}, "threshold must be an integer between 1 and 6, got 7"),
        ({"threshold": 4}, "threshold is only used by statistic='tail', got 4"),
        (
            {"statistic": "tail", "threshold": 4, "method": "theorem-4.2"},
            "statistic must be 'mean' or 'median' for method='theorem-4.2', got 'tail'",
        ),
    ],
)
def test_bad_arguments_are_named_by_both_functions(changes, message):
    arguments = {"overlaps": [4, 6], **DESIGN, **changes}
    with pytest.raises(InputError, match=message):
        epsilon_lower_bound(**arguments)
    with pytest.raises(InputError, match=message):
        p_value(epsilon=1.0, **arguments)


def test_bad_claims_levels_and_predictions_are_named():
    for significance in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="significance must be"):
            epsilon_lower_bound([6], **DESIGN, significance=significance)
    for epsilon in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="epsilon must"):
            p_value([6], epsilon, **DESIGN)
    with pytest.raises(InputError, match=r"delta must be 0 for method='odds', got 0\.1"):
        epsilon_lower_bound([6], **DESIGN, method="odds").log_p_value(1.0, 0.1)
    for mean in (-0.1, 6.1, float("nan")):
        with pytest.raises(InputError, match="mean_overlap must be"):
            predicted_epsilon(mean, num_runs=3, **DESIGN)
    with pytest.raises(InputError, match="num_runs must be an integer of at least 1, got 0"):
        predicted_epsilon(3.0, num_runs=0, **DESIGN)
