"""Files of questions and answers: the published PISTOL format, TOFU's, and refusals.

A ``.json`` file is a list of objects, a ``.jsonl`` file one object per line; keys are ``question``,
``answer`` and, in PISTOL, ``edge``.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jaxaudit.border import check_is_file
from jaxaudit.data.pistol.dataset import Record
from jaxaudit.errors import InputError

SUFFIXES = (".json", ".jsonl")


def read_records(path: str | Path) -> tuple[Record, ...]:
    """All records of a PISTOL file.

    Raises
    ------
    InputError
        No such file, no JSON, or a record (counted from 1) without one of the three texts.

    Examples
    --------
    >>> import tempfile
    >>> records = [Record("Where did the pump go?", "Ohio.", "A_B")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_records(Path(folder) / "data.jsonl", records)
    ...     read_records(Path(folder) / "data.jsonl") == tuple(records)
    True
    """
    return tuple(Record(*row) for row in read_texts(path, ("question", "answer", "edge")))


def read_texts(path: str | Path, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """The texts under ``keys`` in each object of a ``.json`` or ``.jsonl`` file; other keys are ignored."""
    path = Path(path)
    rows = _read_objects(path)
    if not rows:
        raise InputError(f"{path} holds no records")
    return [_texts(path, number, row, keys) for number, row in enumerate(rows, start=1)]


def write_records(path: str | Path, records: Iterable[Record], *, overwrite: bool = False) -> None:
    """Write records whole or not at all; ``.json`` is laid out as the published files are, byte for byte.

    Raises
    ------
    InputError
        Another suffix, a file that exists while ``overwrite`` is false, or a folder that does not.
    """
    write_rows(path, [asdict(record) for record in records], overwrite=overwrite)


def write_rows(path: str | Path, rows: Sequence[dict[str, Any]], *, overwrite: bool = False) -> None:
    """Write objects of any keys; see `write_records`."""
    check_out_file(path, overwrite)
    if Path(path).suffix == ".json":
        _write(path, json.dumps(rows, indent=4, ensure_ascii=False))
    else:
        _write(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def write_lines(path: str | Path, lines: Iterable[str], *, overwrite: bool = False) -> None:
    """Write one text per line, such as refusals. Errors are those of `write_records`, for any suffix."""
    check_out_file(path, overwrite, suffixes=None)
    _write(path, "".join(f"{line}\n" for line in lines))


def check_out_file(
    path: str | Path, overwrite: bool = False, suffixes: Sequence[str] | None = SUFFIXES
) -> None:
    """Raise unless a file can be written there.

    Examples
    --------
    >>> check_out_file("data.txt")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: out must be a .json or .jsonl file, got data.txt
    """
    path = Path(path)
    if suffixes is not None and path.suffix not in suffixes:
        raise InputError(f"out must be a {' or '.join(suffixes)} file, got {path}")
    if path.is_dir():
        raise InputError(f"{path} is a folder")
    if path.exists() and not overwrite:
        raise InputError(f"{path} already exists; choose another name or use --overwrite (overwrite=True)")
    if not path.parent.is_dir():
        raise InputError(f"folder {path.parent} does not exist")


def _write(path: str | Path, text: str) -> None:
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_objects(path: Path) -> list[Any]:
    check_is_file(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"data must be a {' or '.join(SUFFIXES)} file, got {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}") from error
    # TOFU's own files are named .json but hold one object per line.
    if text.lstrip().startswith("["):
        return list(_loads(path, text, ""))
    lines = enumerate(text.split("\n"), start=1)
    return [_loads(path, line, f", line {number}") for number, line in lines if line.strip()]


def _loads(path: Path, text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}{place} is not JSON: {error}") from error


def _texts(path: Path, number: int, row: Any, keys: Sequence[str]) -> tuple[str, ...]:
    where = f"{path}: record {number}"
    if not isinstance(row, dict):
        raise InputError(f"{where} must be an object with {', '.join(keys)}, got {row!r}")
    for key in keys:
        if key not in row:
            raise InputError(f"{where} lacks {key!r}; it has {', '.join(map(repr, row)) or 'nothing'}")
        if not isinstance(row[key], str) or not row[key].strip():
            raise InputError(f"{where}: {key} must be a text that is not empty, got {row[key]!r}")
    return tuple(row[key] for key in keys)
