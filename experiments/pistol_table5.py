"""Table 5 of the PISTOL paper: forgetting contracts of an entity that was known before fine-tuning.

    python experiments/pistol_table5.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

One entity of the dense graph of Dataset 2 becomes Goldman Sachs or William Shakespeare. The small decoder never read
the web: how well an entity is known is played by the number of its contracts in what it is pretrained on (12 and 3).
Three random edges of the entity, one at a time. Cost: `--dry-run` says it; what is finished is kept.
"""

import sys
from collections.abc import Sequence

import pistol_paper
from pistol import EdgesOf, Script, Studies, main
from pistol_data import KNOWN, KNOWN_DEGREES, graph_edges, known_edges
from pistol_page import Check, Page, effect_check, memory_check, summarise
from pistol_table2 import our_scores, score_bars

from jaxaudit.report.blocks import Section, Text
from jaxaudit.study import Outcome, score_difference
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    parts_table,
    rates_section,
    reading_section,
    warnings,
)
from jaxaudit.study.settings import SHORT_NAMES

HIGH, LOW = "Goldman Sachs", "William Shakespeare"
DENSE, UNKNOWN = "dense", "nobody known (Table 3)"
CONFOUND = (
    "The comparison with Table 3, the paper's evidence for pre-training data, is confounded: the edges differ, "
    "those here have one entity in common, its name and address changed, and the model was pretrained and "
    "fine-tuned anew. Only a part of a difference can be due to fame."
)
CASES = "pairs of method and entity"
_NAMES = {entity.name: name for name, entity in KNOWN.items()}


def needs(studies: Studies) -> list[EdgesOf]:
    """Three edges for each entity, and those of the dense graph of Table 3; rates are those of Dataset 2."""
    dense = EdgesOf("dataset-2", graph_edges(studies.data("dataset-2"))[DENSE])
    return [dense, *(EdgesOf(name, known_edges(studies.data(name))) for name in KNOWN)]


def build(studies: Studies) -> Page:
    """Forget contracts of either, and compare."""
    outcomes = {
        name: studies.outcomes(_NAMES[name], known_edges(studies.data(_NAMES[name]))) for name in (HIGH, LOW)
    }
    unknown = studies.outcomes("dataset-2", graph_edges(studies.data("dataset-2"))[DENSE])
    checks = _higher(HIGH, outcomes[HIGH], LOW, outcomes[LOW])
    against = [
        check
        for name in (HIGH, LOW)
        for check in _higher(name, outcomes[name], "the dense graph of Table 3", unknown)
    ]
    degrees = ", ".join(f"{entity.name} {number}" for entity, number in KNOWN_DEGREES.items())
    return Page(
        name="table5",
        title="PISTOL, Table 5: pre-training data",
        script="pistol_table5.py",
        summary=(
            summarise("Contracts of the better known entity are harder to forget", checks),
            f"Contracts of the entity that the small decoder was pretrained on: {degrees}. This stands for fame; it "
            "is no test of what a model that has read the web would show.",
            summarise(
                "Contracts of a known entity are harder to forget than those of Table 3's dense graph",
                against,
                CASES,
            ),
            CONFOUND,
        ),
        sections=(
            Section(
                "Forgetting contracts of a known entity",
                (
                    Text(
                        f"Edges: {', '.join(outcomes[HIGH][0].edges)}; of the dense graph without a known entity: "
                        f"{', '.join(unknown[0].edges)}."
                    ),
                    outcome_table({**outcomes, UNKNOWN: unknown}),
                ),
            ),
            Section("Retained questions", (parts_table(outcomes),)),
            pistol_paper.beside("5", "deviation_score", {HIGH: HIGH, LOW: LOW}, our_scores(outcomes)),
            rates_section(
                studies.study("dataset-2"),
                studies.rates("dataset-2"),
                studies.tuning_edges("dataset-2"),
                outcomes[HIGH][0].edges,
            ),
            reading_section(),
            conditions_section(studies.study("goldman-sachs")),
        ),
        checks=(*(memory_check(found, name) for name, found in outcomes.items()), *checks, *against),
        figures={"scores": (score_bars(outcomes), "Deviation scores with 95 % intervals; black: retrained.")},
        document=studies.documents("goldman-sachs", {**outcomes, UNKNOWN: unknown}),
        warnings=warnings(outcomes),
    )


def _higher(name: str, found: Sequence[Outcome], other_name: str, others: Sequence[Outcome]) -> list[Check]:
    """Of every method: is the deviation score higher than elsewhere?"""
    elsewhere = {one.method: one for one in others}
    return [
        effect_check(
            f"{method_title(one.method)}: {name} has a higher deviation score than {other_name}",
            score_difference(one, elsewhere[one.method]),
        )
        for one in found
        if one.method in SHORT_NAMES
    ]


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
