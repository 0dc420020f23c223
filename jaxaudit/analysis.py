"""From scores to numbers: the attack is fitted on calibration runs, applied to audited runs, and turned into bounds.

This is a pure NumPy function of (design, calibration runs, audited runs). `jaxaudit run` calls it on the models it
trained, `jaxaudit bound` on scores made anywhere, and `jaxaudit verify` on the arrays of a report folder.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxaudit.bound import (
    BoundResult,
    EvidenceResult,
    epsilon_lower_bound,
    evidence_lower_bound,
    log_num_sign_vectors,
)
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.leakage import Leakage, measure_leakage
from jaxaudit.overlap import overlap
from jaxaudit.predictor import BatchwisePredictor, Fitted, Predictor, make_predictor
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_disjoint
from jaxaudit.selection import Selection, select, unselected
from jaxaudit.verdict import Claim as Claim
from jaxaudit.verdict import Verdict as Verdict

SMALL_DELTA = 1e-5
_LOG_NEVER = math.log(1e-4)


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
    """Soft evidence of each audited run, in nats; the bound adds the runs up in the order of their ids."""
    direct: BoundResult
    direct_small_delta: BoundResult
    paper: BoundResult
    """Theorem 4.2 of the paper at delta = 0, same overlaps and statistic; the mean where the design's is the tail, for
    which there is no such theorem."""
    soft: EvidenceResult
    soft_small_delta: EvidenceResult
    leakage: Leakage
    variance_floor_hits: int
    """Number of fitted variances that were raised to the floor."""
    tied_runs: int
    """Audited runs in which a tie at the edge of the guesses was broken by index."""
    order: Int[np.ndarray, " runs"]
    """The rows in the order of their run ids."""
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
    _check_kinds(calibration, audited)
    check_disjoint(calibration, audited)
    _check_sizes(design, calibration, audited)
    _check_repeats(calibration, audited)
    predictor, fitted, selection, silence = _fit_and_select(design, calibration, audited)
    attacked = _attack(predictor, fitted, selection, audited)
    bounds = _bounds(design, selection, attacked, silence is not None)
    failed = [tuple(runs.run_ids[runs.failed].tolist()) for runs in (calibration, audited)]
    return Analysis(
        design=design,
        selection=selection,
        **attacked._asdict(),
        **bounds,
        leakage=measure_leakage(attacked.log_ratios, audited.signs, audited.failed),
        failed_calibration=failed[0],
        failed_audited=failed[1],
        notes=_notes(design, selection, attacked, failed, audited.failed, silence),
        no_evidence=silence is not None,
        verdict=None if claim is None else _verdict(design, claim, selection, attacked, silence is not None),
    )


def _fit_and_select(
    design: AuditDesign, calibration: CalibrationRuns, audited: AuditedRuns
) -> tuple[Predictor, Fitted, Selection, str | None]:
    """The attack's reading of the audited runs, every choice, and why there is nothing to read, if so."""
    try:
        predictor = make_predictor(design, calibration)
        # Fitted before anything is chosen, so that runs that cannot be fitted are named by the fit itself.
        fitted = predictor.read(calibration, audited)
        selection = select(design, calibration, predictor)
    except InputError as error:
        if not calibration.failed.any():
            raise
        # Failed runs are a result, not a mistake: the method gets a report, and no evidence.
        blank = Fitted(np.zeros(audited.signs.shape), 0)
        silence = f"too many calibration runs failed to fit an attack ({error}): epsilon is 0"
        return BatchwisePredictor(design.variance, design.variance_floor), blank, unselected(design), silence
    if not _is_constant(calibration, audited):
        return predictor, fitted, selection, None
    # Equal scores can have fitted means that differ in the last bit.
    silence = "every score is the same in all runs, so nothing can be learned from them: epsilon is 0"
    return predictor, Fitted(np.zeros_like(fitted.reading), 0), selection, silence


class _Attacked(NamedTuple):
    """What the attack makes of the audited runs; fields are those of `Analysis`."""

    log_ratios: Float[np.ndarray, "runs groups"]
    guesses: Int[np.ndarray, "runs groups"]
    overlaps: Int[np.ndarray, " runs"]
    log_evidence: Float[np.ndarray, " runs"]
    variance_floor_hits: int
    tied_runs: int
    order: Int[np.ndarray, " runs"]


