"""Deviation score and distance to retraining against the degree of the forgotten edge, over all edges of Dataset 1.

    python experiments/pistol_degrees.py [--preset cpu|paper|smoke] [--reading pistol_paper|pistol_code] [--dry-run]

The paper compares two edges; here every edge is forgotten in turn, with rank correlations and their intervals. Cost:
`--dry-run` says it; what is finished is kept.
"""

import sys

import numpy as np
from pistol import Lab, Need, Script, main
from pistol_data import tuning_edges
from pistol_page import Check, Page, memory_check

from jaxaudit.data.pistol import edge_degrees
from jaxaudit.metrics import Interval
from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import Effect, Outcome, rank_correlation
from jaxaudit.study.figures import draw_degrees
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    rates_section,
    reading_section,
    with_interval,
)

_KINDS = ("deviation score", "excess over retraining", "distance to retraining")


def needs(lab: Lab) -> list[Need]:
    """Every edge."""
    return [Need("dataset-1", tuple(lab.data("dataset-1").edges))]


def build(lab: Lab) -> Page:
    """Forget every edge in turn."""
    study = lab.study("dataset-1")
    degrees = edge_degrees(study.data)
    outcomes = {edge: lab.outcomes("dataset-1", (edge,)) for edge in study.data.edges}
    methods = ("retrained", *study.spec.methods)
    values = {
        kind: {method: [_value(outcomes[edge], method, kind) for edge in outcomes] for method in methods}
        for kind in _KINDS
    }
    order = [degrees[edge] for edge in outcomes]
    found = {
        method: Effect(
            _correlation(order, values[_KINDS[0]][method]), _correlation(order, values[_KINDS[1]][method])
        )
        for method in study.spec.methods
    }
    checks = tuple(
        Check(
            f"{method_title(method)}: the deviation score rises with the degree",
            effect.verdict,
            f"rank correlation {with_interval(effect.raw, 2)}; of the excess {with_interval(effect.net, 2)}",
        )
        for method, effect in found.items()
    )
    floor = _correlation(order, values[_KINDS[0]]["retrained"])
    return Page(
        name="degrees",
        title="PISTOL: every edge of Dataset 1, by degree",
        script="pistol_degrees.py",
        summary=(
            f"Over {len(order)} edges, the deviation score rises with the degree for "
            f"{sum(effect.raw.low > 0 for effect in found.values())} of {len(found)} methods (interval of the rank "
            f"correlation above 0), and the excess over retraining for "
            f"{sum(effect.net.low > 0 for effect in found.values())}. The retrained models' own score has rank "
            f"correlation {with_interval(floor, 2)} with the degree.",
        ),
        sections=(
            Section(
                "Every edge",
                (Text("Deviation score, in brackets its excess over retraining."), _table(outcomes, degrees)),
            ),
            rates_section(study, lab.rates("dataset-1"), tuning_edges("dataset-1", study.data)),
            reading_section(),
            conditions_section(study),
        ),
        checks=(memory_check(next(iter(outcomes.values()))), *checks),
        figures={
            "degrees": (
                draw_degrees(order, values, ("deviation score", "excess", "distance")),
                "A point per edge and method, mean over seeds; methods are set apart along the axis.",
            )
        },
        document={
            "degrees": degrees,
            "outcomes": {edge: [one.document() for one in one_edge] for edge, one_edge in outcomes.items()},
        },
    )


def _value(found: list[Outcome], method: str, kind: str) -> float:
    deviation = next(one.deviation for one in found if one.method == method)
    return {
        _KINDS[0]: deviation.score,
        _KINDS[1]: deviation.excess,
        _KINDS[2]: deviation.distance,
    }[kind]


def _correlation(degrees: list[int], values: list[float]) -> Interval:
    if np.ptp(values) == 0:  # nothing varies, so nothing goes with the degree
        return Interval(0.0, 0.0, 0.0, 0.95, "questions", "bootstrap")
    return rank_correlation(degrees, values)


def _table(outcomes: dict[str, list[Outcome]], degrees: dict[str, int]) -> Table:
    methods = [one.method for one in next(iter(outcomes.values())) if one.method not in ("base", "before")]
    rows = [
        (edge, str(degrees[edge]), *(_cell(found, method) for method in methods))
        for edge, found in sorted(outcomes.items(), key=lambda item: -degrees[item[0]])
    ]
    return Table(("edge", "degree", *map(method_title, methods)), tuple(rows))


def _cell(found: list[Outcome], method: str) -> str:
    deviation = next(one.deviation for one in found if one.method == method)
    return f"{deviation.score:.1f}" + ("" if method == "retrained" else f" ({deviation.excess:+.1f})")


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
