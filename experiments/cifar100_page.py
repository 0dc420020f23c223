"""Pages of the CIFAR-100 experiments: a text table, Markdown, JSON and a figure from the same cells."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cifar100_cells import Cell
from cifar100_presets import Preset

from jaxaudit.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666", "#000000")
_DOTS_PER_INCH = 120
_HOW_TO_READ = """
*Theorem 4.2* and *direct* are lower bounds on epsilon at 95 % confidence from the same right guesses: the paper's
bound, and this package's (delta = 0). Both are about unlearning; neither has to be halved. The paper's values are
printed as they stand; they belong to its own scale (4,500 candidates, 45,000 images, a larger network), so compare
directions, not sizes. Numbers are means over the seeds, in brackets the smallest and the largest; every seed has a
split, a starting point, an order, sign vectors and noise of its own. **Each cell is one look**: its confidence is that
of this cell alone. Who reads several cells and keeps the largest must divide the significance by their number.
"""


class Check(NamedTuple):
    """Something that was expected, and whether the numbers show it."""

    expected: str
    shows: bool | None
    """``None``: the numbers cannot say."""
    found: str


class Section(NamedTuple):
    """One table of a page."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Page:
    """What a script makes of its cells."""

    name: str
    """Folder and file name, such as ``table3``."""
    title: str
    script: str
    sections: tuple[Section, ...]
    cells: tuple[Cell, ...]
    checks: tuple[Check, ...]
    draw: "Callable[[Sequence[Axes]], None]"
    num_panels: int = 1
    notes: tuple[str, ...] = ()


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown_table(["r", "bound"], [["2", "0.1"]]))
    | r | bound |
    | --- | --- |
    | 2 | 0.1 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text_table(page: Page) -> str:
    """The page's tables and checks for a terminal."""
    parts = [page.title]
    for section in (*page.sections, check_section(page.checks)):
        widths = [max(map(len, column)) for column in zip(section.header, *section.rows)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in (section.header, *section.rows)
        ]
        parts += ["", section.caption, lines[0], "-" * len(lines[0]), *lines[1:]]
    return "\n".join(parts)


def check_section(checks: Sequence[Check]) -> Section:
    words = {True: "yes", False: "NO", None: "cannot say"}
    rows = [[check.expected, words[check.shows], check.found] for check in checks]
    return Section("What was expected, and whether it shows", ("expected", "shows", "numbers"), rows)


def markdown(page: Page, command: str, preset: Preset, data: str) -> str:
    """The Markdown page."""
    parts = [f"# {page.title}", f"    {command}", f"![{page.title}]({preset.name}.png)"]
    for section in page.sections:
        parts += [f"## {section.caption}", markdown_table(section.header, section.rows)]
    parts += ["## How to read it", _HOW_TO_READ.strip(), *page.notes]
    checks = check_section(page.checks)
    parts += [f"## {checks.caption}", markdown_table(checks.header, checks.rows)]
    parts += ["## Data and settings", data, markdown_table(["setting", "value"], _settings(preset))]
    return "\n\n".join(parts) + "\n"


def _settings(preset: Preset) -> list[list[str]]:
    return [[name, f"`{value}`"] for name, value in vars(preset).items() if name != "name"]


def figure(page: Page) -> bytes:
    """The page's figure as PNG."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(6.5 * page.num_panels, 4.5), layout="constrained")
    panels = canvas.subplots(1, page.num_panels, squeeze=False)[0]
    canvas.suptitle(page.title)
    page.draw(panels)
    for axes in panels:
        axes.grid(color="#dddddd")
        axes.set_axisbelow(True)
    file = BytesIO()
    canvas.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()


def line(
    axes: "Axes",
    x: Sequence[float],
    cells: Sequence[Cell],
    label: str,
    color: str,
    style: str = "-",
    of: str = "direct",
) -> None:
    """Mean over the seeds with the range between them, of the direct bound or of ``theorem``."""
    spreads = [getattr(cell, of) for cell in cells]
    marker = "o" if style == "-" else "v"
    axes.plot(x, [one.mean for one in spreads], style, color=color, label=label, marker=marker, markersize=4)
    axes.fill_between(x, [one.low for one in spreads], [one.high for one in spreads], color=color, alpha=0.15)


def save(folder: Path, page: Page, command: str, preset: Preset, data: dict[str, Any]) -> list[Path]:
    """Write JSON, Markdown and figure into ``folder/name``; returns their paths."""
    target = folder / page.name
    target.mkdir(parents=True, exist_ok=True)
    document = {
        "title": page.title,
        "preset": {**asdict(preset)},
        "data": data,
        "cells": [cell.document() for cell in page.cells],
        "checks": [check._asdict() for check in page.checks],
        "provenance": provenance(),
    }
    contents = {
        f"{preset.name}.json": json.dumps(document, indent=1, allow_nan=False).encode() + b"\n",
        f"{preset.name}.md": markdown(page, command, preset, data["description"]).encode(),
        f"{preset.name}.png": figure(page),
    }
    for name, content in contents.items():
        (target / name).write_bytes(content)
    return [target / name for name in contents]
