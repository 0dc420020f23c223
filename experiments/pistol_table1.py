"""Table 1 of the PISTOL paper: forgetting authors of TOFU who are connected with others, and authors who are not.

    python experiments/pistol_table1.py --tofu FILE --connected 3 17 ... --alone 5 40 ... [--model small|smollm2|FOLDER]
        [--preset cpu|paper|smollm2|smoke] [--reading pistol_paper|pistol_code] [--dry-run]

Three of the connected authors (the paper: born in the USA) and three who are the only ones of their countries, one at a
time: in the file as it is, and in Structured TOFU, where each of the three connected ones gets relations with five
others. The data are not part of this package: FILE is TOFU's full.json, or one of fewer authors. Cost: `--dry-run` says
it; what is finished is kept. Paper (Llama2, connected and alone): GA 40.8 and 37.4, in Structured TOFU 45.4 and 39.6.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import pistol_paper
from pistol import EdgesOf, Script, main
from pistol_page import Check, Page, effect_check, memory_check, summarise
from pistol_table2 import score_bars
from pistol_tofu import ALONE, CONNECTED, ORIGINAL, STRUCTURED, TofuOptions, TofuStudies

from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import SHORT_NAMES, Effect, Outcome, score_difference
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

DATA = (ORIGINAL, STRUCTURED)
TITLES = {ORIGINAL: "TOFU", STRUCTURED: "Structured TOFU"}
GROUPS = (CONNECTED, ALONE)
AUTHORS = (
    "Here an edge is an author with 20 questions. Distance is counted in relations, so in the original file everybody "
    "is disconnected; domains are connected authors, authors who are alone in their countries, and others. No answer "
    "counts as shared. The relations of Structured TOFU come from templates, those of the paper from GPT-4."
)


class Scores(NamedTuple):
    """Two groups of authors in one data set, for one method."""

    connected: Outcome
    alone: Outcome
    difference: Effect


def needs(studies: TofuStudies) -> list[EdgesOf]:
    """The same authors in both data sets."""
    return [EdgesOf(name, studies.labels(group)) for name in DATA for group in GROUPS]


def build(studies: TofuStudies) -> Page:
    """Forget them, one at a time, and compare."""
    outcomes = {
        name: {group: studies.outcomes(name, studies.labels(group)) for group in GROUPS} for name in DATA
    }
    named = {f"{TITLES[name]}: {group}": found for name in DATA for group, found in outcomes[name].items()}
    compared = {name: scores(outcomes[name]) for name in DATA}
    checks = {name: higher(TITLES[name], compared[name]) for name in DATA}
    study = studies.study(STRUCTURED)
    return Page(
        name="table1",
        title="PISTOL, Table 1: connected authors of TOFU",
        script="pistol_table1.py",
        summary=tuple(
            summarise(f"{TITLES[name]}: connected authors are harder to forget", found)
            for name, found in checks.items()
        ),
        sections=(
            Section("Forgetting authors", (Text(AUTHORS), who_table(studies), outcome_table(named))),
            Section("Retained questions", (parts_table(named),)),
            beside_the_paper(compared, studies.our_name),
            samples_section(study, studies.labels(CONNECTED)[:1], studies.chosen_rates(STRUCTURED)),
            rates_section(studies.study(ORIGINAL), studies.rates(ORIGINAL), studies.tuning_edges(ORIGINAL)),
            reading_section(),
            conditions_section(study),
        ),
        checks=(
            *(memory_check(outcomes[name][CONNECTED], TITLES[name]) for name in DATA),
            *(check for found in checks.values() for check in found),
        ),
        figures={
            name: (
                score_bars(outcomes[name]),
                f"{TITLES[name]}: deviation scores with 95 % intervals; black: retrained.",
            )
            for name in DATA
        },
        document={name: studies.documents(name, outcomes[name]) for name in DATA}
        | {"relations": relations(studies)},
        warnings=warnings(named),
    )


def scores(outcomes: dict[str, Sequence[Outcome]]) -> dict[str, Scores]:
    """Both groups, by method."""
    alone = {one.method: one for one in outcomes[ALONE]}
    return {
        one.method: Scores(one, alone[one.method], score_difference(one, alone[one.method]))
        for one in outcomes[CONNECTED]
        if one.method in SHORT_NAMES
    }


def higher(title: str, compared: dict[str, Scores]) -> list[Check]:
    """Of every method: is the deviation score of connected authors higher?"""
    return [
        effect_check(
            f"{title}, {method_title(method)}: connected authors have a higher deviation score",
            pair.difference,
        )
        for method, pair in compared.items()
    ]


def beside_the_paper(compared: dict[str, dict[str, Scores]], name: str) -> Section:
    """The paper's table, and ours in the same form."""
    ours = {
        (data, SHORT_NAMES[method]): (
            f"{pair.connected.deviation.score:.1f}",
            f"{pair.alone.deviation.score:.1f}",
            with_interval(pair.difference.raw),
        )
        for data in DATA
        for method, pair in compared[data].items()
    }
    rows = [
        (
            TITLES[row["data"]],
            row["method"],
            *(str(row[column]) for column in ("usa", "alone", "difference")),
            *ours.get((row["data"], row["method"]), ("", "", "")),
        )
        for row in pistol_paper.rows("1")
    ]
    columns = ("connected", "alone", "difference")
    header = (
        "data",
        "method",
        *(f"{one}, Llama2-7B" for one in columns),
        *(f"{one}, {name}" for one in columns),
    )
    text = (
        "Deviation scores of Table 1 of the paper, which fixes neither who was forgotten nor the relations."
    )
    return Section("Beside the paper", (Text(text), Table(header, tuple(rows))))


def relations(studies: TofuStudies) -> dict[str, dict[str, str]]:
    """What others are to every connected author that is forgotten, by numbers."""
    found: dict[str, dict[str, str]] = {}
    for (author, other), kind in studies.data(STRUCTURED).relations.items():
        found.setdefault(str(author), {})[str(other)] = kind
    return found


def who_table(studies: TofuStudies) -> Table:
    """Who is forgotten, and the relations that were added."""
    others = relations(studies)
    rows = [
        (
            group,
            str(number),
            ", ".join(f"{other} ({kind})" for other, kind in others.get(str(number), {}).items()),
        )
        for group in GROUPS
        for number in studies.forgotten(group)
    ]
    return Table(("group", "author", "relations in Structured TOFU"), tuple(rows))


SCRIPT = Script(needs, build)
TYPES = {"options_type": TofuOptions, "studies_type": TofuStudies}

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or "", **TYPES))
