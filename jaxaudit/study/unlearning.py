"""Unlearning edges: one compiled program per method for all edges, learning rates and seeds."""

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.llm import (
    Adapted,
    DecoderSpec,
    LoraSpec,
    adapter_norm,
    decoder,
    init_adapters,
    lora_model,
    packed_size,
    token_model,
)
from jaxaudit.progress import Reporter
from jaxaudit.runs import run_loops
from jaxaudit.study.ownrate import at_own_rate
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import StudySpec, run_options
from jaxaudit.train import Loop, Params, num_batches, take_batch
from jaxaudit.unlearn.base import Batch, Trained, Unlearner
from jaxaudit.unlearn.preference import PRESETS, Reference, Scores, TokenModel, pistol_methods
from jaxaudit.unlearn.preference.presets import SCORE_REFERENCES, PresetName
from jaxaudit.unlearn.preference.terms import Context, reference_scores


class Request(NamedTuple):
    """One model that is to forget an edge."""

    edge: str
    rate: float
    """Largest learning rate."""
    seed: int
    """Of the fine-tuned model; decides on the order of the questions and on the adapters, too."""


class UnlearningRun(NamedTuple):
    """What differs between runs."""

    key: Key[Array, ""]
    retain: Int[Array, " retain"]
    forget: Int[Array, " forget"]
    """Numbers of questions, in the order in which they are read."""
    rate: Float[Array, ""]


class UnlearningShared(NamedTuple):
    """What all runs share; none of it is ever copied per run, or part of what moves."""

    pool: Examples
    base: Params
    """The pretrained model, which some methods compare with."""
    fine_tuned: Params
    """The model that is to forget."""


class UnlearningState(NamedTuple):
    """What a run keeps: of a model with adapters, these alone."""

    inner: Any
    """State of the method; its first field is ``params``."""
    reference: Scores | None
    """Of the pool's answers under the reference model, for methods that need them: those of the forget questions."""


class Unlearned(NamedTuple):
    """What came out."""

    params: PyTree
    """With a leading axis of runs; or `Adapted`, of which only the adapters have it."""
    norms: Float[np.ndarray, " runs"]
    """Euclidean norm of what each run changed, all that its adapters add to the model; 0: it has not unlearned."""


class LoopSettings(NamedTuple):
    """What of a study decides on the program of a method."""

    reading: PresetName
    lora: LoraSpec | None
    epochs: int
    batch_size: int
    prompt_length: int
    num_forget: int
    """Questions of an edge."""
    packed: int | None
    """See `jaxaudit.llm.packed_size`."""

    @property
    def num_updates(self) -> int:
        """Of the whole unlearning."""
        return self.epochs * num_batches(self.num_forget, self.batch_size)


@lru_cache(maxsize=32)  # one loop per method and settings, so that it is compiled once
def unlearning_loop(model: DecoderSpec, settings: LoopSettings, method: str) -> Loop:
    """One method as a loop over updates, from `UnlearningRun` and `UnlearningShared` to `UnlearningState`.

    Parameters
    ----------
    model
        Of the decoder.
    settings
        Reading, adapters, epochs, sizes.
    method
        Name of a method of the reading.
    """
    lora = settings.lora

    def init(run: UnlearningRun, shared: UnlearningShared) -> UnlearningState:
        key = jax.random.fold_in(run.key, 0)
        adapters_key, inner_key = jax.random.split(key)
        start = shared.fine_tuned if lora is None else init_adapters(adapters_key, model, lora)
        unlearner = _unlearner(model, settings, method, shared)
        inner = unlearner.init(inner_key, Trained(start, start, previous=run.rate))
        return UnlearningState(inner, _reference(model, settings, method, run, shared))

    def body(
        step: Int[Array, ""], state: UnlearningState, run: UnlearningRun, shared: UnlearningShared
    ) -> UnlearningState:
        unlearner = _unlearner(model, settings, method, shared)
        pool: Any = shared.pool
        scored = pool._replace(x=pool.x._replace(reference=state.reference))
        retain = take_batch(pool, run.retain, step, settings.batch_size)
        forget = take_batch(scored, run.forget, step, settings.batch_size)
        key = jax.random.fold_in(run.key, step + 1)
        return state._replace(inner=unlearner.update(key, state.inner, Batch(retain, forget))[0])

    return Loop(init, body, settings.num_updates)