def _attack(predictor: Predictor, fitted: Fitted, selection: Selection, audited: AuditedRuns) -> _Attacked:
    reading, floor_hits = fitted
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
        order=np.argsort(audited.run_ids),
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
    # The running maximum depends on the order of the runs, which must not be a choice: it is that of their ids.
    return evidence_lower_bound(
        attacked.log_evidence[attacked.order],
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
        statistic="median" if design.statistic == "median" else "mean",
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


def judge_claim(analysis: Analysis, claim: Claim) -> Verdict:
    """Test another claim on the evidence of an analysis, by the design's method and at its level.

    Every claim is a test of its own: over several of them the chances of a false alarm add up.

    Parameters
    ----------
    analysis
        As returned by `analyse`.
    claim
        A claimed (epsilon, delta).

    Examples
    --------
    >>> signs = np.random.default_rng(0).permuted(np.tile([1, -1], (50, 20)), axis=1)
    >>> design = AuditDesign(num_groups=40, num_calibration_runs=40, num_audit_runs=10)
    >>> runs = CalibrationRuns(signs[:40], signs[:40]), AuditedRuns(signs[40:], signs[40:])
    >>> judge_claim(analyse(design, *runs), Claim(epsilon=1.0)).falsified
    True
    """
    attacked = _Attacked(**{name: getattr(analysis, name) for name in _Attacked._fields})
    return _verdict(analysis.design, claim, analysis.selection, attacked, analysis.no_evidence)


def bound_notes(bound: BoundResult) -> tuple[str, ...]:
    """What a reader must know about a counting bound of runs that did not fail.

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
    if bound.ceiling == 0:
        notes.append("this design cannot show any epsilon above 0: use more groups, guesses or runs")
    elif bound.saturated:
        best = {
            "mean": "every guess was right",
            "median": "at least half of the runs had only right guesses",
            "tail": f"every run reached the threshold {bound.threshold}",
        }[bound.statistic]
        notes.append(f"{best}: epsilon is at the ceiling of this design and may be larger")
    return tuple(notes)


def _notes(
    design: AuditDesign,
    selection: Selection,
    attacked: _Attacked,
    failed_ids: list[tuple[int, ...]],
    failed: Bool[np.ndarray, " runs"],
    silence: str | None,
) -> tuple[str, ...]:
    notes = []
    kinds = ("calibration runs, left out of the fit", "audited runs, counted as no evidence")
    for kind, runs in zip(kinds, failed_ids):
        if runs:
            notes.append(f"failed {kind}: {', '.join(map(str, runs))}")
    if silence is not None:
        return (*notes, silence)
    if attacked.variance_floor_hits:
        notes.append(f"{attacked.variance_floor_hits} fitted variances were raised to the floor")
    if attacked.tied_runs:
        notes.append(
            f"in {attacked.tied_runs} audited runs a tie at the edge of the guesses was broken by index"
        )
    direct = _direct(design, selection, attacked, design.delta)
    if failed.any() and not failed.all():
        # Failed runs count as overlap 0, which says nothing about the direction of the guesses.
        made = _direct(
            design, selection, attacked._replace(overlaps=attacked.overlaps[~failed]), design.delta
        )
        direct = replace(direct, below_chance_p_value=made.below_chance_p_value)
    return (*notes, *(() if failed.all() else bound_notes(direct)))


def _is_constant(calibration: CalibrationRuns, audited: AuditedRuns) -> bool:
    """Whether each example has one and the same score in all runs that did not fail."""
    scores = np.concatenate([runs.scores[~runs.failed] for runs in (calibration, audited)])
    return bool((scores == scores[:1])[:, calibration.weights > 0].all())


def _check_kinds(calibration: CalibrationRuns, audited: AuditedRuns) -> None:
    for name, runs, kind in (
        ("calibration", calibration, CalibrationRuns),
        ("audited", audited, AuditedRuns),
    ):
        if not isinstance(runs, kind):
            raise InputError(f"{name} must be {kind.__name__}, got {type(runs).__name__}")


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


def _check_repeats(calibration: CalibrationRuns, audited: AuditedRuns) -> None:
    """Raise if an audited run is there twice, under whatever id: independent runs never agree in signs and scores.

    Where sign vectors are few, runs of a deterministic method may agree by right.
    """
    num_runs, num_groups = calibration.num_runs + audited.num_runs, audited.num_groups
    if 2 * math.log(num_runs) - log_num_sign_vectors(num_groups) > _LOG_NEVER:
        return
    seen: dict[bytes, str] = {}
    for runs in (calibration, audited):
        for run_id, signs, scores in zip(runs.run_ids.tolist(), runs.signs, runs.scores):
            name, content = f"{runs.kind} run {run_id}", signs.tobytes() + scores.tobytes()
            if content in seen and runs is audited:
                raise InputError(
                    f"{name} must be a run of its own, got the signs and scores of {seen[content]}"
                )
            seen[content] = name
