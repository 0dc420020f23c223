"""The rules of an audit as they are declared by a user, before the numbers of groups and runs are known."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import tyro

from jaxaudit.analysis import Claim
from jaxaudit.checks import check_delta, check_epsilon
from jaxaudit.design import AuditDesign, EvidenceForm, PredictorName, Statistic, Variance
from jaxaudit.errors import InputError


@dataclass(frozen=True)
class Rules:
    """An `AuditDesign` without its sizes and its deciding method.

    Examples
    --------
    >>> Rules(num_guesses=4).design(num_groups=6, num_audit_runs=20).num_guesses
    4
    """

    num_guesses: int | None = AuditDesign.num_guesses
    """Guesses per run, the paper's r, even. None: chosen on the calibration runs."""
    significance: float = AuditDesign.significance
    """Level of the test, the paper's zeta: how often a true claim may be falsified."""
    delta: float = AuditDesign.delta
    """Delta that the headline bound on epsilon speaks about."""
    statistic: Statistic = AuditDesign.statistic
    """Summary of the overlaps that the counting bound tests."""
    threshold: int | None = AuditDesign.threshold
    """For statistic "tail": the overlap a run must reach. None: chosen on the calibration runs."""
    temperature: float | None = AuditDesign.temperature
    """Exponent of the soft evidence. None: chosen on the calibration runs."""
    evidence_form: EvidenceForm = AuditDesign.evidence_form
    """How soft evidence of several runs is combined."""
    predictor: PredictorName = AuditDesign.predictor
    """Guess group by group, or the whole sign vector at once (few groups only)."""
    variance: Variance = AuditDesign.variance
    """How the variance of a score is estimated."""
    variance_floor: float = AuditDesign.variance_floor
    """Smallest variance that the attack uses, in squared units of the score."""

    def design(self, num_groups: int, **sizes_and_method: Any) -> AuditDesign:
        """The full design; keywords are the fields of `AuditDesign` that are not declared here."""
        return AuditDesign(num_groups=num_groups, **vars(self), **sizes_and_method)

    def refuse(self, names: tuple[str, ...], reason: str) -> None:
        """Raise if one of these fields was set although it would have no effect."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in names and value != field.default:
                raise InputError(f"{field.name} {reason}, got {value}")


InlineRules = Annotated[Rules, tyro.conf.arg(name="")]
"""Rules as a field of a larger spec; on the command line their flags have no prefix."""


def make_claim(claim_epsilon: float | None, claim_delta: float = 0.0) -> Claim | None:
    """The claim to test, or None if there is none.

    Examples
    --------
    >>> make_claim(1.5)
    Claim(epsilon=1.5, delta=0.0)
    >>> make_claim(-1.0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: claim_epsilon must not be negative, got -1.0
    """
    if claim_epsilon is None:
        if claim_delta != 0.0:
            raise InputError(f"claim_delta needs claim_epsilon, got claim_delta={claim_delta} alone")
        return None
    return Claim(check_epsilon(claim_epsilon, "claim_epsilon"), check_delta(claim_delta, "claim_delta"))
