"""From the law of one run to the p-value of several: mean, median, and number of runs above a threshold.

Each statistic is non-decreasing in the overlaps, so its law under the null hypothesis is dominated by its law
for independent draws from the dominating law of one run. All three tails are exact; nothing is a Chernoff
bound.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from jaxaudit.bound.law import OverlapLaw
from jaxaudit.checks import check_choice, check_integer
from jaxaudit.design import Statistic
from jaxaudit.errors import InputError

# Probabilities smaller than this, relative to the largest, cannot change a float64 sum.
_LOG_NEGLIGIBLE = -46.0


@dataclass(frozen=True)
class OverlapSummary:
    """What a counting test keeps of the audited runs: one whole number.

    Parameters
    ----------
    statistic
        ``mean``, ``median`` or ``tail``.
    num_runs
        Number of runs L.
    value
        Mean: the sum of the overlaps. Median: the overlap that at least half of the runs (ceil(L/2) of them)
        reach. Tail: how many runs reach the threshold. Larger is more evidence.
    most
        The value that perfect guesses would give.
    threshold
        The overlap a run must reach, for ``tail``; else None.
    """

    statistic: Statistic
    num_runs: int
    value: int
    most: int
    threshold: int | None = None

    @property
    def perfect(self) -> "OverlapSummary":
        """The summary of perfect guesses in every run."""
        return replace(self, value=self.most)


def check_statistic(statistic: Statistic, threshold: int | None, num_guesses: int) -> None:
    """Raise unless the statistic exists and has a threshold in 1..r exactly if it is ``tail``.

    Examples
    --------
    >>> check_statistic("tail", None, num_guesses=6)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: threshold must be given for statistic='tail', got None
    """
    check_choice("statistic", statistic, get_args(Statistic))
    if statistic == "tail":
        if threshold is None:
            raise InputError("threshold must be given for statistic='tail', got None")
        check_integer("threshold", threshold, low=1, high=num_guesses)
    elif threshold is not None:
        raise InputError(f"threshold is only used by statistic='tail', got {threshold} for {statistic!r}")


def summarise(
    overlaps: Int[np.ndarray, " runs"], num_guesses: int, statistic: Statistic, threshold: int | None = None
) -> OverlapSummary:
    """What a test keeps of the overlaps of L runs.

    The median of an even number of runs is the mean of the middle two, and it is rounded up. If the result is
    at least v, then the upper one of the middle two is at least v, so that L/2 = ceil(L/2) runs reach v: the
    event that was seen implies the event whose probability is bounded.

    Examples
    --------
    >>> summarise(np.array([3, 4, 5, 6]), 6, "median").value
    5
    """
    num_runs = len(overlaps)
    if statistic == "mean":
        return OverlapSummary(statistic, num_runs, int(overlaps.sum()), num_runs * num_guesses)
    if statistic == "median":
        return OverlapSummary(statistic, num_runs, int(np.ceil(np.median(overlaps))), num_guesses)
    return OverlapSummary(statistic, num_runs, int((overlaps >= threshold).sum()), num_runs, threshold)


def log_p_value(law: OverlapLaw, summary: OverlapSummary, delta: float = 0.0) -> float:
    """Log of the probability of a summary at least this large when every run follows `law`.

    Parameters
    ----------
    law
        The law of the overlap of one run.
    summary
        What was seen.
    delta
        Mass of the atom of the law on V = r.

    Returns
    -------
    float
        Log probability in nats, at most 0.

    Examples
    --------
    >>> from jaxaudit.bound.law import null_law
    >>> both_right = summarise(np.array([6, 6]), 6, "mean")
    >>> round(float(np.exp(log_p_value(null_law(6, 6), both_right))), 6)
    0.0025
    """
    if summary.statistic == "mean":
        return log_sum_tail(law.log_smooth, summary.num_runs, summary.value, delta)
    if summary.threshold is not None:
        overlap, count = summary.threshold, summary.value
    else:
        overlap, count = summary.value, (summary.num_runs + 1) // 2
    return log_count_tail(law.log_tail[overlap], law.log_complement[overlap], summary.num_runs, count)


def log_count_tail(log_p: float, log_complement: float, num_runs: int, count: int) -> float:
    """log P[Binomial(num_runs, p) >= count] from log p and log(1 - p), accurate however small it is.

    Examples
    --------
    >>> round(float(np.exp(log_count_tail(np.log(0.5), np.log(0.5), num_runs=3, count=2))), 6)
    0.5
    """
    return min(float(logsumexp(_log_binomial_pmf(num_runs, log_p, log_complement)[count:])), 0.0)


def log_sum_tail(
    log_smooth: Float[np.ndarray, " overlaps"], num_runs: int, total: int, delta: float = 0.0
) -> float:
    """log P[V_1 + ... + V_L >= total] for independent overlaps, accurate however small it is.

    Parameters
    ----------
    log_smooth
        Log pmf of V = 0..r without the atom; its mass is 1 - delta.
    num_runs
        Number of runs L.
    total
        Sum of the overlaps.
    delta
        Mass of an additional atom on V = r. It is split off,
        p = sum_k C(L, k) delta^k P[the other L - k runs, without atom, reach total - k r], because no
        exponential tilt centres both parts.

    Returns
    -------
    float
        Log probability in nats, at most 0.

    Examples
    --------
    >>> coin = np.log([0.5, 0.5])
    >>> round(float(np.exp(log_sum_tail(coin, num_runs=3, total=2))), 6)
    0.5
    """
    if np.isneginf(log_smooth[1::2]).all():
        # If every group is guessed, overlaps are even, and rounding must not fill the gaps between them.
        log_smooth, total = log_smooth[::2], -(-total // 2)
    most = len(log_smooth) - 1
    log_smooth = log_smooth - np.log1p(-delta)
    log_atoms = _log_binomial_pmf(num_runs, np.log(delta) if delta > 0 else -np.inf, np.log1p(-delta))
    log_p = -np.inf
    for atoms in np.argsort(-log_atoms):
        if log_atoms[atoms] < log_p + _LOG_NEGLIGIBLE:
            break
        rest = _log_convolution_tail(log_smooth, num_runs - int(atoms), total - int(atoms) * most)
        log_p = np.logaddexp(log_p, log_atoms[atoms] + rest)
    return min(float(log_p), 0.0)


def tilt(log_weights: Float[np.ndarray, " values"], mean: float) -> float:
    """The lambda >= 0 for which weights times e^(lambda v), v = 0, 1, ..., have this mean, else 0.

    It minimises log sum_v e^(lambda v) weight(v) - lambda mean over lambda >= 0. `mean` must be below the
    largest value that has weight.

    Examples
    --------
    >>> round(float(np.exp(tilt(np.log([0.5, 0.5]), mean=0.75))), 6)
    3.0
    """
    values = np.arange(len(log_weights)) - mean

    def excess(rate: float) -> float:
        log_tilted = log_weights + rate * values
        return float(np.sum(np.exp(log_tilted - log_tilted.max()) * values))

    if excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high))


def _log_convolution_tail(log_pmf: np.ndarray, num_draws: int, total: int) -> float:
    """log P[sum of draws >= total], by Fourier convolution.

    Rounding errors of the transform are relative to the largest probability, so the pmf is first tilted to
    move that one to `total`.
    """
    if total <= 0:
        return 0.0
    if total == num_draws * (len(log_pmf) - 1):
        return num_draws * float(log_pmf[-1])
    mean = total / num_draws
    rate = tilt(log_pmf, mean)
    log_tilted = log_pmf + rate * (np.arange(len(log_pmf)) - mean)
    kept = np.flatnonzero(log_tilted > log_tilted.max() + _LOG_NEGLIGIBLE)
    log_norm = float(logsumexp(log_tilted))
    first, sums = _self_convolution(np.exp(log_tilted[kept[0] : kept[-1] + 1] - log_norm), num_draws)
    excess = np.arange(len(sums)) + first + num_draws * int(kept[0]) - total
    reached = excess >= 0
    return num_draws * log_norm + float(np.log(np.sum(np.exp(-rate * excess[reached]) * sums[reached])))


def _self_convolution(pmf: np.ndarray, num_draws: int) -> tuple[int, np.ndarray]:
    """Probabilities of the sums first, first + 1, ... of independent draws; the others add up to 1e-19."""
    values, width = np.arange(len(pmf)), len(pmf) - 1
    mean = np.sum(pmf * values)
    # Bernstein's inequality says how far from its mean the sum can be. The transform is periodic and folds
    # what is further away into this window.
    range_term, variance = -_LOG_NEGLIGIBLE * width / 3, np.sum(pmf * (values - mean) ** 2)
    reach = range_term + np.sqrt(range_term**2 - 2 * _LOG_NEGLIGIBLE * num_draws * variance)
    first = max(int(num_draws * mean - reach), 0)
    last = min(int(num_draws * mean + reach) + 1, num_draws * width)
    length = next_fast_len(last - first + 1, real=True)
    sums = irfft(rfft(pmf, length) ** num_draws, length)
    return first, np.roll(sums, -(first % length))[: last - first + 1]


def _log_binomial_pmf(num_runs: int, log_p: float, log_complement: float) -> np.ndarray:
    """Log pmf of Binomial(num_runs, p) at 0..num_runs."""
    return log_choose(num_runs) + _powers(num_runs, log_p) + _powers(num_runs, log_complement)[::-1]


def _powers(most: int, log_base: float) -> np.ndarray:
    """log(base^k) for k = 0..most, where base^0 = 1 also for base 0."""
    powers = np.zeros(most + 1)
    powers[1:] = np.arange(1, most + 1) * log_base
    return powers


@lru_cache(maxsize=32)
def log_choose(num_runs: int) -> np.ndarray:
    """log C(num_runs, k) for k = 0..num_runs, read-only.

    Examples
    --------
    >>> np.exp(log_choose(3)).round().tolist()
    [1.0, 3.0, 3.0, 1.0]
    """
    k = np.arange(num_runs + 1)
    result = gammaln(num_runs + 1) - gammaln(k + 1) - gammaln(num_runs - k + 1)
    result.setflags(write=False)
    return result
