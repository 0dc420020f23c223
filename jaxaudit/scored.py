"""Scores of many runs, checked at the border: what the attack reads, wherever the models were trained.

Calibration runs and audited runs are different types, so that they cannot be mixed by accident.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxaudit.border import as_flags, as_floats, as_integers
from jaxaudit.errors import InputError


@dataclass(frozen=True)
class ScoredRuns:
    """Sign vectors and membership scores of several runs. Use `CalibrationRuns` or `AuditedRuns`.

    Parameters
    ----------
    signs
        ``(runs, groups)``, +1 where the group was in the run's training data and then forgotten, -1 where it never was;
        balanced: exactly ``floor(groups / 2)`` entries of a row are +1.
    scores
        ``(runs, groups, examples)`` or ``(runs, groups)``: one number per example, **higher = more likely a member**.
        Finite, except in runs that are flagged as failed.
    run_ids
        ``(runs,)`` unique integers. Default: counted from 0 for calibration and from 1,000,000 for audited runs, so
        that runs without ids never look shared.
    failed
        ``(runs,)``: the run diverged or crashed. Default: none. An audited run that failed counts as overlap 0
        and evidence 0; a calibration run that failed is left out of the fit.
    weights
        ``(groups, examples)`` of 0 and 1: 0 marks padding of groups of unequal size. Default: all 1.
    """

    signs: Int[np.ndarray, "runs groups"]
    scores: Float[np.ndarray, "runs groups examples"]
    run_ids: Int[np.ndarray, " runs"] = field(default=None)  # type: ignore[arg-type]
    failed: Bool[np.ndarray, " runs"] = field(default=None)  # type: ignore[arg-type]
    weights: Float[np.ndarray, "groups examples"] = field(default=None)  # type: ignore[arg-type]

    kind = "scored"
    first_run_id = 0

    def __post_init__(self) -> None:
        # Defaults are filled in and types made canonical here, so that everything downstream sees full arrays.
        signs = check_signs(self.signs, f"{self.kind} signs")
        scores = np.asarray(self.scores, dtype=np.float64)
        scores = scores[:, :, None] if scores.ndim == 2 else scores
        if scores.ndim != 3 or scores.shape[:2] != signs.shape:
            raise InputError(
                f"{self.kind} scores must have shape (runs, groups, examples) with (runs, groups) = {signs.shape} "
                f"as in signs, got {np.shape(self.scores)}"
            )
        runs, groups, examples = scores.shape
        run_ids = self._filled("run_ids", as_integers, np.arange(runs) + self.first_run_id)
        failed = self._filled("failed", as_flags, np.zeros(runs, bool))
        weights = self._filled("weights", as_floats, np.ones((groups, examples)))
        if not np.isin(weights, (0, 1)).all() or not weights.any(axis=1).all():
            raise InputError(f"{self.kind} weights must be 0 or 1 with at least one 1 per group")
        check_unique(f"{self.kind} run_ids", run_ids)
        bad = ~np.isfinite(scores) & (weights > 0) & ~failed[:, None, None]
        if bad.any():
            run, group, example = np.argwhere(bad)[0]
            raise InputError(
                f"{self.kind} scores must be finite, got {scores[run, group, example]} in run {run_ids[run]}, "
                f"group {group}, example {example} ({int(bad.sum())} such values); a run that diverged or crashed "
                "must be flagged in `failed`"
            )
        checked = {"signs": signs, "scores": scores, "run_ids": run_ids, "failed": failed, "weights": weights}
        for name, value in checked.items():
            own = value.copy()  # nobody else can change what was checked
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def _filled(
        self, name: str, convert: Callable[[str, object], np.ndarray], default: np.ndarray
    ) -> np.ndarray:
        """A field with its canonical type, or its default; its shape is that of the default."""
        given = getattr(self, name)
        if given is None:
            return default
        array = convert(f"{self.kind} {name}", given)
        if array.shape != default.shape:
            raise InputError(f"{self.kind} {name} must have shape {default.shape}, got {array.shape}")
        return array

    @property
    def num_runs(self) -> int:
        """Number of runs, failed ones included."""
        return len(self.signs)

    @property
    def num_groups(self) -> int:
        """Number of candidate groups."""
        return self.signs.shape[1]


class CalibrationRuns(ScoredRuns):
    """Runs that the attack is fitted on and every choice is made on. See `ScoredRuns`."""

    kind = "calibration"


class AuditedRuns(ScoredRuns):
    """Independent runs that count as evidence. None may be dropped. See `ScoredRuns`.

    Examples
    --------
    >>> AuditedRuns(signs=[[1, -1]], scores=[[0.3, float("nan")]])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: audited scores must be finite, got nan in run 1000000, group 1, example 0 \
(1 such values); a run that diverged or crashed must be flagged in `failed`
    """

    kind = "audited"
    first_run_id = 1_000_000


def check_signs(signs: object, name: str = "signs") -> Int[np.ndarray, "runs groups"]:
    """Sign vectors as int8, after checking shape, values in {-1, +1} and balance.

    Examples
    --------
    >>> check_signs([[1, 1, -1]])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: signs must have exactly 1 of 3 entries +1 in every row, got 2 in row 0
    """
    array = np.array(signs)
    if array.ndim != 2 or array.shape[1] < 2 or len(array) == 0:
        raise InputError(f"{name} must have shape (runs >= 1, groups >= 2), got {array.shape}")
    if not np.isin(array, (-1, 1)).all():
        raise InputError(f"{name} must be -1 or +1, got {array[~np.isin(array, (-1, 1))][0]}")
    positives, wanted = (array == 1).sum(axis=1), array.shape[1] // 2
    if (positives != wanted).any():
        row = int(np.argmax(positives != wanted))
        raise InputError(
            f"{name} must have exactly {wanted} of {array.shape[1]} entries +1 in every row, "
            f"got {positives[row]} in row {row}"
        )
    return array.astype(np.int8)


def check_unique(name: str, run_ids: Int[np.ndarray, " runs"]) -> None:
    """Raise if a run id is there twice.

    Examples
    --------
    >>> check_unique("run_ids", np.array([7, 8, 7]))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: run_ids must be unique, got 7 more than once
    """
    values, counts = np.unique(run_ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{name} must be unique, got {values[counts > 1][0]} more than once")


def check_disjoint(calibration: CalibrationRuns, audited: AuditedRuns) -> None:
    """Raise if a run is in both sets, or if the two do not describe the same groups.

    Examples
    --------
    >>> runs = {"signs": [[1, -1], [-1, 1]], "scores": [[0.5, 0.1], [0.2, 0.9]]}
    >>> check_disjoint(CalibrationRuns(**runs, run_ids=[0, 1]), AuditedRuns(**runs, run_ids=[1, 2]))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: calibration and audited runs must be disjoint, got run id 1 in both
    """
    shared = np.intersect1d(calibration.run_ids, audited.run_ids)
    if len(shared):
        raise InputError(f"calibration and audited runs must be disjoint, got run id {shared[0]} in both")
    if calibration.scores.shape[1:] != audited.scores.shape[1:]:
        raise InputError(
            "calibration and audited scores must have the same (groups, examples), got "
            f"{calibration.scores.shape[1:]} and {audited.scores.shape[1:]}"
        )
    if not np.array_equal(calibration.weights, audited.weights):
        raise InputError("calibration and audited weights must be equal")
