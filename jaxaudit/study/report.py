"""The page about some edges of any data set: outcomes, breakdowns, rates, graph."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from jaxaudit.data.pistol import PistolData, edge_domains
from jaxaudit.provenance import provenance
from jaxaudit.report.blocks import Figure, Section, Text
from jaxaudit.report.markdown import markdown_page
from jaxaudit.study.figures import draw_graph
from jaxaudit.study.models import Study
from jaxaudit.study.outcome import (
    BASELINES,
    Outcome,
    guessing_floors,
    model_cases,
    outcome_cases,
    outcomes_of,
)
from jaxaudit.study.page import (
    conditions_section,
    method_title,
    outcome_table,
    parts_table,
    ranks_table,
    rates_section,
    reading_section,
    samples_section,
    warnings,
)
from jaxaudit.study.rates import RateChoice, choose_rates


class StudyReport(NamedTuple):
    """All that was found about some edges, each forgotten by itself."""

    study: Study
    tuning_edges: tuple[str, ...]
    choices: Mapping[str, RateChoice]
    outcomes: Mapping[str, Sequence[Outcome]]
    """By edge; baselines first."""
    floors: Mapping[str, float]
    """By edge: recall of the best constant guesses of who never saw it."""

    @property
    def rates(self) -> dict[str, float]:
        """That was chosen, by method."""
        return {method: choice.rate for method, choice in self.choices.items()}

    def document(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "model": self.study.questions.model.name,
            "spec": asdict(self.study.spec),
            "tuning_edges": list(self.tuning_edges),
            "rates": {method: choice.document() for method, choice in self.choices.items()},
            "guessing_floors": dict(self.floors),
            "outcomes": {edge: [one.document() for one in found] for edge, found in self.outcomes.items()},
            "warnings": [warning.text for warning in warnings(self.outcomes)],
            "provenance": provenance(),
        }

    def markdown(self) -> str:
        """The page; figures are files of the same folder."""
        floors = [
            f"{edge} {found[BASELINES.index('retrained')].mean('forget'):.3f} (best constant guesses "
            f"{self.floors[edge]:.3f})"
            for edge, found in self.outcomes.items()
        ]
        text = (
            f"Forget recall of models that never saw the edge: {', '.join(floors)}; this is the goal, not 0."
        )
        figures = [
            Figure(
                name, f"Recall of every edge's answers when {edge} (dashed) is forgotten, mean over seeds."
            )
            for edge, name in ((edge, figure_name(edge)) for edge in self.outcomes)
        ]
        sections = [
            Section("Outcomes", (*warnings(self.outcomes), Text(text), outcome_table(self.outcomes))),
            Section("Retained questions, by distance and domain", (parts_table(self.outcomes), *figures)),
            Section("Ranks of the true answers' tokens", (ranks_table(self.outcomes),)),
            samples_section(self.study, tuple(self.outcomes), self.rates),
            rates_section(self.study, self.choices, self.tuning_edges, tuple(self.outcomes)),
            reading_section(),
            conditions_section(self.study),
        ]
        return markdown_page("Structural unlearning", sections)

    def figures(self) -> dict[str, bytes]:
        """PNG by file name."""
        return {figure_name(edge): draw_edge(self.study, edge, self.choices) for edge in self.outcomes}


def figure_name(edge: str) -> str:
    """File of an edge's graph.

    Examples
    --------
    >>> figure_name("A_B")
    'graph_A_B.png'
    """
    return f"graph_{edge}.png"


def make_report(study: Study, edges: Sequence[str], tuning_edges: Sequence[str] | None = None) -> StudyReport:
    """Choose rates, forget every edge by itself with every method, and retrain without it.

    Parameters
    ----------
    study
        Data, model, settings.
    edges
        To be forgotten.
    tuning_edges
        On which rates are chosen, with a model of their own; ``None``: see `default_tuning_edges`.

    Raises
    ------
    InputError
        If there is no edge, or one does not exist.
    """
    tuned = default_tuning_edges(study.data, edges) if tuning_edges is None else tuple(tuning_edges)
    study.questions.of_edges([*edges, *tuned])
    floors = {edge: guessing_floors(study, [edge]) for edge in edges}  # first: it may refuse the data
    choices = choose_rates(study, tuned)
    rates = {method: choice.rate for method, choice in choices.items()}
    study.ensure(outcome_cases(study, edges, rates))
    outcomes = {edge: outcomes_of(study, [edge], rates) for edge in edges}
    return StudyReport(study, tuned, choices, outcomes, floors)


def default_tuning_edges(data: PistolData, edges: Sequence[str]) -> tuple[str, ...]:
    """One edge for the choice of rates that is not reported: of the first one's domain if there is one.

    If all edges are reported, it is the first of them, and the page says so.

    Examples
    --------
    >>> from jaxaudit.data.pistol import chain, generate
    >>> default_tuning_edges(generate(chain(4), seed=0), ["0_1", "2_3"])
    ('1_2',)
    """
    domains = edge_domains(data)
    others = [edge for edge in data.edges if edge not in edges]
    alike = [edge for edge in others if edges and domains[edge] == domains.get(edges[0])]
    return tuple([*alike, *others, *edges][:1])


def draw_edge(study: Study, edge: str, choices: Mapping[str, RateChoice]) -> bytes:
    """The graph with the recall of every edge after forgetting one of them, a panel per method, mean over seeds."""
    panels = {}
    for method in ("before", "retrained", *study.spec.methods):
        rate = choices[method].rate if method in choices else 0.0
        recalls = [study.result(case)["recall"] for case in model_cases(study, [edge], method, rate)]
        mean = np.mean(recalls, axis=0)
        panels[method_title(method)] = {
            one: float(mean[study.questions.rows_of(one)].mean()) for one in study.data.edges
        }
    return draw_graph(study.data, edge, panels)
