"""Table 4 of the PISTOL paper: forgetting sales (A_C) or employment (A_n), and what it does to either domain.

    python experiments/pistol_table4.py [--preset cpu|paper|smoke] [--reading pistol_paper|pistol_code] [--dry-run]

The retained sets are independent: the edges E_F (sales) and E_q (employment) share no entity with what is forgotten.
Cost: `--dry-run` says it; what is finished is kept. Paper (Llama2, GA): A_C leaves E_F lower than E_q.
"""

import sys

import pistol_paper
from pistol import Lab, Need, Script, main
from pistol_data import tuning_edges
from pistol_page import Page, effect_check, memory_check, summarise

from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import Effect, Outcome, recall_table
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    rates_section,
    reading_section,
)
from jaxaudit.study.resampling import paired_interval
from jaxaudit.study.settings import SHORT_NAMES

SALES, EMPLOYMENT = "A_C", "A_n"
DOMAINS = {SALES: "sales", EMPLOYMENT: "employment"}
OTHER = {"sales": "employment", "employment": "sales"}
PAPER_COLUMNS = {
    "sales": "retain_sales_ef_rouge1_mean",
    "employment": "retain_employment_eq_rouge1_mean",
}


def needs(lab: Lab) -> list[Need]:
    """Two edges."""
    return [Need("dataset-1", (SALES, EMPLOYMENT))]


def domain_effect(lab: Lab, edge: str, method: str) -> Effect:
    """100 times the recall on the other domain minus that on the forgotten one's, and the same beyond retraining."""
    study, rate = lab.study("dataset-1"), lab.rates("dataset-1")[method].rate
    own = DOMAINS[edge]

    def tables(which: str, own_rate: float) -> list:
        return [
            recall_table(study, (edge,), which, own_rate, f"disconnected {domain}")
            for domain in (OTHER[own], own)
        ]

    moved, retrained = tables(method, rate), tables("retrained", 0.0)
    raw = paired_interval(lambda other, same: 100 * (other - same), moved)
    net = paired_interval(
        lambda other, same, floor_other, floor_same: 100 * (other - same - floor_other + floor_same),
        [*moved, *retrained],
        (0, 1, 0, 1),
    )
    return Effect(raw, net)


def build(lab: Lab) -> Page:
    """Forget either, and compare the domains."""
    study = lab.study("dataset-1")
    outcomes = {edge: lab.outcomes("dataset-1", (edge,)) for edge in (SALES, EMPLOYMENT)}
    checks = [
        effect_check(
            f"{method_title(method)}, {edge}: {DOMAINS[edge]} suffers more than {OTHER[DOMAINS[edge]]} (recall x 100)",
            domain_effect(lab, edge, method),
        )
        for edge in outcomes
        for method in study.spec.methods
    ]
    return Page(
        name="table4",
        title="PISTOL, Table 4: domains",
        script="pistol_table4.py",
        summary=(summarise("Forgetting hurts the forgotten domain more than the other", checks),),
        sections=(
            Section("Independent retained sets", (domain_table(outcomes),)),
            Section("Forgetting sales or employment", (outcome_table(outcomes),)),
            *(_beside(outcomes, domain) for domain in PAPER_COLUMNS),
            rates_section(study, lab.rates("dataset-1"), tuning_edges("dataset-1", study.data)),
            reading_section(),
            conditions_section(study),
        ),
        checks=(memory_check(outcomes[SALES]), *checks),
        figures={},
        document={"outcomes": {edge: [one.document() for one in found] for edge, found in outcomes.items()}},
    )


def domain_table(outcomes: dict[str, list[Outcome]], measure: str = "recall") -> Table:
    """A measure on the forget set and on the two independent sets: mean and standard deviation between seeds."""
    parts = ("forget", *(f"disconnected {domain}" for domain in PAPER_COLUMNS))
    rows = [
        (
            edge,
            method_title(one.method),
            *(f"{one.mean(part, measure):.3f} ± {one.spread(part, measure):.3f}" for part in parts),
        )
        for edge, found in outcomes.items()
        for one in found
    ]
    return Table(("forgotten", "method", "forget", "sales (EF)", "employment (Eq)"), tuple(rows))


def _beside(outcomes: dict[str, list[Outcome]], domain: str) -> Section:
    ours = {
        edge: {
            SHORT_NAMES[one.method]: f"{one.mean(f'disconnected {domain}'):.3f}"
            for one in found
            if one.method in SHORT_NAMES
        }
        for edge, found in outcomes.items()
    }
    section = pistol_paper.beside("4", PAPER_COLUMNS[domain], {SALES: "AC", EMPLOYMENT: "An"}, ours)
    return Section(f"Beside the paper: {domain}", (Text("Recall."), *section.blocks))


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
