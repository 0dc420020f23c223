"""How many sign vectors agree with a guess vector in exactly u places, and the chance law of the overlap.

Everything the bounds know about guessing without information is in these counts.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float

from jaxaudit.checks import check_design, check_groups

# Terms of a sum smaller than this, relative to its largest term, cannot change a float64.
_NEGLIGIBLE = 1e-25


@lru_cache(maxsize=32, typed=True)
def log_num_sign_vectors(num_groups: int) -> float:
    """Log of the number of balanced sign vectors, M' = C(m, floor(m/2)).

    Parameters
    ----------
    num_groups
        Number of candidate groups m, at least 2.

    Returns
    -------
    float
        log M' in nats.

    Raises
    ------
    InputError
        If `num_groups` is not an integer of at least 2.

    Examples
    --------
    >>> round(float(np.exp(log_num_sign_vectors(6))))
    20
    """
    num_groups = check_groups(num_groups)
    return float(_log_binomials(num_groups)[num_groups // 2])


@lru_cache(maxsize=32, typed=True)
def log_overlap_counts(num_groups: int, num_guesses: int) -> Float[np.ndarray, " overlaps"]:
    """Log of N_u, the number of balanced sign vectors that agree with a guess vector in u places, u = 0..r.

    N_u is the sum over a1 + a2 = u of C(m-r, floor((m-r)/2) - (a1 - a2)) C(r/2, a1) C(r/2, a2): a1 correct
    guesses among the r/2 guesses +1, a2 among the r/2 guesses -1. It is the same for every guess vector with
    r/2 entries of each sign, N_u = N_{r-u}, and sum_u N_u = M' (Theorem 4.2 of the paper, "Auditing of
    Unlearning Algorithms").

    Parameters
    ----------
    num_groups
        Number of candidate groups m, at least 2.
    num_guesses
        Number of guesses r: even, 2 <= r <= m.

    Returns
    -------
    numpy.ndarray
        Shape (r + 1,), nats, read-only; -inf where no sign vector has this overlap.

    Raises
    ------
    InputError
        If the two numbers are not a design.

    Examples
    --------
    >>> np.exp(log_overlap_counts(6, 4)).round().astype(int).tolist()
    [2, 4, 8, 4, 2]
    """
    peak, relative_sum = _sums(*check_design(num_groups, num_guesses))
    return _read_only(peak, relative_sum)


@lru_cache(maxsize=32, typed=True)
def log_null_pmf(num_groups: int, num_guesses: int) -> Float[np.ndarray, " overlaps"]:
    """Log probability log(N_u / M') of overlap u = 0..r when the guesses are independent of the signs.

    Arguments, shape and errors are those of `log_overlap_counts`; the probabilities sum to 1.

    Examples
    --------
    >>> np.exp(log_null_pmf(6, 4)).round(3).tolist()
    [0.1, 0.2, 0.4, 0.2, 0.1]
    """
    num_groups, num_guesses = check_design(num_groups, num_guesses)
    peak, relative_sum = _sums(num_groups, num_guesses)
    # Two logs of the size of m cancel here, before they are rounded to float64.
    return _read_only(peak - _log_binomials(num_groups)[num_groups // 2], relative_sum)


def _log_binomials(n: int) -> Float[np.ndarray, " n+1"]:
    """log C(n, 0..n) in the widest float of the platform."""
    steps = np.arange(1, n + 1, dtype=np.longdouble)
    return np.concatenate([np.zeros(1, np.longdouble), np.cumsum(np.log(steps[::-1]) - np.log(steps))])


def _sums(num_groups: int, num_guesses: int) -> tuple[np.ndarray, np.ndarray]:
    """Log of the largest term of every N_u (wide floats), and N_u divided by it.

    For a given u the terms are log-concave in a1 - a2 and largest where it is 0 or -1.
    """
    half, rest = num_guesses // 2, num_groups - num_guesses
    overlap = np.arange(num_guesses + 1)
    a1, a2, b = overlap // 2, (overlap + 1) // 2, rest // 2 + overlap % 2
    guessed, unguessed = _log_binomials(half), np.append(_log_binomials(rest), -np.inf)
    peak = guessed[a1] + guessed[a2] + unguessed[b]
    relative_sum = np.ones(num_guesses + 1)
    if rest > 0:
        relative_sum += _terms_on_one_side(half, rest, a1, a2, b)
        relative_sum += _terms_on_one_side(half, rest, a2, a1, rest - b)
    return peak, relative_sum


def _terms_on_one_side(half: int, rest: int, a1: np.ndarray, a2: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum of C(half, a1+j) C(half, a2-j) C(rest, b-2j) over j >= 1, divided by the term j = 0.

    Each term is the previous one times a ratio of integers, so nothing cancels and no logarithm is taken.
    """
    a1, a2, b = a1.astype(float), a2.astype(float), b.astype(float)
    term, total = np.ones_like(a1), np.zeros_like(a1)
    while term.max() > _NEGLIGIBLE:
        term *= (half - a1) * a2 * b * (b - 1)
        term /= (a1 + 1) * (half - a2 + 1) * (rest - b + 1) * (rest - b + 2)
        total += term
        a1, a2, b = a1 + 1, a2 - 1, b - 2
    return total


def _read_only(log_values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """log_values + log(factors) as read-only float64: the caches hand the same array to everybody."""
    result = (log_values + np.log(factors)).astype(np.float64)
    result.setflags(write=False)
    return result
