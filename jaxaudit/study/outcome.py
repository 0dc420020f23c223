"""What one method did to some edges: means by part, deviation score, and all of it beside retraining."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxaudit.data.pistol import guessing_floor
from jaxaudit.metrics import (
    Deviation,
    Interval,
    deviation_from_retraining,
    deviation_of_means,
    rouge1_recall,
)
from jaxaudit.study.resampling import Table, paired_interval
from jaxaudit.study.study import Case, Study


@dataclass(frozen=True)
class Outcome:
    """One method, or a baseline, on some edges and seeds: a row per pair of edge and seed, a column per question.

    Parameters
    ----------
    method
        Name of a method, ``base``, ``before`` or ``retrained``.
    edges, seeds
        Rows are all edges of the first seed, then of the second, and so on.
    forget, retain
        ROUGE-1 recall of the forget and the retain questions.
    retrained_forget, retrained_retain
        The same of the models that were retrained without the edge, with the same seeds.
    parts
        Mean of every measure over every part of the questions, per row; see `QuestionSet.parts`. A row whose edge does
        not have such a part is left out.
    num_empty
        Answers to forget questions without any text, in all rows.
    """

    method: str
    edges: tuple[str, ...]
    seeds: tuple[int, ...]
    forget: Table
    retain: Table
    retrained_forget: Table
    retrained_retain: Table
    parts: Mapping[str, Mapping[str, Float[np.ndarray, " rows"]]]
    num_empty: int

    @cached_property
    def deviation(self) -> Deviation:
        """Deviation score of the means, and its distance to that of retraining."""
        return deviation_from_retraining(
            self.forget,
            self.retain,
            retrained_forget=self.retrained_forget,
            retrained_retain=self.retrained_retain,
        )

    @cached_property
    def score(self) -> Interval:
        """The deviation score, with its interval over questions and models."""
        return paired_interval(deviation_of_means, (self.forget, self.retain))

    @cached_property
    def excess(self) -> Interval:
        """The score minus that of the retrained models."""

        def statistic(forget: Any, retain: Any, floor_forget: Any, floor_retain: Any) -> Any:
            return deviation_of_means(forget, retain) - deviation_of_means(floor_forget, floor_retain)

        return paired_interval(statistic, self.tables, (0, 1, 0, 1))

    @property
    def tables(self) -> tuple[Table, Table, Table, Table]:
        """Forget and retain of the method, then of retraining."""
        return self.forget, self.retain, self.retrained_forget, self.retrained_retain

    def mean(self, part: str, measure: str = "recall") -> float | None:
        """Mean of a measure over a part of the questions; ``None`` if no edge has such a part."""
        values = self.parts.get(part, {}).get(measure)
        return None if values is None else float(values.mean())

    def spread(self, part: str, measure: str = "recall") -> float:
        """Standard deviation between rows (0 if there is one only), as the paper prints."""
        values = self.parts[part][measure]
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    def document(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "method": self.method,
            "edges": list(self.edges),
            "seeds": list(self.seeds),
            "deviation": {
                "score": _interval(self.score),
                "retrained": self.deviation.retrained_score,
                "excess": _interval(self.excess),
                "distance": self.deviation.distance,
            },
            "empty": self.num_empty,
            "parts": {
                part: {measure: values.round(6).tolist() for measure, values in measures.items()}
                for part, measures in self.parts.items()
            },
        }


def _interval(found: Interval) -> list[float]:
    return [found.estimate, found.low, found.high]


def outcome_cases(study: Study, edges: Sequence[str], rates: Mapping[str, float]) -> list[Case]:
    """All models that the outcomes of these edges need, seed by seed, so that a study that is killed has whole seeds.

    Parameters
    ----------
    study
        Its settings name the seeds.
    edges
        To be forgotten, one at a time.
    rates
        Learning rate of every method.
    """
    cases = [Case("base")]
    for seed in study.spec.seeds:
        cases.append(Case("before", seed))
        cases += [Case("retrained", seed, edge) for edge in edges]
        cases += [
            Case("unlearned", seed, edge, method, rate) for method, rate in rates.items() for edge in edges
        ]
    return cases


def outcome(study: Study, edges: Sequence[str], method: str, rate: float = 0.0) -> Outcome:
    """The outcome of one method, or of a baseline; what is missing is made.

    Parameters
    ----------
    study
        Its settings name the seeds.
    edges
        Forgotten one at a time; all with the same number of questions.
    method
        Name of a method, ``base``, ``before`` or ``retrained``.
    rate
        Learning rate of a method.
    """
    pairs = [(edge, seed) for seed in study.spec.seeds for edge in edges]
    cases = model_cases(study, edges, method, rate)
    study.ensure([*cases, *model_cases(study, edges, "retrained")])
    results = [study.result(case) for case in cases]
    parts = {edge: study.questions.parts(edge) for edge in edges}
    empty = sum(float(one["empty"][parts[edge]["forget"]].sum()) for one, (edge, _) in zip(results, pairs))
    return Outcome(
        method,
        tuple(edges),
        study.spec.seeds,
        recall_table(study, edges, method, rate, "forget"),
        recall_table(study, edges, method, rate, "retain"),
        recall_table(study, edges, "retrained", 0.0, "forget"),
        recall_table(study, edges, "retrained", 0.0, "retain"),
        _part_means(results, [parts[edge] for edge, _ in pairs]),
        round(empty),
    )


def recall_table(study: Study, edges: Sequence[str], method: str, rate: float, part: str) -> Table:
    """ROUGE-1 recall of a part of the questions: a row per pair of edge and seed, as in `Outcome`.

    Parameters
    ----------
    study, edges, method, rate
        As for `outcome`.
    part
        Name in `QuestionSet.parts`; it must have equally many questions for all edges.
    """
    parts = [study.questions.parts(edge)[part] for _ in study.spec.seeds for edge in edges]
    cases = model_cases(study, edges, method, rate)
    return np.stack([study.result(case)["recall"][own] for case, own in zip(cases, parts)])


def model_cases(study: Study, edges: Sequence[str], method: str, rate: float = 0.0) -> list[Case]:
    """The models of a method, or of a baseline: all edges of the first seed, then of the second, and so on."""
    return [_case(method, rate, edge, seed) for seed in study.spec.seeds for edge in edges]


def _case(method: str, rate: float, edge: str, seed: int) -> Case:
    if method == "base":
        return Case("base")
    if method == "before":
        return Case("before", seed)
    return (
        Case("retrained", seed, edge)
        if method == "retrained"
        else Case("unlearned", seed, edge, method, rate)
    )


def _part_means(
    results: Sequence[Mapping[str, np.ndarray]], parts: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, dict[str, np.ndarray]]:
    measures = [name for name in results[0] if name != "text"]
    names = dict.fromkeys(name for one in parts for name in one)
    return {
        part: {
            measure: np.array(
                [one[measure][own[part]].mean() for one, own in zip(results, parts) if part in own]
            )
            for measure in measures
        }
        for part in names
    }


def guessing_floors(study: Study, edges: Sequence[str]) -> float:
    """Mean recall of the best guesser who never saw the edge, see `jaxaudit.data.pistol.guessing_floor`."""

    def score(truth: str, guess: str) -> float:
        return rouge1_recall(guess, truth)

    return float(np.mean([np.mean(guessing_floor(study.data, [edge], score)) for edge in edges]))
