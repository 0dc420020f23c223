"""The paper's own bound: Theorem 4.2 and, for delta > 0, Lemma C.1 of "Auditing of Unlearning Algorithms".

The paper compares two unlearned models, so that guesses are (epsilon', delta')-LDP in the sign vector with
epsilon' = 2 epsilon and delta' = (1 + e^epsilon) delta (its Lemma 4.1), and bounds the probability of overlap
u by pi(u) = N_u * ratio. It is kept for comparison: `jaxaudit.bound.law.worst_case_law` is never weaker.
"""

from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from jaxaudit.bound.counts import log_num_sign_vectors, log_overlap_counts
from jaxaudit.bound.statistics import OverlapSummary, log_choose, tilt


def log_p_value(
    summary: OverlapSummary, num_groups: int, num_guesses: int, epsilon: float, delta: float = 0.0
) -> float:
    """Log of the paper's bound on the probability of a summary at least this large, at most 0.

    Mean: inf over lambda >= 0 of E_pi[e^(lambda V)]^L e^(-lambda sum). Median, at overlap v:
    C(L, h) P_pi(V >= v)^h with h = ceil(L/2).

    Parameters
    ----------
    summary
        Mean or median of L runs.
    num_groups, num_guesses
        The design m, r.
    epsilon, delta
        The claim (not its LDP form): epsilon >= 0, delta in [0, 1).

    Returns
    -------
    float
        Log probability in nats, non-decreasing in epsilon.

    Examples
    --------
    >>> perfect = OverlapSummary("mean", num_runs=10, value=60, most=60)
    >>> round(float(np.exp(log_p_value(perfect, 6, 6, epsilon=3.9963 / 2))), 4)
    0.05
    """
    log_counts, power = _log_count_factor(summary, num_groups, num_guesses)
    return min(log_counts + power * log_ratio(num_groups, num_guesses, epsilon, delta), 0.0)


def log_ratio(num_groups: int, num_guesses: int, epsilon: float, delta: float = 0.0) -> float:
    """Log of pi(u) / N_u = (e^epsilon' + (M' - 1)/M' K delta') / (e^epsilon' + M' - 1).

    epsilon' = 2 epsilon and delta' = (1 + e^epsilon) delta. The ratio increases in epsilon until it reaches
    1; from there on the bound says nothing.

    Examples
    --------
    >>> round(float(np.exp(log_ratio(6, 6, epsilon=0.0))), 3)
    0.05
    """
    log_vectors = log_num_sign_vectors(num_groups)
    log_others = log_vectors + np.log1p(-np.exp(-log_vectors))
    log_numerator = 2 * epsilon
    if delta > 0:
        log_delta_ldp = np.log(delta) + np.logaddexp(0.0, epsilon)
        log_guesses = log_num_guess_vectors(num_groups, num_guesses)
        log_numerator = np.logaddexp(log_numerator, log_others - log_vectors + log_guesses + log_delta_ldp)
    return float(log_numerator - np.logaddexp(2 * epsilon, log_others))


def log_num_guess_vectors(num_groups: int, num_guesses: int) -> float:
    """Log of K = m! / ((r/2)!^2 (m-r)!), the number of guess vectors.

    Examples
    --------
    >>> round(float(np.exp(log_num_guess_vectors(6, 4))))
    90
    """
    half, rest = num_guesses // 2, num_groups - num_guesses
    return float(gammaln(num_groups + 1) - 2 * gammaln(half + 1) - gammaln(rest + 1))


def is_vacuous(num_groups: int, num_guesses: int, delta: float) -> bool:
    """Whether Lemma C.1 says nothing, for any epsilon: delta' >= M'/K.

    At any epsilon >= 0 the lemma's delta' = (1 + e^epsilon) delta is at least twice the claim's delta.

    Parameters
    ----------
    num_groups, num_guesses
        The design m, r.
    delta
        The claim's delta in [0, 1).

    Examples
    --------
    >>> is_vacuous(6, 6, delta=0.01), is_vacuous(100, 60, delta=1e-10)
    (False, True)
    """
    if delta == 0:
        return False
    log_limit = log_num_sign_vectors(num_groups) - log_num_guess_vectors(num_groups, num_guesses)
    return bool(np.log(2 * delta) >= log_limit)


@lru_cache(maxsize=32)
def _log_count_factor(summary: OverlapSummary, num_groups: int, num_guesses: int) -> tuple[float, int]:
    """Log of the factor of the bound that the claim does not change, and the power of the ratio beside it."""
    log_counts, num_runs = log_overlap_counts(num_groups, num_guesses), summary.num_runs
    if summary.statistic == "median":
        half = (num_runs + 1) // 2
        log_tail = float(logsumexp(log_counts[summary.value :]))
        return float(log_choose(num_runs)[half]) + half * log_tail, half
    if summary.value == summary.most:
        return num_runs * float(log_counts[-1]), num_runs
    mean = summary.value / num_runs
    log_tilted = log_counts + tilt(log_counts, mean) * (np.arange(num_guesses + 1) - mean)
    return num_runs * float(logsumexp(log_tilted)), num_runs
