"""``report.html``: the report as one file that needs no network and runs no script."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from jaxaudit.report.blocks import Banner, Block, Bullets, Code, Figure, Link, Section, Table, Text, Warn
from jaxaudit.report.content import TITLE, report_sections

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 66rem;
       margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem; border-bottom: 1px solid #d0d7de; }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, ul { margin: .6rem 0; }
li { margin: .35rem 0; }
.scroll { overflow-x: auto; margin: .9rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; border-bottom: 1px solid #d8dee4;
         overflow-wrap: break-word; min-width: 4rem; }
th { background: #f3f5f7; font-weight: 600; }
.banner { border: 2px solid #8c959f; border-radius: 4px; background: #f6f8fa; padding: .6rem .9rem; }
.banner.alarm { border-color: #b3001b; background: #ffe9ec; color: #7a0012; font-weight: 600; }
.banner strong { display: block; }
.warn { border-left: 4px solid #b35900; background: #fff6ea; padding: .5rem .9rem; }
pre { background: #f3f5f7; padding: .8rem; overflow-x: auto; font-size: .85rem; }
figure { margin: 1.2rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #4a525b; }
@media print { body { max-width: none; } h2, h3 { break-after: avoid; } tr, figure { break-inside: avoid; } }
"""


def render_html(report: "AuditReport", figures: Mapping[str, bytes]) -> str:
    """The report as one HTML page; the figures (PNG) are part of it."""
    return html_page(TITLE, report_sections(report, figures), figures)


def html_page(title: str, sections: Sequence[Section], figures: Mapping[str, bytes]) -> str:
    """Sections as one HTML page."""
    body = [f"<h1>{escape(title)}</h1>"]
    for section in sections:
        body.append(f"<h{section.level}>{escape(section.title)}</h{section.level}>")
        body += [_block(block, figures) for block in section.blocks]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _block(block: Block, figures: Mapping[str, bytes]) -> str:
    match block:
        case Text(text):
            return f"<p>{escape(text)}</p>"
        case Warn(text):
            return f'<p class="warn">{escape(text)}</p>'
        case Banner(heading, text, alarm):
            style = "banner alarm" if alarm else "banner"
            return f'<p class="{style}"><strong>{escape(heading)}</strong>{escape(text)}</p>'
        case Bullets(items):
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"
        case Figure(name, caption):
            source = f"data:image/png;base64,{b64encode(figures[name]).decode()}"
            image = f'<img src="{source}" alt="{escape(caption)}">'
            return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"
        case Link(text, target):
            return f'<p><a href="{escape(target)}.html">{escape(text)}</a></p>'
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Table(header, rows):
            head = _row("th", header)
            return (
                f'<div class="scroll"><table>{head}{"".join(_row("td", row) for row in rows)}</table></div>'
            )


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>\n"
