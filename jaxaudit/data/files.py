"""A user's own data set, from an npz or a CSV file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped

from jaxaudit.border import check_axes, check_is_file, check_names, read_csv, read_npz
from jaxaudit.data.base import AuditData, Examples
from jaxaudit.data.split import Records, split_records
from jaxaudit.errors import InputError


def load_file(
    path: str | Path,
    *,
    forget_ids: Sequence[Sequence[str]] | None = None,
    num_groups: int | None = None,
    group_size: int = 1,
    num_holdout: int | None = None,
    seed: int,
) -> AuditData:
    """Records of a file, split into candidate groups, held-out and retained records; see `split_records`.

    Features are taken as they are, in float32: scale or standardise them before you write the file. Labels
    may be integers or strings; they are mapped to ``0 .. num_classes - 1`` in sorted order, and the
    description keeps the mapping. A record without an id is named by its index, counted from 0.

    Parameters
    ----------
    path
        ``.npz`` with arrays ``x`` (records, features, ...), ``y`` (records,), and optionally ``ids``
        (records,), ``holdout_x`` and ``holdout_y``; or ``.csv`` with a header, a ``label`` column,
        optionally an ``id`` column, and numeric features in every other column.
    forget_ids, num_groups, group_size, num_holdout, seed
        See `split_records`.

    Raises
    ------
    InputError
        An unreadable or pickled file, missing arrays or columns, wrong shapes (the axis is named), a cell
        that is no finite number (line and column are named), NaN, repeated or unknown ids, sizes that do
        not fit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     _ = path.write_text("id,label,height\\na,cat,0.3\\nb,dog,0.5\\nc,cat,0.2\\nd,dog,0.6\\n")
    ...     data = load_file(path, forget_ids=[["a"], ["d"]], seed=0)
    >>> data.groups.x[..., 0].tolist(), data.groups.y.tolist()
    ([[0.30000001192092896], [0.6000000238418579]], [[0], [1]])
    """
    path = Path(path)
    check_is_file(path)
    readers = {".npz": _read_arrays, ".csv": _read_table}
    if path.suffix.lower() not in readers:
        raise InputError(f"data must be a .npz or .csv file, got {path}")
    records, labels, holdout = readers[path.suffix.lower()](path)
    return split_records(
        records,
        name=path.name,
        description=f"Records of {path.name}.{labels}",
        seed=seed,
        forget_ids=forget_ids,
        num_groups=num_groups,
        group_size=group_size,
        num_holdout=num_holdout,
        holdout=holdout,
    )


def _read_arrays(path: Path) -> tuple[Records, str, Examples | None]:
    arrays = read_npz(path)
    has_holdout = "holdout_x" in arrays or "holdout_y" in arrays
    holdout_names = ("holdout_x", "holdout_y")
    required = ("x", "y", *(holdout_names if has_holdout else ()))
    check_names(f"{path}: arrays", arrays, required, ("ids", *holdout_names))
    x, y = arrays["x"], arrays["y"]
    ids = _check_ids(path, arrays.get("ids", np.arange(len(x) if x.ndim else 0)))
    _check_x("x", x, ids)
    check_axes("y", y, {"records": len(x)})
    check_axes("ids", np.array(ids), {"records": len(x)})
    if not has_holdout:
        codes, num_classes, mapping = _encode("y", y)
        return Records(x, codes, ids, num_classes), mapping, None
    holdout_x, holdout_y = arrays["holdout_x"], arrays["holdout_y"]
    _check_x("holdout_x", holdout_x, range(len(holdout_x) if holdout_x.ndim else 0))
    check_axes("holdout_y", holdout_y, {"records": len(holdout_x)})
    if holdout_y.dtype.kind != y.dtype.kind:
        raise InputError(
            f"holdout_y must have labels of the same kind as y, got {holdout_y.dtype} and {y.dtype}"
        )
    codes, num_classes, mapping = _encode("y", np.concatenate([y, holdout_y]))
    holdout = Examples(holdout_x, codes[len(y) :], np.ones(len(holdout_x)))
    return Records(x, codes[: len(y)], ids, num_classes), mapping, holdout


def _read_table(path: Path) -> tuple[Records, str, None]:
    rows = read_csv(path)
    _, header = next(rows)
    check_names(f"{path}: columns", header, ("label",), ("id",))
    features = [column for column, name in enumerate(header) if name not in ("label", "id")]
    if not features:
        raise InputError(f"{path} has no feature columns beside 'label' and 'id'")
    x: list[np.ndarray] = []
    labels: list[str] = []
    ids: list[str] = []
    for line, cells in rows:
        label = cells[header.index("label")]
        if not label:
            raise InputError(f"{path}, line {line}, column 'label': the label is missing")
        labels.append(label)
        ids.append(cells[header.index("id")] if "id" in header else str(len(ids)))
        x.append(_numbers(path, line, header, cells, features))
    codes, num_classes, mapping = _encode("label", _integers_if_all_are(labels))
    return Records(np.stack(x), codes, _check_ids(path, np.array(ids)), num_classes), mapping, None


def _numbers(
    path: Path, line: int, header: list[str], cells: list[str], features: list[int]
) -> Float[np.ndarray, " features"]:
    with np.errstate(over="ignore"):  # too large for float32 becomes inf and is named below
        try:
            row = np.array([float(cells[column]) for column in features]).astype(np.float32)
        except ValueError:
            row = np.array([np.nan])
    if np.isfinite(row).all():
        return row
    bad = next(column for column in features if not _is_finite_float32(cells[column]))
    raise InputError(
        f"{path}, line {line}, column {header[bad]!r}: expected a finite number, got {cells[bad]!r}"
    )


def _is_finite_float32(cell: str) -> bool:
    with np.errstate(over="ignore"):
        try:
            return bool(np.isfinite(np.float64(cell).astype(np.float32)))
        except ValueError:
            return False


def _check_x(name: str, x: np.ndarray, ids: Sequence[object]) -> None:
    if x.ndim < 2:
        raise InputError(f"{name} must have axes (records, features, ...), got shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers, got dtype {x.dtype}")
    finite = np.isfinite(x)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0])
        at = ", ".join(map(str, place[1:]))
        raise InputError(f"{name} must be finite, got {x[place]} in record {ids[place[0]]!r}, feature {at}")


def _check_ids(path: Path, ids: np.ndarray) -> tuple[str, ...]:
    check_axes("ids", ids, {"records": None})
    if ids.dtype.kind not in "iuSU":
        raise InputError(f"{path}: ids must be integers or strings, got dtype {ids.dtype}")
    names = tuple(ids.astype(np.str_).tolist())
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise InputError(f"{path}: every record needs its own id, got {name!r}{' twice' if name else ''}")
        seen.add(name)
    return names


def _integers_if_all_are(labels: list[str]) -> Shaped[np.ndarray, " records"]:
    try:
        return np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return np.array(labels)


def _encode(
    name: str, labels: Shaped[np.ndarray, " records"]
) -> tuple[Int[np.ndarray, " records"], int, str]:
    """Labels as 0 .. K-1 in sorted order, K, and the mapping in words ('' where it changes nothing)."""
    if labels.dtype.kind not in "iuSU":
        raise InputError(f"{name} must be integers or strings, got dtype {labels.dtype}")
    if labels.dtype.kind == "S":
        labels = labels.astype(np.str_)
    classes, codes = np.unique(labels, return_inverse=True)
    if np.array_equal(classes, np.arange(len(classes))):
        return codes, len(classes), ""
    mapping = ", ".join(f"{label!r} is {code}" for code, label in enumerate(classes.tolist()))
    return codes, len(classes), f" Labels: {mapping}."
