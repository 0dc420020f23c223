"""Evidence made in any framework, read from an npz or a CSV file: scores, guesses, or overlaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Int

from jaxaudit.border import (
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
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_disjoint, check_signs


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
        check_axes("guesses", guesses, {"runs": len(signs), "groups": signs.shape[1]})
        _check_run_ids(self.run_ids, len(signs))
        check_axes("failed", self.failed, {"runs": len(signs)})
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
        _check_run_ids(self.run_ids, len(overlaps))
        check_axes("failed", self.failed, {"runs": len(overlaps)})
        object.__setattr__(self, "overlaps", np.where(self.failed, 0, overlaps))


Evidence = ScoreFile | GuessFile | OverlapFile


def read_evidence(path: str | Path, design_file: DesignFile | None = None) -> Evidence:
    """Read scores, guesses or overlaps; whichever comes first in this list is used if a file holds several.

    Parameters
    ----------
    path
        ``.npz`` with ``calibration_signs``, ``calibration_scores``, ``signs`` and ``scores`` (optionally
        ``calibration_run_ids`` and ``run_ids``, ``calibration_failed``, ``failed``, ``weights``); or with
        ``guesses`` and ``signs``; or with ``overlaps`` (optionally ``num_groups`` and ``num_guesses``).
        Shapes and conventions are those of `jaxaudit.scored.ScoredRuns`: a score is higher for members, so
        negate losses. Or ``.csv`` with header ``run,group,example,sign,score,split`` (split ``calibration``
        or ``audit``), or ``run,group,guess,sign``, or ``run,overlap``, and optionally ``failed`` (0 or 1).
        Groups and examples are numbered from 0; a (group, example) that no run has is padding; the value of
        a failed run may be empty.
    design_file
        The registered design that the file must agree with, see `check_against_design`.

    Raises
    ------
    InputError
        An unreadable or pickled file, missing arrays or columns, wrong shapes (the axis is named), gaps,
        NaN in a run that is not flagged as failed, run ids shared by calibration and audit, disagreement
        with the design.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "overlaps.csv"
    ...     _ = path.write_text("run,overlap\\n0,5\\n1,6\\n")
    ...     read_evidence(path).overlaps
    array([5, 6])
    """
    check_is_file(path)
    suffix = Path(path).suffix.lower()
    if suffix not in (".npz", ".csv"):
        raise InputError(f"evidence must be a .npz or .csv file, got {path}")
    evidence = _from_arrays(path, read_npz(path) if suffix == ".npz" else read_table(path))
    if design_file is not None:
        check_against_design(evidence, design_file)
    return evidence


# Arrays of each kind of evidence, required and optional.
_LAYOUTS: dict[str, tuple[str, ...]] = {
    "scores": ("calibration_signs", "calibration_scores", "signs", "scores"),
    "guesses": ("guesses", "signs"),
    "overlaps": ("overlaps",),
}
_OPTIONAL = {
    "scores": ("calibration_run_ids", "run_ids", "calibration_failed", "failed", "weights"),
    "guesses": ("run_ids", "failed"),
    "overlaps": ("num_groups", "num_guesses", "run_ids", "failed"),
}


def _from_arrays(path: str | Path, arrays: Mapping[str, np.ndarray]) -> Evidence:
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
    if name not in arrays:
        return None
    flags = as_integers(name, arrays[name])
    if not np.isin(flags, (0, 1)).all():
        raise InputError(f"{name} must be 0 or 1, got {flags[~np.isin(flags, (0, 1))][0]}")
    return flags.astype(bool)


def _scalar(arrays: Mapping[str, np.ndarray], name: str) -> int | None:
    if name not in arrays:
        return None
    value = as_integers(name, arrays[name])
    if value.size != 1:
        raise InputError(f"{name} must be one number, got shape {value.shape}")
    return int(value.item())


def _check_run_ids(run_ids: Int[np.ndarray, " runs"], runs: int) -> None:
    check_axes("run_ids", run_ids, {"runs": runs})
    values, counts = np.unique(run_ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"run_ids must be unique, got {values[counts > 1][0]} more than once")


def check_against_design(evidence: Evidence, design_file: DesignFile) -> None:
    """Raise unless the evidence is of exactly the runs that were registered.

    Run ids must be the registered ones, in any order, and every run must have its registered sign vector. A
    run that diverged or crashed must be there too, flagged as failed: a missing audited run could have been
    dropped because of its outcome, and then the bound does not hold.

    Raises
    ------
    InputError
        A run is missing, unknown, or has another sign vector (its id is named); another number of groups or
        guesses.
    """
    rules = design_file.design
    if isinstance(evidence, OverlapFile):
        _check_ids("audited", evidence.run_ids, design_file.run_ids)
        for name in ("num_groups", "num_guesses"):
            found, registered = getattr(evidence, name), getattr(rules, name)
            if None not in (found, registered) and found != registered:
                raise InputError(f"{name} is {found}, the registered design has {registered}")
    elif isinstance(evidence, GuessFile):
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
