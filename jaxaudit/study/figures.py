"""Figures of a study as PNG: the graph with the scores of its edges, and scores against the degree."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import networkx as nx
import numpy as np

from jaxaudit.data.pistol import PistolData
from jaxaudit.study.edgespec import method_of
from jaxaudit.study.page import method_title

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
MARKERS = "osD^vPX"
_DOTS_PER_INCH = 120
_LAYOUT_SEED = 3


def new_figure(width: float, height: float) -> Any:
    """A figure without a display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def png(figure: Any) -> bytes:
    """The figure's file."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()


def draw_graph(data: PistolData, forgotten: str, recalls: Mapping[str, Mapping[str, float]]) -> bytes:
    """The graph with one forgotten edge, a panel per method: edges carry the recall of their answers.

    Parameters
    ----------
    data
        Its graph.
    forgotten
        Name of the forgotten edge, drawn as a dashed line.
    recalls
        By panel: recall in [0, 1] of every edge.
    """
    from matplotlib import cm, colors

    columns = min(3, len(recalls))
    lines = -(-len(recalls) // columns)
    figure = new_figure(5.2 * columns, 4.4 * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    scale = cm.ScalarMappable(colors.Normalize(0, 1), "viridis")
    layout = _layout(data.graph)
    for axes, (title, values) in zip(panels, recalls.items()):
        _draw_panel(axes, data, forgotten, values, layout, scale)
        axes.set_title(f"{title}: {forgotten} {values[forgotten]:.2f}", fontsize=10)
    for axes in panels:
        axes.set_axis_off()
    figure.colorbar(scale, ax=list(panels), shrink=0.6, label="ROUGE-1 recall of the edge's answers")
    return png(figure)


def _layout(graph: nx.Graph) -> dict[Any, Any]:
    """Connected parts side by side, so that they do not overlap."""
    places: dict[Any, Any] = {}
    parts = sorted(nx.connected_components(graph), key=len, reverse=True)
    offset = 0.0
    for part in parts:
        # Not a subgraph, whose nodes may come in the order of a set, which is another one in every process.
        own = nx.Graph()
        own.add_nodes_from(sorted(part))
        own.add_edges_from(graph.edges(part))
        radius = len(part) ** 0.5
        layout = nx.kamada_kawai_layout(own) if len(part) > 2 else nx.spring_layout(own, seed=_LAYOUT_SEED)
        places |= {
            node: np.asarray(place) * radius + [offset + radius, 0.0] for node, place in layout.items()
        }
        offset += 2 * radius + 1.0
    return places


def _draw_panel(
    axes: Any, data: PistolData, forgotten: str, values: Mapping[str, float], layout: Any, scale: Any
) -> None:
    named = {name: (u, v) for u, v, name in data.graph.edges(data="name")}
    for name, pair in named.items():
        nx.draw_networkx_edges(
            data.graph,
            layout,
            [pair],
            ax=axes,
            width=3.5 if name == forgotten else 2.0,
            edge_color=[scale.to_rgba(values[name])],
            style="dashed" if name == forgotten else "solid",
        )
    nx.draw_networkx_nodes(
        data.graph, layout, ax=axes, node_size=150, node_color="#eeeeee", edgecolors="#666666"
    )
    nx.draw_networkx_labels(data.graph, layout, ax=axes, font_size=6)
    if len(named) <= 25:
        labels = {pair: f"{values[name]:.2f}" for name, pair in named.items()}
        nx.draw_networkx_edge_labels(data.graph, layout, labels, ax=axes, font_size=5, rotate=False)


def draw_bars(
    values: Mapping[str, Mapping[str, tuple[float, float, float]]], label: str, reference: Mapping[str, float]
) -> bytes:
    """Bars with intervals: a cluster per method, a bar per group of edges; a black line at the group's reference.

    Parameters
    ----------
    values
        By group and method: estimate, low, high.
    label
        Of the axis.
    reference
        By group: the retrained models' value.
    """
    figure = new_figure(8, 4.2)
    axes = figure.subplots()
    methods = list(next(iter(values.values())))
    width = 0.8 / len(values)
    for number, (group, found) in enumerate(values.items()):
        places = np.arange(len(methods)) + (number - (len(values) - 1) / 2) * width
        means = [found[method][0] for method in methods]
        errors = [
            [max(found[method][0] - found[method][1], 0) for method in methods],
            [max(found[method][2] - found[method][0], 0) for method in methods],
        ]
        axes.bar(places, means, width, yerr=errors, color=COLORS[number], label=group, capsize=2)
        axes.hlines([reference[group]] * len(places), places - width / 2, places + width / 2, color="black")
    axes.plot([], [], color="black", label="retrained without the edge")
    axes.set_xticks(range(len(methods)), [method_title(method) for method in methods])
    axes.set_ylabel(label)
    figure.legend(loc="outside upper center", ncols=len(values) + 1, frameon=False, fontsize=8)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    return png(figure)


def draw_degrees(
    degrees: Sequence[int], series: Mapping[str, Mapping[str, Sequence[float]]], labels: Sequence[str]
) -> bytes:
    """Scores of many edges against their degree; a panel per kind of score, a colour per method.

    Parameters
    ----------
    degrees
        Of the edges.
    series
        By kind and method: a value per edge. The first kind has all methods.
    labels
        Of the vertical axes.
    """
    figure = new_figure(5.5 * len(series), 4.2)
    panels = figure.subplots(1, len(series), squeeze=False)[0]
    known = list(next(iter(series.values())))
    for axes, (title, methods), label in zip(panels, series.items(), labels):
        for method, values in methods.items():
            number = known.index(method)
            shifted = np.asarray(degrees) + 0.12 * (number - (len(known) - 1) / 2)
            axes.plot(
                shifted,
                values,
                MARKERS[number % len(MARKERS)],
                color=COLORS[number % len(COLORS)],
                label=method_title(method),
                markersize=5,
                alpha=0.8,
            )
        axes.set(title=title, xlabel="edge degree", ylabel=label)
        axes.grid(color="#dddddd")
        axes.set_axisbelow(True)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False, fontsize=8)
    return png(figure)


def draw_epsilon(points: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> bytes:
    """Epsilon as a share of its ceiling: against the deviation score, and against the degree in graphs of equal size.

    Parameters
    ----------
    points
        By graph: ``rows``, of every row the deviation score and the share; and ``degree``, the mean degree, or ``None``
        if the graph is not one of equal size.
    titles
        By row what a reader sees.
    """
    figure = new_figure(12, 4.8)
    panels = figure.subplots(1, 2)
    bases = list(dict.fromkeys(map(method_of, titles)))

    def style(row: str) -> dict[str, Any]:
        strong = row != method_of(row)
        return {
            "color": COLORS[bases.index(method_of(row)) % len(COLORS)],
            "fillstyle": "none" if strong else "full",
        }

    for number, (graph, found) in enumerate(points.items()):
        marker = MARKERS[number % len(MARKERS)]
        for row, (score, share) in found["rows"].items():
            panels[0].plot(score, share, linestyle="", marker=marker, markersize=6, **style(row))
        panels[0].plot([], [], color="black", linestyle="", marker=marker, label=graph)
    graphs = sorted(
        (one for one in points.values() if one["degree"] is not None), key=lambda one: one["degree"]
    )
    for row, title in titles.items():
        degrees, shares = [one["degree"] for one in graphs], [one["rows"][row][1] for one in graphs]
        line = "-" if row == method_of(row) else ":"
        panels[1].plot(degrees, shares, linestyle=line, marker="o", markersize=5, label=title, **style(row))
    panels[0].set(xlabel="deviation score", ylabel="epsilon, share of the ceiling", ylim=(-0.05, 1.05))
    panels[1].set(
        xlabel="mean degree of the candidates", ylabel="epsilon, share of the ceiling", ylim=(-0.05, 1.05)
    )
    for axes in panels:
        axes.grid(color="#dddddd")
        axes.set_axisbelow(True)
    (marks, names), (lines, methods) = (axes.get_legend_handles_labels() for axes in panels)
    figure.legend([*lines, *marks], [*methods, *names], loc="outside right upper", frameon=False, fontsize=8)
    return png(figure)
