"""The design of an audit: everything that is fixed before an audited run is seen.

A design is written down first (``jaxaudit design``), then runs are made, then the bound is computed. Whatever is
left open here (``None``) is chosen on the calibration runs, never on the audited ones.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from jaxaudit.checks import check_choice, check_delta, check_design, check_integer, check_significance
from jaxaudit.errors import InputError

SCHEMA_VERSION = 1

Method = Literal["direct", "soft", "both"]
Statistic = Literal["mean", "median", "tail"]
PredictorName = Literal["batchwise", "joint"]
Variance = Literal["per-point", "pooled", "global"]
EvidenceForm = Literal["product", "betting"]


@dataclass(frozen=True)
class AuditDesign:
    """What is decided before the audited runs are seen.

    Parameters
    ----------
    num_groups
        Number of candidate forget groups, the paper's m; at least 2.
    num_calibration_runs
        Runs that the attack is fitted on, the paper's Gamma; at least 2, or 4 where something is chosen on them or m is
        odd, or 2 for every balanced sign vector with the joint predictor.
    num_audit_runs
        Independent audited runs, the paper's L; at least 1.
    num_guesses
        Guesses per run, the paper's r: even, 2 <= r <= m. ``None``: chosen by cross-validation on the calibration runs.
    temperature
        Exponent t > 0 of the soft evidence. ``None``: chosen by cross-validation on the calibration runs.
    significance
        Level of the test, the paper's zeta, in (0, 1).
    delta
        The delta of the claim that the headline bound speaks about, in [0, 1).
    method
        The bound that decides the verdict: ``direct`` (counts right guesses), ``soft`` (likelihood ratios), or
        ``both``, which gives each half of the significance.
    statistic
        Summary of the overlaps that the direct bound tests.
    threshold
        For ``statistic="tail"``: the overlap a run must reach. ``None``: chosen on the calibration runs.
    predictor
        ``batchwise`` guesses group by group (Algorithm 2); ``joint`` guesses the whole sign vector (Algorithm 3),
        for designs whose balanced sign vectors can be enumerated; it always guesses all groups.
    variance
        How the variance of a score is estimated; see `jaxaudit.attack`.
    variance_floor
        Smallest variance the attack uses, in squared units of the score.
    evidence_form
        How soft evidence of several runs is combined: ``product`` or ``betting``.

    Examples
    --------
    >>> AuditDesign(num_groups=6, num_guesses=4).num_audit_runs
    10
    >>> AuditDesign(num_groups=6, num_guesses=5)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: num_guesses must be even, got 5
    """

    num_groups: int
    num_calibration_runs: int = 50
    num_audit_runs: int = 10
    num_guesses: int | None = None
    temperature: float | None = None
    significance: float = 0.05
    delta: float = 0.0
    method: Method = "direct"
    statistic: Statistic = "mean"
    threshold: int | None = None
    predictor: PredictorName = "batchwise"
    variance: Variance = "pooled"
    variance_floor: float = 1e-10
    evidence_form: EvidenceForm = "product"

    def __post_init__(self) -> None:
        check_integer("num_groups", self.num_groups, 2)
        check_integer("num_calibration_runs", self.num_calibration_runs, self._least_calibration_runs)
        check_integer("num_audit_runs", self.num_audit_runs, 1)
        r, m = self.num_guesses, self.num_groups
        if r is not None:
            check_design(m, r)
        if self.predictor == "joint" and (m % 2 or r not in (None, m)):
            raise InputError(
                f"the joint predictor guesses every group, so num_guesses must be num_groups and even; "
                f"got num_guesses={r}, num_groups={m}"
            )
        if self.temperature is not None and not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be positive and finite, got {self.temperature}")
        check_significance(self.significance)
        check_delta(self.delta)
        if not self.variance_floor > 0:
            raise InputError(f"variance_floor must be positive, got {self.variance_floor}")
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        if self.threshold is not None:
            if self.statistic != "tail":
                raise InputError(f"threshold is only used by statistic='tail', got {self.threshold}")
            check_integer("threshold", self.threshold, 1, m if r is None else r)

    @property
    def _least_calibration_runs(self) -> int:
        """Enough for members and non-members of every group, twice where something is chosen by cross-validation."""
        if self.predictor == "joint":
            return 2 * math.comb(self.num_groups, self.num_groups // 2)
        chosen = None in (self.num_guesses, self.temperature) or self.statistic == "tail"
        return 4 if chosen or self.num_groups % 2 else 2

    @property
    def deciding(self) -> tuple[str, ...]:
        """Names of the bounds that decide the verdict: ``direct``, ``soft``, or both."""
        return ("direct", "soft") if self.method == "both" else (self.method,)

    @property
    def level(self) -> float:
        """Level that each deciding bound is tested at; together they have the significance."""
        return self.significance / len(self.deciding)

    def as_dict(self) -> dict[str, Any]:
        """The design as plain JSON types."""
        return asdict(self)

    def replace(self, **changes: Any) -> "AuditDesign":
        """A copy with some fields changed, checked again."""
        return replace(self, **changes)


_CHOICES = {
    "method": get_args(Method),
    "statistic": get_args(Statistic),
    "predictor": get_args(PredictorName),
    "variance": get_args(Variance),
    "evidence_form": get_args(EvidenceForm),
}
