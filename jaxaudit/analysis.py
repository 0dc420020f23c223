"""From scores to numbers: the attack is fitted on calibration runs, applied to audited runs, and turned into bounds.

This is a pure NumPy function of (design, calibration runs, audited runs). `jaxaudit run` calls it on the models it
trained, `jaxaudit bound` on scores made anywhere, and `jaxaudit verify` on the arrays of a report folder.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.bound import BoundResult, EvidenceResult, epsilon_lower_bound, evidence_lower_bound
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.leakage import Leakage, measure_leakage
from jaxaudit.overlap import overlap
from jaxaudit.predictor import Fitted, Predictor, make_predictor
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_disjoint
from jaxaudit.selection import Selection, select

SMALL_DELTA = 1e-5


@dataclass(frozen=True)
class Claim:
    """A claimed (epsilon, delta), to be tested."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Whether a claim is falsified at the declared significance."""

    claim: Claim
    falsified: bool
    p_values: dict[str, float]
    """p-value of the claim by each deciding bound (``direct``, ``soft``)."""
    levels: dict[str, float]
    """Level each of them is tested at; the levels add up to the significance."""
    ceiling: float
    """Largest epsilon that this design could have shown at the claim's delta; a claim above it cannot fail."""

    @property
    def text(self) -> str:
        """One sentence in plain words."""
        claim = f"(epsilon {self.claim.epsilon:g}, delta {self.claim.delta:g})"
        if self.falsified:
            return f"falsified: the claim {claim} does not hold"
        if self.claim.epsilon >= self.ceiling:
            return f"not falsified: {claim} is above the design's ceiling {self.ceiling:.2f}; the claim could not fail"
        return f"not falsified: this attack found no evidence against {claim}; this is no certificate"


@dataclass(frozen=True)
class Analysis:
    """Every statistical number of one audited method.

    ``direct`` and ``soft`` are at the design's delta, the ``_small_delta`` fields at delta = 1e-5 on the same evidence.
    The design's ``method`` says which of them decides; the others are informational.
    """

    design: AuditDesign
    selection: Selection
    log_ratios: Float[np.ndarray, "runs groups"]
    """The attacker's log-likelihood ratio of each group in each audited run."""
    guesses: Int[np.ndarray, "runs groups"]
    overlaps: Int[np.ndarray, " runs"]
    log_evidence: Float[np.ndarray, " runs"]
    direct: BoundResult
    direct_small_delta: BoundResult
    paper: BoundResult
    """Theorem 4.2 of the paper at delta = 0, same overlaps."""
    soft: EvidenceResult
    soft_small_delta: EvidenceResult
    leakage: Leakage
    variance_floor_hits: int
    """Number of fitted variances that were raised to the floor."""
    tied_runs: int
    """Audited runs in which a tie at the edge of the guesses was broken by index."""
    failed_calibration: tuple[int, ...]
    failed_audited: tuple[int, ...]
    """Run ids of the runs that failed."""
    notes: tuple[str, ...]
    """Plain sentences a reader must see: no evidence, worse than chance, failed runs, floor hit, ..."""
    no_evidence: bool
    """The scores are the same in every run, so that nothing can be learned from them: epsilon is 0."""
    verdict: Verdict | None

    @property
    def epsilon(self) -> float:
        """The headline: the best lower bound that the design's method allows, at the design's delta."""
        return max(getattr(self, name).epsilon for name in self.design.deciding)

    @property
    def ceiling(self) -> float:
        """Largest headline epsilon that this design could have shown."""
        return max(getattr(self, name).ceiling for name in self.design.deciding)


