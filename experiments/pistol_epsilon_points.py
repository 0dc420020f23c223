"""What is audited in `pistol_epsilon.py`: graphs of about as many edges but other density, and how much is run."""

import zlib
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
from jaxaudit.study import (
    ADAPTERS,
    FINE_TUNING,
    EdgeAuditSpec,
    Rule,
    StudyPreset,
    StudySpec,
    draw_candidates,
    study_spec,
)

_HALF = "A_B A_C B_D E1_F1 E2_F2 A_n B_p E1_q1 E2_q2 E3_q3"
"""Edges of the half of Dataset 1: both domains, and edges of few and of many contracts."""
_QUESTIONS = 20
"""Of an edge."""


class Point(NamedTuple):
    """A graph and its candidates."""

    name: str
    title: str
    graph: Callable[[], nx.Graph]
    num_candidates: int
    predictors: tuple[PredictorName, ...] = ("batchwise",)
    density: bool = False
    """Whether it is one of the graphs of 28 contracts, of which density alone differs."""
    shape: str = ""
    """Points of the same shape are one graph with other values; its own name by default."""

    @property
    def cluster(self) -> str:
        """What it shares with other points."""
        return self.shape or self.name

    def seed(self, purpose: str, base: int = 0) -> int:
        """A seed of its own for every graph and purpose: two graphs share neither values nor signs nor noise."""
        return zlib.crc32(f"{self.name}, {purpose}, {base}".encode())

    def data(self) -> PistolData:
        """Contracts, with values of its own."""
        return generate(self.graph(), seed=self.seed("data"))

    def candidates(self, data: PistolData) -> tuple[str, ...]:
        """Edges that are learnt and forgotten by half of the runs each; the others are retained."""
        return draw_candidates(data, self.num_candidates, seed=self.seed("candidates"))

    @property
    def num_forgotten(self) -> int:
        """Questions that every run forgets."""
        return self.num_candidates // 2 * _QUESTIONS


def _half() -> nx.Graph:
    kept = [name.split("_") for name in _HALF.split()]
    graph = dataset_1_graph()
    return make_graph((first, second, graph.edges[first, second]["contract"]) for first, second in kept)


_BOTH: tuple[PredictorName, ...] = ("batchwise", "joint")
POINTS = {
    point.name: point
    for point in (
        Point("chain", "chain, 28 edges", lambda: chain(29), 20, density=True),
        Point(
            "random",
            "random graph, 28 edges",
            lambda: erdos_renyi(14, num_edges=28, seed=1),
            20,
            density=True,
        ),
        Point("complete", "complete graph, 28 edges", lambda: complete(8), 20, density=True),
        Point("star", "star, 28 edges", lambda: star(29), 20, density=True),
        Point("dataset-1", "Dataset 1, 12 candidates", dataset_1_graph, 12),
        Point("joint", "Dataset 1, 6 candidates", dataset_1_graph, 6, _BOTH, shape="dataset-1"),
        Point("half", "half of Dataset 1", _half, 8),
        Point("small", "chain, 6 edges", lambda: chain(7), 4),
        Point("small-joint", "chain, 4 edges", lambda: chain(5), 2, _BOTH),
    )
}


@dataclass(frozen=True)
class Size:
    """How much a preset runs."""

    points: tuple[str, ...]
    study: StudySpec
    num_updates: int
    """Of unlearning, the same for all its points: more passes where fewer questions are forgotten."""
    num_calibration_runs: int = 50
    num_audit_runs: int = 10
    num_measured: int = 4
    methods: tuple[str, ...] | None = None
    """``None``: all of the reading."""
    rules: tuple[Rule, ...] = ("utility", "strong")

    def spec(self, point: Point, study: StudySpec, seed: int) -> EdgeAuditSpec:
        """Settings of the audit of a point, with seeds of its own, and the methods that the reading has.

        Raises
        ------
        InputError
            If the reading has none of the methods.
        """
        per_pass = -(-point.num_forgotten // study.batch_size)
        own = replace(
            study,
            epochs=-(-self.num_updates // per_pass),
            seeds=(point.seed("runs", seed),),
            tuning_seed=point.seed("tuning", seed),
        )
        methods = self.methods and tuple(method for method in self.methods if method in study.methods)
        if methods is not None and not methods:
            raise InputError(f"reading must have one of {self.methods}, got {study.reading}")
        return EdgeAuditSpec(
            study=own,
            methods=methods,
            rules=self.rules,
            num_calibration_runs=self.num_calibration_runs,
            num_audit_runs=self.num_audit_runs,
            num_measured=self.num_measured,
            predictors=point.predictors,
        )


_FULL = ("chain", "random", "complete", "star", "dataset-1", "joint")
# Numbers of updates that are whole passes over the questions that are forgotten in every one of the points (200, 120
# and 60 in the full ones); of about as many as for a single edge in the other tables, 100.
SIZES: dict[StudyPreset, Size] = {
    "cpu": Size(
        _FULL,
        study_spec(
            "cpu",
            fine_tuning=replace(FINE_TUNING, epochs=30),
            batch_size=10,
            rates=(5e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        ),
        num_updates=120,
    ),
    # Without dropout in fine-tuning, so that retraining is the same for all runs.
    "paper": Size(_FULL, study_spec("paper", fine_tuning_lora=ADAPTERS), num_updates=150),
    "smollm2": Size(
        ("half",),
        study_spec(
            "smollm2",
            fine_tuning=replace(study_spec("smollm2").fine_tuning, epochs=10),
            batch_size=8,
            rates=(1e-4, 3e-4),
        ),
        num_updates=20,
        num_calibration_runs=8,
        num_audit_runs=4,
        num_measured=1,
        methods=("gradient_difference", "npo"),
        rules=("utility",),
    ),
    "smoke": Size(
        ("small", "small-joint"),
        study_spec("smoke", batch_size=10),
        num_updates=4,
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
