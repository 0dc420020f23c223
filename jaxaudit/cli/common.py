"""What several commands share: exit codes, output, progress of one long step, the end of an audit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxaudit.progress import Reporter, default_reporter

if TYPE_CHECKING:
    from jaxaudit.report import AuditReport
    from jaxaudit.report.comparison import Comparison

OK, FALSIFIED, MISMATCH = 0, 3, 4


def show(text: str, document: dict[str, Any], as_json: bool) -> None:
    """Print the result: text for people, or one JSON object.

    Examples
    --------
    >>> show("epsilon is 2", {"epsilon": 2}, as_json=False)
    epsilon is 2
    """
    print(json.dumps(document, indent=1, allow_nan=False) if as_json else text)


@contextmanager
def busy(label: str, quiet: bool) -> Iterator[None]:
    """Show on stderr that one long step is under way."""
    with default_reporter(quiet).task(label, 1) as advance:
        yield
        advance(1)


def check_out(out: Path | None, overwrite: bool) -> None:
    """Raise unless a report can be written there, if one is wanted. See `check_folder`."""
    if out is not None:
        from jaxaudit.report.folder import check_folder  # slow to import, and needed for reports only

        check_folder(out, overwrite)


def finish_audit(
    report: "AuditReport | Comparison",
    out: Path | None,
    reporter: Reporter,
    *,
    overwrite: bool,
    as_json: bool,
    notes: tuple[str, ...] = (),
) -> int:
    """Write the report folder, print the results, and return the exit code."""
    from jaxaudit.report.comparison import Comparison
    from jaxaudit.report.table import wrapped

    reports = report.reports if isinstance(report, Comparison) else {"": report}
    verdicts = [
        (f"{name}, {method.title}" if name else method.title, method.analysis.verdict)
        for name, one in reports.items()
        for method in one.methods
    ]
    sentences = [f"{title}: {verdict.text}" for title, verdict in verdicts if verdict is not None]
    sentences += [f"note: {note}" for note in notes]
    lines, document = [report.table(), *map(wrapped, sentences)], report.as_dict()
    if out is not None:
        with reporter.task("report", 1) as advance:
            report.save(out, overwrite)
            advance(1)
        document["folder"] = str(out)
        page = "comparison.html" if isinstance(report, Comparison) else "report.html"
        lines += ["", f"report: {out / page}", f"check it: jaxaudit verify {out}"]
    show("\n".join(lines), document, as_json)
    falsified = any(verdict is not None and verdict.falsified for _, verdict in verdicts)
    return FALSIFIED if falsified else OK
