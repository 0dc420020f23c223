"""Measured false-alarm rates of the bounds, from simulated audits with a known true epsilon.

A bound at significance zeta may exceed the true epsilon in a share zeta of all audits, and no more. Here
audits are drawn from the mechanism that attains the direct bound, and from exact retraining, where guesses
know nothing. Nothing is trained.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from math import log, sqrt
from typing import Any, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp
from scipy.stats import binomtest

from jaxaudit.bound.counts import log_null_pmf
from jaxaudit.bound.evidence import log_wealth
from jaxaudit.bound.law import sample, worst_case_law
from jaxaudit.bound.lower_bound import BoundMethod
from jaxaudit.bound.rule import OverlapRule
from jaxaudit.bound.sequence import NUM_RATES, log_e_process
from jaxaudit.checks import check_epsilon, check_integer
from jaxaudit.design import EvidenceForm, Statistic

CONFIDENCE = 0.99
"""Coverage of the intervals of the measured rates."""
# Most sign entries or factors of an e-process that are held in memory at once.
_BLOCK = 2**23


@dataclass(frozen=True)
class FalseAlarms:
    """False alarms of one bound on one mechanism."""

    bound: str
    """What was tested: the counting bound, its anytime-valid form, or a form of soft evidence."""
    mechanism: str
    """``worst case`` or ``retraining``."""
    true_epsilon: float
    """What the mechanism truly meets; a false alarm is a bound above it."""
    num_audits: int
    num_alarms: int
    significance: float

    @property
    def rate(self) -> float:
        """Share of the audits that raised a false alarm."""
        return self.num_alarms / self.num_audits

    @property
    def interval(self) -> tuple[float, float]:
        """Exact (Clopper-Pearson) 99 % confidence interval of the rate."""
        limits = binomtest(self.num_alarms, self.num_audits).proportion_ci(CONFIDENCE)
        return float(limits.low), float(limits.high)

    @property
    def consistent(self) -> bool:
        """The measured rate does not contradict the significance: its lower limit is not above it."""
        return self.interval[0] <= self.significance

    @property
    def holds(self) -> bool:
        """The measured rate shows that the level holds: its upper limit is not above the significance."""
        return self.interval[1] <= self.significance

    def line(self) -> str:
        """The line of the table of `Validation.text`."""
        low, high = self.interval
        verdict = "holds" if self.holds else "consistent" if self.consistent else "TOO MANY"
        return (
            f"{self.bound:<26} {self.mechanism:<12} {self.true_epsilon:8.2f} {self.num_alarms:7d} "
            f"{self.rate:7.4f}   {low:.4f} to {high:.4f}   {verdict}"
        )


@dataclass(frozen=True)
class Validation:
    """Outcome of `validate`."""

    checks: tuple[FalseAlarms, ...]
    num_groups: int
    num_guesses: int
    num_runs: int
    epsilon: float
    delta: float
    significance: float
    method: BoundMethod
    statistic: Statistic
    threshold: int | None
    num_audits: int
    seed: int

    @property
    def consistent(self) -> bool:
        """No check contradicts the significance."""
        return all(check.consistent for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON types."""
        checks = [
            asdict(check)
            | {
                "rate": check.rate,
                "interval": list(check.interval),
                "consistent": check.consistent,
                "holds": check.holds,
            }
            for check in self.checks
        ]
        return asdict(self) | {"checks": checks, "consistent": self.consistent}

    def text(self) -> str:
        """A table in plain text."""
        header = (
            f"{self.num_audits} simulated audits per line: m = {self.num_groups}, r = {self.num_guesses}, "
            f"L = {self.num_runs}, delta = {self.delta:g}, significance {self.significance:g}\n"
            f"{'bound':<26} {'mechanism':<12} {'true eps':>8} {'alarms':>7} {'rate':>7}   99 % interval"
        )
        verdict = "consistent with" if self.consistent else "NOT consistent with"
        lines = [check.line() for check in self.checks]
        held = sum(check.holds for check in self.checks)
        summary = (
            f"Measured false alarms are {verdict} the significance; "
            f"{held} of {len(lines)} intervals are not above it."
        )
        return "\n".join([header, *lines, summary])


