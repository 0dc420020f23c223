"""A CSV with one row per run, group and example, turned into the arrays that an npz file would hold."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from jaxaudit.border import check_names, nearest_layout, read_csv
from jaxaudit.errors import InputError

_LAYOUTS: dict[str, tuple[str, ...]] = {
    "scores": ("run", "group", "example", "sign", "score", "split"),
    "log_ratios": ("run", "group", "log_ratio", "sign"),
    "guesses": ("run", "group", "guess", "sign"),
    "overlaps": ("run", "overlap"),
}

Columns = Mapping[str, Shaped[np.ndarray, " rows"]]


def read_table(path: str | Path) -> dict[str, np.ndarray]:
    """Arrays of a CSV file, named as in an npz file; which, the header says.

    Runs are sorted by id. Groups and examples are numbered from 0. A (group, example) that no run has is
    padding (weight 0); one that only some runs have is an error, unless the others failed.

    Raises
    ------
    InputError
        Missing columns, cells of the wrong kind (line and column are named), a row twice, a missing row, a
        run with two splits or two failure flags, a (run, group) with two signs.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "guesses.csv"
    ...     _ = path.write_text("run,group,guess,sign\\n7,0,1,1\\n7,1,-1,-1\\n")
    ...     read_table(path)["guesses"]
    array([[ 1., -1.]])
    """
    layout, columns = _read_columns(path)
    readers: dict[str, Callable[[Columns], dict[str, np.ndarray]]] = {
        "scores": _scores,
        "log_ratios": partial(_per_group, name="log_ratio", plural="log_ratios"),
        "guesses": partial(_per_group, name="guess", plural="guesses"),
        "overlaps": _overlaps,
    }
    try:
        return readers[layout](columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _read_columns(path: str | Path) -> tuple[str, Columns]:
    rows = read_csv(path)
    _, header = next(rows)
    layout = nearest_layout(header, _LAYOUTS)
    check_names(f"{path}: columns", header, _LAYOUTS[layout], ("failed",))
    wanted = [(header.index(name), name) for name in (*_LAYOUTS[layout], "failed") if name in header]
    values: dict[str, list] = {name: [] for _, name in wanted}
    for line, cells in rows:
        for column, name in wanted:
            parse, expected = _CELLS[name]
            try:
                values[name].append(parse(cells[column]))
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"{path}, line {line}, column {name!r}: expected {expected}, got {cells[column]!r}"
                ) from error
    columns = {name: np.array(column) for name, column in values.items()}
    columns.setdefault("failed", np.zeros(len(columns["run"]), bool))
    return layout, columns


def _number(cell: str) -> float:
    return float(cell) if cell else np.nan


_FLAGS = {"0": False, "1": True, "false": False, "true": True}
_SPLITS = {name: name for name in ("calibration", "audit")}
_CELLS: dict[str, tuple[Callable[[str], Any], str]] = {
    **dict.fromkeys(("run", "group", "example"), (int, "an integer")),
    "sign": ({"1": 1, "+1": 1, "-1": -1}.__getitem__, "-1 or 1"),
    "split": (_SPLITS.__getitem__, "calibration or audit"),
    "failed": (lambda cell: _FLAGS[cell.lower()], "0 or 1"),
    **dict.fromkeys(("score", "log_ratio", "guess", "overlap"), (_number, "a number")),
}


def _scores(columns: Columns) -> dict[str, np.ndarray]:
    run_ids, run = np.unique(columns["run"], return_inverse=True)
    signs, failed = _signs_and_failed(columns, run_ids, run)
    split = _constant(columns["split"], "split", run, [f"run {i}" for i in run_ids])
    shape = (*signs.shape, _count("example", columns["example"]))
    place = (run, columns["group"], columns["example"])
    _check_once(columns, place, shape)
    present = np.zeros(shape, bool)
    present[place] = True
    weights = np.asarray(present.any(axis=0))
    gaps = weights & ~present & ~failed[:, None, None]
    if gaps.any():
        r, group, example = np.argwhere(gaps)[0]
        raise InputError(
            f"no row for run {run_ids[r]}, group {group}, example {example}, which other runs have"
        )
    scores = np.full(shape, np.nan)
    scores[place] = columns["score"]
    arrays: dict[str, np.ndarray] = {"weights": weights}
    for name, prefix in (("calibration", "calibration_"), ("audit", "")):
        rows = split == name
        if not rows.any():
            raise InputError(f"no rows with split {name!r}")
        parts = {"signs": signs, "scores": scores, "run_ids": run_ids, "failed": failed}
        arrays |= {f"{prefix}{part}": array[rows] for part, array in parts.items()}
    return arrays


def _per_group(columns: Columns, name: str, plural: str) -> dict[str, np.ndarray]:
    run_ids, run = np.unique(columns["run"], return_inverse=True)
    signs, failed = _signs_and_failed(columns, run_ids, run)
    place = (run, columns["group"])
    _check_once(columns, place, signs.shape)
    values = np.zeros(signs.shape)
    values[place] = _filled(columns, name)
    return {plural: values, "signs": signs, "run_ids": run_ids, "failed": failed}


def _overlaps(columns: Columns) -> dict[str, np.ndarray]:
    return {
        "overlaps": _filled(columns, "overlap"),
        "run_ids": columns["run"],
        "failed": columns["failed"],
    }


def _signs_and_failed(
    columns: Columns, run_ids: Int[np.ndarray, " runs"], run: Int[np.ndarray, " rows"]
) -> tuple[Int[np.ndarray, "runs groups"], Bool[np.ndarray, " runs"]]:
    """Sign of every (run, group) and failure flag of every run, each the same in all its rows."""
    num_groups = _count("group", columns["group"])
    key = run * num_groups + columns["group"]
    found = np.unique(key)
    if len(found) < len(run_ids) * num_groups:
        # Sorted keys run ahead of their positions at the first gap.
        first_gap = int(np.argmax(np.append(found, -1) != np.arange(len(found) + 1)))
        raise InputError(f"no row for run {run_ids[first_gap // num_groups]}, group {first_gap % num_groups}")
    places = [f"run {i}, group {group}" for i in run_ids for group in range(num_groups)]
    signs = _constant(columns["sign"], "sign", key, places).reshape(len(run_ids), num_groups)
    return signs, _constant(columns["failed"], "failed", run, [f"run {i}" for i in run_ids])


def _count(name: str, numbers: Int[np.ndarray, " rows"]) -> int:
    """How many there are, if they are numbered from 0 without a gap."""
    found = np.unique(numbers)
    wrong = found != np.arange(len(found))
    if wrong.any():
        gap = int(np.argmax(wrong))
        raise InputError(
            f"{name} must be numbered from 0 without gaps, got {found[gap]} where {gap} was expected"
        )
    return len(found)


def _constant(
    values: Shaped[np.ndarray, " rows"], name: str, key: Int[np.ndarray, " rows"], places: list[str]
) -> Shaped[np.ndarray, " places"]:
    """The value of each place (every one occurs in ``key``), which must be the same in all its rows."""
    table = values[np.unique(key, return_index=True)[1]]
    other = table[key] != values
    if other.any():
        row = int(np.argmax(other))
        raise InputError(f"{places[key[row]]} has two values of {name}: {table[key[row]]} and {values[row]}")
    return table


def _check_once(
    columns: Columns, place: tuple[Int[np.ndarray, " rows"], ...], shape: tuple[int, ...]
) -> None:
    _, first, times = np.unique(np.ravel_multi_index(place, shape), return_index=True, return_counts=True)
    if (times > 1).any():
        row = first[times > 1][0]
        names = ("run", "group", "example")[: len(shape)]
        raise InputError(
            f"{', '.join(f'{name} {columns[name][row]}' for name in names)} has more than one row"
        )


def _filled(columns: Columns, name: str) -> Float[np.ndarray, " rows"]:
    """Values with 0 for what a failed run does not have."""
    missing = np.isnan(columns[name])
    unexplained = missing & ~columns["failed"]
    if unexplained.any():
        run = columns["run"][np.argmax(unexplained)]
        raise InputError(
            f"{name} is missing in run {run}; a run that diverged or crashed must be flagged as failed"
        )
    return np.where(missing, 0.0, columns[name])
