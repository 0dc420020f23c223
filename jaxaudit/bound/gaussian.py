"""The exact Gaussian mechanism: which noise makes two outputs (epsilon, delta)-indistinguishable.

Gaussians of standard deviation sigma, means D apart, are (epsilon, delta)-indistinguishable exactly when

    Phi(u/2 - epsilon/u) - e^epsilon Phi(-u/2 - epsilon/u) <= delta,    u = D / sigma

(Balle and Wang 2018, Theorem 8). The two terms overflow, underflow and cancel, so with x = epsilon/u - u/2
and the Mills ratio R(x) = Phi(-x)/phi(x), the left side is written phi(x) [R(x) - R(x + u)] and kept in logs.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri

from jaxaudit.checks import check_epsilon
from jaxaudit.errors import InputError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Solve to the last bit: brentq stops at xtol + rtol |root|, and takes no rtol below 4 machine epsilons.
_ROOT = {"xtol": 1e-300, "rtol": 4 * np.finfo(float).eps, "maxiter": 1000}


def gaussian_delta(sensitivity: float, sigma: float, epsilon: float) -> float:
    """Smallest delta for which noise sigma on a difference D is (epsilon, delta)-indistinguishable.

    Parameters
    ----------
    sensitivity
        Largest distance D of the two means, > 0.
    sigma
        Standard deviation of the noise, > 0, in units of the sensitivity.
    epsilon
        At least 0, in nats.

    Returns
    -------
    delta in [0, 1]; 0.0 where it is below the smallest float.

    Raises
    ------
    InputError
        An argument is outside its range or not finite.

    Notes
    -----
    Equality in Balle and Wang (2018), Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(0.2, 0.375575, 1.0), 6)
    0.01
    """
    check_epsilon(epsilon)
    return math.exp(log_gaussian_delta(_checked_ratio(sensitivity, sigma), epsilon))


def gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """Smallest noise that makes a difference D (epsilon, delta)-indistinguishable.

    Parameters
    ----------
    sensitivity
        Largest distance D of the two means, > 0.
    epsilon
        At least 0, in nats; works up to 1e6 and beyond.
    delta
        In (0, 1); works down to 1e-300.

    Returns
    -------
    Standard deviation of the noise, in units of the sensitivity.

    Raises
    ------
    InputError
        An argument is outside its range or not finite.

    Notes
    -----
    Algorithm 1 of Balle and Wang (2018), by root finding on the log of delta.

    Examples
    --------
    >>> round(gaussian_sigma(0.2, 1.0, 0.01), 6)
    0.375575
    """
    _check_positive(sensitivity=sensitivity)
    check_epsilon(epsilon)
    _check_delta(delta)
    # A lower limit of u: delta is at most Phi(-x), and at most u / sqrt(2 pi), its slope at epsilon = u = 0.
    x = -float(ndtri(delta))
    root = math.sqrt(x * x + 2 * epsilon)
    least = max(2 * epsilon / (x + root) if x > 0 else root - x, math.sqrt(2 * math.pi) * delta)

    def excess(log_ratio: float) -> float:
        return log_gaussian_delta(least * math.exp(log_ratio), epsilon) - math.log(delta)

    if excess(0.0) >= 0:
        return sensitivity / least
    upper = 0.01
    while excess(upper) < 0:
        upper *= 2
    return sensitivity / (least * math.exp(brentq(excess, 0.0, upper, **_ROOT)))


def gaussian_epsilon(sensitivity: float, sigma: float, delta: float) -> float:
    """Smallest epsilon for which noise sigma on a difference D is (epsilon, delta)-indistinguishable.

    Parameters
    ----------
    sensitivity
        Largest distance D of the two means, > 0.
    sigma
        Standard deviation of the noise, > 0, in units of the sensitivity.
    delta
        In (0, 1); works down to 1e-300.

    Returns
    -------
    epsilon >= 0, in nats; 0.0 where the two Gaussians are within delta in total variation.

    Raises
    ------
    InputError
        An argument is outside its range or not finite.

    Notes
    -----
    Inverse of `gaussian_delta` in epsilon (Balle and Wang 2018, Theorem 8).

    Examples
    --------
    >>> round(gaussian_epsilon(0.2, 0.375575, 0.01), 4)
    1.0
    """
    u = _checked_ratio(sensitivity, sigma)
    _check_delta(delta)
    # delta is at most Phi(-x), so that epsilon is at most what makes Phi(-x) = delta.
    most = u * (u / 2 - float(ndtri(delta)))

    def excess(epsilon: float) -> float:
        return log_gaussian_delta(u, epsilon) - math.log(delta)

    if most <= 0 or excess(0.0) <= 0:
        return 0.0
    if excess(most) >= 0:
        return most
    return float(brentq(excess, 0.0, most, **_ROOT))


def log_gaussian_delta(u: float, epsilon: float) -> float:
    """log delta at u = D / sigma: log of phi(x) [R(x) - R(x + u)] with x = epsilon/u - u/2."""
    x, x_plus_u = epsilon / u - u / 2, epsilon / u + u / 2
    with np.errstate(over="ignore", divide="ignore"):
        if u >= 1:
            # R(x + u) / R(x); erfcx is infinite for x below -37, where the ratio is 0.
            ratio = erfcx(x_plus_u / math.sqrt(2)) / erfcx(x / math.sqrt(2))
            return float(log_ndtr(-x) + np.log1p(-ratio))
        # The difference cancels for small u: integrate R' instead.
        slope = _WEIGHTS / 2 @ _negative_mills_slope(x + u * (_NODES + 1) / 2)
        return float(-x * x / 2 - math.log(2 * math.pi) / 2 + math.log(u) + np.log(slope))


def _negative_mills_slope(s: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
    """-R'(s) = 1 - s R(s) > 0, for s >= -1/2."""
    # Cancels for large s; Laplace's continued fraction R = 1/(s + K), K = 1/(s + 2/(s + 3/...)), does not.
    small, large = np.minimum(s, 3.0), np.maximum(s, 3.0)
    tail = np.zeros_like(s)
    for n in range(120, 0, -1):
        tail = n / (large + tail)
    return np.where(
        s > 3, tail / (large + tail), 1 - small * math.sqrt(math.pi / 2) * erfcx(small / math.sqrt(2))
    )


def _check_positive(**arguments: float) -> None:
    for name, value in arguments.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be positive and finite, got {value}")


def _checked_ratio(sensitivity: float, sigma: float) -> float:
    _check_positive(sensitivity=sensitivity, sigma=sigma)
    if not 1e-300 < sensitivity / sigma < 1e100:
        raise InputError(f"sensitivity / sigma must be in (1e-300, 1e100), got {sensitivity} / {sigma}")
    return sensitivity / sigma


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta must be in (0, 1), got {delta}")