def analyse(
    design: AuditDesign, calibration: CalibrationRuns, audited: AuditedRuns, claim: Claim | None = None
) -> Analysis:
    """Attack the audited runs and bound epsilon.

    Everything that the design leaves open is chosen on the calibration runs alone. Then the attack is fitted on all
    of them and sees each audited run once.

    Parameters
    ----------
    design
        What was decided beforehand. The numbers of groups and runs must be those of the scores.
    calibration, audited
        Scores of disjoint runs.
    claim
        A claimed (epsilon, delta) to test.

    Raises
    ------
    InputError
        If the design and the scores disagree, a run is in both sets, or the attack cannot be fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.permuted(np.tile([1, -1], (50, 20)), axis=1)
    >>> scores = 3.0 * signs + rng.normal(size=signs.shape)
    >>> design = AuditDesign(num_groups=40, num_calibration_runs=40, num_audit_runs=10)
    >>> analysis = analyse(
    ...     design, CalibrationRuns(signs[:40], scores[:40]), AuditedRuns(signs[40:], scores[40:]), Claim(epsilon=1.0)
    ... )
    >>> analysis.epsilon > 5, analysis.verdict.falsified
    (True, True)
    """
    check_disjoint(calibration, audited)
    _check_sizes(design, calibration, audited)
    predictor = make_predictor(design, calibration)
    no_evidence = _is_constant(calibration, audited)
    # Fitted before anything is chosen, so that runs that cannot be fitted are named by the fit itself.
    fitted = predictor.read(calibration, audited)
    selection = select(design, calibration, predictor)
    attacked = _attack(predictor, fitted, selection, audited, no_evidence)
    bounds = _bounds(design, selection, attacked, no_evidence)
    failed = [tuple(runs.run_ids[runs.failed].tolist()) for runs in (calibration, audited)]
    return Analysis(
        design=design,
        selection=selection,
        **attacked._asdict(),
        **bounds,
        leakage=measure_leakage(attacked.log_ratios, audited.signs, audited.failed),
        failed_calibration=failed[0],
        failed_audited=failed[1],
        notes=_notes(bounds["direct"], attacked, failed, no_evidence),
        no_evidence=no_evidence,
        verdict=None if claim is None else _verdict(design, claim, selection, attacked, no_evidence),
    )


class _Attacked(NamedTuple):
    """What the attack makes of the audited runs; fields are those of `Analysis`."""

    log_ratios: Float[np.ndarray, "runs groups"]
    guesses: Int[np.ndarray, "runs groups"]
    overlaps: Int[np.ndarray, " runs"]
    log_evidence: Float[np.ndarray, " runs"]
    variance_floor_hits: int
    tied_runs: int


def _attack(
    predictor: Predictor, fitted: Fitted, selection: Selection, audited: AuditedRuns, no_evidence: bool
) -> _Attacked:
    reading, floor_hits = fitted
    if no_evidence:  # equal scores, but their fitted means can differ in the last bit
        reading = np.zeros_like(reading)
    guesses, tied = predictor.guess(reading, selection.num_guesses)
    log_evidence = predictor.log_evidence(reading, audited.signs, selection.temperature)
    return _Attacked(
        log_ratios=predictor.log_ratios(reading),
        guesses=guesses,
        # A run that failed counts as no right guess and no evidence: it may not be dropped.
        overlaps=np.where(audited.failed, 0, overlap(guesses, audited.signs)),
        log_evidence=np.where(audited.failed, -np.inf, log_evidence),
        variance_floor_hits=floor_hits,
        tied_runs=int((tied & ~audited.failed).sum()),
    )


def _direct(design: AuditDesign, selection: Selection, attacked: _Attacked, delta: float) -> BoundResult:
    return epsilon_lower_bound(
        attacked.overlaps,
        num_groups=design.num_groups,
        num_guesses=selection.num_guesses,
        delta=delta,
        significance=design.level,
        statistic=design.statistic,
        threshold=selection.threshold,
    )


def _soft(design: AuditDesign, attacked: _Attacked, delta: float) -> EvidenceResult:
    return evidence_lower_bound(
        attacked.log_evidence,
        num_groups=design.num_groups,
        delta=delta,
        significance=design.level,
        form=design.evidence_form,
    )


