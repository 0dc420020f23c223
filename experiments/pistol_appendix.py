"""Tables 6 to 9 of the PISTOL paper: mean reciprocal rank and top-hit ratio of the models of Tables 2 to 5.

    python experiments/pistol_appendix.py [--preset cpu|paper|smoke] [--reading pistol_paper|pistol_code] [--dry-run]

Needs the same models as Tables 2 to 5. Ranks are teacher-forced; the second table of each section has them along the
model's own greedy answer, as the paper's code takes them.
"""

import sys

import pistol_table2
import pistol_table3
import pistol_table4
import pistol_table5
from pistol import Lab, Need, Script, main
from pistol_data import GRAPHS, KNOWN, graph_edges, known_edges
from pistol_page import Page, memory_check

from jaxaudit.metrics import scaled_top
from jaxaudit.report.blocks import Section, Text
from jaxaudit.study import Outcome
from jaxaudit.study.page import conditions_section, ranks_table


def needs(lab: Lab) -> list[Need]:
    """What Tables 2 to 5 need."""
    tables = (pistol_table2, pistol_table3, pistol_table4, pistol_table5)
    return [need for table in tables for need in table.needs(lab)]


def build(lab: Lab) -> Page:
    """All four tables."""
    first = {edge: lab.outcomes("dataset-1", (edge,)) for edge in (pistol_table2.HIGH, pistol_table2.LOW)}
    edges = graph_edges(lab.data("dataset-2"))
    second = {graph: lab.outcomes("dataset-2", edges[graph]) for graph in GRAPHS}
    third = {
        edge: lab.outcomes("dataset-1", (edge,)) for edge in (pistol_table4.SALES, pistol_table4.EMPLOYMENT)
    }
    fourth = {entity.name: lab.outcomes(name, known_edges(lab.data(name))) for name, entity in KNOWN.items()}
    titles = {
        "Table 6: inter-connectivity": first,
        "Table 7: density": second,
        "Table 9: pre-training data": fourth,
    }
    vocabulary = lab.study("dataset-1").questions.model.spec.vocabulary_size
    domains = Section(
        "Table 8: domains",
        tuple(
            block
            for measure, name in (("reciprocal rank", "MRR"), ("top hits", "THR"))
            for block in (Text(f"{name}."), pistol_table4.domain_table(third, measure))
        ),
    )
    sections = [_section(title, outcomes, lab.spec.free_running) for title, outcomes in titles.items()]
    return Page(
        name="appendix",
        title="PISTOL, Tables 6 to 9: ranks",
        script="pistol_appendix.py",
        summary=(
            f"The top-hit ratio counts the top {scaled_top(vocabulary)} of {vocabulary} tokens, the share of the "
            "vocabulary that the paper's top 100 is of Llama 2's.",
        ),
        sections=(*sections[:2], domains, sections[2], conditions_section(lab.study("dataset-1"))),
        checks=(memory_check(first[pistol_table2.HIGH]), memory_check(second["dense"])),
        figures={},
        document={},
    )


def _section(title: str, outcomes: dict[str, list[Outcome]], free_running: bool) -> Section:
    blocks = [Text("Teacher-forced."), ranks_table(outcomes)]
    if free_running:
        blocks += [Text("Along the model's own answer."), ranks_table(outcomes, free_running=True)]
    return Section(title, tuple(blocks))


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
