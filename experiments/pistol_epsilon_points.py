"""What is audited in `pistol_epsilon.py`: graphs of about as many edges but other density, and how much is run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import networkx as nx

from jaxaudit.data.pistol import (
    PistolData,
    chain,
    complete,
    dataset_1_graph,
    erdos_renyi,
    generate,
    make_graph,
    star,
)
from jaxaudit.design import PredictorName
from jaxaudit.errors import InputError
from jaxaudit.study import Candidates, EdgeAuditSpec, QuestionSet, StudySpec, draw_candidates, study_spec
from jaxaudit.study.edgespec import Rule
from jaxaudit.study.settings import FINE_TUNING, StudyPreset

_HALF = "A_B A_C B_D E1_F1 E2_F2 A_n B_p E1_q1 E2_q2 E3_q3"
"""Edges of the half of Dataset 1: both domains, and edges of few and of many contracts."""
_DATA_SEED, _CANDIDATE_SEED = 0, 0


class Point(NamedTuple):
    """A graph and its candidates."""

    title: str
    graph: Callable[[], nx.Graph]
    num_candidates: int
    predictors: tuple[PredictorName, ...] = ("batchwise",)
    density: bool = False
    """Whether it is one of the graphs of 28 contracts, of which density alone differs."""

    def data(self) -> PistolData:
        """Contracts, with the same values wherever two graphs share an edge."""
        return generate(self.graph(), seed=_DATA_SEED)

    def candidates(self, data: PistolData) -> tuple[str, ...]:
        """Edges that are learnt and forgotten by half of the runs each; the others are retained."""
        return draw_candidates(data, self.num_candidates, seed=_CANDIDATE_SEED)


def _half() -> nx.Graph:
    kept = [name.split("_") for name in _HALF.split()]
    graph = dataset_1_graph()
    return make_graph((first, second, graph.edges[first, second]["contract"]) for first, second in kept)


POINTS = {
    "chain": Point("chain, 28 edges", lambda: chain(29), 20, density=True),
    "random": Point(
        "random graph, 28 edges", lambda: erdos_renyi(14, num_edges=28, seed=1), 20, density=True
    ),
    "complete": Point("complete graph, 28 edges", lambda: complete(8), 20, density=True),
    "star": Point("star, 28 edges", lambda: star(29), 20, density=True),
    "dataset-1": Point("Dataset 1, 16 candidates", dataset_1_graph, 16),
    "joint": Point("Dataset 1, 6 candidates", dataset_1_graph, 6, ("batchwise", "joint")),
    "half": Point("half of Dataset 1", _half, 8),
    "small": Point("chain, 6 edges", lambda: chain(7), 4),
    "small-joint": Point("chain, 4 edges", lambda: chain(5), 2, ("batchwise", "joint")),
}


@dataclass(frozen=True)
class Size:
    """How much a preset runs."""

    points: tuple[str, ...]
    study: StudySpec
    num_calibration_runs: int = 50
    num_audit_runs: int = 10
    num_measured: int = 2
    methods: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ("utility", "strong")

    def spec(self, point: Point, study: StudySpec) -> EdgeAuditSpec:
        """Settings of the audit of a point, of the methods that the reading has."""
        return EdgeAuditSpec(
            study=study,
            methods=tuple(method for method in self.methods if method in study.methods),
            rules=self.rules,
            num_calibration_runs=self.num_calibration_runs,
            num_audit_runs=self.num_audit_runs,
            num_measured=self.num_measured,
            predictors=point.predictors,
        )


_FULL = ("chain", "random", "complete", "star", "dataset-1", "joint")
# As many updates of unlearning as for a single edge in the other tables, 100: fewer passes over more questions.
SIZES: dict[StudyPreset, Size] = {
    "cpu": Size(
        _FULL,
        study_spec(
            "cpu",
            fine_tuning=replace(FINE_TUNING, epochs=30),
            epochs=5,
            batch_size=10,
            seeds=(1,),
        ),
    ),
    "paper": Size(_FULL, study_spec("paper", seeds=(1,))),
    "smollm2": Size(
        ("half",),
        study_spec(
            "smollm2",
            fine_tuning=replace(study_spec("smollm2").fine_tuning, epochs=10),
            epochs=2,
            batch_size=8,
            rates=(1e-4, 3e-4),
        ),
        num_calibration_runs=8,
        num_audit_runs=4,
        num_measured=1,
        methods=("gradient_difference", "npo"),
        rules=("utility",),
    ),
    "smoke": Size(
        ("small", "small-joint"),
        study_spec("smoke", seeds=(1,), batch_size=10),
        num_calibration_runs=4,
        num_audit_runs=2,
        num_measured=1,
        methods=("gradient_difference", "npo"),
    ),
}


def chosen_points(names: tuple[str, ...], preset: StudyPreset) -> dict[str, Point]:
    """Points by name; none is all of the preset.

    Raises
    ------
    InputError
        If there is no such point.
    """
    for name in names:
        if name not in POINTS:
            raise InputError(f"points must be among {', '.join(POINTS)}, got {name!r}")
    return {name: POINTS[name] for name in names or SIZES[preset].points}


def candidates_of(point: Point, questions: QuestionSet) -> Candidates:
    """The candidates of a point, for the questions of its data."""
    return Candidates(questions, point.candidates(questions.data))
