"""Evidence made in any framework, read from an npz or a CSV file: scores, log-ratios, guesses, or overlaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from jaxaudit.border import (
    as_flags,
    as_floats,
    as_integers,
    check_axes,
    check_is_file,
    check_names,
    nearest_layout,
    read_npz,
)
from jaxaudit.designfile import DesignFile
from jaxaudit.errors import InputError
from jaxaudit.scorecsv import read_table
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_disjoint, check_signs, check_unique


@dataclass(frozen=True, eq=False)
class ScoreFile:
    """Scores of calibration runs and of audited runs: the attack is still to be fitted."""

    calibration: CalibrationRuns
    audited: AuditedRuns

    def __post_init__(self) -> None:
        check_disjoint(self.calibration, self.audited)

    @property
    def run_ids(self) -> Int[np.ndarray, " runs"]:
        """Ids of the audited runs."""
        return self.audited.run_ids


@dataclass(frozen=True, eq=False)
class LogRatioFile:
    """Log-likelihood ratios of somebody's own attack, with the true signs.

    ``log_ratios`` (runs, groups) in nats, finite, **positive where the group looks like a member**; ``signs``
    (runs, groups) in {-1, +1}; ``failed`` (runs,) marks runs that count as no evidence: their ratios are 0.

    Examples
    --------
    >>> none, ids = np.zeros(1, bool), np.array([7])
    >>> LogRatioFile([[2.5, -0.3]], [[1, -1]], failed=none, run_ids=ids).log_ratios
    array([[ 2.5, -0.3]])
    """

    log_ratios: Float[np.ndarray, "runs groups"]
    signs: Int[np.ndarray, "runs groups"]
    failed: Bool[np.ndarray, " runs"]
    run_ids: Int[np.ndarray, " runs"]

    def __post_init__(self) -> None:
        signs = check_signs(as_integers("signs", self.signs))
        ratios = as_floats("log_ratios", self.log_ratios)
        _check_fit("log_ratios", ratios, signs, self.failed, self.run_ids)
        ratios = np.where(self.failed[:, None], 0.0, ratios)
        bad = ~np.isfinite(ratios)
        if bad.any():
            run, group = np.argwhere(bad)[0]
            raise InputError(
                f"log_ratios must be finite, got {ratios[run, group]} in run {self.run_ids[run]}, "
                f"group {group}; a run that diverged or crashed must be flagged as failed"
            )
        object.__setattr__(self, "log_ratios", ratios)
        object.__setattr__(self, "signs", signs)


@dataclass(frozen=True, eq=False)
class GuessFile:
    """Guesses of somebody's own attack, with the true signs.

    ``guesses`` (runs, groups) in {-1, 0, +1} and ``signs`` (runs, groups) in {-1, +1}; ``failed`` (runs,)
    marks runs that count as overlap 0. How many guesses of each sign there must be is checked where the
    overlap is counted.
    """

    guesses: Int[np.ndarray, "runs groups"]
    signs: Int[np.ndarray, "runs groups"]
    failed: Bool[np.ndarray, " runs"]
    run_ids: Int[np.ndarray, " runs"]

    def __post_init__(self) -> None:
        signs = check_signs(as_integers("signs", self.signs))
        guesses = as_integers("guesses", self.guesses)
        _check_fit("guesses", guesses, signs, self.failed, self.run_ids)
        object.__setattr__(self, "guesses", guesses)
        object.__setattr__(self, "signs", signs)


@dataclass(frozen=True, eq=False)
class OverlapFile:
    """Overlaps of somebody's own attack: the right guesses of each run; 0 for a run that ``failed``.

    ``num_groups`` (m) and ``num_guesses`` (r) are None where the file does not say them.
    """

    overlaps: Int[np.ndarray, " runs"]
    num_groups: int | None
    num_guesses: int | None
    failed: Bool[np.ndarray, " runs"]
    run_ids: Int[np.ndarray, " runs"]

    def __post_init__(self) -> None:
        overlaps = as_integers("overlaps", self.overlaps)
        check_axes("overlaps", overlaps, {"runs": None})
        if not len(overlaps):
            raise InputError("overlaps must hold at least one run, got none")
        if (overlaps < 0).any():
            raise InputError(f"overlaps must not be negative, got {overlaps[overlaps < 0][0]}")
        _check_per_run(len(overlaps), self.failed, self.run_ids)
        object.__setattr__(self, "overlaps", np.where(self.failed, 0, overlaps))


ScoreInput = ScoreFile | LogRatioFile | GuessFile | OverlapFile


def read_score_file(path: str | Path) -> ScoreInput:
    """Read scores, log-ratios, guesses or overlaps; of several in one file, the first in this list is used.

    Parameters
    ----------
    path
        ``.npz`` with ``calibration_signs``, ``calibration_scores``, ``signs`` and ``scores`` (optionally
        ``calibration_run_ids`` and ``run_ids``, ``calibration_failed``, ``failed``, ``weights``); or with
        ``log_ratios`` and ``signs``; or with ``guesses`` and ``signs``; or with ``overlaps`` (optionally
        ``num_groups`` and ``num_guesses``). Shapes and conventions are those of
        `jaxaudit.scored.ScoredRuns`: a score is higher for members, so negate losses. Or ``.csv`` with header
        ``run,group,example,sign,score,split`` (split ``calibration`` or ``audit``), or
        ``run,group,log_ratio,sign``, or ``run,group,guess,sign``, or ``run,overlap``, and optionally
        ``failed`` (0 or 1). Groups and examples are numbered from 0; a (group, example) that no run has is
        padding; the value of a failed run may be empty.

    Raises
    ------
    InputError
        An unreadable or pickled file, missing arrays or columns, wrong shapes (the axis is named), gaps,
        NaN in a run that is not flagged as failed, run ids shared by calibration and audit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "overlaps.csv"
    ...     _ = path.write_text("run,overlap\\n0,5\\n1,6\\n")
    ...     read_score_file(path).overlaps
    array([5, 6])
    """
    check_is_file(path)
    suffix = Path(path).suffix.lower()
    if suffix not in (".npz", ".csv"):
        raise InputError(f"evidence must be a .npz or .csv file, got {path}")
    return _from_arrays(path, read_npz(path) if suffix == ".npz" else read_table(path))


# Arrays of each kind of evidence, required and optional.
_LAYOUTS: dict[str, tuple[str, ...]] = {
    "scores": ("calibration_signs", "calibration_scores", "signs", "scores"),
    "log_ratios": ("log_ratios", "signs"),
    "guesses": ("guesses", "signs"),
    "overlaps": ("overlaps",),
}
_OPTIONAL = {
    "scores": ("calibration_run_ids", "run_ids", "calibration_failed", "failed", "weights"),
    "log_ratios": ("run_ids", "failed"),
    "guesses": ("run_ids", "failed"),
    "overlaps": ("num_groups", "num_guesses", "run_ids", "failed"),
}


def _from_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> ScoreInput:
    layout = nearest_layout(arrays, _LAYOUTS)
    check_names(f"{path}: arrays", arrays, _LAYOUTS[layout], _OPTIONAL[layout])
    if layout == "scores":
        if ("run_ids" in arrays) != ("calibration_run_ids" in arrays):
            raise InputError(f"{path}: run_ids and calibration_run_ids must be given both or not at all")
        return ScoreFile(_scored(CalibrationRuns, arrays, "calibration_"), _scored(AuditedRuns, arrays, ""))
    runs = len(np.atleast_1d(arrays[layout]))
    run_ids = _run_ids(arrays, "run_ids")
    if run_ids is None:
        run_ids = np.arange(runs) + AuditedRuns.first_run_id
    failed = _failed(arrays, "failed")
    failed = np.zeros(runs, bool) if failed is None else failed
    if layout == "log_ratios":
        return LogRatioFile(arrays["log_ratios"], arrays["signs"], failed, run_ids)
    if layout == "guesses":
        return GuessFile(arrays["guesses"], arrays["signs"], failed, run_ids)
    return OverlapFile(
        arrays["overlaps"], _scalar(arrays, "num_groups"), _scalar(arrays, "num_guesses"), failed, run_ids
    )


Runs = TypeVar("Runs", CalibrationRuns, AuditedRuns)


def _scored(kind: type[Runs], arrays: Mapping[str, np.ndarray], prefix: str) -> Runs:
    signs = as_integers(f"{prefix}signs", arrays[f"{prefix}signs"])
    scores = as_floats(f"{prefix}scores", arrays[f"{prefix}scores"])
    scores = scores[:, :, None] if scores.ndim == 2 else scores
    check_axes(f"{prefix}signs", signs, {"runs": None, "groups": None})
    check_axes(f"{prefix}scores", scores, {"runs": len(signs), "groups": signs.shape[1], "examples": None})
    weights = arrays.get("weights")
    if weights is not None:
        weights = as_floats("weights", weights)
        weights = weights[:, None] if weights.ndim == 1 else weights
        check_axes("weights", weights, {"groups": scores.shape[1], "examples": scores.shape[2]})
    run_ids, failed = _run_ids(arrays, f"{prefix}run_ids"), _failed(arrays, f"{prefix}failed")
    for name, array in ((f"{prefix}run_ids", run_ids), (f"{prefix}failed", failed)):
        if array is not None:
            check_axes(name, array, {"runs": len(signs)})
    return kind(signs, scores, run_ids, failed, weights)  # type: ignore[arg-type]


def _run_ids(arrays: Mapping[str, np.ndarray], name: str) -> Int[np.ndarray, " runs"] | None:
    return as_integers(name, arrays[name]) if name in arrays else None


def _failed(arrays: Mapping[str, np.ndarray], name: str) -> Bool[np.ndarray, " runs"] | None:
    return as_flags(name, arrays[name]) if name in arrays else None


def _scalar(arrays: Mapping[str, np.ndarray], name: str) -> int | None:
    if name not in arrays:
        return None
    value = as_integers(name, arrays[name])
    if value.size != 1:
        raise InputError(f"{name} must be one number, got shape {value.shape}")
    return int(value.item())


def _check_fit(
    name: str,
    array: Shaped[np.ndarray, "runs groups"],
    signs: Int[np.ndarray, "runs groups"],
    failed: Bool[np.ndarray, " runs"],
    run_ids: Int[np.ndarray, " runs"],
) -> None:
    check_axes(name, array, {"runs": len(signs), "groups": signs.shape[1]})
    _check_per_run(len(signs), failed, run_ids)


def _check_per_run(runs: int, failed: Bool[np.ndarray, " runs"], run_ids: Int[np.ndarray, " runs"]) -> None:
    check_axes("run_ids", run_ids, {"runs": runs})
    check_unique("run_ids", run_ids)
    check_axes("failed", failed, {"runs": runs})


def check_against_design(evidence: ScoreInput, design_file: DesignFile) -> None:
    """Raise unless the evidence is of exactly the runs that were registered.

    Run ids must be the registered ones, in any order, and every run must have its registered sign vector. A
    run that diverged or crashed must be there too, flagged as failed: a missing audited run could have been
    dropped because of its outcome, and then the bound does not hold.

    Raises
    ------
    InputError
        A run is missing, unknown, or has another sign vector (its id is named); another number of groups or
        guesses.

    Examples
    --------
    >>> from jaxaudit.design import AuditDesign
    >>> rules = AuditDesign(2, num_calibration_runs=2, num_audit_runs=2, num_guesses=2, temperature=1.0)
    >>> registered = DesignFile(rules, [[1, -1], [-1, 1]], [[1, -1], [1, -1]], score_definition="logit")
    >>> one = OverlapFile([2], 2, 2, failed=np.array([False]), run_ids=registered.run_ids[:1])
    >>> check_against_design(one, registered)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: audited run 1000001 of the registered design is missing (1 missing); no run \