def validate(
    *,
    num_groups: int,
    num_guesses: int,
    num_runs: int,
    epsilon: float,
    delta: float = 0.0,
    significance: float = 0.05,
    method: BoundMethod = "direct",
    statistic: Statistic = "mean",
    threshold: int | None = None,
    num_audits: int = 2000,
    seed: int = 0,
) -> Validation:
    """Measure how often the bounds exceed the true epsilon.

    Two mechanisms are simulated. *Worst case*: the overlap of a run is drawn from the law W that the direct
    bound allows at (epsilon, delta) and that a real mechanism attains. *Retraining*: balanced signs and
    balanced guesses are drawn independently and compared entry by entry, so that the chance law itself is put
    to the test; the true epsilon is 0. The audits are given to the counting bound, to its anytime-valid form,
    and to both forms of soft evidence, for an attacker whose log-likelihood ratios are +c and -c on its
    guesses and 0 elsewhere.

    Parameters
    ----------
    num_groups, num_guesses, num_runs
        The design: m, r and L.
    epsilon, delta
        What the worst-case mechanism meets; ``delta`` is also that of the claim.
    significance, method, statistic, threshold
        As in `epsilon_lower_bound`; method, statistic and threshold concern the counting bound.
    num_audits
        Simulated audits of each mechanism, at least 1.
    seed
        Non-negative; the same seed gives the same counts.

    Returns
    -------
    Validation

    Raises
    ------
    InputError
        If an argument is out of range, naming it and its value.

    Examples
    --------
    >>> validation = validate(num_groups=6, num_guesses=6, num_runs=10, epsilon=1.0, num_audits=500)
    >>> validation.consistent, len(validation.checks)
    (True, 8)
    """
    epsilon = check_epsilon(epsilon)
    num_audits, seed = check_integer("num_audits", num_audits, low=1), check_integer("seed", seed, low=0)
    rule = OverlapRule(num_groups, num_guesses, num_runs, delta, significance, method, statistic, threshold)
    worst_rng, chance_rng = np.random.default_rng(seed).spawn(2)
    law = worst_case_law(num_groups, num_guesses, epsilon, delta)
    worst = sample(law, worst_rng, (num_audits, num_runs))
    chance = chance_overlaps(chance_rng, num_audits * num_runs, num_groups, num_guesses)
    mechanisms = (
        ("worst case", epsilon, worst),
        ("retraining", 0.0, chance.reshape(num_audits, num_runs)),
    )
    checks = tuple(
        FalseAlarms(bound, mechanism, true_epsilon, num_audits, num_alarms, significance)
        for mechanism, true_epsilon, overlaps in mechanisms
        for bound, num_alarms in _alarms(rule, overlaps, true_epsilon)
    )
    return Validation(checks=checks, epsilon=epsilon, num_audits=num_audits, seed=seed, **asdict(rule))


def chance_overlaps(
    rng: np.random.Generator, num_runs: int, num_groups: int, num_guesses: int
) -> Int[np.ndarray, " runs"]:
    """Overlaps of independent uniform balanced signs and guesses, counted entry by entry.

    Examples
    --------
    >>> chance_overlaps(np.random.default_rng(0), 5, num_groups=6, num_guesses=4).tolist()
    [4, 3, 1, 2, 2]
    """
    half = num_guesses // 2
    signs = np.repeat(np.array([1, -1], np.int8), [num_groups // 2, num_groups - num_groups // 2])
    guesses = np.repeat(np.array([1, -1, 0], np.int8), [half, half, num_groups - num_guesses])

    def shuffled(vector: np.ndarray, size: int) -> np.ndarray:
        return rng.permuted(np.tile(vector, (size, 1)), axis=1)

    blocks = _blocks(num_runs, num_groups)
    return np.concatenate(
        [(shuffled(signs, len(block)) == shuffled(guesses, len(block))).sum(axis=1) for block in blocks]
    )


def _alarms(
    rule: OverlapRule, overlaps: Int[np.ndarray, "audits runs"], true_epsilon: float
) -> Iterator[tuple[str, int]]:
    """Name of each bound, and in how many of the audits it rejects the true epsilon."""
    critical = rule.critical_value(true_epsilon)
    yield f"{rule.method}, {rule.statistic}", int((rule.values(overlaps) >= critical).sum())

    process = partial(
        log_e_process,
        epsilon=true_epsilon,
        num_groups=rule.num_groups,
        num_guesses=rule.num_guesses,
        delta=rule.delta,
    )
    yield "direct, at any time", _ever_rejected(process, overlaps, rule.significance)

    log_evidence = _log_evidence_of_overlap(rule, true_epsilon)[overlaps]
    for form in get_args(EvidenceForm):
        wealth = partial(
            log_wealth, epsilon=true_epsilon, delta=rule.delta, num_groups=rule.num_groups, form=form
        )
        yield f"soft evidence, {form}", _ever_rejected(wealth, log_evidence, rule.significance)


def _ever_rejected(
    log_process: Callable[[np.ndarray], np.ndarray],
    audits: Float[np.ndarray, "audits runs"],
    significance: float,
) -> int:
    """In how many of the audits the process reaches 1/zeta after some run."""
    blocks = _blocks(len(audits), NUM_RATES * audits.shape[1])
    highest = np.concatenate([log_process(audits[block]).max(axis=1) for block in blocks])
    return int((highest >= log(1 / significance)).sum())


def _log_evidence_of_overlap(rule: OverlapRule, true_epsilon: float) -> Float[np.ndarray, " overlaps"]:
    """Log evidence of an attacker whose log-ratios are +c and -c on its guesses and 0 elsewhere, by overlap.

    The sum of the log-ratios over the members is then c (V - r/2), and the average of its exponential over
    all balanced signs is its mean under the chance law. c maximises the mean log evidence of the mechanism;
    for retraining, where that would be c = 0, it is as large as matters over L runs, so that the wealth
    wanders far enough.
    """
    overlap = np.arange(rule.num_guesses + 1)
    chance = log_null_pmf(rule.num_groups, rule.num_guesses)
    least = sqrt(8 * log(1 / rule.significance) / (rule.num_runs * rule.num_guesses))
    strengths = np.geomspace(least, max(10.0, 2 * least), 50)[:, None]
    log_evidence = strengths * overlap - logsumexp(chance + strengths * overlap, axis=1, keepdims=True)
    law = worst_case_law(rule.num_groups, rule.num_guesses, true_epsilon, rule.delta)
    return log_evidence[np.argmax(log_evidence @ np.exp(law.log_pmf))]


def _blocks(num_rows: int, row_size: int) -> Iterator[range]:
    """The rows in consecutive blocks of bounded memory."""
    step = max(1, _BLOCK // row_size)
    return (range(start, min(start + step, num_rows)) for start in range(0, num_rows, step))
