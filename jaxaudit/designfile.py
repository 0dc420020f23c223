"""A registered design: what is written down before the audited runs are made, in a file with its own hash.

Whoever trains elsewhere reads the sign vectors (and member indices) from it; whoever reads the scores
checks them against it. A changed file no longer matches its hash.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from jaxaudit.border import as_integers, check_axes, check_names, content_hash, read_npz, write_npz
from jaxaudit.design import SCHEMA_VERSION, AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_signs, check_unique


@dataclass(frozen=True, eq=False)
class DesignFile:
    """A design with the sign vectors of all its runs.

    Parameters
    ----------
    design
        The rules: number of groups and runs, how r is chosen, statistic, significance, ...
    calibration_signs, signs
        ``(runs, groups)`` in {-1, +1}, balanced: +1 where a run trains on the group and then forgets it.
    score_definition
        What the score is, in words; higher means more likely a member.
    seed
        Seed that the sign vectors were drawn with, if there is one.
    calibration_run_ids, run_ids
        ``(runs,)`` unique integers, default as in `jaxaudit.scored.ScoredRuns`.
    calibration_member_indices, member_indices
        ``(runs, members)``: the positions in the pool (retain records, then candidate groups) that a run
        trains on.
    num_retain, group_size
        Number of retain records at the head of the pool, and examples per group.
    order
        ``(pool,)``: the one order of all candidate training points, the same for all runs (a run's order is
        its restriction to the run's members).
    schema_version
        Version of the file's layout.

    Raises
    ------
    InputError
        Shapes that do not fit the design, unbalanced signs, repeated run ids, indices outside the pool.

    Examples
    --------
    >>> rules = AuditDesign(2, num_calibration_runs=2, num_audit_runs=1, num_guesses=2, temperature=1.0)
    >>> registered = DesignFile(rules, [[1, -1], [-1, 1]], [[1, -1]], score_definition="logit of the label")
    >>> registered.run_ids, len(registered.sha256)
    (array([1000000]), 64)
    """

    design: AuditDesign
    calibration_signs: Int[np.ndarray, "calibration_runs groups"]
    signs: Int[np.ndarray, "runs groups"]
    score_definition: str
    seed: int | None = None
    calibration_run_ids: Int[np.ndarray, " calibration_runs"] = field(default=None)  # type: ignore[arg-type]
    run_ids: Int[np.ndarray, " runs"] = field(default=None)  # type: ignore[arg-type]
    calibration_member_indices: Int[np.ndarray, "calibration_runs members"] | None = None
    member_indices: Int[np.ndarray, "runs members"] | None = None
    num_retain: int | None = None
    group_size: int | None = None
    order: Int[np.ndarray, " pool"] | None = None
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        rules = self.design
        sizes = {
            "calibration_": (rules.num_calibration_runs, CalibrationRuns.first_run_id),
            "": (rules.num_audit_runs, AuditedRuns.first_run_id),
        }
        for prefix, (runs, first_run_id) in sizes.items():
            self._set_signs(prefix, runs)
            self._set_run_ids(prefix, runs, first_run_id)
            self._set_indices(f"{prefix}member_indices", {"runs": runs, "members": None})
            self._check_members(prefix)
        self._set_indices("order", {"pool": self._pool_size})
        if self.order is not None and len(np.unique(self.order)) != len(self.order):
            raise InputError("order must name every point of the pool once, got a repeated point")
        check_unique("run ids", np.concatenate([self.calibration_run_ids, self.run_ids]))

    @property
    def _pool_size(self) -> int | None:
        if self.num_retain is None or self.group_size is None:
            return None
        return self.num_retain + self.design.num_groups * self.group_size

    def _set_signs(self, prefix: str, runs: int) -> None:
        name = f"{prefix}signs"
        signs = check_signs(getattr(self, name), name)
        check_axes(name, signs, {"runs": runs, "groups": self.design.num_groups})
        self._freeze(name, signs)

    def _set_run_ids(self, prefix: str, runs: int, first_run_id: int) -> None:
        name, given = f"{prefix}run_ids", getattr(self, f"{prefix}run_ids")
        run_ids = np.arange(runs) + first_run_id if given is None else as_integers(name, given)
        check_axes(name, run_ids, {"runs": runs})
        self._freeze(name, run_ids)

    def _set_indices(self, name: str, axes: Mapping[str, int | None]) -> None:
        if getattr(self, name) is None:
            return
        indices = as_integers(name, getattr(self, name))
        check_axes(name, indices, axes)
        if (indices < 0).any():
            raise InputError(f"{name} must not be negative, got {indices.min()}")
        if self._pool_size is not None and (indices >= self._pool_size).any():
            raise InputError(f"{name} must be at most {self._pool_size - 1}, got {indices.max()}")
        self._freeze(name, indices)

    def _check_members(self, prefix: str) -> None:
        """A run's members must be every retain record and the groups of its sign +1, and nothing else."""
        name = f"{prefix}member_indices"
        indices, signs = getattr(self, name), getattr(self, f"{prefix}signs")
        if indices is None or self.num_retain is None or self.group_size is None:
            return
        pool = self.num_retain + self.design.num_groups * self.group_size
        wanted = np.ones((len(signs), pool), bool)
        wanted[:, self.num_retain :] = np.repeat(signs == 1, self.group_size, axis=1)
        times = np.stack([np.bincount(row, minlength=pool) for row in indices])
        wrong = (times != wanted).any(axis=1)
        if wrong.any():
            run, run_ids = int(np.argmax(wrong)), getattr(self, f"{prefix}run_ids")
            raise InputError(f"{name} of run {run_ids[run]} disagree with its sign vector")

    def _freeze(self, name: str, array: np.ndarray) -> None:
        array = array.copy()
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    @cached_property
    def sha256(self) -> str:
        """Hash (hex) of the whole content; equal designs have equal hashes on every machine."""
        return content_hash(_as_arrays(self))


_HEADER = ("score_definition", "seed", "num_retain", "group_size", "schema_version")
_REQUIRED = ("calibration_signs", "signs", "calibration_run_ids", "run_ids")
_OPTIONAL = ("calibration_member_indices", "member_indices", "order")


def write_design(path: str | Path, design_file: DesignFile, *, overwrite: bool = False) -> None:
    """Write a design as npz: the arrays, the rest as JSON text in ``header``, and ``sha256``.

    Raises
    ------
    InputError
        The file exists and ``overwrite`` is false, or its folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> rules = AuditDesign(2, num_calibration_runs=2, num_audit_runs=1, num_guesses=2, temperature=1.0)
    >>> registered = DesignFile(rules, [[1, -1], [-1, 1]], [[1, -1]], score_definition="logit of the label")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_design(Path(folder) / "design.npz", registered)
    ...     read_design(Path(folder) / "design.npz").sha256 == registered.sha256
    True
    """
    arrays = {**_as_arrays(design_file), "sha256": np.array(design_file.sha256)}
    write_npz(path, arrays, overwrite=overwrite)


def read_design(path: str | Path) -> DesignFile:
    """Read a design, and check its hash. See `write_design`.

    Raises
    ------
    InputError
        The file is missing, damaged, incomplete, of a newer version, or was changed after it was written.
    """
    arrays = read_npz(path)
    check_names(f"{path}: arrays", arrays, ("header", "sha256", *_REQUIRED), _OPTIONAL)
    expected = str(arrays.pop("sha256"))
    found = content_hash(arrays)
    if found != expected:
        raise InputError(f"{path} was changed after it was written: its hash is {found}, it says {expected}")
    header = _read_header(path, arrays.pop("header"))
    fields: dict[str, Any] = {**header, **arrays}
    try:
        return DesignFile(**{**fields, "design": AuditDesign(**header["design"])})
    except (TypeError, KeyError) as error:
        raise InputError(f"{path} is no design file: {error}") from error


def _read_header(path: str | Path, text: np.ndarray) -> dict[str, Any]:
    try:
        header = json.loads(str(text))
        version = header["schema_version"]
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is no design file: its header cannot be read ({error})") from error
    if version != SCHEMA_VERSION:
        raise InputError(f"{path} has schema_version {version}, this version reads {SCHEMA_VERSION}")
    return header


def _as_arrays(design_file: DesignFile) -> dict[str, np.ndarray]:
    header = {name: getattr(design_file, name) for name in _HEADER}
    text = json.dumps({**header, "design": design_file.design.as_dict()}, sort_keys=True)
    arrays = {name: getattr(design_file, name) for name in (*_REQUIRED, *_OPTIONAL)}
    return {"header": np.array(text), **{name: array for name, array in arrays.items() if array is not None}}
