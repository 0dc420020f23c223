"""The runs of an audit of edges: learn half of the candidates, forget them by every method, score all candidates.

Every run starts from the same pretrained model and reads the questions in the same order, restricted to its own; sign
vectors and noise are drawn for each run afresh. All results are kept as soon as they are made, a few runs at a time.
"""

import time
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, PyTree

from jaxaudit.checks import check_choice
from jaxaudit.keys import stream_key
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import draw_order, draw_run_signs, draw_signs
from jaxaudit.store import fingerprint
from jaxaudit.study.candidates import Candidates
from jaxaudit.study.edgemodels import EdgeModels, Reading
from jaxaudit.study.edgespec import BEFORE, RETRAINED, STRONG, EdgeAuditSpec, method_of
from jaxaudit.study.models import study_fingerprint
from jaxaudit.study.rates import RateChoice, Tried, best_rate
from jaxaudit.study.resultstore import Arrays, ResultStore, params_from_arrays, params_to_arrays

_PER_RUN = ("scores", "norms")
_FORMAT = 1
"""Raised when the code changes what a stored result means."""


class Scored(NamedTuple):
    """One row of the audit: scores of all candidates in all runs, calibration runs first."""

    scores: Float[np.ndarray, "runs groups size"]
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
        design = {
            name: self.design.as_dict()[name]
            for name in ("num_calibration_runs", "num_audit_runs", "predictor")
        }
        study = self.spec.study
        about = [_FORMAT, study.reading, self.candidates.edges, design, self.seed, study.tuning_seed]
        return fingerprint([study_fingerprint(self.questions, study), *about])

    @cached_property
    def _runs(self) -> Reading:
        return self._reading(self.signs, self.seed)

    @cached_property
    def _tuning(self) -> Reading:
        """One run with sign vector and order of its own."""
        return self._reading(self._tuning_signs, self.spec.study.tuning_seed)

    @cached_property
    def _tuning_signs(self) -> Int8[np.ndarray, "1 groups"]:
        return draw_signs(stream_key(self.spec.study.tuning_seed, "sign"), 1, self.candidates.num_groups)

    def _reading(self, signs: Int8[np.ndarray, "runs groups"], seed: int) -> Reading:
        order, own = draw_order(seed, self.questions.num_questions), self.candidates
        return Reading(own.members(signs, order), own.forgotten(signs, order), own.kept(order))

    @cached_property
    def _reference(self) -> Int[np.ndarray, "1 members"]:
        order = draw_order(self.seed, self.questions.num_questions)
        return self.candidates.reference_members(order)[None]

    @cached_property
    def _models(self) -> EdgeModels:
        readings = (self._runs, self._tuning)
        return EdgeModels(self.candidates, self.spec.study, readings, self._reference[0], self.reporter)

    def rates(self) -> dict[str, RateChoice]:
        """The learning rate of every variant of a method, from a run that is not audited.

        It learns half of the candidates by a sign vector of its own and forgets them at every rate. Forget is measured
        on its exclusive questions, retain on the retained edges. For the rules see `EdgeAuditSpec`; by the strong one a
        rate is allowed if ``forget`` is at most the threshold, and of none that is, the one that forgets most is taken.
        """
        return {variant: self._choice(variant) for variant in self.spec.variants}

    def scored(self, row: str) -> Scored:
        """Scores of a row of ``spec.rows``; what is missing is made.

        Raises
        ------
        InputError
            If there is no such row.
        """
        self.ensure([row])
        if row == RETRAINED:  # one model, whatever the sign vector
            found = self._stored(self._place(row, ()))
            parts = {name: np.repeat(found[name], self.spec.num_runs, axis=0) for name in _PER_RUN}
        else:
            pieces = [self._stored(self._place(row, runs)) for runs in self._chunks]
            parts = {name: np.concatenate([piece[name] for piece in pieces]) for name in _PER_RUN}
        finite = np.isfinite(parts["scores"]).all(axis=(1, 2)) & np.isfinite(parts["norms"])
        return Scored(parts["scores"].astype(np.float64), ~finite)

    def runs(self, row: str) -> tuple[CalibrationRuns, AuditedRuns]:
        """The same as calibration and audited runs, see `jaxaudit.analysis.analyse`."""
        scored, count, ids = self.scored(row), self.spec.num_calibration_runs, np.arange(self.spec.num_runs)
        first, second = (
            (self.signs[part], scored.scores[part], ids[part], scored.failed[part])
            for part in (slice(None, count), slice(count, None))
        )
        return CalibrationRuns(*first), AuditedRuns(*second)

    def measured(self, row: str) -> list[Arrays]:
        """What the models of ``measured_runs`` still say, see `jaxaudit.study.measure`; of retraining there is one."""
        self.ensure([row])
        numbers = (0,) if row == RETRAINED else self.measured_runs
        return [self._stored(self._measured_place(row, number)) for number in numbers]

    def seconds(self) -> dict[str, float]:
        """Wall time of everything that was made, whenever it was: of fine-tuning, and of each row beyond that."""
        self.ensure(self.spec.rows)
        trained = [f"fine-tuned/{_span(runs)}" for runs in self._chunks]
        places = {"fine-tuning": trained, RETRAINED: [self._place(RETRAINED, ())]}
        places |= {
            row: [self._place(row, runs) for runs in self._chunks]
            for row in self.spec.rows
            if row != RETRAINED
        }
        return {
            name: sum(float(self._stored(place)["seconds"]) for place in own) for name, own in places.items()
        }

    @property
    def measured_runs(self) -> tuple[int, ...]:
        """Numbers of the runs that are measured."""
        first = self.spec.num_calibration_runs
        return tuple(range(first, first + self.spec.num_measured))

    def forgotten(self, run: int) -> Bool[np.ndarray, " questions"]:
        """Which questions a run learnt and forgot."""
        flags = np.zeros(self.questions.num_questions, bool)
        flags[self._runs.forget[run]] = True
        return flags

    def ensure(self, rows: Iterable[str]) -> None:
        """Make all that is missing, a few runs at a time; every one is kept as soon as it is scored.

        Raises
        ------
        InputError
            If there is no such row.
        """
        rows = list(rows)
        for row in rows:
            check_choice("row", row, self.spec.rows)
        if RETRAINED in rows and not self._is_made(RETRAINED, ()):
            whole = self._special("reference", self._reference)
            self._keep(RETRAINED, (), self._models.repeated(whole), [0.0] * self._chunk, {0: 0})
        for runs in self._chunks:
            whole = None
            for row in rows:  # two variants may have the same rate
                if row != RETRAINED and not self._is_made(row, runs):
                    whole = self._fine_tuned(runs) if whole is None else whole
                    self._make(row, runs, whole)

    def _is_made(self, row: str, runs: tuple[int, ...]) -> bool:
        measured = (0,) if row == RETRAINED else (run for run in runs if run in self.measured_runs)
        places = (self._place(row, runs), *(self._measured_place(row, run) for run in measured))
        return all(self.store.get(place) is not None for place in places)

    # --- models

    @property
    def _chunk(self) -> int:
        return self.spec.study.chunk

    @cached_property
    def _chunks(self) -> tuple[tuple[int, ...], ...]:
        numbers, size = range(self.spec.num_runs), self._chunk
        return tuple(tuple(numbers[first : first + size]) for first in range(0, len(numbers), size))

    def _keys(self, seed: int, purpose: str, count: int) -> Array:
        """Of all runs for one purpose; every training and every method has noise of its own."""
        keys = jax.random.split(stream_key(seed, "noise"), count)
        return jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, zlib.crc32(purpose.encode()))

    def _fine_tuned(self, runs: tuple[int, ...]) -> PyTree:
        """Models before unlearning, with an axis of runs."""
        place, own = f"fine-tuned/{_span(runs)}", self._models.filled(runs)
        if self.store.get(place) is None:
            keys = self._keys(self.seed, "training", self.spec.num_runs)[jnp.array(own)]
            label = f"fine-tuning of runs {_span(runs)} of {self.spec.num_runs}"
            began = time.perf_counter()
            trained = self._models.train(self._runs.members[own], keys, label)
            self.store.put(place, {**params_to_arrays(trained), **_since(began)}, keep=False)
        return self._models.whole(params_from_arrays(self._stored(place), self._models.shapes))

    def _special(self, name: str, members: Int[np.ndarray, "1 members"]) -> PyTree:
        """A model that is no run of the audit: for tuning, or for reference."""
        place = f"fine-tuned/{name}"
        if self.store.get(place) is None:
            keys = self._keys(self.spec.study.tuning_seed, name, self._chunk)
            trained = self._models.train(
                np.repeat(members, self._chunk, axis=0), keys, f"fine-tuning, {name}"
            )
            self.store.put(place, params_to_arrays(jax.tree.map(lambda leaf: leaf[:1], trained)), keep=False)
        whole = self._models.whole(params_from_arrays(self._stored(place), self._models.shapes))
        return jax.tree.map(lambda leaf: leaf[0], whole)

    # --- rows

    def _make(self, row: str, runs: tuple[int, ...], whole: PyTree) -> None:
        own = self._models.filled(runs)
        places = {number: place for place, number in enumerate(runs) if number in self.measured_runs}
        if row == BEFORE:
            self._keep(row, runs, whole, [0.0] * self._chunk, places)
            return
        rates, began = [self._choice(row).rate] * self._chunk, time.perf_counter()
        method = method_of(row)
        keys = self._keys(self.seed, f"method {method}", self.spec.num_runs)[jnp.array(own)]
        label = f"{row} of runs {_span(runs)} of {self.spec.num_runs}"
        params, norms = self._models.unlearn(method, self._runs.take(own), rates, keys, whole, label)
        self._keep(row, runs, params, norms, places, began)

    def _keep(
        self,
        row: str,
        runs: tuple[int, ...],
        params: PyTree,
        norms: Sequence[float],
        measured: dict[int, int],
        began: float | None = None,
    ) -> None:
        """Measure some runs (number and place in the chunk), score all of them, and say so at last."""
        began = time.perf_counter() if began is None else began
        for number, place in measured.items():
            found = self._models.measure(params, place, with_texts=True)
            self.store.put(self._measured_place(row, number), found)
        count = max(len(runs), 1)
        arrays = {"scores": self._models.score(params)[:count], "norms": np.asarray(norms[:count], float)}
        arrays |= _since(began)
        self.store.put(self._place(row, runs), arrays)

    # --- rates

    def _choice(self, variant: str) -> RateChoice:
        study, method = self.spec.study, method_of(variant)
        forget = np.repeat(self._tuning_signs[0] == 1, self.candidates.group_size)
        exclusive = self.candidates.rows.reshape(-1)[forget & ~self.candidates.shared.reshape(-1)]

        def known(hits: Float[np.ndarray, " questions"]) -> tuple[float, float]:
            kept = hits[self.candidates.retained_rows]
            return float(hits[exclusive].mean()), float((kept == 1).mean())

        found = {rate: known(self._tried(method, rate)) for rate in sorted(study.rates)}
        if variant.endswith(STRONG):
            floor, _ = known(self.measured(RETRAINED)[0]["first hits"])
            tried = [Tried(method, rate, *one, one[0] <= floor) for rate, one in found.items()]
            return RateChoice(method, strongest_rate(tried), tuple(tried), floor)
        threshold = study.min_utility * known(self._tried("before"))[1]
        tried = [Tried(method, rate, *one, one[1] >= threshold) for rate, one in found.items()]
        return RateChoice(method, best_rate(tried), tuple(tried), threshold)

    def _tried(self, method: str, rate: float = 0.0) -> Float[np.ndarray, " questions"]:
        """First hits of the tuning model before unlearning, or after a method at some rate."""
        if self.store.get(_tried_place(method, rate)) is None:
            self._try(method)
        return self._stored(_tried_place(method, rate))["first hits"]

    def _try(self, method: str) -> None:
        whole = self._models.repeated(self._special("tuning", self._tuning.members))
        if method == "before":
            self.store.put(_tried_place(method, 0.0), self._models.measure(whole, 0, with_texts=False))
            return
        rates = sorted(self.spec.study.rates)
        for first in range(0, len(rates), self._chunk):
            part = rates[first : first + self._chunk]
            filled = [*part, *[part[-1]] * (self._chunk - len(part))]
            # The same noise at every rate, so that these are compared with the same adapters.
            key = self._keys(self.spec.study.tuning_seed, f"method {method}", 1)
            keys = jnp.broadcast_to(key, (self._chunk,))
            reading = self._tuning.take([0] * self._chunk)
            params, _ = self._models.unlearn(method, reading, filled, keys, whole, f"rates of {method}")
            for place, rate in enumerate(part):
                self.store.put(
                    _tried_place(method, rate), self._models.measure(params, place, with_texts=False)
                )

    # --- places

    def _stored(self, place: str) -> Arrays:
        found = self.store.get(place)
        assert found is not None
        return found

    def _name(self, row: str) -> str:
        if row in (BEFORE, RETRAINED):
            return row
        return f"{method_of(row)}/rate-{self._choice(row).rate:g}"

    def _place(self, row: str, runs: tuple[int, ...]) -> str:
        return f"scores/{self._name(row)}/{_span(runs) if runs else 'all'}"

    def _measured_place(self, row: str, number: int) -> str:
        return f"measured/{self._name(row)}/{number}"


def strongest_rate(tried: Sequence[Tried]) -> float:
    """The smallest allowed rate, or the one that forgets most if none is allowed; of equals the smallest.

    Examples
    --------
    >>> strongest_rate([Tried("npo", 1e-3, 0.5, 0.9, False), Tried("npo", 1e-2, 0.1, 0.4, True)])
    0.01
    """
    allowed = [one.rate for one in tried if one.allowed]
    return min(allowed) if allowed else min(tried, key=lambda one: (one.forget, one.rate)).rate


def _span(runs: Sequence[int]) -> str:
    return f"{runs[0] + 1}-{runs[-1] + 1}"


def _since(began: float) -> dict[str, np.ndarray]:
    return {"seconds": np.asarray(time.perf_counter() - began)}


def _tried_place(method: str, rate: float) -> str:
    return f"tried/{method}/rate-{rate:g}"
