"""The runs of an audit of edges: learn half of the candidates, forget them by every method, score all candidates.

Every run starts from the same pretrained model and reads the questions in the same order, restricted to its own; sign
vectors and noise are drawn for each run afresh. Every run's result is kept by itself as soon as it is made, so that a
killed audit goes on, with as many runs at a time as one likes.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int8, PyTree

from jaxaudit.checks import check_choice
from jaxaudit.keys import stream_key
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import draw_order, draw_run_signs, draw_signs
from jaxaudit.store import fingerprint
from jaxaudit.study.candidates import Candidates
from jaxaudit.study.chunks import filled, in_chunks
from jaxaudit.study.edgemodels import EdgeModels, Reading, run_keys
from jaxaudit.study.edgerates import EdgeRates
from jaxaudit.study.edgespec import BEFORE, RETRAINED, EdgeAuditSpec, method_of
from jaxaudit.study.edgetraining import FineTuned
from jaxaudit.study.models import study_fingerprint
from jaxaudit.study.rates import RateChoice
from jaxaudit.study.resultstore import Arrays, ResultStore
from jaxaudit.unlearn.preference import PRESETS

_FORMAT = 3
"""Raised when the code changes what a stored result means."""
_ALL = -1
"""In place of the number of a run: retraining, one model whatever the sign vector."""
_REFERENCE = "reference"


class Scored(NamedTuple):
    """One row of the audit: all candidates in all runs, calibration runs first."""

    scores: Float[np.ndarray, "runs groups size"]
    norms: Float[np.ndarray, " runs"]
    """Of what unlearning changed; 0 where nothing was unlearned, or a method did nothing."""
    failed: Bool[np.ndarray, " runs"]
    """Runs whose scores, or parameters, are not finite."""


class EdgeAudit:
    """Runs of an audit and their results, made when they are asked for.

    Parameters
    ----------
    candidates
        Data, pretrained model, candidate edges.
    spec
        Settings.
    store
        Folder for results; those of other audits and studies may be there, too. ``None``: memory only.
    reporter
        Where progress goes.

    Raises
    ------
    InputError
        If the design does not fit the number of candidates.
    """

    def __init__(
        self,
        candidates: Candidates,
        spec: EdgeAuditSpec,
        *,
        store: Path | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.candidates, self.spec, self.questions = candidates, spec, candidates.questions
        self.design = spec.design(candidates.num_groups)
        self.seed = spec.study.seeds[0]
        self.signs: Int8[np.ndarray, "runs groups"] = np.concatenate(draw_run_signs(self.design, self.seed))
        self.reporter = reporter or SilentReporter()
        self.store = ResultStore(None if store is None else store / self._fingerprint()[:16])

    def _fingerprint(self) -> str:
        """Of all that a run depends on; not of methods, rules and rates, which are in the names of the results.

        Nor of the number of audited runs: signs and noise of the first ones are the same if more are made.
        """
        design = {name: self.design.as_dict()[name] for name in ("num_calibration_runs", "predictor")}
        study = self.spec.study
        reading = [study.reading, asdict(PRESETS[study.reading])]
        about = [_FORMAT, reading, self.candidates.edges, design, self.seed, study.tuning_seed]
        return fingerprint([study_fingerprint(self.questions, study), *about])

    # --- what runs read

    @cached_property
    def _runs(self) -> Reading:
        return self._reading(self.signs, self.seed)

    @cached_property
    def _tuning(self) -> Reading:
        """One run with sign vector and order of its own."""
        seed = self.spec.study.tuning_seed
        signs = draw_signs(stream_key(seed, "sign"), 1, self.candidates.num_groups)
        return self._reading(signs, seed)

    def _reading(self, signs: Int8[np.ndarray, "runs groups"], seed: int) -> Reading:
        order, own = draw_order(seed, self.questions.num_questions), self.candidates
        return Reading(own.members(signs, order), own.forgotten(signs, order), own.kept(order))

    @cached_property
    def _fine_tuned(self) -> FineTuned:
        reference = self.candidates.reference_members(draw_order(self.seed, self.questions.num_questions))
        readings = (self._runs, self._tuning)
        models = EdgeModels(self.candidates, self.spec.study, readings, reference, self.reporter)
        return FineTuned(models, self.store)

    @property
    def num_updates(self) -> int:
        """Updates of unlearning, of every method in every run."""
        return self._fine_tuned.models.settings.num_updates

    # --- results

    @cached_property
    def _rates(self) -> EdgeRates:
        return EdgeRates(
            self.spec, self._fine_tuned, self._tuning, lambda: self.measured(RETRAINED)[0]["first hits"]
        )

    def rates(self) -> dict[str, RateChoice]:
        """The learning rate of every variant of a method, see `jaxaudit.study.edgerates.EdgeRates`."""
        return {variant: self._rates.choice(variant) for variant in self.spec.variants}

    def scored(self, row: str) -> Scored:
        """Scores of a row of ``spec.rows``; what is missing is made.

        Raises
        ------
        InputError
            If there is no such row.
        """
        self.ensure([row])
        name, runs = self._name(row), range(self.spec.num_runs)
        found = [self._stored(_scores(name, _ALL if row == RETRAINED else run)) for run in runs]
        scores = np.stack([one["scores"] for one in found]).astype(np.float64)
        norms = np.array([float(one["norm"]) for one in found])
        return Scored(scores, norms, ~(np.isfinite(scores).all(axis=(1, 2)) & np.isfinite(norms)))

    def runs(
        self, row: str, signs: Int8[np.ndarray, "runs groups"] | None = None
    ) -> tuple[CalibrationRuns, AuditedRuns]:
        """The same as calibration and audited runs, see `jaxaudit.analysis.analyse`.

        Parameters
        ----------
        row
            One of ``spec.rows``.
        signs
            What the runs are said to have learnt. Default: what they did.
        """
        scored, count, ids = self.scored(row), self.spec.num_calibration_runs, np.arange(self.spec.num_runs)
        own = self.signs if signs is None else signs
        first, second = (
            (own[part], scored.scores[part], ids[part], scored.failed[part])
            for part in (slice(None, count), slice(count, None))
        )
        return CalibrationRuns(*first), AuditedRuns(*second)

    def measured(self, row: str) -> list[Arrays]:
        """What the models of ``measured_runs`` still say, see `jaxaudit.study.measure`; of retraining there is one."""
        self.ensure([row])
        name = self._name(row)
        return [self._stored(_measured(name, run)) for run in self._measured_of(row)]

    def seconds(self) -> dict[str, float]:
        """Wall seconds of all that was made, in whatever session, compilation included; every one counts once.

        ``fine-tuning``: of the runs. ``choosing rates``: fine-tuning of one more model, every method at every rate, and
        measuring. Of every row what comes on top: unlearning, the answers of the measured runs, and scores; of
        retraining its fine-tuning, too. A row with the same method and rate as one before it is the same, and takes 0.
        """
        self.ensure(self.spec.rows)
        fine_tuned, seen = self._fine_tuned, set[str]()
        found = {
            "fine-tuning": fine_tuned.seconds([_run(run) for run in range(self.spec.num_runs)]),
            "choosing rates": self._rates.seconds(),
        }
        for row in self.spec.rows:
            name, runs = self._name(row), [_ALL] if row == RETRAINED else range(self.spec.num_runs)
            own = [] if name in seen else [self._stored(_scores(name, run)) for run in runs]
            found[row] = sum(float(one["seconds"]) for one in own)
            seen.add(name)
        found[RETRAINED] += fine_tuned.seconds([_REFERENCE])
        return found

    @property
    def measured_runs(self) -> tuple[int, ...]:
        """Numbers of the runs that are measured."""
        first = self.spec.num_calibration_runs
        return tuple(range(first, first + self.spec.num_measured))

    def _measured_of(self, row: str) -> tuple[int, ...]:
        return (_ALL,) if row == RETRAINED else self.measured_runs

    def forgotten(self, run: int) -> Bool[np.ndarray, " questions"]:
        """Which questions a run learnt and forgot."""
        flags = np.zeros(self.questions.num_questions, bool)
        flags[self._runs.forget[run]] = True
        return flags

    # --- making them

    def ensure(self, rows: Iterable[str]) -> None:
        """Make all that is missing, a few runs at a time; every one is kept as soon as it is scored.

        Raises
        ------
        InputError
            If there is no such row.
        """
        rows = list(dict.fromkeys(rows))
        for row in rows:
            check_choice("row", row, self.spec.rows)
        if RETRAINED in rows and not self._is_made(RETRAINED, RETRAINED, _ALL):
            self._retrain()
        named: dict[str, str] = {}
        for row in rows:  # two variants of one rate are the same runs
            if row != RETRAINED:
                named.setdefault(self._name(row), row)
        self._ensure_runs(named)

    def _ensure_runs(self, rows: Mapping[str, str]) -> None:
        """Rows by the name of their results."""
        missing = {
            name: {run for run in range(self.spec.num_runs) if not self._is_made(name, row, run)}
            for name, row in rows.items()
        }
        # Those that are measured first: they tell soon whether what is learnt is remembered.
        wanted = sorted(
            set[int]().union(*missing.values()), key=lambda run: (run not in self.measured_runs, run)
        )
        for part in in_chunks(wanted, self.spec.study.chunk):
            whole = self.fine_tuned(part)
            for name, row in rows.items():
                own = [run for run in part if run in missing[name]]
                if own:
                    self._make(name, row, own, self._chosen(whole, part, own))

    def _chosen(self, whole: PyTree, part: Sequence[int], own: Sequence[int]) -> PyTree:
        """Models of some runs of a part, as many as a chunk has; not copied if it is all of them."""
        places = [part.index(run) for run in filled(own, self.spec.study.chunk)]
        if places == list(range(len(part))):
            return whole
        return jax.tree.map(lambda leaf: leaf[np.array(places)], whole)

    def _is_made(self, name: str, row: str, run: int) -> bool:
        places = [_scores(name, run), *([_measured(name, run)] if run in self._measured_of(row) else [])]
        return all(self.store.get(place) is not None for place in places)

    def fine_tuned(self, runs: Sequence[int]) -> PyTree:
        """Parameters of some runs before unlearning, with an axis of runs."""
        own = np.array(runs)
        keys = run_keys(self.seed, "training", self.spec.num_runs)[jnp.asarray(own)]
        return self._fine_tuned.get([_run(run) for run in runs], self._runs.members[own], keys)

    def _retrain(self) -> None:
        models = self._fine_tuned.models
        key = run_keys(self.seed, _REFERENCE, 1)
        whole = self._fine_tuned.get([_REFERENCE], models.reference[None], key)
        together = models.repeated(jax.tree.map(lambda leaf: leaf[0], whole))
        self._keep(RETRAINED, RETRAINED, [_ALL], together, [0.0], time.perf_counter())

    def _make(self, name: str, row: str, runs: Sequence[int], whole: PyTree) -> None:
        """A row of some runs, from their models before unlearning, which are as many as a chunk has."""
        began, own = time.perf_counter(), filled(runs, self.spec.study.chunk)
        if row == BEFORE:
            self._keep(name, row, runs, whole, [0.0] * len(own), began)
            return
        method, rates = method_of(row), [self._rates.choice(row).rate] * len(own)
        keys = run_keys(self.seed, f"method {method}", self.spec.num_runs)[jnp.asarray(own)]
        label = f"{row} of runs {', '.join(str(run + 1) for run in runs)} of {self.spec.num_runs}"
        reading = self._runs.take(own)
        params, norms = self._fine_tuned.models.unlearn(method, reading, rates, keys, whole, label)
        self._keep(name, row, runs, params, norms, began)

    def _keep(
        self, name: str, row: str, runs: Sequence[int], params: PyTree, norms: Sequence[float], began: float
    ) -> None:
        """Measure and score some runs, the first models of a chunk; of each the scores at last, which say so."""
        models, measured = self._fine_tuned.models, self._measured_of(row)
        for place, run in enumerate(runs):
            if run in measured:
                self.store.put(_measured(name, run), models.measure(params, place, with_texts=True))
        scores = models.score(params)
        share = np.asarray((time.perf_counter() - began) / len(runs))
        for place, run in enumerate(runs):
            arrays = {"scores": scores[place], "norm": np.asarray(float(norms[place])), "seconds": share}
            self.store.put(_scores(name, run), arrays)

    def _stored(self, place: str) -> Arrays:
        found = self.store.get(place)
        assert found is not None
        return found

    def _name(self, row: str) -> str:
        """Of the results of a row."""
        if row in (BEFORE, RETRAINED):
            return row
        return f"{method_of(row)}/rate-{self._rates.choice(row).rate!r}"


def _run(run: int) -> str:
    return "all" if run == _ALL else f"run-{run + 1}"


def _scores(name: str, run: int) -> str:
    return f"scores/{name}/{_run(run)}"


def _measured(name: str, run: int) -> str:
    return f"measured/{name}/{_run(run)}"