may be dropped: flag one that crashed or diverged as failed
    """
    rules = design_file.design
    if isinstance(evidence, OverlapFile):
        _check_ids("audited", evidence.run_ids, design_file.run_ids)
        for name in ("num_groups", "num_guesses"):
            found, registered = getattr(evidence, name), getattr(rules, name)
            if None not in (found, registered) and found != registered:
                raise InputError(f"{name} is {found}, the registered design has {registered}")
    elif isinstance(evidence, LogRatioFile | GuessFile):
        _check_runs("audited", evidence.run_ids, evidence.signs, design_file.run_ids, design_file.signs)
    else:
        calibration, audited = evidence.calibration, evidence.audited
        _check_runs(
            "calibration",
            calibration.run_ids,
            calibration.signs,
            design_file.calibration_run_ids,
            design_file.calibration_signs,
        )
        _check_runs("audited", audited.run_ids, audited.signs, design_file.run_ids, design_file.signs)


def _check_ids(kind: str, found: Int[np.ndarray, " runs"], registered: Int[np.ndarray, " runs"]) -> None:
    missing, unknown = np.setdiff1d(registered, found), np.setdiff1d(found, registered)
    if len(missing):
        raise InputError(
            f"{kind} run {missing[0]} of the registered design is missing ({len(missing)} missing); no run "
            "may be dropped: flag one that crashed or diverged as failed"
        )
    if len(unknown):
        raise InputError(f"{kind} run {unknown[0]} is not in the registered design")


def _check_runs(
    kind: str,
    found_ids: Int[np.ndarray, " runs"],
    found_signs: Int[np.ndarray, "runs groups"],
    registered_ids: Int[np.ndarray, " runs"],
    registered_signs: Int[np.ndarray, "runs groups"],
) -> None:
    _check_ids(kind, found_ids, registered_ids)
    groups = registered_signs.shape[1]
    check_axes(f"{kind} signs", found_signs, {"runs": len(registered_signs), "groups": groups})
    found, registered = found_signs[np.argsort(found_ids)], registered_signs[np.argsort(registered_ids)]
    different = found != registered
    if different.any():
        run, group = np.argwhere(different)[0]
        raise InputError(
            f"{kind} run {np.sort(found_ids)[run]} has sign {found[run, group]} for group {group}, "
            f"the registered design has {registered[run, group]}"
        )
