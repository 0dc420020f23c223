"""Tables 3 and 4: two ways to look at the same runs, over r, for ascent and descent-ascent under both splits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import cifar100_paper
from cifar100_cells import Cell, looks, measure
from cifar100_jobs import SPLITS, JobKey, Lab, heuristic_key
from cifar100_page import COLORS, Section, line
from cifar100_presets import PAPER, Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_RECORDS = (200, 1000, 2000, 3000, 4000)
"""The paper's r in Tables 3 and 4, of 4,500."""
NO_PEAK = "guesses far from the ends are still right often enough, or the bound is 0 at every r"
"""Why there may be no inverted U."""
CellsByLook = dict[tuple[str, str, int, str], Cell]
"""Cells by method, split, r and variant."""


def keys(preset: Preset) -> list[JobKey]:
    """The audits of Table 1b."""
    return [heuristic_key(preset, split, seed) for seed in preset.seeds for split in SPLITS]


def methods(preset: Preset) -> list[str]:
    """Names of the methods of both tables."""
    return ["ascent", *preset.interleaved_names]


def compare(
    lab: Lab, table: Literal["3", "4"], option: Literal["score", "statistic"], variants: Sequence[str]
) -> CellsByLook:
    """Every cell of the table: the same runs, another r or another variant."""
    preset = lab.preset
    printed = cifar100_paper.looks(table)
    cells: CellsByLook = {}
    for split in SPLITS:
        reports = [lab.audit(heuristic_key(preset, split, seed)) for seed in preset.seeds]
        for method in methods(preset):
            results = [looks(report, method)[-1] for report in reports]
            for records in PAPER_RECORDS:
                r = preset.guesses(records, preset.group_sizes[0])
                for variant in variants if r else ():
                    labels = {"method": method, "split": split, "r": r, "paper_r": records, option: variant}
                    choice: dict[str, Any] = {"score": "logit", "statistic": "mean", option: variant}
                    look = cifar100_paper.Look(
                        method, split, num_groups=PAPER.num_candidates, num_guesses=records, **choice
                    )
                    cells[method, split, records, variant] = measure(
                        results, labels, printed.get(look), num_guesses=r, **choice
                    )
    return cells


def section(preset: Preset, cells: CellsByLook, variants: tuple[str, str]) -> Section:
    """Both variants side by side: the paper's, Theorem 4.2, direct."""
    rows = []
    for (method, split, records, variant), first in cells.items():
        if variant != variants[0]:
            continue
        pair = (first, cells[method, split, records, variants[1]])
        rows.append(
            [
                method,
                split,
                f"{first.labels['r']} ({records})",
                *(cell.printed_text for cell in pair),
                *(cell.theorem.text(1) for cell in pair),
                *(cell.direct.text(1) for cell in pair),
            ]
        )
    sources = ("paper", "Theorem 4.2", "direct")
    header = (
        "method",
        "split",
        "r (paper's r)",
        *(f"{source}, {name}" for source in sources for name in variants),
    )
    m = preset.num_groups(preset.group_sizes[0])
    return Section(f"Lower bounds on epsilon, m = {m} (paper: 4,500)", header, rows)


def series(cells: CellsByLook, variant: str) -> dict[str, list[Cell]]:
    """Cells of a variant in the order of r, by method and split."""
    lines: dict[str, list[Cell]] = {}
    for (method, split, _, own), cell in cells.items():
        if own == variant:
            lines.setdefault(f"{method}, {split}", []).append(cell)
    return lines


def pairs(cells: CellsByLook, variants: tuple[str, str]) -> dict[str, tuple[float, float]]:
    """Mean direct bounds of both variants, by cell."""
    first, second = (series(cells, variant) for variant in variants)
    return {
        f"{name}, r = {one.labels['r']}": (one.direct.mean, other.direct.mean)
        for name in first
        for one, other in zip(first[name], second[name])
    }


def draw(panels: "Sequence[Axes]", cells: CellsByLook, variants: tuple[str, str]) -> None:
    """One panel per split, one colour per method, the second variant dashed."""
    lines: Mapping[str, Mapping[str, Sequence[Cell]]] = {name: series(cells, name) for name in variants}
    for axes, split in zip(panels, SPLITS):
        for variant, style in zip(variants, ("-", "--")):
            own = [one for one in lines[variant].values() if one[0].labels["split"] == split]
            for color, one in zip(COLORS, own):
                label = f"{one[0].labels['method']}, {variant}"
                line(axes, [cell.labels["r"] for cell in one], one, label, color, style)
        axes.set(xlabel="r, guesses per run", ylabel="direct bound on epsilon", title=split)
        axes.legend(frameon=False, fontsize=7)
