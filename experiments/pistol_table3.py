"""Table 3 of the PISTOL paper: forgetting edges of a sparse, a semi-dense and a dense graph (Dataset 2).

    python experiments/pistol_table3.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

Three random edges of each graph, one at a time, as in the paper. Cost: `--dry-run` says it; what is finished is kept.
Paper (Llama2, deviation scores sparse, semi-dense, dense): UKL 55.8, 64.9, 56.0; NPO 20.8, 21.2, 20.8.
"""

import sys

import pistol_paper
from pistol import EdgesOf, Script, Studies, main
from pistol_data import GRAPHS, graph_edges
from pistol_page import Check, Page, effect_check, memory_check, summarise
from pistol_table2 import our_scores, score_bars

from jaxaudit.report.blocks import Section, Text
from jaxaudit.study import Outcome, monotone, score_difference
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    parts_table,
    rates_section,
    reading_section,
    warnings,
)

PAPER_NAMES = {"sparse": "Sparse", "semi-dense": "Semi-Dense", "dense": "Dense"}


def needs(studies: Studies) -> list[EdgesOf]:
    """Three edges of each graph."""
    return [EdgesOf("dataset-2", edges) for edges in graph_edges(studies.data("dataset-2")).values()]


def build(studies: Studies) -> Page:
    """Forget the edges of each graph, and compare the graphs."""
    study, edges = studies.study("dataset-2"), graph_edges(studies.data("dataset-2"))
    outcomes = {graph: studies.outcomes("dataset-2", edges[graph]) for graph in GRAPHS}
    by_method = {graph: {one.method: one for one in found} for graph, found in outcomes.items()}
    checks = [
        effect_check(
            f"{method_title(method)}: dense has a higher deviation score than sparse",
            score_difference(by_method["dense"][method], by_method["sparse"][method]),
        )
        for method in study.spec.methods
    ]
    return Page(
        name="table3",
        title="PISTOL, Table 3: density",
        script="pistol_table3.py",
        summary=(summarise("Forgetting in the dense graph is harder than in the sparse one", checks),),
        sections=(
            Section(
                "Forgetting edges of three graphs",
                (
                    Text("; ".join(f"{graph}: {', '.join(edges[graph])}" for graph in GRAPHS) + "."),
                    outcome_table(outcomes),
                ),
            ),
            Section("Retained questions", (parts_table(outcomes),)),
            pistol_paper.beside("3", "deviation_score", PAPER_NAMES, our_scores(outcomes)),
            rates_section(
                study,
                studies.rates("dataset-2"),
                studies.tuning_edges("dataset-2"),
                [edge for one in edges.values() for edge in one],
            ),
            reading_section(),
            conditions_section(study),
        ),
        checks=(memory_check(outcomes["dense"]), *checks, *_orders(by_method, study.spec.methods)),
        figures={"scores": (score_bars(outcomes), "Deviation scores with 95 % intervals; black: retrained.")},
        document=studies.documents("dataset-2", outcomes),
        warnings=warnings(outcomes),
    )


def _orders(by_method: dict[str, dict[str, Outcome]], methods: tuple[str, ...]) -> list[Check]:
    checks = []
    for method in methods:
        scores = [by_method[graph][method].deviation.score for graph in GRAPHS]
        checks.append(
            Check(
                f"{method_title(method)}: the score rises from sparse over semi-dense to dense",
                "yes" if monotone(scores) else "NO",
                ", ".join(f"{score:.1f}" for score in scores),
            )
        )
    return checks


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
