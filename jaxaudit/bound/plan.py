"""What a design can show, before anything is trained: ceiling, least evidence that counts, and power."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.bound.evidence import evidence_lower_bound
from jaxaudit.bound.law import worst_case_law
from jaxaudit.bound.lower_bound import BoundMethod
from jaxaudit.bound.rule import OverlapRule
from jaxaudit.checks import check_epsilon
from jaxaudit.design import Statistic
from jaxaudit.errors import InputError

_CURVE_POINTS = 11
# For its mean the bound is computed at this many values and interpolated between (error about 1e-6); values
# that together have less than this probability are left out.
_MEAN_NODES = 129
_NEGLIGIBLE = 1e-9
_OBSERVED = {"mean": "mean overlap", "median": "median overlap", "tail": "runs at the threshold"}


@dataclass(frozen=True)
class Power:
    """What to expect if the mechanism is the two-level one that attains the direct bound at ``true_epsilon``.

    Of all mechanisms that meet (true_epsilon, delta), under any attack, it is the one that this test
    recognises best. Another number of guesses or another statistic may see more. The probabilities are exact.
    """

    true_epsilon: float
    detection: float
    """Probability that the bound is above 0."""
    expected_epsilon: float
    """Mean of the bound."""
    claim_epsilon: float | None
    falsification: float | None
    """Probability that the claim ``claim_epsilon`` is rejected."""

    def lines(self) -> list[str]:
        """The lines of the table of `Plan.text`."""
        rows = [
            ("probability of a bound above 0", f"{self.detection:.4f}"),
            ("mean of the bound", f"{self.expected_epsilon:.2f}"),
        ]
        if self.falsification is not None:
            rows.append((f"probability of falsifying {self.claim_epsilon:g}", f"{self.falsification:.4f}"))
        return [
            "",
            f"If the true epsilon is {self.true_epsilon:g}, at most "
            "(another number of guesses or statistic may see more):",
            *_aligned(rows),
        ]


@dataclass(frozen=True)
class Plan:
    """Outcome of `plan`."""

    num_groups: int
    num_guesses: int
    num_runs: int
    significance: float
    delta: float
    method: BoundMethod
    statistic: Statistic
    threshold: int | None
    log_num_sign_vectors: float
    """log M' in nats: soft evidence cannot exceed it, whatever the number of runs. Counted guesses can."""
    ceiling: float
    """The bound after perfect guesses in every run; larger claims cannot be falsified."""
    soft_ceiling: float
    """The same for soft evidence, which has no guesses to choose; below log M'."""
    chance_mean_overlap: float
    """Mean overlap of guesses that know nothing, r/2."""
    minimum_observed: float | None
    """Smallest mean overlap (or median, or number of runs) that gives a bound above 0, if any does."""
    curve: tuple[tuple[float, float], ...]
    """Pairs of the same quantity and the bound that it gives, up to perfect guesses."""
    power: Power | None

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON types."""
        return asdict(self) | {"curve": [list(pair) for pair in self.curve]}

    def text(self) -> str:
        """A short table in plain text."""
        observed = _OBSERVED[self.statistic]
        least = "none" if self.minimum_observed is None else f"{self.minimum_observed:g}"
        rows = [
            ("ceiling (perfect guesses)", f"{self.ceiling:.2f}"),
            ("ceiling of soft evidence", f"{self.soft_ceiling:.2f}"),
            ("limit of soft evidence, many runs (log M')", f"{self.log_num_sign_vectors:.2f}"),
            ("mean overlap by chance", f"{self.chance_mean_overlap:g}"),
            (f"least {observed} for epsilon > 0", least),
        ]
        lines = [
            f"m = {self.num_groups}, r = {self.num_guesses}, L = {self.num_runs}, delta = {self.delta:g}, "
            f"significance {self.significance:g}: {self.method} bound, {self.statistic}",
            *_aligned(rows),
            "",
            f"{observed:>22}  epsilon",
            *(f"{value:22g}  {epsilon:7.2f}" for value, epsilon in self.curve),
        ]
        return "\n".join(lines + (self.power.lines() if self.power else []))


def plan(
    *,
    num_groups: int,
    num_guesses: int,
    num_runs: int,
    significance: float = 0.05,
    delta: float = 0.0,
    method: BoundMethod = "direct",
    statistic: Statistic = "mean",
    threshold: int | None = None,
    true_epsilon: float | None = None,
    claim_epsilon: float | None = None,
) -> Plan:
    """What an audit of this design can show.

    Parameters
    ----------
    num_groups, num_guesses, num_runs
        The design: m, r and L.
    significance, delta, method, statistic, threshold
        As in `epsilon_lower_bound`.
    true_epsilon
        Compute the power against a mechanism that truly meets (true_epsilon, delta) and nothing smaller.
    claim_epsilon
        With ``true_epsilon``: also the probability of falsifying this claim.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If an argument is out of range, or a claim comes without a true epsilon.

    Examples
    --------
    >>> outlook = plan(num_groups=6, num_guesses=6, num_runs=10, true_epsilon=3.0, claim_epsilon=1.0)
    >>> round(outlook.ceiling, 3), outlook.minimum_observed, round(outlook.power.falsification, 2)
    (2.696, 3.8, 1.0)
    """
    if claim_epsilon is not None and true_epsilon is None:
        raise InputError(f"claim_epsilon = {claim_epsilon} needs true_epsilon, got None")
    true_epsilon = None if true_epsilon is None else check_epsilon(true_epsilon, "true_epsilon")
    claim_epsilon = None if claim_epsilon is None else check_epsilon(claim_epsilon, "claim_epsilon")
    rule = OverlapRule(num_groups, num_guesses, num_runs, delta, significance, method, statistic, threshold)
    perfect = rule.bound(rule.most)
    least = rule.critical_value(0.0)
    values = _spread(range(least, rule.most + 1, rule.step), _CURVE_POINTS)
    bounds = [rule.bound(value) for value in values]
    log_most = log_num_sign_vectors(num_groups)
    soft = evidence_lower_bound(
        np.full(num_runs, log_most), num_groups=num_groups, delta=delta, significance=significance
    )
    return Plan(
        **asdict(rule),
        log_num_sign_vectors=log_most,
        ceiling=perfect.epsilon,
        soft_ceiling=soft.ceiling,
        chance_mean_overlap=num_guesses / 2,
        minimum_observed=bounds[0].observed if bounds else None,
        curve=tuple((bound.observed, bound.epsilon) for bound in bounds),
        power=None if true_epsilon is None else _power(rule, true_epsilon, claim_epsilon),
    )


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    return [f"{label:<44}{value:>10}" for label, value in rows]


def _power(rule: OverlapRule, true_epsilon: float, claim_epsilon: float | None) -> Power:
    law = worst_case_law(rule.num_groups, rule.num_guesses, true_epsilon, rule.delta)
    # Nothing reaches most + step, the critical value of a claim that cannot be falsified.
    reached = np.append(rule.tail_probabilities(law), np.zeros(rule.step))
    falsification = None if claim_epsilon is None else float(reached[rule.critical_value(claim_epsilon)])
    least = rule.critical_value(0.0)
    return Power(
        true_epsilon=true_epsilon,
        detection=float(reached[least]),
        expected_epsilon=_expected_epsilon(rule, least, -np.diff(reached)),
        claim_epsilon=claim_epsilon,
        falsification=falsification,
    )


def _expected_epsilon(rule: OverlapRule, least: int, pmf: Float[np.ndarray, " values"]) -> float:
    """Mean of the bound over the law of the rule's value; below ``least`` it is 0."""
    likely = np.flatnonzero(pmf > _NEGLIGIBLE / len(pmf))
    values = range(max(least, int(likely[0])), int(likely[-1]) + 1, rule.step)
    nodes = _spread(values, _MEAN_NODES)
    bounds = [rule.bound(node).epsilon for node in nodes]
    if len(nodes) > 1:
        bounds = PchipInterpolator(nodes, bounds)(values)
    return float(pmf[values] @ bounds)


def _spread(values: range, count: int) -> list[int]:
    """At most ``count`` of the values, evenly spread, both ends among them."""
    if len(values) <= count:
        return list(values)
    return [values[round(position)] for position in np.linspace(0, len(values) - 1, count)]
