"""The page of the re-analysis of Tables 3 to 5: text table, Markdown, figure."""

import textwrap
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reanalysis import Row

TITLE = "Tables 3 to 5 without training: the paper's overlaps, the direct bound"
_DOTS_PER_INCH = 120
_ARROW = "printed → direct, epsilon at delta = 0, 95 % confidence, each cell one look"
_CONDITIONS = """
The numbers on the right of each arrow are **what the direct bound gives on the overlaps behind the printed
numbers**. They are lower bounds on the epsilon of these methods only if the runs behind them met the conditions
of the direct bound. Neither runs nor overlaps are published, so this cannot be checked; what the published code
does stands beside each condition.

| condition | published code |
| --- | --- |
| 1. One reference model for all sign vectors (Definition 3.3 of the paper). | met: the retain set is the same in \
all runs |
| 2. Starting point and order do not depend on the sign vector S. | **not met by default**: S and the order of the \
training samples come from one generator, so that the order differs between runs |
| 3. The auditor sees the unlearned model, starting point, order and calibration runs, nothing else about S; r, \
score and statistic are chosen before the audited runs are seen. | each cell is one look at the same runs |
| 4. Every run draws S and all its randomness afresh. | met: S is drawn afresh in every run, and \
training is deterministic given S and the order |
| 5. No audited run is left out because of how it went; a failed run counts as overlap 0. | **not ensured**: runs \
that fail can drop out, and runs are moved by hand between calibration and audit |

Condition 2 is needed by the paper's own Theorem 4.2 as well (its Lemma 4.1 compares runs of one order). Condition
5 is where the direct bound asks for more: at delta = 0, Theorem 4.2 survives a selection of runs, the direct bound
does not.

**Each cell is one look.** 95 % holds for a cell that was chosen before the runs were seen. The tables try several
r, two scores and two statistics on the same runs. The last table below shows what remains of the best r of each
curve if it was chosen afterwards: the level is divided by the number of cells of the curve.
"""
_WHY = """
Theorem 4.2 compares two unlearned models: from f_u(S) to the retrained model and on to f_u(S'). It therefore
bounds twice epsilon, is halved, and combines runs by a Chernoff bound. The direct bound compares f_u(S) with the
retrained model alone, for which the law of the overlap is known exactly, and combines runs by exact convolution
(`jaxaudit.bound.worst_case_law` has the proof). So it is about twice as large where both are large, and several
times as large where the evidence is thin.

**Which epsilon is printed?** Tables 3 to 5 print half the LDP epsilon of Theorem 4.2, the epsilon of a claim, as
shown here. The examples of Appendix F (4.00, 40.83, 67.87) are *not* halved and are not compared.

**How the overlaps were recovered.** Theorem 4.2 depends on the ten overlaps of a cell through their mean, or
through their median rounded up, and increases with it, so that means (in steps of 0.1) and medians can be searched
for the one that prints a number, at L = 10 and zeta = 0.05. A printed 0 only says that the overlap was no larger than
some value: the direct bound is then *at most* the number shown.
"""


def text(rows: "Sequence[Row]") -> str:
    """The tables for a terminal."""
    parts = [TITLE]
    for title, section in _sections(rows):
        header, body = _matrix(section)
        widths = [max(map(len, column)) for column in zip(header, *body)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)) for line in [header, *body]
        ]
        parts.append("\n".join([title, *(line.rstrip() for line in lines)]))
    notes = (
        f"{_ARROW}. What the direct bound gives on the overlaps behind the printed numbers: a bound on the method "
        "only if the paper's runs met the conditions of the direct bound (see the page), which the published code "
        "does not ensure."
    )
    return "\n\n".join([*parts, "\n".join(textwrap.wrap(notes, 110))])


