"""Deviation score and distance to retraining against the degree of the forgotten edge, over all edges of Dataset 1.

    python experiments/pistol_degrees.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

The paper compares two edges; here every edge is forgotten in turn, with rank correlations and their intervals. Cost:
`--dry-run` says it; what is finished is kept.
"""

import sys
from collections.abc import Mapping, Sequence

from pistol import EdgesOf, Script, Studies, main
from pistol_page import Check, Page, memory_check

from jaxaudit.data.pistol import edge_degrees
from jaxaudit.metrics import Interval
from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import Effect, Outcome, rank_agreement
from jaxaudit.study.figures import draw_degrees
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    rates_section,
    reading_section,
    warnings,
    with_interval,
)

_KINDS = ("deviation score", "excess over retraining", "distance to retraining")


def needs(studies: Studies) -> list[EdgesOf]:
    """Every edge."""
    return [EdgesOf("dataset-1", tuple(studies.data("dataset-1").edges))]


def build(studies: Studies) -> Page:
    """Forget every edge in turn."""
    study = studies.study("dataset-1")
    degrees = edge_degrees(study.data)
    outcomes = {edge: studies.outcomes("dataset-1", (edge,)) for edge in study.data.edges}
    methods = ("retrained", *study.spec.methods)
    values = {
        kind: {method: [_value(outcomes[edge], method, kind) for edge in outcomes] for method in methods}
        for kind in _KINDS
    }
    order = [degrees[edge] for edge in outcomes]
    found = {
        method: tuple(rank_agreement(order, values[kind][method]) for kind in _KINDS) for method in methods
    }
    checks = _checks({method: found[method] for method in study.spec.methods})
    return Page(
        name="degrees",
        title="PISTOL: every edge of Dataset 1, by degree",
        script="pistol_degrees.py",
        summary=(
            _summary(len(order), {method: found[method] for method in study.spec.methods}),
            f"The retrained models' own score has rank correlation {with_interval(found['retrained'][0], 2)} with the "
            "degree.",
        ),
        sections=(
            Section(
                "Every edge",
                (
                    Text(
                        "Deviation score; in brackets its excess over retraining, and the distance to retraining. On "
                        "edges with a star the rates were chosen, with a model of another seed."
                    ),
                    _table(outcomes, degrees, studies.tuning_edges("dataset-1")),
                ),
            ),
            rates_section(
                study, studies.rates("dataset-1"), studies.tuning_edges("dataset-1"), tuple(outcomes)
            ),
            reading_section(),
            conditions_section(study),
        ),
        checks=(memory_check(next(iter(outcomes.values()))), *checks),
        figures={
            "degrees": (
                draw_degrees(order, _drawn(values), ("deviation score", "excess", "distance")),
                "A point per edge and method, mean over seeds; methods are set apart along the axis.",
            )
        },
        document={
            "degrees": degrees,
            "rank_correlations": {
                method: {kind: [one.estimate, one.low, one.high] for kind, one in zip(_KINDS, own)}
                for method, own in found.items()
            },
            **studies.documents("dataset-1", outcomes),
        },
        warnings=warnings(outcomes),
    )


def _drawn(values: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, list[float]]]:
    """Without the retrained models where these are 0 by definition."""
    first, *others = _KINDS
    return {
        first: values[first],
        **{kind: {m: own for m, own in values[kind].items() if m != "retrained"} for kind in others},
    }


def _checks(found: Mapping[str, Sequence[Interval]]) -> tuple[Check, ...]:
    """Of every method: does its score, and does its distance to retraining, rise with the degree?"""
    checks = []
    for method, (score, excess, distance) in found.items():
        numbers = f"rank correlation {with_interval(score, 2)}; of the excess {with_interval(excess, 2)}"
        checks.append(
            Check(
                f"{method_title(method)}: the deviation score rises with the degree",
                Effect(score, excess).verdict,
                numbers,
            )
        )
        checks.append(
            Check(
                f"{method_title(method)}: the distance to retraining rises with the degree",
                "shows" if distance.low > 0 else "reversed" if distance.high < 0 else "does not show",
                f"rank correlation {with_interval(distance, 2)}",
            )
        )
    return tuple(checks)


def _summary(num_edges: int, found: Mapping[str, Sequence[Interval]]) -> str:
    rising = [sum(own[number].low > 0 for own in found.values()) for number in range(len(_KINDS))]
    return (
        f"Over {num_edges} edges, the deviation score rises with the degree for {rising[0]} of {len(found)} methods "
        f"(interval of the rank correlation above 0), its excess over retraining for {rising[1]}, and the distance to "
        f"retraining for {rising[2]}."
    )


def _value(found: list[Outcome], method: str, kind: str) -> float:
    deviation = next(one.deviation for one in found if one.method == method)
    return {
        _KINDS[0]: deviation.score,
        _KINDS[1]: deviation.excess,
        _KINDS[2]: deviation.distance,
    }[kind]


def _table(outcomes: dict[str, list[Outcome]], degrees: dict[str, int], tuned: Sequence[str]) -> Table:
    methods = [one.method for one in next(iter(outcomes.values())) if one.method not in ("base", "before")]
    rows = [
        (
            f"{edge} *" if edge in tuned else edge,
            str(degrees[edge]),
            *(_cell(found, method) for method in methods),
        )
        for edge, found in sorted(outcomes.items(), key=lambda item: -degrees[item[0]])
    ]
    return Table(("edge", "degree", *map(method_title, methods)), tuple(rows))


def _cell(found: list[Outcome], method: str) -> str:
    deviation = next(one.deviation for one in found if one.method == method)
    if method == "retrained":
        return f"{deviation.score:.1f}"
    return f"{deviation.score:.1f} ({deviation.excess:+.1f}, {deviation.distance:.1f})"


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
