"""A declared counting test as a rule on one integer, so that audits are decided without a bisection each.

Every statistic reduces the L overlaps to one whole number (`OverlapSummary.value`), and a claim is rejected when it
reaches a critical value that depends on the design alone.
"""

from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom

from jaxaudit.bound.law import OverlapLaw
from jaxaudit.bound.lower_bound import BoundMethod, BoundResult, epsilon_lower_bound, p_value
from jaxaudit.bound.statistics import log_choose, summarise
from jaxaudit.checks import check_runs, check_significance
from jaxaudit.design import Statistic


@dataclass(frozen=True)
class OverlapRule:
    """A test of claims by counting right guesses, declared before any run.

    Parameters
    ----------
    num_groups, num_guesses, num_runs
        The design: m, r and L >= 1.
    delta, significance, method, statistic, threshold
        As in `epsilon_lower_bound`.

    Raises
    ------
    InputError
        If an argument is out of range, naming it and its value.

    Examples
    --------
    >>> rule = OverlapRule(num_groups=6, num_guesses=6, num_runs=10)
    >>> rule.critical_value(0.0) / 10  # smallest mean overlap that is evidence of anything
    3.8
    """

    num_groups: int
    num_guesses: int
    num_runs: int
    delta: float = 0.0
    significance: float = 0.05
    method: BoundMethod = "direct"
    statistic: Statistic = "mean"
    threshold: int | None = None

    def __post_init__(self) -> None:
        check_runs(self.num_runs)
        check_significance(self.significance)
        # Computing any p-value checks everything else.
        p_value(np.zeros(self.num_runs, dtype=int), 0.0, **self._settings())

    @property
    def most(self) -> int:
        """Value of perfect guesses in every run."""
        perfect = np.full(self.num_runs, self.num_guesses)
        return summarise(perfect, self.num_guesses, self.statistic, self.threshold).most

    @property
    def step(self) -> int:
        """Distance between possible values: with a guess for every group overlaps and their sum are even."""
        return 2 if self.statistic == "mean" and self.num_guesses == self.num_groups else 1

    def values(self, overlaps: Int[np.ndarray, "audits runs"]) -> Int[np.ndarray, " audits"]:
        """Value of each audit."""
        return np.array(
            [summarise(audit, self.num_guesses, self.statistic, self.threshold).value for audit in overlaps]
        )

    def example(self, value: int) -> Int[np.ndarray, " runs"]:
        """Overlaps with this value."""
        runs = np.arange(self.num_runs)
        if self.statistic == "mean":
            return (value + runs) // self.num_runs
        if self.statistic == "tail":
            return np.where(runs < value, self.num_guesses, 0)
        return np.full(self.num_runs, value)

    def bound(self, value: int) -> BoundResult:
        """The lower bound of an audit with this value."""
        return epsilon_lower_bound(self.example(value), significance=self.significance, **self._settings())

    def critical_value(self, epsilon: float) -> int:
        """Smallest value that rejects the claim ``epsilon``; ``most + step`` if perfect guesses do not."""

        def rejects(value: int) -> bool:
            return p_value(self.example(value), epsilon, **self._settings()) <= self.significance

        return self.step * bisect_left(range(0, self.most + 1, self.step), True, key=rejects)

    def tail_probabilities(self, law: OverlapLaw) -> Float[np.ndarray, " values"]:
        """P[value >= x] for x = 0..most, overlaps independent draws from ``law``; absolute accuracy 1e-12."""
        if self.statistic == "mean":
            return _sum_tail(np.exp(law.log_pmf), self.num_runs)
        if self.statistic == "tail":
            return binom.sf(
                np.arange(self.num_runs + 1) - 1, self.num_runs, np.exp(law.log_tail[self.threshold])
            )
        return _median_tail(law, self.num_runs)

    def _settings(self) -> dict[str, Any]:
        """The arguments of `p_value`."""
        return {
            name: value for name, value in asdict(self).items() if name not in ("num_runs", "significance")
        }


def _sum_tail(pmf: Float[np.ndarray, " overlaps"], num_runs: int) -> Float[np.ndarray, " values"]:
    size = num_runs * (len(pmf) - 1) + 1
    length = next_fast_len(size, real=True)
    sums = irfft(rfft(pmf, length) ** num_runs, length)[:size]
    return np.clip(np.cumsum(sums[::-1])[::-1], 0.0, 1.0)


def _median_tail(law: OverlapLaw, num_runs: int) -> Float[np.ndarray, " overlaps"]:
    """P[median, rounded up, >= v] for v = 0..r.

    For L = 2h runs the median is the mean of the h-th and the (h+1)-th smallest overlap, A <= B. It reaches v
    if B does, unless A + B <= 2v - 2; and P[A < i, B >= j] = C(2h, h) P[V < i]^h P[V >= j]^h for i <= j,
    because then exactly h runs are below i and the other h at least j.
    """
    half, end = (num_runs + 1) // 2, len(law.log_tail)
    upper_reaches = binom.sf(half - 1, num_runs, np.exp(law.log_tail))
    if num_runs % 2:
        return upper_reaches
    log_middle = log_choose(num_runs)[half]
    below, above = half * law.log_complement, half * np.append(law.log_tail, -np.inf)

    def pulled_down(v: int) -> float:
        """P[B >= v, A + B <= 2v - 2], summed over B = j from v up and A < i = 2v - 1 - j."""
        j = np.arange(v, min(2 * v, end))
        log_lower = log_middle + below[2 * v - 1 - j]
        return float(np.sum(np.exp(log_lower + above[j]) - np.exp(log_lower + above[j + 1])))

    return upper_reaches - np.array([pulled_down(v) for v in range(end)])
