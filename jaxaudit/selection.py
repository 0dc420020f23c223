"""What a design leaves open, chosen by cross-validation on the calibration runs; audited runs are never looked at."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.bound import epsilon_lower_bound, predicted_epsilon
from jaxaudit.design import AuditDesign
from jaxaudit.overlap import overlap
from jaxaudit.predictor import Predictor, Reading
from jaxaudit.scored import CalibrationRuns

_TEMPERATURES = tuple(float(t) for t in np.geomspace(0.02, 2.0, 41))


@dataclass(frozen=True)
class Selection:
    """What was left open in the design and then fixed on the calibration runs, with the curves it was read from."""

    num_guesses: int
    temperature: float
    threshold: int | None
    candidate_guesses: tuple[int, ...]
    """Values of r that were tried on the calibration runs; empty if r was declared."""
    predicted_epsilon: tuple[float, ...]
    """Bound that each of them predicts for the audited runs, from cross-validated overlaps."""
    candidate_temperatures: tuple[float, ...]
    """Empty if the temperature was declared."""
    mean_log_evidence: tuple[float, ...]
    """Cross-validated mean log evidence at each temperature, in nats."""


def select(design: AuditDesign, calibration: CalibrationRuns, predictor: Predictor) -> Selection:
    """Choose the number of guesses, the temperature and the tail threshold, where the design leaves them open.

    Each calibration run is read by an attack that was fitted without it. The number of guesses is the one whose mean
    overlap, if the audited runs repeat it, gives the largest direct bound; the temperature has the largest mean log
    evidence; the threshold gives the largest tail bound at the chosen number of guesses.

    Examples
    --------
    >>> from jaxaudit.predictor import make_predictor
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.permuted(np.tile([1, -1], (20, 10)), axis=1)
    >>> runs = CalibrationRuns(signs, 2.0 * signs + rng.normal(size=signs.shape))
    >>> design = AuditDesign(num_groups=20, num_calibration_runs=20)
    >>> selection = select(design, runs, make_predictor(design, runs))
    >>> selection.num_guesses in selection.candidate_guesses, selection.threshold
    (True, None)
    """
    open_choices = (design.num_guesses, design.temperature)
    if None not in open_choices and (design.statistic != "tail" or design.threshold is not None):
        return Selection(*open_choices, design.threshold, (), (), (), ())  # type: ignore[arg-type]
    reading, signs = predictor.cross_validated(calibration), calibration.signs
    reading, signs = reading[~calibration.failed], signs[~calibration.failed]
    guesses, predicted = _guess_curve(design, predictor, reading, signs)
    temperatures, evidence = _temperature_curve(design, predictor, reading, signs)
    # Where nothing is predicted for any of them, the largest has the largest ceiling.
    num_guesses = guesses[int(np.argmax(predicted))] if any(predicted) else guesses[-1]
    return Selection(
        num_guesses=num_guesses,
        temperature=temperatures[int(np.argmax(evidence))],
        threshold=_threshold(
            design, overlap(predictor.guess(reading, num_guesses).guesses, signs), num_guesses
        ),
        candidate_guesses=guesses if design.num_guesses is None else (),
        predicted_epsilon=predicted if design.num_guesses is None else (),
        candidate_temperatures=temperatures if design.temperature is None else (),
        mean_log_evidence=evidence if design.temperature is None else (),
    )


def unselected(design: AuditDesign) -> Selection:
    """What is used where the calibration runs say nothing: the declared values, else all groups and temperature 1.

    Examples
    --------
    >>> unselected(AuditDesign(num_groups=7, temperature=0.5)).num_guesses
    6
    """
    num_guesses = design.num_guesses or design.num_groups - design.num_groups % 2
    threshold = design.threshold or (num_guesses if design.statistic == "tail" else None)
    return Selection(num_guesses, design.temperature or 1.0, threshold, (), (), (), ())


def _guess_curve(
    design: AuditDesign, predictor: Predictor, reading: Reading, signs: Int[np.ndarray, "runs groups"]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    candidates = (
        predictor.guess_candidates(design.num_groups) if design.num_guesses is None else (design.num_guesses,)
    )
    # An overlap can only reach a declared threshold with that many guesses.
    candidates = tuple(r for r in candidates if r >= (design.threshold or 0))
    return candidates, tuple(
        predicted_epsilon(
            float(overlap(predictor.guess(reading, r).guesses, signs).mean()),
            num_runs=design.num_audit_runs,
            num_groups=design.num_groups,
            num_guesses=r,
            delta=design.delta,
            significance=design.level,
        )
        for r in candidates
    )


def _temperature_curve(
    design: AuditDesign, predictor: Predictor, reading: Reading, signs: Int[np.ndarray, "runs groups"]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    candidates = _TEMPERATURES if design.temperature is None else (design.temperature,)
    return candidates, tuple(float(predictor.log_evidence(reading, signs, t).mean()) for t in candidates)


def _threshold(design: AuditDesign, overlaps: Int[np.ndarray, " runs"], num_guesses: int) -> int | None:
    """For the tail statistic: the overlap to reach, with the largest bound if the audited runs repeat these."""
    if design.statistic != "tail" or design.threshold is not None:
        return design.threshold
    candidates = np.unique(overlaps[overlaps > 0])
    bounds = [_predicted_tail(design, overlaps, num_guesses, int(threshold)) for threshold in candidates]
    return int(candidates[int(np.argmax(bounds))]) if len(candidates) else num_guesses


def _predicted_tail(
    design: AuditDesign, overlaps: Int[np.ndarray, " runs"], num_guesses: int, threshold: int
) -> float:
    reached = int((overlaps >= threshold).mean() * design.num_audit_runs)
    repeated: Float[np.ndarray, " runs"] = np.where(
        np.arange(design.num_audit_runs) < reached, num_guesses, 0
    )
    return epsilon_lower_bound(
        repeated,
        num_groups=design.num_groups,
        num_guesses=num_guesses,
        delta=design.delta,
        significance=design.level,
        statistic="tail",
        threshold=threshold,
    ).epsilon