def page(rows: "Sequence[Row]", preset: str, delta: float) -> str:
    """The Markdown page."""
    parts = [
        f"# {TITLE}",
        f"    python experiments/reanalysis.py --preset {preset}",
        _answer(rows, delta),
        "![printed and direct bounds](reanalysis.png)",
        "Left: every cell that is not 0, both axes logarithmic. Right: the bounds over the number of guesses r "
        "(logit score, mean; where 0 was printed, the most that the direct bound can be).",
        "## On which condition",
        _CONDITIONS.strip(),
    ]
    for title, section in _sections(rows):
        header, body = _matrix(section)
        parts += [f"## {title}", f"{_ARROW}.", _table(header, body)]
    return "\n\n".join([*parts, *_best_of_curves(rows), "## Why the numbers differ", _WHY.strip()]) + "\n"


def _sections(rows: "Sequence[Row]") -> "list[tuple[str, list[Row]]]":
    """Rows by the tables in which they are shown."""
    titles = {
        ("3", "logit", "mean"): "Table 3, logit score",
        ("3", "loss", "mean"): "Table 3, cross-entropy score",
        ("4", "logit", "mean"): "Table 4, mean (the logit cells of Table 3)",
        ("4", "logit", "median"): "Table 4, median",
        ("5", "logit", "mean"): "Table 5, by batch size B (ascent, uniform split)",
    }
    sections = []
    for key, title in titles.items():
        chosen = [row for row in rows if (row.cell.table, row.cell.score, row.cell.statistic) == key]
        if chosen:
            sections.append((title, chosen))
    return sections


def _matrix(rows: "Sequence[Row]") -> tuple[list[str], list[list[str]]]:
    """Header and body: curves down, numbers of guesses (in records) across."""
    columns = sorted({_records(row) for row in rows})
    curves: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows:
        curves.setdefault(row.cell.series, {})[_records(row)] = _cell(row)
    by_size = len({row.cell.num_groups for row in rows}) > 1
    header = ["r B" if by_size else "r", *map(str, columns)]
    body = [
        [_curve(series, by_size), *(cells.get(column, "") for column in columns)]
        for series, cells in curves.items()
    ]
    return header, body


