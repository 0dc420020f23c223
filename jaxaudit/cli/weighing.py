"""What ``jaxaudit bound`` does with log-ratios: count guesses made from them, and weigh how sure they are."""

from typing import Any, NamedTuple

import numpy as np

from jaxaudit.analysis import Claim
from jaxaudit.attack import guess
from jaxaudit.bound import (
    BoundResult,
    EvidenceResult,
    direction_p_value,
    epsilon_lower_bound,
    evidence_lower_bound,
    log_evidence,
)
from jaxaudit.cli.counting import count_notes, overlap_line
from jaxaudit.cli.judging import conclude, judge
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.overlap import overlap
from jaxaudit.report.document import plain
from jaxaudit.scorefile import LogRatioFile

DEFAULT_TEMPERATURE = 1.0
_WRONG_WAY = 0.01


class Weighed(NamedTuple):
    """The bounds that log-ratios give; no direct one if the number of guesses is not declared."""

    direct: BoundResult | None
    soft: EvidenceResult

    def deciding(self, design: AuditDesign) -> dict[str, BoundResult | EvidenceResult]:
        """The bounds that the design decides by."""
        bounds = {name: getattr(self, name) for name in design.deciding}
        if None in bounds.values():
            raise InputError(
                f"num_guesses must be given with method {design.method}: the direct bound counts that many "
                "guesses in each run"
            )
        return bounds


def weigh(evidence: LogRatioFile, design: AuditDesign, delta: float) -> Weighed:
    """Bounds at a delta: guesses are the most extreme log-ratios, soft evidence takes all of them.

    A run that failed counts as overlap 0 and evidence 0. Soft evidence adds runs up in the order of their ids.

    Examples
    --------
    >>> signs = np.tile([1, -1], (10, 10))
    >>> file = LogRatioFile(3.0 * signs, signs, np.zeros(10, bool), np.arange(10))
    >>> weighed = weigh(file, AuditDesign(num_groups=20, num_guesses=10), delta=0.0)
    >>> round(weighed.direct.epsilon, 2), round(weighed.soft.epsilon, 2)
    (6.3, 11.6)
    """
    log_e = np.asarray(
        log_evidence(evidence.log_ratios, evidence.signs, design.temperature or DEFAULT_TEMPERATURE)
    )
    log_e = np.where(evidence.failed, -np.inf, log_e)
    shared: dict[str, Any] = {"num_groups": design.num_groups, "delta": delta, "significance": design.level}
    soft = evidence_lower_bound(log_e[np.argsort(evidence.run_ids)], form=design.evidence_form, **shared)
    if design.num_guesses is None:
        return Weighed(None, soft)
    guesses = guess(evidence.log_ratios, design.num_guesses).guesses
    direct = epsilon_lower_bound(
        np.where(evidence.failed, 0, overlap(guesses, evidence.signs)),
        num_guesses=design.num_guesses,
        statistic=design.statistic,
        threshold=design.threshold,
        **shared,
    )
    return Weighed(direct, soft)


def finish_weigh(
    evidence: LogRatioFile,
    design: AuditDesign,
    claim: Claim | None,
    registered: bool,
    notes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print the bounds and the verdict, and return the exit code."""
    weighed = weigh(evidence, design, design.delta)
    deciding = weighed.deciding(design)
    verdict = None
    if claim is not None:
        verdict = judge(claim, weigh(evidence, design, claim.delta).deciding(design), design.level)
    temperature = design.temperature or DEFAULT_TEMPERATURE
    document = {
        "bounds": {name: plain(bound) for name, bound in weighed._asdict().items() if bound is not None},
        "deciding": list(deciding),
        "temperature": temperature,
    }
    lines = _lines(weighed, list(deciding), temperature)
    return conclude(
        lines, document, verdict, registered, (*_direction_notes(evidence, weighed), *notes), as_json
    )


def _direction_notes(evidence: LogRatioFile, weighed: Weighed) -> tuple[str, ...]:
    """What a reader must know: above all, that the log-ratios point the wrong way."""
    notes = () if weighed.direct is None else count_notes(weighed.direct, evidence.failed)
    made = ~evidence.failed
    p_value = direction_p_value(evidence.log_ratios[made], evidence.signs[made]) if made.any() else 1.0
    if p_value >= _WRONG_WAY:
        return notes
    return (
        f"the log-ratios are significantly worse than chance (p = {p_value:.1e}): this usually means that a "
        "sign is the wrong way round",
        *notes,
    )


def _lines(weighed: Weighed, deciding: list[str], temperature: float) -> list[str]:
    described = {"soft": f"soft evidence, {weighed.soft.form}, temperature {temperature:g}"}
    if weighed.direct is not None:
        described = {"direct": f"direct bound, {weighed.direct.statistic}"} | described
    lines = []
    for name, description in described.items():
        bound = getattr(weighed, name)
        role = "" if name in deciding else "; informational"
        lines.append(
            f"epsilon is at least {bound.epsilon:.4g} of at most {bound.ceiling:.4g} at delta = "
            f"{bound.delta:g}, with {100 * (1 - bound.significance):g} % confidence ({description}{role})"
        )
    if weighed.direct is not None:
        lines.append(overlap_line(weighed.direct))
    return lines