def _unlearner(
    model: DecoderSpec, settings: LoopSettings, method: str, shared: UnlearningShared
) -> Unlearner:
    """The method on what it trains: all parameters, or adapters on the fine-tuned model."""
    whole = decoder(model, settings.lora)

    def tokens(prompt_length: int, packed: int | None) -> TokenModel:
        if settings.lora is None:
            return token_model(whole, prompt_length, packed=packed)
        return lora_model(whole, shared.fine_tuned, prompt_length, packed=packed)

    # The divergence is over the questions' tokens, too; in one reading even over padding, which must then be computed.
    everywhere = None if PRESETS[settings.reading].kl_mask == "all" else settings.packed

    def frozen_logits(which: Reference, examples: Examples) -> Array:
        compared = token_model(decoder(model), 1, packed=everywhere)
        assert compared.logits_fn is not None
        return compared.logits_fn(shared.base if which == "base" else shared.fine_tuned, examples)

    methods = pistol_methods(
        tokens(settings.prompt_length, settings.packed),
        settings.reading,
        num_forget=settings.num_forget,
        learning_rate=1.0,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        kl_model=tokens(1, everywhere),
        frozen_logits_fn=frozen_logits,
    )
    return at_own_rate(methods[method])


def _reference(
    model: DecoderSpec,
    settings: LoopSettings,
    method: str,
    run: UnlearningRun,
    shared: UnlearningShared,
) -> Scores | None:
    """Scores of the forget answers under what the method compares with: computed once, since it does not move."""
    if method not in SCORE_REFERENCES:
        return None
    compared = shared.base if SCORE_REFERENCES[method] == "base" else shared.fine_tuned
    forget = jax.tree.map(lambda leaf: leaf[run.forget], shared.pool)
    tokens = token_model(decoder(model), settings.prompt_length)
    scores = reference_scores(tokens, Context(compared), forget, with_alternative=method == "dpo")
    room = jnp.zeros(len(shared.pool.weights))
    return jax.tree.map(lambda values: room.at[run.forget].set(values), scores)


def unlearn(
    questions: QuestionSet,
    spec: StudySpec,
    method: str,
    requests: Sequence[Request],
    fine_tuned: Params,
    *,
    label: str = "unlearning",
    reporter: Reporter | None = None,
) -> Unlearned:
    """Let a fine-tuned model forget an edge, in some runs of different edges, rates or orders.

    Parameters
    ----------
    questions
        The data and the pretrained model.
    spec
        Reading, adapters, epochs, batch size.
    method
        Name among ``spec.methods``.
    requests
        Edge, rate and seed of every run; all edges have the same number of questions.
    fine_tuned
        The model's parameters, which all runs share.
    label, reporter
        For progress.

    Raises
    ------
    InputError
        If the adapters of unlearning have dropout: the methods have no key for it.
    """
    retain, forget = (np.stack(part) for part in zip(*(_orders(questions, one) for one in requests)))
    run = UnlearningRun(
        key=jnp.stack([_key(request) for request in requests]),
        retain=jnp.asarray(retain),
        forget=jnp.asarray(forget),
        rate=jnp.asarray([request.rate for request in requests], jnp.float32),
    )
    settings = loop_settings(questions, spec, retain, forget)
    return unlearn_on(questions, settings, method, run, fine_tuned, label=label, reporter=reporter)


def loop_settings(
    questions: QuestionSet,
    spec: StudySpec,
    retain: Int[np.ndarray, "runs retain"],
    forget: Int[np.ndarray, "runs forget"],
) -> LoopSettings:
    """What decides on the programs of runs, given the questions that all of them read.

    Parameters
    ----------
    questions, spec
        As for `unlearn`.
    retain, forget
        Numbers of the questions, in the order in which they are read.

    Raises
    ------
    InputError
        If the adapters of unlearning have dropout: the methods have no key for it.
    """
    if spec.lora is not None and spec.lora.dropout > 0:
        raise InputError(f"lora must have dropout 0 for unlearning, got {spec.lora.dropout}")
    return LoopSettings(
        *(spec.reading, spec.lora, spec.epochs, spec.batch_size),
        questions.tokens.prompt_length,
        forget.shape[1],
        _packed_size(questions, spec.batch_size, retain, forget),
    )