def _records(row: "Row") -> int:
    return row.cell.num_guesses * (4500 // row.cell.num_groups)


def _curve(series: tuple[str, ...], by_size: bool) -> str:
    return f"B = {4500 // int(series[-1])}, m = {series[-1]}" if by_size else f"{series[1]}, {series[2]}"


def _cell(row: "Row") -> str:
    at_most = "" if row.cell.printed else "≤ "
    return f"{row.cell.printed:.2f} → {at_most}{row.direct:.2f}"


def _answer(rows: "Sequence[Row]", delta: float) -> str:
    found = [row for row in rows if row.cell.printed]
    distinct = {(row.cell.statistic, row.cell.num_groups, row.cell.num_guesses, row.overlap) for row in found}
    ratios = [row.direct / row.theorem for row in found]
    large = [row.direct / row.theorem for row in found if row.theorem >= 10]
    agree = sum(abs(row.theorem - row.cell.printed) <= row.cell.resolution / 2 for row in found)
    unique = sum(row.num_overlaps == 1 for row in found)
    loss = max(row.direct - row.direct_at_delta for row in found)
    silent = sum(row.theorem_at_delta == 0 for row in found)
    survive = sum(row.direct_all_looks > row.cell.printed for row in found)
    lines = [
        f"**{sum(ratio > 1 for ratio in ratios)} of the {len(found)} printed numbers that are not 0 grow**, by a "
        f"factor of {min(ratios):.2f} to {max(ratios):.2f} ({min(large):.2f} to {max(large):.2f} where the paper finds "
        f"10 or more). They come from {len(distinct)} different overlaps: the tables share cells.",
        f"**The direct bound holds for delta > 0 too**: at delta = {delta:g} it loses at most {loss:.2g}. The "
        f"printed numbers are for delta = 0; at this delta the paper's Lemma C.1 gives 0 in {silent} of the "
        f"{len(found)} cells.",
        f"With the level divided by the number of cells on its curve, the direct bound is still above the printed "
        f"number (one look) in {survive} of the {len(found)} cells.",
        f"Theorem 4.2 at the recovered overlaps rounds to the printed number in {agree} of the {len(found)} cells, and "
        f"in {unique} no other overlap does.",
        "**This says nothing about the methods unless the paper's runs met the conditions below**, which the "
        "published code does not ensure.",
    ]
    return "\n".join(f"* {line}" for line in lines)


def _best_of_curves(rows: "Sequence[Row]") -> list[str]:
    """Best r of each curve, chosen afterwards."""
    curves: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.cell.table != "4" or row.cell.statistic == "median":
            curves.setdefault(row.cell.series, []).append(row)
    body = []
    for curve in curves.values():
        printed, corrected = (
            max(curve, key=key) for key in (lambda row: row.cell.printed, lambda row: row.direct_all_looks)
        )
        cell = corrected.cell
        body.append(
            [
                cell.table,
                f"{cell.method}, {cell.split}",
                f"{cell.score}, {cell.statistic}",
                str(cell.num_groups),
                str(corrected.num_looks),
                f"{printed.cell.printed:.2f}",
                f"{max(row.direct for row in curve):.2f}",
                f"{corrected.direct_all_looks:.2f}",
                str(cell.num_guesses),
            ]
        )
    header = [
        "table",
        "method, split",
        "score, statistic",
        "m",
        "looks",
        "printed",
        "direct",
        "all looks",
        "r",
    ]
    return [
        "## The best r of every curve",
        "*printed* and *direct*: the largest of the curve, as if its r had been chosen beforehand. *all looks*: the "
        "largest direct bound with 5 % divided by the number of looks, at the r shown, which may be chosen afterwards. "
        "(Only over the r of one curve: who also chooses among scores or methods divides further.)",
        _table(header, body),
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(rows: "Sequence[Row]") -> bytes:
    """Printed against direct, and both over r, as PNG."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = canvas.subplots(1, 2)
    _scatter(left, [row for row in rows if row.cell.printed])
    _over_guesses(right, [row for row in rows if row.cell.score == "logit" and row.cell.statistic == "mean"])
    file = BytesIO()
    canvas.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()


def _scatter(axes, rows: "Sequence[Row]") -> None:  # type: ignore[no-untyped-def]
    styles = {"3": ("o", "#0072B2"), "4": ("^", "#D55E00"), "5": ("s", "#009E73")}
    for table, (marker, color) in styles.items():
        points = [(row.cell.printed, row.direct) for row in rows if row.cell.table == table]
        if points:
            axes.scatter(*zip(*points), marker=marker, color=color, s=18, label=f"Table {table}", zorder=3)
    ends = [min(row.cell.printed for row in rows), max(row.cell.printed for row in rows)]
    axes.plot(ends, ends, color="#666666", linestyle="--", label="equal")
    axes.plot(ends, [2 * end for end in ends], color="#666666", linestyle=":", label="twice")
    axes.set(xscale="log", yscale="log", xlabel="printed (Theorem 4.2)", ylabel="direct", title="every cell")
    axes.grid(color="#dddddd")
    axes.legend(frameon=False, fontsize=7)


def _over_guesses(axes, rows: "Sequence[Row]") -> None:  # type: ignore[no-untyped-def]
    curves: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.cell.table == "3":
            curves.setdefault((row.cell.method, row.cell.split), []).append(row)
    colors = dict(
        zip(("ascent", "IDA, q = 1", "IDA, q = 2", "IDA, q = 4"), ("k", "#0072B2", "#D55E00", "#009E73"))
    )
    for (method, split), curve in curves.items():
        guesses = [row.cell.num_guesses for row in curve]
        style = {"color": colors[method], "marker": "o" if split == "uniform" else "x", "markersize": 4}
        axes.plot(guesses, [row.direct for row in curve], label=f"{method}, {split}", **style)
        axes.plot(guesses, [row.cell.printed for row in curve], linestyle="--", linewidth=0.8, **style)
    axes.set(xlabel="number of guesses r", ylabel="epsilon", title="direct (thick), printed (dashed)")
    axes.grid(color="#dddddd")
    if curves:
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
