"""Several audits side by side: how much each method leaks, how well its model still works, what it costs.

Methods that need different designs (many groups for heuristics, few for certified ones) are audited apart, each with a
report of its own; this module puts a page in front of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxaudit.errors import InputError
from jaxaudit.report.blocks import Block, Figure, Link, Section, Table, Text, Warn
from jaxaudit.report.document import PRIVACY_WARNING, read_json, write_json
from jaxaudit.report.figures import draw_comparison
from jaxaudit.report.folder import AUDITS, COMPARISON, DOCUMENT, HTML, file_digest, write_folder, write_report
from jaxaudit.report.html import html_page
from jaxaudit.report.markdown import markdown_page
from jaxaudit.report.table import accuracies, certified_words, confidence, number, short, verdict_word
from jaxaudit.report.verify import Check, Verification, verify

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport, MethodResult

TITLE = "Comparison of unlearning methods"
_PNG = f"{COMPARISON}.png"
_PAGES = (f"{COMPARISON}.md", f"{COMPARISON}.html", _PNG)


@dataclass(frozen=True)
class Comparison:
    """Reports by the name of their audit."""

    reports: Mapping[str, "AuditReport"]

    def __post_init__(self) -> None:
        if not self.reports:
            raise InputError("reports must name at least one audit, got none")

    @property
    def methods(self) -> tuple["MethodResult", ...]:
        """The results of all audits, one after the other."""
        return tuple(method for report in self.reports.values() for method in report.methods)

    def table(self) -> str:
        """The tables of all audits as plain text."""
        return "\n\n".join(
            f"{name}: {_setting(report)}\n{report.table()}" for name, report in self.reports.items()
        )

    def as_dict(self) -> dict[str, Any]:
        """The reports as plain JSON types, by name."""
        return {"kind": "jaxaudit comparison", AUDITS: {k: r.as_dict() for k, r in self.reports.items()}}

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the pages and one report folder per audit; raises as `jaxaudit.report.folder.save_report`."""
        return write_folder(Path(folder), overwrite, self._write)

    def _write(self, folder: Path) -> None:
        for name, report in self.reports.items():
            (folder / AUDITS / name).mkdir(parents=True)
            write_report(report, folder / AUDITS / name)
        figures = {_PNG: draw_comparison(self.reports)}
        (folder / _PNG).write_bytes(figures[_PNG])
        sections = comparison_sections(self.reports)
        (folder / f"{COMPARISON}.md").write_text(markdown_page(TITLE, sections), encoding="utf-8")
        (folder / f"{COMPARISON}.html").write_text(html_page(TITLE, sections, figures), encoding="utf-8")
        compared = [f"{AUDITS}/{name}/{DOCUMENT}" for name in self.reports]
        digests = {name: file_digest(folder / name) for name in [*compared, *_PAGES]}
        write_json(folder / f"{COMPARISON}.json", {"kind": "jaxaudit comparison", "sha256": digests})


def comparison_sections(reports: Mapping[str, "AuditReport"]) -> list[Section]:
    """The page: a figure, then one table per audit."""
    first: tuple[Block, ...] = (
        Text(
            "Bound: what the auditor could prove, at least, about how much the unlearned model still says about the "
            "forgotten records; 0 means that this attack found nothing. Bounds of different audits are not "
            "comparable, since their designs can show different amounts (ceiling). Cost: gradient evaluations of "
            "single examples for one unlearning, with that of retraining as the measure of what is worth it."
        ),
        Figure(_PNG, "Bound, test accuracy and cost of every method, one row of panels per audit."),
        Warn(PRIVACY_WARNING),
    )
    return [Section("In short", first), *(_audit(name, report) for name, report in reports.items())]


def _audit(name: str, report: "AuditReport") -> Section:
    header = (
        "method",
        f"bound, delta = {short(report.design.delta)}",
        "ceiling",
        "certified",
        "accuracy in %: retain/forget/test",
        "cost",
        "verdict",
    )
    table = Table(header, tuple(_row(method) for method in report.methods))
    link = Link("The whole report of this audit", f"{AUDITS}/{name}/{Path(HTML).stem}")
    notes = [Warn(f"{method.title}: {note}") for method in report.methods for note in method.notes]
    return Section(f"Audit: {name}", (Text(f"{_setting(report)}."), table, *notes, link))


def _setting(report: "AuditReport") -> str:
    design = report.design
    return (
        f"{report.spec.get('model', 'model')} on {report.data.get('name', 'unnamed data')}, "
        f"{design.num_groups} candidate groups, {design.num_calibration_runs} calibration and "
        f"{design.num_audit_runs} audited runs, {design.predictor} predictor, "
        f"{confidence(report)} confidence"
    )


def _row(method: "MethodResult") -> tuple[str, ...]:
    analysis = method.analysis
    return (
        method.title,
        number(analysis.epsilon),
        "-" if analysis.no_evidence else number(analysis.ceiling),
        certified_words(method),
        accuracies(method),
        "-" if method.cost is None else f"{method.cost:,.0f}",
        verdict_word(analysis.verdict),
    )


def verify_folder(folder: str | Path) -> Verification:
    """Check a report folder, or every report behind a comparison.

    Raises
    ------
    InputError
        As `verify`.
    """
    folder = Path(folder)
    if not (folder / f"{COMPARISON}.json").is_file():
        return verify(folder)
    digests = _digests(folder / f"{COMPARISON}.json")
    reports = [Path(name).parent for name in digests if Path(name).name == DOCUMENT]
    checks = [
        Check(f"{part.name}: {check.name}", check.ok, check.detail)
        for part in reports
        for check in verify(folder / part).checks
    ]
    missing = [f"{name} has no digest" for name in _PAGES if name not in digests]
    changed = [
        f"{name} is missing or was changed after the comparison was written"
        for name, digest in digests.items()
        if not (folder / name).is_file() or file_digest(folder / name) != digest
    ]
    good = f"{len(digests)} files have the digests that {COMPARISON}.json names"
    checks.append(Check(COMPARISON, not missing + changed, "; ".join(missing + changed) or good))
    return Verification(tuple(checks))


def _digests(path: Path) -> dict[str, str]:
    """Digests by file; at least one of them of a report."""
    found = read_json(path).get("sha256")
    well_formed = isinstance(found, dict) and all(isinstance(digest, str) for digest in found.values())
    if not well_formed or not any(Path(name).name == DOCUMENT for name in found or ()):
        raise InputError(f"{path} is damaged: it names no audit")
    return found or {}
