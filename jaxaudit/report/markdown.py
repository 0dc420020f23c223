"""``report.md``: the report as GitHub-flavoured Markdown."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from jaxaudit.report.blocks import Banner, Block, Bullets, Code, Figure, Link, Section, Table, Text, Warn
from jaxaudit.report.content import TITLE, report_sections

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport


def render_markdown(report: "AuditReport", figures: Collection[str]) -> str:
    """The report as Markdown; the figures are linked as files of the same folder."""
    return markdown_page(TITLE, report_sections(report, figures))


def markdown_page(title: str, sections: Sequence[Section]) -> str:
    """Sections as one Markdown page."""
    parts = [f"# {title}"]
    for section in sections:
        parts.append(f"{'#' * section.level} {escape(section.title)}")
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Plain text such that no character of it is read as markup.

    Examples
    --------
    >>> print(escape("num_guesses: <b> *a* | _b_"))
    num_guesses: &lt;b> \*a\* \| \_b\_
    """
    text = re.sub(r"\s*\n\s*", " ", text.replace("&", "&amp;").replace("<", "&lt;"))
    # Underscores inside a word are no markup; escaping them would make names hard to read.
    return re.sub(r"([\\`*|\[\]~#])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])", r"\\\1\2\3", text)


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return escape(text)
        case Warn(text):
            return f"> **Note.** {escape(text)}"
        case Banner(heading, text, alarm):
            mark = "**" if alarm else ""
            return f"> **{escape(heading)}**\n>\n> {mark}{escape(text)}{mark}"
        case Bullets(items):
            return "\n".join(f"* {escape(item)}" for item in items)
        case Figure(name, caption):
            return f"![{name}]({name})\n\n{escape(caption)}"
        case Link(text, target):
            return f"[{escape(text)}]({target}.md)"
        case Code(text):
            return "\n".join(f"    {line}" for line in text.splitlines())
        case Table(header, rows):
            return "\n".join([_row(header), _row(["---"] * len(header)), *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell if cell == '---' else escape(cell) for cell in cells)} |"
