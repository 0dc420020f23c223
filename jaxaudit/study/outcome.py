"""What one method did to some edges: means by part, deviation score, and all of it beside retraining."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxaudit.data.pistol import guessing_floor
from jaxaudit.llm import untouched_runs
from jaxaudit.metrics import (
    Deviation,
    Interval,
    deviation_from_retraining,
    deviation_of_means,
    rouge1_recall,
)
from jaxaudit.study.models import MOVED, Case, Study
from jaxaudit.study.resampling import Table, paired_interval

BASELINES = ("base", "before", "retrained")
"""Models that every method is compared with: pretrained, fine-tuned on everything, fine-tuned without the edge."""


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
    moved
        Per row the norm of what unlearning changed; none for baselines. See `jaxaudit.study.unlearning.Unlearned`.
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
    moved: tuple[float, ...] = ()

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
        return self._interval(deviation_of_means, self.tables[:2])

    @cached_property
    def distance(self) -> Interval:
        """100 times the distance of the pairs of means from retraining's.

        It is a norm: noise alone makes it positive, resampling adds noise, and the interval lies too high.
        """

        def statistic(forget: Any, retain: Any, floor_forget: Any, floor_retain: Any) -> Any:
            return 100 * np.hypot(forget - floor_forget, retain - floor_retain)

        return self._interval(statistic, self.tables)

    @cached_property
    def distance_between_seeds(self) -> float | None:
        """Mean distance of a model's pair of means from that of a model retrained with another seed.

        Of ``retrained`` itself it is the floor: what two retrained models differ by. ``None`` if there is one seed.
        """
        found, floor = (
            np.stack([self._per_seed(forget), self._per_seed(retain)], axis=1)
            for forget, retain in (self.tables[:2], self.tables[2:])
        )
        distances = 100 * np.linalg.norm(found[:, None] - floor[None], axis=-1)
        others = ~np.eye(len(self.seeds), dtype=bool)
        return float(distances[others].mean()) if others.any() else None

    @property
    def num_untouched(self) -> int:
        """Rows in which unlearning changed nothing at all."""
        return len(untouched_runs([norm for norm in self.moved if np.isfinite(norm)]))

    @property
    def num_diverged(self) -> int:
        """Rows whose parameters are no longer finite."""
        return sum(not np.isfinite(norm) for norm in self.moved)

    def _per_seed(self, table: Table) -> Float[np.ndarray, " seeds"]:
        return table.reshape(len(self.seeds), -1).mean(axis=1)

    def _interval(self, statistic: Any, tables: Sequence[Table]) -> Interval:
        return paired_interval(statistic, tables, (0, 1, 0, 1)[: len(tables)], num_seeds=len(self.seeds))

    @cached_property
    def excess(self) -> Interval:
        """The score minus that of the retrained models."""

        def statistic(forget: Any, retain: Any, floor_forget: Any, floor_retain: Any) -> Any:
            return deviation_of_means(forget, retain) - deviation_of_means(floor_forget, floor_retain)

        return self._interval(statistic, self.tables)

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
        between = self.distance_between_seeds
        return {
            "method": self.method,
            "edges": list(self.edges),
            "seeds": list(self.seeds),
            "deviation": {
                "score": _interval(self.score),
                "retrained": self.deviation.retrained_score,
                "excess": _interval(self.excess),
                "distance": _interval(self.distance),
                **({} if between is None else {"distance_between_seeds": between}),
            },
            "forget": _interval(self._interval(_itself, self.tables[:1])),
            "retain": _interval(self._interval(_itself, self.tables[1:2])),
            "empty": self.num_empty,
            "moved": [norm if np.isfinite(norm) else "not finite" for norm in self.moved],
            "parts": {
                part: {measure: values.round(6).tolist() for measure, values in measures.items()}
                for part, measures in self.parts.items()
            },
        }


def _itself(mean: Any) -> Any:
    return mean


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
        tuple(float(one[MOVED]) for one in results if MOVED in one),
    )


def outcomes_of(study: Study, edges: Sequence[str], rates: Mapping[str, float]) -> list[Outcome]:
    """Baselines first, then every method, on some edges together; what is missing is made.

    Parameters
    ----------
    study, edges
        As for `outcome`.
    rates
        Learning rate of every method.
    """
    study.ensure(outcome_cases(study, edges, rates))
    return [outcome(study, edges, method, rates.get(method, 0.0)) for method in (*BASELINES, *rates)]


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
    measures = [name for name in results[0] if name not in ("text", MOVED)]
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
