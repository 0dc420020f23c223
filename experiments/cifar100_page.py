"""Pages of the CIFAR-100 experiments: a text table, Markdown, JSON and a figure from the same cells."""

import json
import re
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
directions, not sizes. Numbers are means over the seeds, in brackets the smallest and the largest. The number of one
seed is a bound at 95 %; their mean is a summary of them, not a bound. Every seed has a split, a starting point, an
order, sign vectors and noise of its own; the subset of images and classes is the same for all. **Each cell is one
look**: its confidence is that of this cell alone. Who reads several cells and keeps the largest must divide the
significance by their number.
"""
_TUNED_ON = 0
"""Seed on which the settings of the ``cpu`` preset were tried out."""


class Check(NamedTuple):
    """Something that was expected, and whether the numbers show it."""

    expected: str
    shows: bool | None
    """``None``: the numbers cannot say."""
    found: str
    reason: str = ""
    """Why it may not show; printed only where it does not."""


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
    for section in page.sections:
        widths = [max(map(len, column)) for column in zip(section.header, *section.rows)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in (section.header, *section.rows)
        ]
        parts += ["", section.caption, lines[0], "-" * len(lines[0]), *lines[1:]]
    checks = check_section(page.checks)
    parts += ["", checks.caption]
    for expected, shows, found, reason in checks.rows:
        parts.append(f"{shows}: {expected}: {found}{f' ({reason})' * bool(reason)}")
    return "\n".join(parts)


def check_section(checks: Sequence[Check]) -> Section:
    """Every expectation, whether it shows, and a reason where it does not."""
    words = {True: "yes", False: "NO", None: "cannot say"}
    rows = [
        [check.expected, words[check.shows], check.found, "" if check.shows else check.reason]
        for check in checks
    ]
    header = ("expected", "shows", "numbers", "why it may not show")
    return Section("What was expected, and whether it shows", header, rows)


def markdown(page: Page, origin: "Origin", preset: Preset) -> str:
    """The Markdown page."""
    parts = [f"# {page.title}", f"    {origin.command}", f"![{page.title}]({origin.stem}.png)"]
    for section in page.sections:
        parts += [f"## {section.caption}", markdown_table(section.header, section.rows)]
    parts += ["## How to read it", _HOW_TO_READ.strip(), *page.notes]
    checks = check_section(page.checks)
    parts += [f"## {checks.caption}", markdown_table(checks.header, checks.rows)]
    notes = cell_notes(page.cells)
    if notes:
        parts += ["## What the audits noted", "\n".join(f"* {note}" for note in notes)]
    parts += [
        "## Data and settings",
        f"{origin.data['description']} {_cost(origin)} {_tuned(preset)}".strip(),
    ]
    parts += [markdown_table(["setting", "value"], _settings(preset))]
    return "\n\n".join(parts) + "\n"


class Origin(NamedTuple):
    """Where a page comes from."""

    command: str
    stem: str
    """Name of its files: the preset, and what differs from it."""
    data: dict[str, Any]
    """Name and description of the images."""
    seconds: dict[str, float | None]
    """Wall time of each audit that was read, by name; ``None``: not known."""


def cell_notes(cells: Sequence[Cell]) -> list[str]:
    """Notes of the audits, each once, with the cells that it is about; notes that differ in a number are one.

    Examples
    --------
    >>> from cifar100_cells import Spread
    >>> nothing = Spread(())
    >>> cells = [Cell({"t": t}, None, nothing, nothing, 1.0, (nothing,) * 3, (f"{t} ties",)) for t in (1, 2)]
    >>> cell_notes(cells)
    ['... ties (2 of 2 cells: 1; 2)']
    """
    about: dict[str, list[str]] = {}
    for cell in cells:
        for note in dict.fromkeys(_NUMBER.sub("...", note) for note in cell.notes):
            about.setdefault(note, []).append(_labelled(cell))
    return [
        f"{note} ({len(found)} of {len(cells)} cells: {'; '.join(found[:_NAMED])}{', ...' * (len(found) > _NAMED)})"
        for note, found in about.items()
    ]


_NUMBER = re.compile(r"\b\d[\d,.]*(e[+-]\d+)?\b")
_NAMED = 6


def _labelled(cell: Cell) -> str:
    named = [value for value in cell.labels.values() if isinstance(value, str | int | float)]
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in named)


def _cost(origin: Origin) -> str:
    known = [seconds for seconds in origin.seconds.values() if seconds is not None]
    unknown = len(origin.seconds) - len(known)
    untimed = f" (the time of {unknown} more is not known)" if unknown else ""
    return (
        f"{len(known)} audits that this page reads took {sum(known) / 60:.1f} minutes of wall time{untimed}."
    )


def _tuned(preset: Preset) -> str:
    if preset.name != "cpu":
        return ""
    shown = "among those shown" if _TUNED_ON in preset.seeds else "not shown"
    return f"Settings were tried out on seed {_TUNED_ON}, which is {shown}."


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


def save(folder: Path, page: Page, origin: Origin, preset: Preset) -> list[Path]:
    """Write JSON, Markdown and figure into ``folder/name``; returns their paths."""
    target = folder / page.name
    target.mkdir(parents=True, exist_ok=True)
    document = {
        "title": page.title,
        "preset": {**asdict(preset)},
        "command": origin.command,
        "data": origin.data,
        "wall_seconds": origin.seconds,
        "cells": [cell.document() for cell in page.cells],
        "checks": [check._asdict() for check in page.checks],
        "provenance": provenance(),
    }
    contents = {
        f"{origin.stem}.json": json.dumps(document, indent=1, allow_nan=False).encode() + b"\n",
        f"{origin.stem}.md": markdown(page, origin, preset).encode(),
        f"{origin.stem}.png": figure(page),
    }
    for name, content in contents.items():
        (target / name).write_bytes(content)
    return [target / name for name in contents]
