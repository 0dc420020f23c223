"""The figures of a report, as PNG. Matplotlib is imported here only, and only when a figure is drawn."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxaudit.bound import null_law
from jaxaudit.report.table import number

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport, MethodResult

BOUNDS, OVERLAPS, GUESSES = "bounds.png", "overlaps.png", "guesses.png"
FIGURE_NAMES = (BOUNDS, OVERLAPS, GUESSES)
CAPTIONS = {
    BOUNDS: "Lower bounds on epsilon for each method, with the largest value that the design could have "
    "shown (ceiling) and the claim, if one was given. The further right a bound, the more the auditor "
    "recognised.",
    OVERLAPS: "Right guesses in each audited run (bars) against what pure guessing would give (line). "
    "Bars to the right of the line are evidence that the forgotten records are still recognisable.",
    GUESSES: "Bound that the calibration runs predict for each number of guesses r; the chosen r is marked. "
    "The audited runs played no part in this choice.",
}

# Okabe and Ito's palette, which colour-blind readers can tell apart; shapes and lines differ as well.
_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"
_BOUND_STYLES = {
    "direct": ("direct", _BLUE, "o"),
    "soft": ("soft evidence", _ORANGE, "D"),
    "paper": ("Theorem 4.2", _GREEN, "s"),
}
_MAX_BARS = 60
_DOTS_PER_INCH = 120


def draw_figures(report: "AuditReport") -> dict[str, bytes]:
    """PNG images by file name; the curve over r is left out where r was declared."""
    figures = {BOUNDS: _draw_bounds(report), OVERLAPS: _draw_overlaps(report)}
    if any(method.analysis.selection.candidate_guesses for method in report.methods):
        figures[GUESSES] = _draw_guesses(report)
    return figures


def _new_figure(width: float, height: float) -> Any:
    # The object-oriented interface keeps no global state and needs no display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _png(figure: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()


def _draw_bounds(report: "AuditReport") -> bytes:
    methods = report.methods
    figure = _new_figure(9, 1.7 + 0.75 * len(methods))
    axes = figure.subplots()
    limit = _bounds_limit(report)
    offsets = {"direct": -0.22, "soft": 0.0, "paper": 0.22}
    for position, method in enumerate(methods):
        for kind, offset in offsets.items():
            _draw_bound(axes, getattr(method.analysis, kind), kind, position + offset, limit)
    axes.plot(
        [], [], "|", color=_GREY, markersize=11, markeredgewidth=2.5, label="ceiling of the same colour"
    )
    if report.claim is not None:
        axes.axvline(
            report.claim.epsilon, color=_RED, linestyle="--", label=f"claim: {report.claim.epsilon:g}"
        )
    axes.set_yticks(range(len(methods)), [_plain_label(method.title) for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlim(-0.02 * limit, limit)
    axes.set_xlabel("epsilon (lower bound, no unit)")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    _legend_once(figure, axes)
    return _png(figure)


def _bounds_limit(report: "AuditReport") -> float:
    """Right end of the axis: bounds, claim and direct ceilings fit; a larger ceiling is written in words."""
    shown = [report.claim.epsilon] if report.claim else []
    for method in report.methods:
        analysis = method.analysis
        shown += [
            analysis.direct.epsilon,
            analysis.soft.epsilon,
            analysis.paper.epsilon,
            analysis.direct.ceiling,
        ]
    return 1.08 * max([*shown, 0.1])


def _draw_bound(axes: Any, bound: Any, kind: str, height: float, limit: float) -> None:
    name, color, marker = _BOUND_STYLES[kind]
    axes.plot([0, bound.epsilon], [height, height], color=color, linewidth=2.5, solid_capstyle="butt")
    axes.plot(
        bound.epsilon, height, marker, color=color, markersize=7, linestyle="none", label=name, clip_on=False
    )
    if bound.ceiling <= limit:
        axes.plot(bound.ceiling, height, "|", color=color, markersize=13, markeredgewidth=2.5)
    else:
        axes.annotate(
            f"ceiling {number(bound.ceiling)} \N{RIGHTWARDS ARROW}",
            (limit, height),
            xytext=(-4, 0),
            textcoords="offset points",
            color=_GREY,
            fontsize=8,
            ha="right",
            va="center",
        )


def _draw_overlaps(report: "AuditReport") -> bytes:
    return _small_multiples(report, _draw_overlap_panel, "right guesses per run (overlap)", "share of runs")


def _draw_overlap_panel(axes: Any, method: "MethodResult", report: "AuditReport") -> None:
    num_guesses = method.analysis.selection.num_guesses
    chance = np.exp(null_law(report.design.num_groups, num_guesses).log_pmf)
    width = -(-(num_guesses + 1) // _MAX_BARS)
    starts = np.arange(0, num_guesses + 1, width)
    edges = np.append(starts, starts[-1] + width) - 0.5
    shares = np.histogram(method.analysis.overlaps, bins=edges)[0] / len(method.analysis.overlaps)
    expected = np.add.reduceat(chance, starts)
    axes.bar(edges[:-1], shares, width, align="edge", color=_BLUE, edgecolor="white", label="audited runs")
    axes.stairs(expected, edges, color=_RED, linewidth=2, label="chance")
    if method.analysis.no_evidence:
        axes.text(
            0.5, 0.96, "no evidence: guesses are arbitrary", transform=axes.transAxes, ha="center", va="top"
        )
    axes.set_xlim(edges[0], edges[-1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylim(0, 1.15 * max(shares.max(), expected.max()))


def _draw_guesses(report: "AuditReport") -> bytes:
    return _small_multiples(report, _draw_guesses_panel, "guesses per run r", "predicted epsilon")


def _draw_guesses_panel(axes: Any, method: "MethodResult", report: "AuditReport") -> None:
    selection = method.analysis.selection
    axes.plot(selection.candidate_guesses, selection.predicted_epsilon, "-o", color=_BLUE, markersize=4)
    axes.axvline(
        selection.num_guesses, color=_RED, linestyle="--", label=f"chosen: r = {selection.num_guesses}"
    )
    # Candidates are spaced evenly in the logarithm; a few of them are ticks.
    axes.set_xscale("log")
    axes.set_xticks(selection.candidate_guesses[:: -(-len(selection.candidate_guesses) // 8)])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_ylim(bottom=0, top=1.08 * max(0.1, *selection.predicted_epsilon))
    axes.legend(frameon=False, fontsize=8)


def draw_comparison(reports: Mapping[str, "AuditReport"]) -> bytes:
    """Bound, test accuracy and cost of every method, one row of panels per audit, as PNG."""
    heights = [len(report.methods) + 1.5 for report in reports.values()]
    figure = _new_figure(11, 0.34 * sum(heights) + 0.4)
    grid = figure.subplots(len(reports), 3, squeeze=False, height_ratios=heights, sharey="row")
    for axes, (name, report) in zip(grid, reports.items()):
        _draw_comparison_row(axes, name, report.methods)
    return _png(figure)


def _draw_comparison_row(axes: Sequence[Any], name: str, methods: Sequence["MethodResult"]) -> None:
    places = range(len(methods))
    bounds = [method.analysis.epsilon for method in methods]
    claims = [method.certificate.epsilon if method.certificate else None for method in methods]
    _draw_bars(axes[0], bounds, _BLUE, f"{name}: lower bound on epsilon", number)
    mark = {"color": _RED, "markersize": 11, "markeredgewidth": 2.5, "label": "certified (at its own delta)"}
    for place, claim in zip(places, claims):
        if claim is not None:
            axes[0].plot(claim, place, "|", **mark)
    axes[0].set_xlim(-0.01, 1.3 * max([*bounds, *(claim or 0 for claim in claims), 0.1]))
    accuracies = [None if method.test_accuracy is None else 100 * method.test_accuracy for method in methods]
    _draw_bars(axes[1], accuracies, _GREEN, "test accuracy in %", "{:.1f}".format)
    costs = [method.cost for method in methods]
    _draw_bars(axes[2], costs, _ORANGE, "cost in gradient evaluations", "{:,.0f}".format)
    axes[0].set_yticks(places, [_plain_label(method.title) for method in methods])
    axes[0].set_ylim(len(methods) - 0.5, -0.5)
    if any(claim is not None for claim in claims):
        _legend_in(axes[0])


def _draw_bars(
    axes: Any, values: Sequence[float | None], color: str, title: str, text: Callable[[float], str]
) -> None:
    """Horizontal bars with their numbers; a dash where there is none."""
    lengths = [value or 0.0 for value in values]
    limit = 1.3 * max([*lengths, 1e-3])
    axes.barh(range(len(values)), lengths, color=color, height=0.6)
    for place, value in enumerate(values):
        words = "-" if value is None else text(value)
        axes.annotate(
            words,
            (value or 0.0, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xlim(0, limit)
    axes.xaxis.get_major_locator().set_params(nbins=4)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_title(title, fontsize=10)


def _legend_in(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    axes.legend(unique.values(), unique.keys(), frameon=False, fontsize=8, loc="lower right")


def _small_multiples(
    report: "AuditReport",
    draw: Callable[[Any, "MethodResult", "AuditReport"], None],
    x_label: str,
    y_label: str,
) -> bytes:
    columns = min(2, len(report.methods))
    rows = -(-len(report.methods) // columns)
    figure = _new_figure(4.7 * columns, 2.7 * rows + 0.5)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, method in zip(grid, report.methods):
        draw(axes, method, report)
        axes.set_title(_plain_label(method.title), fontsize=10)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
    for axes in grid[len(report.methods) :]:
        axes.set_axis_off()
    if grid[0].get_legend() is None:
        _legend_once(figure, grid[0])
    return _png(figure)


def _legend_once(figure: Any, axes: Any) -> None:
    """One legend above the plots, each label once."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    figure.legend(
        unique.values(), unique.keys(), loc="outside upper center", ncols=5, frameon=False, fontsize=9
    )


def _plain_label(text: str) -> str:
    """A user's string that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")
