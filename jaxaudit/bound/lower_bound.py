"""The lower bound on epsilon that the overlaps of audited runs support, with confidence 1 - significance."""

from dataclasses import dataclass
from math import exp, floor, log
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxaudit.bound import paper, statistics
from jaxaudit.bound.law import null_law, odds_law, worst_case_law
from jaxaudit.bound.search import largest_rejected
from jaxaudit.bound.statistics import OverlapSummary
from jaxaudit.checks import (
    check_choice,
    check_delta,
    check_design,
    check_epsilon,
    check_overlaps,
    check_real,
    check_runs,
    check_significance,
)
from jaxaudit.design import Statistic
from jaxaudit.errors import InputError

BoundMethod = Literal["direct", "odds", "theorem-4.2"]

# A mean overlap this improbable by chance, or lower, points to guesses of the wrong sign.
_BELOW_CHANCE = 0.01


@dataclass(frozen=True)
class BoundResult:
    """A lower bound on epsilon and everything it was computed from."""

    epsilon: float
    """Every claim with a smaller epsilon (and this delta) is rejected; 0.0 is no evidence."""
    epsilon_ldp: float | None
    """The paper's epsilon' = 2 epsilon, between two unlearned models; None for the direct bound."""
    ceiling: float
    """The epsilon that perfect guesses would have given: this design can show no more."""
    saturated: bool
    """The statistic is that of perfect guesses, so that epsilon equals the ceiling."""
    method: BoundMethod
    statistic: Statistic
    threshold: int | None
    """For the tail statistic, the overlap a run must reach."""
    observed: float
    """Mean or median overlap, or number of runs that reach the threshold."""
    overlaps: tuple[int, ...]
    num_groups: int
    num_guesses: int
    num_runs: int
    delta: float
    """The delta of the claim, for every method."""
    significance: float
    vacuous: bool
    """Lemma C.1 says nothing at this delta, whatever the overlaps; epsilon is 0.0."""
    below_chance_p_value: float
    """Probability that chance gives a mean overlap this low or lower; tiny if guesses have the wrong sign."""

    @property
    def below_chance(self) -> bool:
        """Whether the guesses are significantly worse than chance."""
        return self.below_chance_p_value < _BELOW_CHANCE

    def log_p_value(self, epsilon: float, delta: float) -> float:
        """Log of the p-value of the claim (epsilon, delta), which is falsified if this is at most log(level).

        Examples
        --------
        >>> result = epsilon_lower_bound([6] * 10, num_groups=6, num_guesses=6)
        >>> round(exp(result.log_p_value(result.epsilon, delta=0.0)), 6)
        0.05
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        _check_method(self.method, self.statistic, delta)
        summary = statistics.summarise(
            np.array(self.overlaps), self.num_guesses, self.statistic, self.threshold
        )
        return _log_p_value(self.method, summary, self.num_groups, self.num_guesses, epsilon, delta)


def epsilon_lower_bound(
    overlaps: ArrayLike,
    *,
    num_groups: int,
    num_guesses: int,
    delta: float = 0.0,
    significance: float = 0.05,
    method: BoundMethod = "direct",
    statistic: Statistic = "mean",
    threshold: int | None = None,
) -> BoundResult:
    """The largest epsilon below which every (epsilon, delta) claim is rejected.

    Valid for independent audited runs if design, method, statistic and threshold were fixed before their
    overlaps were seen and no run was dropped because of its outcome (a failed run counts overlap 0).

    Parameters
    ----------
    overlaps
        Number of correct guesses V in each of the L >= 1 audited runs, whole numbers in 0..r.
    num_groups, num_guesses
        The design m, r: r even, 2 <= r <= m.
    delta
        The delta of the claim, in [0, 1); the same meaning for every method.
    significance
        Level of the test (the paper's zeta), in (0, 1).
    method
        ``direct`` compares one unlearned model with the reference model: tightest, attained by a mechanism,
        valid for delta > 0 (`worst_case_law`). ``odds`` compares two unlearned models (`odds_law`; delta = 0
        only). ``theorem-4.2`` is the paper's bound, for delta > 0 its Lemma C.1 with
        delta' = (1 + e^epsilon) delta (`jaxaudit.bound.paper`). On the same overlaps
        theorem-4.2 <= odds <= direct.
    statistic
        ``mean`` of the overlaps; ``median`` (for an even number of runs the mean of the middle two, rounded
        up); ``tail``, the number of runs with V >= `threshold`, best for all-or-nothing guesses or a large
        delta.
    threshold
        For ``tail`` only: an overlap in 1..r, fixed before the audited runs are seen.

    Returns
    -------
    BoundResult
        `epsilon` is 0.0 where there is no evidence.

    Raises
    ------
    InputError
        If an argument is out of range; for ``tail`` without threshold or with theorem-4.2; for ``odds`` with
        delta > 0.

    Examples
    --------
    >>> result = epsilon_lower_bound([5, 6, 6, 6, 5, 6, 6, 4, 6, 6], num_groups=8, num_guesses=6)
    >>> round(result.epsilon, 3), round(result.ceiling, 3), result.saturated
    (2.454, 3.256, False)
    >>> epsilon_lower_bound([3, 2, 3], num_groups=8, num_guesses=6).epsilon
    0.0
    """
    num_groups, num_guesses = check_design(num_groups, num_guesses)
    delta, significance = check_delta(delta), check_significance(significance)
    _check_method(method, statistic, delta)
    values, summary = _summary(overlaps, num_guesses, statistic, threshold)

    epsilon, ceiling = (
        _bound(method, each, num_groups, num_guesses, delta, significance)
        for each in (summary, summary.perfect)
    )
    observed = {"mean": values.mean(), "median": np.median(values), "tail": summary.value}[statistic]
    # The chance law is symmetric, so a sum this low is as likely as one this far from the other end.
    mirrored = len(values) * num_guesses - int(values.sum())
    null = null_law(num_groups, num_guesses)
    return BoundResult(
        epsilon=epsilon,
        epsilon_ldp=None if method == "direct" else 2 * epsilon,
        ceiling=ceiling,
        saturated=summary == summary.perfect,
        method=method,
        statistic=statistic,
        threshold=threshold,
        observed=float(observed),
        overlaps=tuple(values.tolist()),
        num_groups=num_groups,
        num_guesses=num_guesses,
        num_runs=len(values),
        delta=delta,
        significance=significance,
        vacuous=method == "theorem-4.2" and paper.is_vacuous(num_groups, num_guesses, delta),
        below_chance_p_value=exp(statistics.log_sum_tail(null.log_pmf, len(values), mirrored)),
    )


def p_value(
    overlaps: ArrayLike,
    epsilon: float,
    *,
    num_groups: int,
    num_guesses: int,
    delta: float = 0.0,
    method: BoundMethod = "direct",
    statistic: Statistic = "mean",
    threshold: int | None = None,
) -> float:
    """p-value of the claim (epsilon, delta): the claim is falsified at level zeta if it is at most zeta.

    Arguments and errors are those of `epsilon_lower_bound`; `epsilon` >= 0 is the claim's, also for the
    methods that compare two unlearned models (they test epsilon' = 2 epsilon).

    Examples
    --------
    >>> round(p_value([2, 2], 0.0, num_groups=2, num_guesses=2), 6)
    0.25
    """
    num_groups, num_guesses = check_design(num_groups, num_guesses)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _check_method(method, statistic, delta)
    _, summary = _summary(overlaps, num_guesses, statistic, threshold)
    return exp(_log_p_value(method, summary, num_groups, num_guesses, epsilon, delta))


def predicted_epsilon(
    mean_overlap: float,
    *,
    num_runs: int,
    num_groups: int,
    num_guesses: int,
    delta: float = 0.0,
    significance: float = 0.05,
) -> float:
    """The direct bound as if `num_runs` runs had this mean overlap (the sum is rounded down).

    It is how a number of guesses is chosen on calibration runs.

    Parameters
    ----------
    mean_overlap
        Mean overlap in [0, r].
    num_runs
        Number L of runs to predict for.
    num_groups, num_guesses, delta, significance
        As in `epsilon_lower_bound`.

    Returns
    -------
    float
        Epsilon, 0.0 if that would be no evidence.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> round(predicted_epsilon(80.0, num_runs=10, num_groups=400, num_guesses=100), 3)
    20.346
    """
    num_groups, num_guesses = check_design(num_groups, num_guesses)
    delta, significance = check_delta(delta), check_significance(significance)
    num_runs = check_runs(num_runs)
    if not 0 <= check_real("mean_overlap", mean_overlap) <= num_guesses:
        raise InputError(f"mean_overlap must be in [0, num_guesses = {num_guesses}], got {mean_overlap}")
    # A mean of whole numbers times their count is whole but for rounding, which must not cost one overlap.
    total = floor(mean_overlap * num_runs + 1e-6)
    summary = OverlapSummary("mean", num_runs, total, num_runs * num_guesses)
    return _bound("direct", summary, num_groups, num_guesses, delta, significance)


def _check_method(method: BoundMethod, statistic: Statistic, delta: float) -> None:
    check_choice("method", method, get_args(BoundMethod))
    if method == "theorem-4.2" and statistic == "tail":
        raise InputError("statistic must be 'mean' or 'median' for method='theorem-4.2', got 'tail'")
    if method == "odds" and delta > 0:
        raise InputError(f"delta must be 0 for method='odds', got {delta}")


def _summary(
    overlaps: ArrayLike, num_guesses: int, statistic: Statistic, threshold: int | None
) -> tuple[np.ndarray, OverlapSummary]:
    statistics.check_statistic(statistic, threshold, num_guesses)
    values = check_overlaps(overlaps, num_guesses)
    return values, statistics.summarise(values, num_guesses, statistic, threshold)


def _log_p_value(
    method: BoundMethod,
    summary: OverlapSummary,
    num_groups: int,
    num_guesses: int,
    epsilon: float,
    delta: float,
) -> float:
    """Log p-value of the claim, non-decreasing in epsilon."""
    if method == "theorem-4.2":
        return paper.log_p_value(summary, num_groups, num_guesses, epsilon, delta)
    if method == "odds":
        return statistics.log_p_value(odds_law(num_groups, num_guesses, 2 * epsilon), summary)
    return statistics.log_p_value(worst_case_law(num_groups, num_guesses, epsilon, delta), summary, delta)


def _bound(
    method: BoundMethod,
    summary: OverlapSummary,
    num_groups: int,
    num_guesses: int,
    delta: float,
    significance: float,
) -> float:
    """Where the p-value crosses the level; 0.0 if it is above it already at epsilon = 0."""

    def excess(epsilon: float) -> float:
        log_p = _log_p_value(method, summary, num_groups, num_guesses, epsilon, delta)
        return log(significance) - log_p

    return largest_rejected(excess)
