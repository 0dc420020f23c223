"""The bound of a test: the largest epsilon that it rejects."""

from collections.abc import Callable

from scipy.optimize import brentq


def largest_rejected(excess: Callable[[float], float], least: float = 0.0) -> float:
    """Largest epsilon whose claim is rejected, to an absolute 1e-12 or a relative 1e-14.

    Parameters
    ----------
    excess
        By how much, in nats, the evidence against the claim epsilon exceeds what a rejection takes:
        continuous, not increasing in epsilon, and negative once epsilon is large.
    least
        Where the search starts, at least 0.

    Returns
    -------
    float
        `least` if its own claim is not rejected.

    Examples
    --------
    >>> round(largest_rejected(lambda epsilon: 5.0 - epsilon), 9)
    5.0
    >>> largest_rejected(lambda epsilon: 5.0 - epsilon, least=7.0)
    7.0
    """
    if excess(least) <= 0:
        return least
    low, high = least, max(1.0, 2 * least)
    while excess(high) > 0:
        low, high = high, 2 * high
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))
