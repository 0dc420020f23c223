"""The report folder: written as a whole or not at all."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxaudit.errors import InputError
from jaxaudit.report.document import report_document, write_json
from jaxaudit.report.evidence_file import write_evidence
from jaxaudit.report.figures import FIGURE_NAMES, draw_figures
from jaxaudit.report.html import render_html
from jaxaudit.report.markdown import render_markdown

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport

EVIDENCE, DOCUMENT, MARKDOWN, HTML = "evidence.npz", "report.json", "report.md", "report.html"
REPORT_FILES = frozenset({EVIDENCE, DOCUMENT, MARKDOWN, HTML, *FIGURE_NAMES})
# A comparison of several audits: pages of its own, and a report folder for each audit below ``audits``.
COMPARISON, AUDITS = "comparison", "audits"
COMPARISON_FILES = frozenset(f"{COMPARISON}.{suffix}" for suffix in ("json", "md", "html", "png"))


def save_report(report: "AuditReport", folder: Path, overwrite: bool = False) -> Path:
    """Write the report folder: evidence, JSON, Markdown, HTML and figures.

    Raises
    ------
    InputError
        If the folder is not empty and ``overwrite`` is false, or if it holds a file that is not part of a
        report.
    """
    return write_folder(folder, overwrite, lambda part: write_report(report, part))


def write_folder(folder: Path, overwrite: bool, write: Callable[[Path], None]) -> Path:
    """Let ``write`` fill a hidden folder, and move that to its place: a crash leaves no half report.

    Raises
    ------
    InputError
        As `check_folder`.
    """
    target = folder.resolve()
    check_folder(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as hidden:
        part = Path(hidden) / target.name
        part.mkdir()
        write(part)
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
    return folder


def check_folder(folder: Path, overwrite: bool = False) -> None:
    """Raise unless a report can be written there; call it before hours of work, `save_report` calls it again.

    Raises
    ------
    InputError
        As `save_report`, and if the folder cannot be created or written into.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as taken:
    ...     check_folder(Path(taken) / "new")
    ...     _ = (Path(taken) / "thesis.tex").write_text("")
    ...     check_folder(Path(taken), overwrite=True)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: report folder ... is not overwritten: thesis.tex is not part of a report
    """
    parent = next(path for path in folder.resolve().parents if path.exists())
    try:  # permissions, read-only disks and special folders all show only when something is written
        tempfile.TemporaryDirectory(dir=parent).cleanup()
    except OSError as error:
        raise InputError(f"report folder {folder} cannot be written: {error.strerror}") from error
    if folder.exists() and not folder.is_dir():
        raise InputError(f"report folder {folder} exists and is not a folder")
    present = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if present and not overwrite:
        raise InputError(
            f"report folder {folder} exists and is not empty; choose another or use --overwrite (overwrite=True)"
        )
    foreign = _foreign(folder) if present else []
    if foreign:
        raise InputError(f"report folder {folder} is not overwritten: {foreign[0]} is not part of a report")


def _foreign(folder: Path) -> list[str]:
    """What overwriting would destroy although it is not part of a report."""
    inside = {path.relative_to(folder): path.is_dir() for path in folder.rglob("*")}
    return sorted(str(path) for path, is_folder in inside.items() if not _is_part(path, is_folder))


def _is_part(path: Path, is_folder: bool) -> bool:
    *folders, name = path.parts
    if is_folder:
        return path.parts[0] == AUDITS and len(path.parts) <= 2
    known = REPORT_FILES | COMPARISON_FILES
    return name in known and (not folders or (len(folders) == 2 and folders[0] == AUDITS))


def write_report(report: "AuditReport", folder: Path) -> None:
    """Write all files of a report into an empty folder."""
    figures = draw_figures(report)
    for name, png in figures.items():
        (folder / name).write_bytes(png)
    write_evidence(folder / EVIDENCE, report)
    (folder / MARKDOWN).write_text(render_markdown(report, figures), encoding="utf-8")
    (folder / HTML).write_text(render_html(report, figures), encoding="utf-8")
    digests = {path.name: file_digest(path) for path in sorted(folder.iterdir())}
    write_json(folder / DOCUMENT, report_document(report) | {"sha256": digests})


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "empty").write_bytes(b"")
    ...     file_digest(Path(folder) / "empty")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(path.read_bytes()).hexdigest()
