"""Table 2 of the PISTOL paper: forgetting a highly (A_B) and a less (A_C) inter-connected edge of Dataset 1.

    python experiments/pistol_table2.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

Cost: `--dry-run` says it; what is finished is kept, and a killed run goes on. Paper (Llama2, deviation scores of AB and
AC): GA 54.4 and 33.1, GD 65.6 and 29.4, UKL 70.3 and 54.6, DPO 31.6 and 25.1, NPO 39.8 and 37.8.
"""

import sys

import pistol_paper
from pistol import EdgesOf, Script, Studies, main
from pistol_page import Check, Page, effect_check, memory_check, summarise

from jaxaudit.report.blocks import Section
from jaxaudit.study import (
    SHORT_NAMES,
    Outcome,
    guessing_floors,
    score_difference,
)
from jaxaudit.study.figures import draw_bars
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    parts_table,
    rates_section,
    reading_section,
    samples_section,
    warnings,
    with_interval,
)
from jaxaudit.study.report import draw_edge

HIGH, LOW = "A_B", "A_C"


def needs(studies: Studies) -> list[EdgesOf]:
    """Two edges."""
    return [EdgesOf("dataset-1", (HIGH, LOW))]


def build(studies: Studies) -> Page:
    """Forget both, one at a time, and compare."""
    study = studies.study("dataset-1")
    outcomes = {edge: studies.outcomes("dataset-1", (edge,)) for edge in (HIGH, LOW)}
    by_method = {edge: {one.method: one for one in found} for edge, found in outcomes.items()}
    effects = {
        method: score_difference(by_method[HIGH][method], by_method[LOW][method])
        for method in study.spec.methods
    }
    checks = [
        effect_check(f"{method_title(method)}: {HIGH} has a higher deviation score than {LOW}", effect)
        for method, effect in effects.items()
    ]
    floor = score_difference(by_method[HIGH]["retrained"], by_method[LOW]["retrained"])
    floor_check = Check(
        f"the retrained models differ between {HIGH} and {LOW}",
        floor.verdict if floor.raw.low > 0 or floor.raw.high < 0 else "does not show",
        with_interval(floor.raw),
    )
    return Page(
        name="table2",
        title="PISTOL, Table 2: inter-connectivity",
        script="pistol_table2.py",
        summary=(summarise(f"Forgetting {HIGH} is harder than {LOW}", checks), floor_text(studies, outcomes)),
        sections=(
            Section(f"Forgetting {HIGH} and {LOW}", (outcome_table(outcomes),)),
            Section("Retained questions", (parts_table(outcomes),)),
            pistol_paper.beside(
                "2", "deviation_score", {HIGH: "AB", LOW: "AC"}, our_scores(outcomes), name=studies.our_name
            ),
            samples_section(study, (HIGH, LOW), studies.chosen_rates("dataset-1")),
            rates_section(study, studies.rates("dataset-1"), studies.tuning_edges("dataset-1"), (HIGH, LOW)),
            reading_section(),
            pistol_paper.slips_section(),
            conditions_section(study),
        ),
        checks=(memory_check(outcomes[HIGH]), floor_check, *checks),
        figures={
            "scores": (score_bars(outcomes), "Deviation scores with 95 % intervals; black: retrained."),
            "graph": (
                draw_edge(study, HIGH, studies.rates("dataset-1")),
                f"Recall of every edge's answers when {HIGH} (dashed) is forgotten, mean over seeds.",
            ),
        },
        document=studies.documents("dataset-1", outcomes),
        warnings=warnings(outcomes),
    )


def our_scores(outcomes: dict[str, list[Outcome]]) -> dict[str, dict[str, str]]:
    """Deviation scores by group and the paper's name of the method."""
    return pistol_paper.ours_by_method(outcomes, lambda one: f"{one.deviation.score:.1f}")


def floor_text(studies: Studies, outcomes: dict[str, list[Outcome]]) -> str:
    """What is known of the forget questions without ever seeing the edge."""
    parts = []
    for group, found in outcomes.items():
        retrained = next(one for one in found if one.method == "retrained")
        guess = guessing_floors(studies.study("dataset-1"), retrained.edges)
        parts.append(f"{group} {retrained.mean('forget'):.3f} (best constant guesses {guess:.3f})")
    return f"Forget recall of models that never saw the edge: {', '.join(parts)}; this is the goal, not 0."


def score_bars(outcomes: dict[str, list[Outcome]]) -> bytes:
    """Deviation scores of the methods, by group."""
    methods = {
        group: {
            one.method: (one.score.estimate, one.score.low, one.score.high)
            for one in found
            if one.method in SHORT_NAMES
        }
        for group, found in outcomes.items()
    }
    floors = {
        group: next(one.deviation.score for one in found if one.method == "retrained")
        for group, found in outcomes.items()
    }
    return draw_bars(methods, "deviation score", floors)


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
