"""A page beside the report: whose records the auditor recognises, and what they say.

The report names groups by their ids; here the caller says to whom each group belongs and how it begins, so that a
reader sees what is still there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxaudit.errors import InputError
from jaxaudit.report.blocks import Block, Section, Table, Text, Warn
from jaxaudit.report.html import html_page
from jaxaudit.report.markdown import markdown_page
from jaxaudit.report.table import number

if TYPE_CHECKING:
    from jaxaudit.leakage import RecordLeak
    from jaxaudit.report.results import AuditReport, MethodResult

_PRIVACY = (
    "This page quotes records that were to be forgotten, and says how well each one is remembered. Keep it as safe as "
    "the training data."
)
_MEANING = (
    "For every group, the auditor's log-odds of the true answer ('was it forgotten in this run?') are added up over "
    "the audited runs: large is sure and right, 0 is a guess, negative is misled. p is the probability of so much by "
    "chance (sign-flip test); a group counts as recognised where its q-value, p corrected for the number of groups, is "
    "at most {rate:g}. Nothing here enters a bound."
)


class GroupOrigin(NamedTuple):
    """Where a candidate group comes from."""

    owner: str
    """To whom it belongs, for instance a role of a play."""
    snippet: str
    """How it begins."""


class OwnerLeak(NamedTuple):
    """How well an owner's groups are recognised."""

    owner: str
    num_groups: int
    num_recognised: int
    mean_log_odds: float
    """Mean over the owner's groups, in nats, of log-odds that are added up over the audited runs."""


def leaks_by_owner(method: "MethodResult", origins: Sequence[GroupOrigin]) -> tuple[OwnerLeak, ...]:
    """Owners, those whose groups are recognised best first.

    Parameters
    ----------
    method
        An audited method.
    origins
        One per candidate group.
    """
    leakage = method.analysis.leakage
    recognised = {record.group for record in leakage.records[: leakage.num_recognised]}
    groups: dict[str, list[RecordLeak]] = {}
    for record in leakage.records:
        groups.setdefault(origins[record.group].owner, []).append(record)
    owners = [
        OwnerLeak(
            owner,
            len(records),
            sum(record.group in recognised for record in records),
            float(np.mean([record.log_odds for record in records])),
        )
        for owner, records in groups.items()
    ]
    return tuple(sorted(owners, key=lambda one: (-one.mean_log_odds, one.owner)))


def leak_sections(
    report: "AuditReport", origins: Sequence[GroupOrigin], *, num_groups: int = 10, num_owners: int = 10
) -> list[Section]:
    """The page's sections: for every method its owners, and the groups that are recognised best.

    Parameters
    ----------
    report
        An audit.
    origins
        One per candidate group, in their order.
    num_groups, num_owners
        How many of each are listed.

    Raises
    ------
    InputError
        If there is not one origin per group.
    """
    if len(origins) != report.design.num_groups:
        raise InputError(
            f"origins must have one entry per group, {report.design.num_groups}, got {len(origins)}"
        )
    rate = report.methods[0].analysis.leakage.false_discovery_rate
    opening = Section(
        "What this page shows",
        (Warn(_PRIVACY), Text(_MEANING.format(rate=rate)), _overview(report)),
    )
    return [
        opening,
        *(_section(method, report, origins, num_groups, num_owners) for method in report.methods),
    ]


def write_leaks(
    folder: Path, report: "AuditReport", origins: Sequence[GroupOrigin], name: str = "leaks"
) -> list[Path]:
    """Write the page as Markdown and as HTML into a folder, which must exist; see `leak_sections`."""
    title = f"What is remembered: {report.data.get('name', 'unnamed data')}"
    sections = leak_sections(report, origins)
    pages = {"md": markdown_page(title, sections), "html": html_page(title, sections, {})}
    paths = [folder / f"{name}.{suffix}" for suffix in pages]
    for path, page in zip(paths, pages.values()):
        path.write_text(page, encoding="utf-8")
    return paths


def _overview(report: "AuditReport") -> Table:
    rows = []
    for method in report.methods:
        leakage = method.analysis.leakage
        share = f"{leakage.num_recognised} of {report.design.num_groups}"
        rows.append((method.title, share, f"{leakage.roc_auc:.3f}"))
    return Table(("method", "groups recognised", "area under ROC curve"), tuple(rows))


def _section(
    method: "MethodResult",
    report: "AuditReport",
    origins: Sequence[GroupOrigin],
    num_groups: int,
    num_owners: int,
) -> Section:
    if method.analysis.no_evidence:
        return Section(method.title, (Text("The scores are the same in all runs: nothing is recognised."),))
    owners = leaks_by_owner(method, origins)
    rows = [
        (one.owner, str(one.num_groups), str(one.num_recognised), number(one.mean_log_odds))
        for one in owners[:num_owners]
    ]
    blocks: list[Block] = [Table(("owner", "groups", "recognised", "mean log-odds"), tuple(rows))]
    if len(owners) > num_owners:
        blocks.append(Text(f"{len(owners) - num_owners} more owners are recognised less well."))
    best = [_group_row(record, report, origins) for record in method.analysis.leakage.records[:num_groups]]
    header = ("group", "owner", "log-odds", "p", "q", "begins")
    return Section(method.title, (*blocks, Table(header, tuple(best))))


def _group_row(
    record: "RecordLeak", report: "AuditReport", origins: Sequence[GroupOrigin]
) -> tuple[str, ...]:
    ids = report.record_ids[record.group] if report.record_ids else (str(record.group),)
    name = ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
    origin = origins[record.group]
    values = number(record.log_odds), f"{record.p_value:.2g}", f"{record.q_value:.2g}"
    return (name, origin.owner, *values, origin.snippet)
