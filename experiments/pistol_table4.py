"""Table 4 of the PISTOL paper: forgetting sales (A_C) or employment (A_n), and what it does to either domain.

    python experiments/pistol_table4.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--reading pistol_paper|pistol_code] [--dry-run]

The retained sets are independent: the edges E_F (sales) and E_q (employment) share no entity with what is forgotten.
Cost: `--dry-run` says it; what is finished is kept. Paper (Llama2, GA): A_C leaves E_F lower than E_q.
"""

import sys

import pistol_paper
from pistol import EdgesOf, Script, Studies, main
from pistol_page import Page, effect_check, memory_check, summarise

from jaxaudit.report.blocks import Section, Table, Text
from jaxaudit.study import (
    Effect,
    Outcome,
    paired_interval,
    recall_table,
)
from jaxaudit.study.figures import draw_bars
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    rates_section,
    reading_section,
    samples_section,
    warnings,
)

SALES, EMPLOYMENT = "A_C", "A_n"
DOMAINS = {SALES: "sales", EMPLOYMENT: "employment"}
OTHER = {"sales": "employment", "employment": "sales"}
CASES = "pairs of method and edge"
PAPER_NAMES = {SALES: "AC", EMPLOYMENT: "An"}
PAPER_COLUMNS = {
    "sales": "retain_sales_ef_rouge1_mean",
    "employment": "retain_employment_eq_rouge1_mean",
}


def needs(studies: Studies) -> list[EdgesOf]:
    """Two edges."""
    return [EdgesOf("dataset-1", (SALES, EMPLOYMENT))]


def domain_effect(studies: Studies, edge: str, method: str) -> Effect:
    """100 times the recall on the other domain minus that on the forgotten one's, and the same beyond retraining."""
    study, rate = studies.study("dataset-1"), studies.rates("dataset-1")[method].rate
    own = DOMAINS[edge]

    def tables(which: str, own_rate: float) -> list:
        return [
            recall_table(study, (edge,), which, own_rate, f"disconnected {domain}")
            for domain in (OTHER[own], own)
        ]

    moved, retrained = tables(method, rate), tables("retrained", 0.0)
    seeds = len(study.spec.seeds)
    raw = paired_interval(lambda other, same: 100 * (other - same), moved, num_seeds=seeds)
    net = paired_interval(
        lambda other, same, floor_other, floor_same: 100 * (other - same - floor_other + floor_same),
        [*moved, *retrained],
        (0, 1, 0, 1),
        num_seeds=seeds,
    )
    return Effect(raw, net)


def domain_bars(studies: Studies, edge: str) -> bytes:
    """Recall of the two independent sets after forgetting an edge, by domain and method, with intervals."""
    study, choices = studies.study("dataset-1"), studies.rates("dataset-1")

    def recall(domain: str, method: str) -> tuple[float, float, float]:
        rate = choices[method].rate if method in choices else 0.0
        table = recall_table(study, (edge,), method, rate, f"disconnected {domain}")
        found = paired_interval(lambda mean: mean, [table], num_seeds=len(study.spec.seeds))
        return found.estimate, found.low, found.high

    values = {domain: {method: recall(domain, method) for method in study.spec.methods} for domain in OTHER}
    floors = {domain: recall(domain, "retrained")[0] for domain in OTHER}
    return draw_bars(values, f"ROUGE-1 recall after forgetting {edge} ({DOMAINS[edge]})", floors)


def build(studies: Studies) -> Page:
    """Forget either, and compare the domains."""
    study = studies.study("dataset-1")
    outcomes = {edge: studies.outcomes("dataset-1", (edge,)) for edge in (SALES, EMPLOYMENT)}
    checks = [
        effect_check(
            f"{method_title(method)}, {edge}: {DOMAINS[edge]} suffers more than {OTHER[DOMAINS[edge]]} (recall x 100)",
            domain_effect(studies, edge, method),
        )
        for edge in outcomes
        for method in study.spec.methods
    ]
    return Page(
        name="table4",
        title="PISTOL, Table 4: domains",
        script="pistol_table4.py",
        summary=(summarise("Forgetting hurts the forgotten domain more than the other", checks, CASES),),
        sections=(
            Section(
                "Independent retained sets",
                (Text("Recall, mean ± standard deviation between seeds."), domain_table(outcomes)),
            ),
            Section("Forgetting sales or employment", (outcome_table(outcomes),)),
            *(_beside(outcomes, domain, studies.our_name) for domain in PAPER_COLUMNS),
            samples_section(study, (EMPLOYMENT,), studies.chosen_rates("dataset-1")),
            rates_section(
                study, studies.rates("dataset-1"), studies.tuning_edges("dataset-1"), tuple(DOMAINS)
            ),
            reading_section(),
            conditions_section(study),
        ),
        checks=(memory_check(outcomes[SALES]), *checks),
        figures={
            f"domains_{edge}": (
                domain_bars(studies, edge),
                f"Recall of the independent sales (EF) and employment (Eq) edges after forgetting {edge} "
                f"({DOMAINS[edge]}), with 95 % intervals.",
            )
            for edge in outcomes
        },
        document=studies.documents("dataset-1", outcomes),
        warnings=warnings(outcomes),
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


def _beside(outcomes: dict[str, list[Outcome]], domain: str, name: str) -> Section:
    ours = pistol_paper.ours_by_method(outcomes, lambda one: f"{one.mean(f'disconnected {domain}'):.3f}")
    title = f"Beside the paper: recall of {domain}"
    return pistol_paper.beside("4", PAPER_COLUMNS[domain], PAPER_NAMES, ours, title, name=name)


SCRIPT = Script(needs, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__ or ""))