def _bounds(
    design: AuditDesign, selection: Selection, attacked: _Attacked, no_evidence: bool
) -> dict[str, Any]:
    """The bounds of `Analysis` by field name; the deciding ones at the level that they are tested at."""
    paper = epsilon_lower_bound(
        attacked.overlaps,
        num_groups=design.num_groups,
        num_guesses=selection.num_guesses,
        significance=design.significance,
        method="theorem-4.2",
    )
    bounds: dict[str, Any] = {
        "direct": _direct(design, selection, attacked, design.delta),
        "direct_small_delta": _direct(design, selection, attacked, SMALL_DELTA),
        "paper": paper,
        "soft": _soft(design, attacked, design.delta),
        "soft_small_delta": _soft(design, attacked, SMALL_DELTA),
    }
    if not no_evidence:
        return bounds
    # Guesses by index are valid but arbitrary, so what they happen to hit is not reported.
    zero = {name: replace(bound, epsilon=0.0) for name, bound in bounds.items()}
    return zero | {"paper": replace(zero["paper"], epsilon_ldp=0.0)}


def _verdict(
    design: AuditDesign, claim: Claim, selection: Selection, attacked: _Attacked, no_evidence: bool
) -> Verdict:
    """The claim, tested at its own delta."""
    bounds: dict[str, BoundResult | EvidenceResult] = {
        "direct": _direct(design, selection, attacked, claim.delta),
        "soft": _soft(design, attacked, claim.delta),
    }
    deciding = {name: bounds[name] for name in design.deciding}
    p_values = {
        name: 1.0 if no_evidence else math.exp(bound.log_p_value(claim.epsilon, claim.delta))
        for name, bound in deciding.items()
    }
    return Verdict(
        claim=claim,
        falsified=any(p_value <= design.level for p_value in p_values.values()),
        p_values=p_values,
        levels=dict.fromkeys(deciding, design.level),
        ceiling=max(bound.ceiling for bound in deciding.values()),
    )


def bound_notes(bound: BoundResult) -> tuple[str, ...]:
    """What a reader must know about a counting bound.

    Examples
    --------
    >>> bound_notes(epsilon_lower_bound([0] * 10, num_groups=6, num_guesses=4))[0][:45]
    'guessing is significantly worse than chance ('
    """
    notes = []
    if bound.below_chance:
        notes.append(
            f"guessing is significantly worse than chance (p = {bound.below_chance_p_value:.1e}): for scores, "
            "guesses or log-ratios made elsewhere this usually means that a sign is the wrong way round"
        )
    if bound.saturated:
        notes.append("every guess was right: epsilon is at the ceiling of this design and may be larger")
    return tuple(notes)


def _notes(
    direct: BoundResult, attacked: _Attacked, failed: list[tuple[int, ...]], no_evidence: bool
) -> tuple[str, ...]:
    notes = []
    for kind, runs in zip(
        ("calibration runs, left out of the fit", "audited runs, counted as no evidence"), failed
    ):
        if runs:
            notes.append(f"failed {kind}: {', '.join(map(str, runs))}")
    if no_evidence:
        return (
            *notes,
            "every score is the same in all runs, so nothing can be learned from them: epsilon is 0",
        )
    if attacked.variance_floor_hits:
        notes.append(f"{attacked.variance_floor_hits} fitted variances were raised to the floor")
    if attacked.tied_runs:
        notes.append(
            f"in {attacked.tied_runs} audited runs a tie at the edge of the guesses was broken by index"
        )
    return (*notes, *bound_notes(direct))


def _is_constant(calibration: CalibrationRuns, audited: AuditedRuns) -> bool:
    """Whether each example has one and the same score in all runs that did not fail."""
    scores = np.concatenate([runs.scores[~runs.failed] for runs in (calibration, audited)])
    return bool((scores == scores[:1])[:, calibration.weights > 0].all())


def _check_sizes(design: AuditDesign, calibration: CalibrationRuns, audited: AuditedRuns) -> None:
    given = {
        "num_groups": audited.num_groups,
        "num_calibration_runs": calibration.num_runs,
        "num_audit_runs": audited.num_runs,
    }
    for name, value in given.items():
        if getattr(design, name) != value:
            raise InputError(
                f"design.{name} must be that of the scores, {value}, got {getattr(design, name)}"
            )