class OwnRun(NamedTuple):
    """A run that forgets from a model of its own."""

    run: UnlearningRun
    fine_tuned: Params


@lru_cache(maxsize=32)
def on_own_models(loop: Loop) -> Loop:
    """An `unlearning_loop` for runs that do not share the model that is to forget: from `OwnRun`.

    Parameters
    ----------
    loop
        Of one method.
    """

    def own(run: OwnRun, shared: UnlearningShared) -> tuple[UnlearningRun, UnlearningShared]:
        return run.run, shared._replace(fine_tuned=run.fine_tuned)

    def init(run: OwnRun, shared: UnlearningShared) -> UnlearningState:
        return loop.init(*own(run, shared))

    def body(
        step: Int[Array, ""], state: UnlearningState, run: OwnRun, shared: UnlearningShared
    ) -> UnlearningState:
        return loop.body(step, state, *own(run, shared))

    return Loop(init, body, loop.num_steps)


def unlearn_on(
    questions: QuestionSet,
    settings: LoopSettings,
    method: str,
    run: UnlearningRun,
    fine_tuned: Params,
    *,
    own_models: bool = False,
    label: str = "unlearning",
    reporter: Reporter | None = None,
) -> Unlearned:
    """Let models forget the questions of each run.

    Parameters
    ----------
    questions, label, reporter
        As for `unlearn`.
    settings
        See `loop_settings`.
    method
        Name of a method of the reading.
    run
        Questions, rates and keys, with a leading axis of runs.
    fine_tuned
        The model before unlearning that all runs share; or, with ``own_models``, one for each, with that axis.
    own_models
        Whether every run has a model of its own.

    Returns
    -------
    The models; of `Adapted` ones the base has a leading axis, too, if every run has its own.
    """
    model, loop = questions.model.spec, unlearning_loop(questions.model.spec, settings, method)
    fine_tuned = jax.tree.map(jnp.asarray, fine_tuned)
    shared = UnlearningShared(questions.pool, questions.base, None if own_models else fine_tuned)
    options: dict[str, Any] = {"label": label, "reporter": reporter, "options": run_options(model)}
    if own_models:
        state, _ = run_loops(on_own_models(loop), OwnRun(run, fine_tuned), shared, **options)
    else:
        state, _ = run_loops(loop, run, shared, **options)
    after = state.inner.params

    def norm(number: int) -> float:
        before = jax.tree.map(lambda leaf: leaf[number], fine_tuned) if own_models else fine_tuned
        return _norm(jax.tree.map(lambda leaf: leaf[number], after), before, settings.lora)

    params = after if settings.lora is None else Adapted(fine_tuned, after)
    return Unlearned(params, np.array([norm(number) for number in range(len(run.rate))]))


def _packed_size(
    questions: QuestionSet, batch_size: int, retain: np.ndarray, forget: np.ndarray
) -> int | None:
    """Of all batches that a method may read: retained, forgotten, and these with the other answers."""
    answers: Any = questions.pool.x
    read = ((answers.truth, retain), (answers.truth, forget), (answers.alternative, forget))
    sizes = [packed_size(tokens.real, orders, batch_size) for tokens, orders in read]
    return max(size for size in sizes if size is not None) if None not in sizes else None


def _norm(after: Params, fine_tuned: Params, lora: LoraSpec | None) -> float:
    if lora is None:
        return float(optax.tree.norm(jax.tree.map(jnp.subtract, after, fine_tuned)))
    return float(adapter_norm(after, lora))


def _key(request: Request) -> Key[Array, ""]:
    """The same for all methods and rates, so that these are compared with the same adapters."""
    return jax.random.fold_in(stream_key(request.seed, "noise"), zlib.crc32(request.edge.encode()))


def _orders(
    questions: QuestionSet, request: Request
) -> tuple[Int[np.ndarray, " retain"], Int[np.ndarray, " forget"]]:
    rng = np.random.default_rng([request.seed, *request.edge.encode()])
    forget = questions.of_edges([request.edge])
    return rng.permutation(np.flatnonzero(~forget)), rng.permutation(np.flatnonzero(forget))
