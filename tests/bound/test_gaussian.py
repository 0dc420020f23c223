"""The exact Gaussian mechanism against mpmath, published numbers, round trips and its limits."""

import itertools
import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxaudit.bound.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from jaxaudit.errors import InputError

EPSILONS = (0.0, 1e-12, 1e-3, 0.1, 1.0, 5.0, 100.0, 1e4, 1e6)
DELTAS = (1e-300, 1e-100, 1e-12, 1e-5, 0.01, 0.5, 0.9, 1 - 1e-9)


def exact_log_delta(u: float, epsilon: float) -> mp.mpf:
    """Theorem 8 of Balle and Wang as it is printed, with enough digits that nothing cancels."""
    with mp.workdps(700):
        u, epsilon = mp.mpf(u), mp.mpf(epsilon)
        phi = [mp.erfc(-z / mp.sqrt(2)) / 2 for z in (u / 2 - epsilon / u, -u / 2 - epsilon / u)]
        return mp.log(phi[0] - mp.exp(epsilon) * phi[1])


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "sigma"),
    [
        (0.064942, 0.1, 0.619665),
        (0.064942, 5, 0.036977),
        (0.064942, 100, 0.0053807),
        (0.064942, 800, 0.00171961),
        (0.2, 0.1, 1.90836),
        (0.2, 1, 0.375575),
        (0.2, 100, 0.0165708),
    ],
)
def test_published_sigmas_at_delta_one_percent(sensitivity, epsilon, sigma):
    digits = len(f"{sigma}".split(".")[1])
    assert gaussian_sigma(sensitivity, epsilon, 0.01) == pytest.approx(sigma, abs=0.51 * 10**-digits)


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_sigma_attains_delta_in_exact_arithmetic(epsilon, delta):
    u = 1 / gaussian_sigma(1.0, epsilon, delta)
    with mp.workdps(50):
        error = float(exact_log_delta(u, epsilon) - mp.log(mp.mpf(delta)))
        per_log_u = float((exact_log_delta(u * (1 + 1e-6), epsilon) - exact_log_delta(u, epsilon)) / 1e-6)
    # Rounding of log delta, divided by its slope, is the relative error of sigma.
    assert abs(error / per_log_u) < 2e-15 * max(1, abs(math.log(delta)))


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 3.0, 50.0, 1e3])
@pytest.mark.parametrize("u", [1e-9, 1e-3, 0.3, 0.999, 1.0, 1.001, 3.0, 40.0, 500.0])
def test_delta_against_mpmath(u, epsilon):
    exact = exact_log_delta(u, epsilon)
    x = epsilon / u - u / 2
    # The condition number of delta in x is at most about max(x, 0)^2.
    expected = float(mp.exp(exact))
    assert gaussian_delta(u, 1.0, epsilon) == pytest.approx(
        expected, rel=4e-15 * (10 + max(x, 0) ** 2), abs=1e-307
    )


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_epsilon_inverts_sigma(epsilon, delta):
    sigma = gaussian_sigma(3.0, epsilon, delta)
    assert gaussian_epsilon(3.0, sigma, delta) == pytest.approx(
        epsilon, rel=1e-12, abs=2e-13 * max(1, 1 / (1 - delta))
    )


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(0, 1e3), st.floats(1.001, 2.0))
def test_delta_grows_with_sensitivity_and_falls_with_noise_and_epsilon(sensitivity, sigma, epsilon, factor):
    delta = gaussian_delta(sensitivity, sigma, epsilon)
    assert 0 <= delta <= 1
    assert gaussian_delta(sensitivity * factor, sigma, epsilon) >= delta * (1 - 1e-9)
    assert gaussian_delta(sensitivity, sigma * factor, epsilon) <= delta * (1 + 1e-9)
    assert gaussian_delta(sensitivity, sigma, epsilon * factor) <= delta * (1 + 1e-9)


def test_epsilon_zero_is_total_variation():
    assert gaussian_delta(2.0, 1.0, 0.0) == pytest.approx(math.erf(1 / math.sqrt(2)), rel=1e-14)
    assert gaussian_epsilon(2.0, 1.0, 0.7) == 0.0
    assert gaussian_sigma(1.0, 0.0, 1e-300) == pytest.approx(1e300 / math.sqrt(2 * math.pi), rel=1e-12)


def test_extremes_are_numbers():
    assert gaussian_delta(1.0, 1e299, 1e6) == 0.0
    assert gaussian_delta(1e99, 1.0, 1.0) == 1.0
    assert gaussian_epsilon(1e50, 1.0, 0.01) == pytest.approx(1e100 / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_sigma(0.0, 1, 0.1), "sensitivity must be positive and finite, got 0.0"),
        (lambda: gaussian_sigma(1, -1, 0.1), "epsilon must not be negative, got -1"),
        (lambda: gaussian_sigma(1, math.nan, 0.1), "epsilon must be a finite number, got nan"),
        (lambda: gaussian_sigma(1, 1, 0.0), r"delta must be in \(0, 1\), got 0.0"),
        (lambda: gaussian_epsilon(1, 0, 0.1), "sigma must be positive and finite, got 0"),
        (lambda: gaussian_epsilon(1, 1, 1), r"delta must be in \(0, 1\), got 1"),
        (
            lambda: gaussian_epsilon(1e200, 1e-5, 0.1),
            r"sensitivity / sigma must be in .* got 1e\+200 / 1e-05",
        ),
        (lambda: gaussian_delta(1, math.inf, 1), "sigma must be positive and finite, got inf"),
        (lambda: gaussian_delta(1, 1, math.inf), "epsilon must be a finite number, got inf"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
