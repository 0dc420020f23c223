from math import comb, factorial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from jaxaudit.bound import paper
from jaxaudit.bound.statistics import OverlapSummary

DESIGNS = [(6, 6), (9, 8), (7, 4), (20, 10)]


def summary(statistic, value, num_guesses, num_runs=10):
    most = num_guesses * (num_runs if statistic == "mean" else 1)
    return OverlapSummary(statistic, num_runs, value, most)


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-4, 0.2])
def test_bounds_equal_their_formula(num_groups, num_guesses, epsilon, delta, exact_counts):
    counts = exact_counts(num_groups, num_guesses)
    vectors = comb(num_groups, num_groups // 2)
    guess_vectors = factorial(num_groups) / (
        factorial(num_guesses // 2) ** 2 * factorial(num_groups - num_guesses)
    )
    raised, delta_ldp = np.exp(2 * epsilon), (1 + np.exp(epsilon)) * delta
    ratio = (raised + (vectors - 1) / vectors * guess_vectors * delta_ldp) / (raised + vectors - 1)
    assert paper.log_ratio(num_groups, num_guesses, epsilon, delta) == pytest.approx(np.log(ratio), abs=1e-12)
    log_pi = np.log(np.maximum(counts, 1e-300)) + np.log(ratio)
    overlaps = np.arange(num_guesses + 1)
    for v in range(num_guesses + 1):
        median = np.log(comb(10, 5)) + 5 * logsumexp(log_pi[v:])
        result = paper.log_p_value(summary("median", v, num_guesses), num_groups, num_guesses, epsilon, delta)
        assert result == pytest.approx(min(median, 0), abs=1e-10)
    for total in (0, 5 * num_guesses, 7 * num_guesses, 9 * num_guesses + 1):

        def exponent(rate, total=total):
            return 10 * logsumexp(log_pi + rate * overlaps) - rate * total

        mean = minimize_scalar(exponent, bounds=(0, 50), method="bounded", options={"xatol": 1e-9}).fun
        result = paper.log_p_value(
            summary("mean", total, num_guesses), num_groups, num_guesses, epsilon, delta
        )
        assert result == pytest.approx(min(mean, 0), abs=1e-6)


def test_perfect_mean_is_the_limit_of_a_large_rate():
    nearly = paper.log_p_value(summary("mean", 10**6 * 60 - 1, 60, 10**6), 100, 60, 1.0)
    perfect = paper.log_p_value(summary("mean", 10**6 * 60, 60, 10**6), 100, 60, 1.0)
    assert perfect == pytest.approx(nearly, rel=1e-5)
    assert perfect < nearly


def test_number_of_guess_vectors():
    assert np.exp(paper.log_num_guess_vectors(9, 4)) == pytest.approx(756)


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
def test_lemma_is_vacuous_from_its_limit_on(num_groups, num_guesses):
    limit = np.exp(
        paper.log_num_sign_vectors(num_groups) - paper.log_num_guess_vectors(num_groups, num_guesses)
    )
    below, above = 0.999 * limit / 2, min(1.001 * limit / 2, 0.999)
    assert not paper.is_vacuous(num_groups, num_guesses, 0.0)
    assert not paper.is_vacuous(num_groups, num_guesses, below)
    assert paper.is_vacuous(num_groups, num_guesses, above)
    # Below the limit the ratio starts under 1 and grows until it reaches 1; above it never is under 1.
    grid = np.linspace(0, 10, 200)
    ratios = np.array([paper.log_ratio(num_groups, num_guesses, e, 0.1 * below) for e in grid])
    informative = ratios < 0
    assert informative[0]
    assert (np.diff(ratios[informative]) > 0).all()
    assert (np.diff(informative.astype(int)) <= 0).all()
    assert min(paper.log_ratio(num_groups, num_guesses, e, above) for e in grid) >= 0
