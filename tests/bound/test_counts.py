from itertools import product
from math import comb

import mpmath
import numpy as np
import pytest

from jaxaudit.bound.counts import log_null_pmf, log_num_sign_vectors, log_overlap_counts
from jaxaudit.errors import InputError

DESIGNS = [(2, 2), (3, 2), (4, 2), (5, 2), (5, 4), (6, 4), (6, 6), (7, 4), (8, 4), (9, 6), (9, 8)]
LARGER = [(45, 40), (100, 100), (101, 100), (102, 100), (300, 200), (301, 200), (400, 100)]


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
def test_counts_equal_enumeration_for_every_guess_vector(num_groups, num_guesses):
    vectors = np.array(list(product([-1, 0, 1], repeat=num_groups)))
    positives, negatives = (vectors == 1).sum(1), (vectors == -1).sum(1)
    signs = vectors[(positives == num_groups // 2) & (negatives == num_groups - num_groups // 2)]
    guesses = vectors[(positives == num_guesses // 2) & (negatives == num_guesses // 2)]
    guesses = guesses[:: max(1, len(guesses) // 50)]
    overlaps = (signs[:, None] * guesses[None] == 1).sum(axis=2)
    counts = np.exp(log_overlap_counts(num_groups, num_guesses))
    for column in overlaps.T:
        np.testing.assert_allclose(counts, np.bincount(column, minlength=num_guesses + 1), rtol=1e-14, atol=0)
    assert np.exp(log_num_sign_vectors(num_groups)) == pytest.approx(len(signs), rel=1e-14)


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS + LARGER)
def test_counts_and_chance_equal_exact_integers(num_groups, num_guesses, exact_counts):
    mpmath.mp.dps = 60
    exact = exact_counts(num_groups, num_guesses)
    assert sum(exact) == comb(num_groups, num_groups // 2)
    log_counts, log_pmf = (f(num_groups, num_guesses) for f in (log_overlap_counts, log_null_pmf))
    for count, log_count, log_probability in zip(exact, log_counts, log_pmf, strict=True):
        if count == 0:
            assert log_count == log_probability == -np.inf
        else:
            assert abs(float(mpmath.log(count) - mpmath.mpf(log_count))) < 1e-13
            log_exact = mpmath.log(mpmath.mpf(count) / sum(exact))
            assert abs(float(log_exact - mpmath.mpf(log_probability))) < 1e-13


@pytest.mark.parametrize("num_groups", [4500, 4501])
@pytest.mark.parametrize("overlap", [0, 1, 37, 750, 1499, 1500, 1501, 2250, 2999, 3000])
def test_counts_equal_exact_integers_at_large_sizes(num_groups, overlap):
    mpmath.mp.dps = 60
    half, rest = 1500, num_groups - 3000
    count = sum(
        comb(rest, rest // 2 - (2 * a1 - overlap)) * comb(half, a1) * comb(half, overlap - a1)
        for a1 in range(max(0, overlap - half), min(half, overlap) + 1)
        if 0 <= rest // 2 - (2 * a1 - overlap) <= rest
    )
    # A float64 near 3,100 resolves 4.5e-13, and this is the relative error of the count itself.
    assert abs(float(mpmath.log(count) - mpmath.mpf(log_overlap_counts(num_groups, 3000)[overlap]))) < 5e-13
    log_chance = mpmath.log(mpmath.mpf(count) / comb(num_groups, num_groups // 2))
    assert abs(float(log_chance - mpmath.mpf(log_null_pmf(num_groups, 3000)[overlap]))) < 5e-13


@pytest.mark.parametrize(("num_groups", "num_guesses"), [*DESIGNS, *LARGER, (4500, 3000), (4501, 4500)])
def test_chance_law_sums_to_one_and_is_symmetric(num_groups, num_guesses):
    log_pmf = log_null_pmf(num_groups, num_guesses)
    assert np.exp(log_pmf).sum() == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(log_pmf, log_pmf[::-1], rtol=1e-12)


def test_results_cannot_be_changed_by_a_caller():
    for function in (log_overlap_counts, log_null_pmf):
        with pytest.raises(ValueError, match="read-only"):
            function(6, 4)[0] = 0.0


@pytest.mark.parametrize("function", [log_overlap_counts, log_null_pmf])
@pytest.mark.parametrize("design", [(1, 2), (6, 3), (6, 0), (6, 8), (6, 4.0), (6.0, 4)])
def test_bad_designs_are_refused_even_after_a_good_one_was_cached(function, design):
    function(6, 4)
    with pytest.raises(InputError, match="num_g"):
        function(*design)


def test_number_of_sign_vectors_needs_two_groups():
    with pytest.raises(InputError, match="num_groups must be an integer of at least 2, got 1"):
        log_num_sign_vectors(1)
