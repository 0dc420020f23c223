"""Models of an audit of edges, a chunk at a time: every run has a model of its own, from fine-tuning to its scores."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxaudit.keys import stream_key
from jaxaudit.llm import (
    Adapted,
    DecoderSpec,
    LoraSpec,
    decoder,
    merge,
    packed_size,
    token_model,
)
from jaxaudit.progress import Reporter
from jaxaudit.runs import map_runs, to_host
from jaxaudit.study.candidates import Candidates
from jaxaudit.study.chunks import row_blocks
from jaxaudit.study.measure import LOGITS, measure
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import StudySpec, run_options
from jaxaudit.study.training import train_on, trained_shapes
from jaxaudit.study.unlearning import LoopSettings, UnlearningRun, loop_settings, unlearn_on
from jaxaudit.train import TrainingRun
from jaxaudit.unlearn.preference.terms import answer_log_prob


class Reading(NamedTuple):
    """What some runs read."""

    members: Int[np.ndarray, "runs members"]
    forget: Int[np.ndarray, "runs forget"]
    retain: Int[np.ndarray, " retain"]

    def take(self, runs: Sequence[int]) -> "Reading":
        """Of some of the runs."""
        return self._replace(members=self.members[list(runs)], forget=self.forget[list(runs)])


@dataclass(frozen=True, eq=False)
class EdgeModels:
    """How the models of an audit are made: ``study.chunk`` at a time, by one compiled program per method.

    Parameters
    ----------
    candidates
        Data, pretrained model, candidate edges.
    study
        Fine-tuning and unlearning.
    readings
        Of all runs that shall be served by the same programs.
    reference
        What exact retraining reads, see `Candidates.reference_members`.
    reporter
        Where progress goes.
    """

    candidates: Candidates
    study: StudySpec
    readings: tuple[Reading, ...]
    reference: Int[np.ndarray, " members"]
    reporter: Reporter

    @property
    def questions(self) -> QuestionSet:
        """The data and the pretrained model."""
        return self.candidates.questions

    @cached_property
    def alike(self) -> Int[np.ndarray, "runs members"]:
        """Members of all runs."""
        return np.concatenate([*(one.members for one in self.readings), self.reference[None]])

    @cached_property
    def settings(self) -> LoopSettings:
        """Of one program per method that serves all runs."""
        retain = np.stack([one.retain for one in self.readings])
        forget = np.concatenate([one.forget for one in self.readings])
        return loop_settings(self.questions, self.study, retain, forget)

    def repeated(self, params: PyTree) -> PyTree:
        """One model in all places of a chunk."""
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.study.chunk, *leaf.shape)), params)

    def train(self, members: Int[np.ndarray, "chunk members"], keys: Array, label: str) -> PyTree:
        """What training leaves of each model: all parameters, or adapters; every row has as many members."""
        run = TrainingRun(jnp.asarray(members), keys)
        trained = train_on(
            self.questions, self.study, run, alike=self.alike, label=label, reporter=self.reporter
        )
        return trained.adapters if isinstance(trained, Adapted) else trained

    @property
    def shapes(self) -> PyTree:
        """Structure of what training leaves of a model."""
        return trained_shapes(self.questions.model.spec, self.study.fine_tuning_lora)

    def whole(self, trained: PyTree) -> PyTree:
        """All parameters, with adapters merged."""
        lora = self.study.fine_tuning_lora
        if lora is None:
            return jax.tree.map(jnp.asarray, trained)
        count = len(jax.tree.leaves(trained)[0])
        merged = [
            merge(
                self.questions.base, jax.tree.map(lambda leaf, run=run: jnp.asarray(leaf[run]), trained), lora
            )
            for run in range(count)
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *merged)

    def unlearn(
        self, method: str, reading: Reading, rates: Sequence[float], keys: Array, whole: PyTree, label: str
    ) -> tuple[PyTree, list[float]]:
        """Models after a method, beside the norms of what it changed; every model starts from its own."""
        retain = np.broadcast_to(reading.retain, (len(rates), len(reading.retain)))
        run = UnlearningRun(
            keys, jnp.asarray(retain), jnp.asarray(reading.forget), jnp.asarray(rates, jnp.float32)
        )
        options: dict[str, Any] = {"own_models": True, "label": label, "reporter": self.reporter}
        found = unlearn_on(self.questions, self.settings, method, run, whole, **options)
        return found.params, found.norms.tolist()

    def measure(self, params: PyTree, place: int, *, with_texts: bool) -> dict[str, np.ndarray]:
        """One model of a chunk."""
        lora = self.study.lora if isinstance(params, Adapted) else None
        one = jax.tree.map(lambda leaf: leaf[place : place + 1], params)
        if isinstance(one, Adapted):
            one = Adapted(jax.tree.map(lambda leaf: leaf[0], one.base), one.adapters)
        return measure(self.questions, one, lora=lora, with_texts=with_texts, reporter=self.reporter)[0]

    def score(self, params: PyTree) -> Float[np.ndarray, "chunk groups size"]:
        """Block of questions after block, as many at a time as memory allows."""
        tokens, rows, model = self.questions.tokens, self.candidates.rows, self.questions.model.spec
        lora = self.study.lora if isinstance(params, Adapted) else None
        per_row = self.study.chunk * tokens.answer_length * model.vocabulary_size
        blocks = [rows.reshape(-1)[own] for own in row_blocks(rows.size, per_row, LOGITS)]
        packed = packed_size(tokens.tokens.real, np.stack(blocks), len(blocks[0]))
        function = _scorer(model, lora, tokens.prompt_length, packed)
        options: dict[str, Any] = {
            "label": "scoring",
            "reporter": self.reporter,
            "options": run_options(model),
        }
        pieces = []
        for block in blocks:
            examples: Any = jax.tree.map(lambda leaf, block=block: jnp.asarray(leaf[block]), tokens.examples)
            pieces.append(to_host(map_runs(function, params, examples, **options)[0]))
        return np.concatenate(pieces, axis=1)[:, : rows.size].reshape(-1, *rows.shape)


def run_keys(seed: int, purpose: str, count: int) -> Array:
    """Of all runs for one purpose; every training and every method has noise of its own, that of more runs goes on.

    Parameters
    ----------
    seed
        Its stream ``noise`` is used.
    purpose
        Name of what the noise is for.
    count
        Runs.
    """
    key = jax.random.fold_in(stream_key(seed, "noise"), zlib.crc32(purpose.encode()))
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(count))


@lru_cache(maxsize=16)  # the same function for the same model, so that it is compiled once
def _scorer(model: DecoderSpec, lora: LoraSpec | None, prompt_length: int, packed: int | None) -> Any:
    tokens = token_model(decoder(model, lora), prompt_length, packed=packed)
    return lambda params, examples: answer_log_prob(tokens, params, examples)
