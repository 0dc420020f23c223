"""Tables 6 to 9 of the PISTOL paper: mean reciprocal rank and top-hit ratio of the models of Tables 2 to 5.

    python experiments/pistol_appendix.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

Needs the same models as Tables 2 to 5. Ranks are teacher-forced; the second table of each section has them along the
model's own greedy answer, as the paper's code takes them.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

import pistol_paper
import pistol_table2
import pistol_table3
import pistol_table4
import pistol_table5
from pistol import EdgesOf, Script, Studies, main
from pistol_data import GRAPHS, KNOWN, graph_edges, known_edges
from pistol_page import Page, memory_check

from jaxaudit.metrics import scaled_top
from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import Outcome
from jaxaudit.study.page import conditions_section, ranks_table, warnings

PAPER_GROUPS = {
    "6": {pistol_table2.HIGH: "AB", pistol_table2.LOW: "AC"},
    "7": pistol_table3.PAPER_NAMES,
    "8": pistol_table4.PAPER_NAMES,
    "9": {entity.name: entity.name for entity in KNOWN.values()},
}
"""The paper's name of each group of ours, by table."""


def needs(studies: Studies) -> list[EdgesOf]:
    """What Tables 2 to 5 need; of a published model, to which Dataset 2 is too much without a GPU, 2 and 4."""
    published = studies.options.is_published
    second = () if published else (pistol_table3, pistol_table5)
    return [need for table in (pistol_table2, pistol_table4, *second) for need in table.needs(studies)]


def build(studies: Studies) -> Page:
    """All four tables, or those of Dataset 1."""
    first = {edge: studies.outcomes("dataset-1", (edge,)) for edge in (pistol_table2.HIGH, pistol_table2.LOW)}
    third = {
        edge: studies.outcomes("dataset-1", (edge,))
        for edge in (pistol_table4.SALES, pistol_table4.EMPLOYMENT)
    }
    tables = {"6": first, "8": third}
    if not studies.options.is_published:
        tables |= _of_the_second_data(studies)
    tables = {number: tables[number] for number in sorted(tables)}
    vocabulary = studies.model("dataset-1").spec.vocabulary_size
    free = studies.study("dataset-1").spec.free_running
    data = {"6": "dataset-1", "7": "dataset-2", "8": "dataset-1", "9": "goldman-sachs"}
    return Page(
        name="appendix",
        title=f"PISTOL, Tables {', '.join(tables)}: ranks",
        script="pistol_appendix.py",
        summary=(
            f"The top-hit ratio counts the top {scaled_top(vocabulary)} of {vocabulary} tokens, the share of the "
            "vocabulary that the paper's top 100 is of Llama 2's. The end token does not count.",
        ),
        sections=(
            *(
                _domains(found, free) if number == "8" else _section(_TITLES[number], found, free)
                for number, found in tables.items()
            ),
            *_beside_the_paper(tables, free, studies.our_name),
            conditions_section(studies.study("dataset-1")),
        ),
        checks=(
            memory_check(first[pistol_table2.HIGH]),
            *([memory_check(tables["7"]["dense"])] if "7" in tables else []),
        ),
        figures={},
        document={
            f"table{number}": studies.documents(data[number], found) for number, found in tables.items()
        },
        warnings=warnings({group: own for found in tables.values() for group, own in found.items()}),
    )


_TITLES = {
    "6": "Table 6: inter-connectivity",
    "7": "Table 7: density",
    "9": "Table 9: pre-training data",
}


def _of_the_second_data(studies: Studies) -> dict[str, dict[str, list[Outcome]]]:
    edges = graph_edges(studies.data("dataset-2"))
    return {
        "7": {graph: studies.outcomes("dataset-2", edges[graph]) for graph in GRAPHS},
        "9": {
            entity.name: studies.outcomes(name, known_edges(studies.data(name)))
            for name, entity in KNOWN.items()
        },
    }


def _domains(outcomes: dict[str, list[Outcome]], free_running: bool) -> Section:
    blocks: list[Text | Table] = []
    for prefix, how in _kinds(free_running).items():
        for measure, name in (("reciprocal rank", "MRR"), ("top hits", "THR")):
            blocks += [
                Text(f"{name}, {how}."),
                pistol_table4.domain_table(outcomes, f"{prefix}{measure}"),
            ]
    return Section("Table 8: domains", tuple(blocks))


def _kinds(free_running: bool) -> dict[str, str]:
    """Where ranks are taken, by the prefix of the measure."""
    own = {"free ": "along the model's own answer"} if free_running else {}
    return {"": "teacher-forced", **own}


def _beside_the_paper(
    outcomes: dict[str, dict[str, list[Outcome]]], free_running: bool, name: str
) -> Iterator[Section]:
    """The paper's columns of each table with ours, along the model's own answer if that is there."""
    prefix, how = list(_kinds(free_running).items())[-1]
    yield Section(
        "Beside the paper",
        (Text("The paper's ranks are those along the model's own answer, see Table 2's page."),),
    )
    for table in outcomes:
        groups = PAPER_GROUPS[table]
        for (part, measure), column in _columns(table).items():

            def cell(one: Outcome, part: str = part, measure: str = prefix + measure) -> str:
                return f"{one.mean(part, measure):.3f}"

            ours = pistol_paper.ours_by_method(outcomes[table], cell)
            title = f"Beside Table {table}: {column.removesuffix('_mean').replace('_', ' ')}, ours {how}"
            yield replace(pistol_paper.beside(table, column, groups, ours, title, name=name), level=3)


def _columns(table: str) -> dict[tuple[str, str], str]:
    """The paper's columns by our part and measure."""
    parts = {"forget": "forget", "retain": "retain"}
    if table == "8":
        parts = {"disconnected sales": "sales", "disconnected employment": "employment"}
    return {
        (part, measure): f"{column}_{short}_mean"
        for measure, short in (("reciprocal rank", "mrr"), ("top hits", "thr"))
        for part, column in parts.items()
    }


def _section(title: str, outcomes: dict[str, list[Outcome]], free_running: bool) -> Section:
    blocks = [Text("Teacher-forced."), ranks_table(outcomes)]
    if free_running:
        blocks += [Text("Along the model's own answer."), ranks_table(outcomes, free_running=True)]
    return Section(title, tuple(blocks))


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
