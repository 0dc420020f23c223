"""Table 5 of the paper: records per candidate group (B), for ascent on the forget set, uniform split.

    python experiments/table5_batch_size.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it; for B = 1 it reads the runs of Table 1b. Paper: falls as B grows (66.6,
64.2, 13.3, 1.3 at the largest r B); an inverted U in r where B is small.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cifar100_paper
from cifar100 import Script, main
from cifar100_cells import Cell, looks, measure
from cifar100_checks import shape_check
from cifar100_compare import NO_PEAK
from cifar100_jobs import JobKey, Lab, heuristic_key
from cifar100_page import COLORS, Check, Page, Section, line
from cifar100_presets import PAPER, Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_RECORDS = (100, 200, 400, 1000, 2000, 3000, 3500, 4000)
"""The paper's r B, of 4,500."""


def keys(preset: Preset) -> list[JobKey]:
    """The uniform audits of Table 1b, and one of ascent per larger group size."""
    return [_key(preset, size, seed) for size in preset.group_sizes for seed in preset.size_seeds(size)]


def _key(preset: Preset, group_size: int, seed: int) -> JobKey:
    key = heuristic_key(preset, "uniform", seed)
    if group_size == key.group_size:
        return key
    return key._replace(kind="group size", group_size=group_size)


def build(lab: Lab) -> Page:
    """Audit, and fill the table."""
    preset = lab.preset
    columns = {
        size: _column(lab, size, paper_size)
        for size, paper_size in zip(preset.group_sizes, PAPER.group_sizes)
    }
    cells = [cell for column in columns.values() for cell in column.values()]
    return Page(
        name="table5",
        title="Table 5: records per candidate group, ascent on the forget set",
        script="table5_batch_size.py",
        sections=tuple(
            Section(caption, *_rows(preset, columns, source))
            for caption, source in (
                ("Direct bound", "direct"),
                ("Theorem 4.2", "theorem"),
                ("The paper's values", "printed"),
            )
        ),
        cells=tuple(cells),
        checks=_checks(preset, columns),
        draw=lambda panels: _draw(panels, preset, columns),
        notes=(
            "N/A: r would not be an even number of groups. Rows are the same share of the candidate records as the "
            "paper's; its group sizes are 1, 10, 100 and 500 of 4,500. Seeds: "
            + "; ".join(f"{len(preset.size_seeds(size))} at B = {size}" for size in columns)
            + ".",
        ),
    )


def _column(lab: Lab, group_size: int, paper_size: int) -> dict[int, Cell]:
    """Cells of one B, by the paper's number of records."""
    preset = lab.preset
    printed = cifar100_paper.looks("5")
    paper_m = cifar100_paper.num_groups(paper_size)
    keys = [_key(preset, group_size, seed) for seed in preset.size_seeds(group_size)]
    results = [looks(lab.audit(key), "ascent")[-1] for key in keys]
    column = {}
    for records in PAPER_RECORDS:
        r = preset.guesses(records, group_size)
        if r is not None:
            labels = {"B": group_size, "m": preset.num_groups(group_size), "r": r, "paper_r_B": records}
            look = cifar100_paper.Look("ascent", "uniform", "logit", "mean", paper_m, records // paper_size)
            column[records] = measure(results, labels, printed.get(look), num_guesses=r)
    return column


def _rows(
    preset: Preset, columns: dict[int, dict[int, Cell]], source: str
) -> tuple[list[str], list[list[str]]]:
    header = ["r B (paper's)", *(f"B = {size} (m = {preset.num_groups(size)})" for size in columns)]
    if source == "printed":
        header = [
            "r B",
            *(
                f"B = {size} (m = {cifar100_paper.num_groups(size)})"
                for size, _ in zip(PAPER.group_sizes, columns)
            ),
        ]
    rows = []
    for records in PAPER_RECORDS:
        ours = records * preset.num_candidates / PAPER.num_candidates
        first = f"{records}" if source == "printed" else f"{ours:g} ({records})"
        rows.append([first, *(_text(column.get(records), source) for column in columns.values())])
    return header, rows


def _text(cell: Cell | None, source: str) -> str:
    if cell is None:
        return "N/A"
    if source == "printed":
        return cell.printed_text or "N/A"
    return getattr(cell, source).text()


def _checks(preset: Preset, columns: dict[int, dict[int, Cell]]) -> tuple[Check, ...]:
    smallest, second = list(columns)[:2]
    shared = [records for records in PAPER_RECORDS if all(records in column for column in columns.values())]
    by_size = {f"r B = {_ours(preset, n)}": [column[n] for column in columns.values()] for n in shared}
    by_r = {f"B = {size}": list(columns[size].values()) for size in (smallest, second)}
    return (
        shape_check(
            "the bound falls as B grows, at equal r B",
            by_size,
            "falls",
            "a small step up between neighbours of nearly equal size is within the spread over the seeds",
        ),
        shape_check("inverted U in r where B is small", by_r, "peaks", NO_PEAK),
    )


def _ours(preset: Preset, records: int) -> str:
    return f"{records * preset.num_candidates / PAPER.num_candidates:g}"


def _draw(panels: "Sequence[Axes]", preset: Preset, columns: dict[int, dict[int, Cell]]) -> None:
    axes = panels[0]
    for (size, column), color in zip(columns.items(), COLORS):
        records = [cell.labels["r"] * size for cell in column.values()]
        line(axes, records, list(column.values()), f"B = {size}, m = {preset.num_groups(size)}", color)
    axes.set(xlabel="r B, records guessed", ylabel="direct bound on epsilon", yscale="symlog")
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
