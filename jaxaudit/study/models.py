"""A study: which models it needs, each of them made once, measured, and kept on disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from jaxtyping import PyTree

from jaxaudit.checks import check_choice
from jaxaudit.data.pistol import PistolData
from jaxaudit.llm import Adapted, LoraSpec, init_adapters, merge
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.store import fingerprint, hash_arrays
from jaxaudit.study.chunks import filled, in_chunks
from jaxaudit.study.measure import FREE_RUNNING, measure
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.resultstore import Arrays, ResultStore, params_from_arrays, params_to_arrays
from jaxaudit.study.settings import StudySpec
from jaxaudit.study.training import Training, fine_tune, trained_shapes
from jaxaudit.study.unlearning import Request, unlearn
from jaxaudit.train import Params

Kind = Literal["base", "before", "retrained", "unlearned", "tried"]
MOVED = "moved"
"""Of an unlearned model, beside its measures: norm of what was changed, see `jaxaudit.study.unlearning.Unlearned`."""
_FORMAT = 2
"""Raised when the code changes what a stored result means."""


class Case(NamedTuple):
    """One model to be measured."""

    kind: Kind
    """``base``: pretrained. ``before``: fine-tuned on everything. ``retrained``: fine-tuned without the edge.
    ``unlearned``: has forgotten the edge. ``tried``: the same, to choose a rate; without generated answers."""
    seed: int = 0
    edge: str = ""
    method: str = ""
    rate: float = 0.0

    @property
    def name(self) -> str:
        """Place in the store, without the reading.

        Examples
        --------
        >>> Case("unlearned", 1, "A_B", "npo", 1e-3).name
        'unlearned/npo/A_B/rate-0.001/seed-1'
        """
        parts = [self.kind, self.method, self.edge, f"rate-{self.rate:g}" if self.rate else ""]
        return "/".join([*filter(None, parts), f"seed-{self.seed}"])


class Study:
    """Models and their results, made when they are asked for.

    Parameters
    ----------
    questions
        The data and the pretrained model.
    spec
        Settings.
    store
        Folder for results; those of other data, models or settings may be there, too. ``None``: memory only.
    reporter
        Where progress goes.
    """

    def __init__(
        self,
        questions: QuestionSet,
        spec: StudySpec,
        *,
        store: Path | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.questions, self.spec = questions, spec
        self.reporter = reporter or SilentReporter()
        self._merged: dict[int, Params] = {}
        self.store = ResultStore(None if store is None else store / study_fingerprint(questions, spec)[:16])

    @property
    def data(self) -> PistolData:
        """Contracts and graph, of a study that has them."""
        return self.questions.contracts

    def result(self, case: Case) -> Arrays:
        """Measures of a model per question, see `jaxaudit.study.measure.measure`; made if it is not there."""
        self.ensure([case])
        found = self.store.get(self._place(case))
        assert found is not None
        return found

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        """Those that are still to be made, each once."""
        return [case for case in dict.fromkeys(cases) if not self._is_complete(case)]

    def _is_complete(self, case: Case) -> bool:
        found = self.store.get(self._place(case))
        return found is not None and (not self._is_ranked(case) or FREE_RUNNING[0] in found)

    def _is_ranked(self, case: Case) -> bool:
        """Whether its ranks are also taken along its own answers."""
        return self.spec.free_running and case.kind != "tried"

    def ensure(self, cases: Iterable[Case]) -> None:
        """Make all that is missing, a few models at a time; every one is kept as soon as it is measured.

        Raises
        ------
        InputError
            If a case names an edge or a method that does not exist.
        """
        missing = self.missing(cases)
        for case in missing:
            if case.edge:
                self.questions.of_edges([case.edge])
            if case.method:
                check_choice("method", case.method, self.spec.methods)
        # Seed by seed, so that a study that is killed has whole seeds.
        for seed in dict.fromkeys(case.seed for case in missing):
            self._make([case for case in missing if case.seed == seed])

    def _make(self, cases: Sequence[Case]) -> None:
        """Cases of one seed."""
        of_kind = {kind: [case for case in cases if case.kind == kind] for kind in _KINDS}
        if of_kind["base"]:
            self._keep(of_kind["base"], *self._base())
        unlearned = [*of_kind["tried"], *of_kind["unlearned"]]
        before = of_kind["before"]
        if unlearned and not before and self.store.get(self._weights(unlearned[0].seed)) is None:
            before = [Case("before", unlearned[0].seed)]
        self._train([*before, *of_kind["retrained"]])
        groups: dict[tuple[str, str, int], list[Case]] = {}
        for case in unlearned:  # a program is for one method and one number of questions
            size = len(self.questions.rows_of(case.edge))
            groups.setdefault((case.kind, case.method, size), []).append(case)
        for (_, method, _), together in groups.items():
            self._unlearn(method, together)

    def _base(self) -> tuple[PyTree, LoraSpec | None]:
        """The pretrained model; of a study of adapters, with such as add nothing, so that it is not copied."""
        questions, lora = self.questions, self.spec.lora
        if lora is None:
            return jax.tree.map(lambda leaf: leaf[None], questions.base), None
        adapters = init_adapters(jax.random.key(0), questions.model.spec, lora)
        return Adapted(questions.base, jax.tree.map(lambda leaf: leaf[None], adapters)), lora

    def fine_tuned(self, seed: int) -> Params:
        """The model before unlearning, with its adapters merged; the last one that was asked for is kept."""
        if seed not in self._merged:
            if self.store.get(self._weights(seed)) is None:
                self._train([Case("before", seed)])
            arrays, lora = self.store.get(self._weights(seed)), self.spec.fine_tuning_lora
            assert arrays is not None
            whole = params_from_arrays(arrays, trained_shapes(self.questions.model.spec, lora))
            self._merged.clear()
            self._merged[seed] = whole if lora is None else merge(self.questions.base, whole, lora)
        return self._merged[seed]

    def _weights(self, seed: int) -> str:
        """Place of a model before unlearning: all its parameters, or its adapters."""
        return f"{'weights' if self.spec.fine_tuning_lora is None else 'adapters'}/seed-{seed}"

    def _train(self, cases: Sequence[Case]) -> None:
        for part in self._chunks(cases, "fine-tuning"):
            trainings = [Training(case.edge or None, case.seed) for case in part]
            params = fine_tune(self.questions, self.spec, trainings, reporter=self.reporter)
            trained = params.adapters if isinstance(params, Adapted) else params
            for run, case in enumerate(part):
                if case.kind == "before":
                    own = jax.tree.map(lambda leaf, run=run: leaf[run], trained)
                    self.store.put(self._weights(case.seed), params_to_arrays(own), keep=False)
            self._keep(part, params, self.spec.fine_tuning_lora)

    def _unlearn(self, method: str, cases: Sequence[Case]) -> None:
        for part in self._chunks(cases, method):
            fine_tuned = self.fine_tuned(part[0].seed)
            requests = [Request(case.edge, case.rate, case.seed) for case in part]
            after = unlearn(
                self.questions, self.spec, method, requests, fine_tuned, label=method, reporter=self.reporter
            )
            self._keep(part, after.params, self.spec.lora, after.norms)

    def _chunks(self, cases: Sequence[Case], label: str) -> Iterator[list[Case]]:
        """Parts of one length; the last one is filled up, so that one compiled program serves all."""
        done = 0
        for part in in_chunks(cases, self.spec.chunk):
            self.reporter.say(f"{label}: models {done + 1} to {done + len(part)} of {len(cases)}")
            done += len(part)
            yield filled(part, self.spec.chunk)

    def _keep(
        self,
        cases: Sequence[Case],
        params: PyTree,
        lora: LoraSpec | None,
        norms: np.ndarray | None = None,
    ) -> None:
        results = measure(
            self.questions,
            params,
            lora=lora,
            with_texts=cases[0].kind != "tried",
            free_running=self._is_ranked(cases[0]),
            reporter=self.reporter,
        )
        for case, run in {case: run for run, case in enumerate(cases)}.items():
            moved = {} if norms is None else {MOVED: np.asarray(norms[run])}
            self.store.put(self._place(case), {**results[run], **moved})

    def _place(self, case: Case) -> str:
        return f"{self.spec.reading}/{case.name}" if case.method else case.name


_KINDS: tuple[Kind, ...] = get_args(Kind)


def study_fingerprint(questions: QuestionSet, spec: StudySpec) -> str:
    """SHA-256 (hex) of what the results of all models depend on: data, as texts and as tokens, model, settings."""
    records = [[record.question, record.answer, record.edge] for record in questions.data.records]
    tokens = hash_arrays([np.asarray(leaf) for leaf in jax.tree.leaves(questions.pool)])
    identity: Mapping[str, Any] = spec.identity()
    model = questions.model
    return fingerprint([_FORMAT, records, tokens, model.tokenizer.eos, model.fingerprint, identity])
