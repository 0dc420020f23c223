"""The border: files are read, arrays are checked, files are written. Nothing is ever unpickled.

Every message names the file or argument and the place in it, because whoever reads the message made
that file.
"""

import csv
import difflib
import hashlib
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np

from jaxaudit.errors import InputError


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of an npz file, by name.

    Raises
    ------
    InputError
        The file is missing, is no npz file, is damaged, or holds a pickled array (named).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_npz(Path(folder) / "runs.npz", {"overlaps": np.array([3, 4])})
    ...     read_npz(Path(folder) / "runs.npz")
    {'overlaps': array([3, 4])}
    """
    check_is_file(path)
    # np.load takes anything that is neither zip nor npy for a pickle; say what the file is not, instead.
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not an npz file or is damaged; write it with numpy.savez (pickles are never read)"
        )
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: _read_array(path, archive, name) for name in archive.files}
    except InputError:
        raise
    except Exception as error:  # on a damaged file the readers of zip and npy raise a dozen different kinds
        raise InputError(f"{path} is damaged: {error}") from error


def _read_array(path: str | Path, archive: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    try:
        array = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise InputError(
            f"{path}: array {name!r} is pickled (dtype object) and is not read; store numbers or strings"
        ) from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: {name!r} is not an array; write the file with numpy.savez")
    return array


def read_csv(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The header and then every row of a CSV file, each with its line number; blank lines are skipped.

    Rows are handed out one at a time, so that a large file is never held as text.

    Raises
    ------
    InputError
        The file is missing, not UTF-8 text, empty, or has no rows; a column name is repeated; a row is
        ragged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "runs.csv").write_text("run,overlap\\n0, 3\\n")
    ...     list(read_csv(Path(folder) / "runs.csv"))
    [(1, ['run', 'overlap']), (2, ['0', '3'])]
    """
    check_is_file(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield from _rows(path, csv.reader(file, skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8: {error}") from error


def _rows(path: str | Path, reader) -> Iterator[tuple[int, list[str]]]:  # type: ignore[no-untyped-def]
    header: list[str] = []
    num_rows = 0
    for cells in reader:
        row = [cell.strip() for cell in cells]
        if not any(row):
            continue
        if not header:
            header = row
            repeated = [name for name in header if header.count(name) > 1]
            if repeated:
                raise InputError(f"{path}: column {repeated[0]!r} is in the header more than once")
        else:
            num_rows += 1
        if len(row) != len(header):
            raise InputError(f"{path}, line {reader.line_num}: expected {len(header)} cells, got {len(row)}")
        yield reader.line_num, row
    if not header:
        raise InputError(f"{path} is empty")
    if not num_rows:
        raise InputError(f"{path} has a header but no rows")


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray], *, overwrite: bool = False) -> None:
    """Write an npz file whole or not at all: readers never see half a file. See `read_npz`.

    Raises
    ------
    InputError
        The file exists and ``overwrite`` is false, or its folder does not exist.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} already exists; choose another name or use --overwrite (overwrite=True)")
    if not path.parent.is_dir():
        raise InputError(f"folder {path.parent} does not exist")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            # numpy types the keywords after the file as `allow_pickle`, whatever their names.
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def content_hash(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 in hex over names, dtypes, shapes and bytes, in order of name; the same on every machine.

    Examples
    --------
    >>> content_hash({"a": np.arange(3, dtype=">i4")}) == content_hash({"a": np.arange(3, dtype="<i4")})
    True
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
        digest.update(f"{name}|{array.dtype.str}|{arrays[name].shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_is_file(path: str | Path) -> None:
    """Raise if there is no such file.

    Examples
    --------
    >>> check_is_file("nowhere.npz")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: no such file: nowhere.npz
    """
    if not Path(path).is_file():
        raise InputError(f"no such file: {path}")


def check_names(
    where: str, found: Collection[str], required: Collection[str], optional: Collection[str] = ()
) -> None:
    """Raise if a required name is missing, or if a name found looks like a misspelt optional one.

    Examples
    --------
    >>> check_names("a.csv: columns", ["run", "overlpa"], required=["run", "overlap"])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: a.csv: columns lack 'overlap'; found 'run', 'overlpa'; is 'overlpa' meant \
to be 'overlap'?
    """
    missing = [name for name in required if name not in found]
    absent = [*missing, *(name for name in optional if name not in found)]
    unknown = {name.lower(): name for name in found if name not in required and name not in optional}
    hints = []
    for name in absent:
        # Any hint helps where a name is missing; where none is, only a near-certain one may stop the reader.
        close = difflib.get_close_matches(name, unknown, n=1, cutoff=0.6 if name in missing else 0.8)
        hints += [f"is {unknown[match]!r} meant to be {name!r}?" for match in close]
    if missing:
        listed = ", ".join(map(repr, found)) or "none"
        raise InputError(
            "; ".join([f"{where} lack {', '.join(map(repr, missing))}", f"found {listed}", *hints])
        )
    if hints:
        raise InputError(f"{where}: {' '.join(hints)}")


def nearest_layout(found: Collection[str], layouts: Mapping[str, Collection[str]]) -> str:
    """The layout of whose names the largest share is there, misspelt ones included; the first among equals.

    Examples
    --------
    >>> nearest_layout(["run", "overlpa"], {"guesses": ["run", "guess"], "overlaps": ["run", "overlap"]})
    'overlaps'
    """
    unknown = set(found).difference(*layouts.values())

    def share(layout: str) -> float:
        names = layouts[layout]
        there = [name in found or bool(difflib.get_close_matches(name, unknown, n=1)) for name in names]
        return sum(there) / len(names)

    return max(layouts, key=share)


def check_axes(name: str, array: np.ndarray, axes: Mapping[str, int | None]) -> None:
    """Raise unless an array has these axes, in order, with these lengths (``None``: any length).

    Examples
    --------
    >>> check_axes("signs", np.ones((10, 5)), {"runs": 10, "groups": 6})
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: axis 1 (groups) of signs must have length 6, got 5
    """
    if array.ndim != len(axes):
        raise InputError(f"{name} must have axes ({', '.join(axes)}), got shape {array.shape}")
    for axis, (label, length) in enumerate(axes.items()):
        if length is not None and array.shape[axis] != length:
            raise InputError(
                f"axis {axis} ({label}) of {name} must have length {length}, got {array.shape[axis]}"
            )


def as_integers(name: str, values: object) -> np.ndarray:
    """Values as int64, after checking that each is a whole number that fits.

    Examples
    --------
    >>> as_integers("overlaps", [3.0, 2.5])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: overlaps must be integers, got 2.5
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be integers, got dtype {array.dtype}")
    if array.dtype == bool:
        return array.astype(np.int64)
    whole = (np.floor(array) == array) & (array >= -(2**63)) & (array < 2**63)
    if not whole.all():
        raise InputError(f"{name} must be integers, got {array[~whole].flat[0]}")
    return array.astype(np.int64)


def as_flags(name: str, values: object) -> np.ndarray:
    """Values as booleans, after checking that each is 0 or 1.

    Examples
    --------
    >>> as_flags("failed", [0, 0.5])
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: failed must be 0 or 1, got 0.5
    """
    numbers = as_floats(name, values)
    wrong = numbers[~np.isin(numbers, (0, 1))]
    if wrong.size:
        raise InputError(f"{name} must be 0 or 1, got {wrong[0]:g}")
    return numbers.astype(bool)


def as_floats(name: str, values: object) -> np.ndarray:
    """Values as float64, after checking that they are numbers (NaN is let through).

    Examples
    --------
    >>> as_floats("scores", [1, 2])
    array([1., 2.])
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numbers, got dtype {array.dtype}")
    return array.astype(np.float64)
