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
from jaxaudit.keys import stream_key
from jaxaudit.llm import Decoder, LoraSpec, adapters_only, decoder, lora_unlearner, token_model
from jaxaudit.progress import Reporter
from jaxaudit.runs import run_loops
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import RUN_OPTIONS, StudySpec
from jaxaudit.train import Info, Loop, Params, take_batch
from jaxaudit.unlearn.base import Batch, Trained, Unlearner
from jaxaudit.unlearn.preference import pistol_methods
from jaxaudit.unlearn.preference.presets import PresetName


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
    params: Params
    """The fine-tuned model."""
    retain: Int[Array, " retain"]
    forget: Int[Array, " forget"]
    """Numbers of questions, in the order in which they are read."""
    rate: Float[Array, ""]


class Unlearned(NamedTuple):
    """What came out, with a leading axis of runs."""

    params: PyTree
    norms: Float[np.ndarray, " runs"]
    """Euclidean norm of what each run changed, all that its adapters add to the model; 0: it has not unlearned."""


class UnlearningShared(NamedTuple):
    """What all runs share."""

    pool: Examples
    base: Params
    """The pretrained model, which some methods compare with."""


class RatedState(NamedTuple):
    """Parameters, the run's own rate, and the state of the method."""

    params: Params
    rate: Float[Array, ""]
    inner: Any


def at_own_rate(method: Unlearner) -> Unlearner:
    """The same method with steps that are ``trained.previous`` times as long: a rate that may differ between runs.

    For a method of rate 1 with an optimiser whose steps are proportional to the rate, as Adam's and decoupled weight
    decay's are, this is the method at that rate, up to rounding.

    Parameters
    ----------
    method
        Its state is a named tuple whose first field is ``params``.

    Examples
    --------
    >>> import optax
    >>> from jaxaudit.unlearn.ascent import gradient_ascent
    >>> inner = gradient_ascent(lambda params, examples: 3.0 * params, optimizer=optax.sgd(1.0), num_updates=1)
    >>> method = at_own_rate(inner)
    >>> state = method.init(jax.random.key(0), Trained(jnp.ones(()), jnp.ones(()), previous=jnp.array(0.5)))
    >>> float(method.update(jax.random.key(1), state, Batch(None, None))[0].params)
    2.5
    """

    def init(key: Key[Array, ""], trained: Trained) -> RatedState:
        state = method.init(key, trained._replace(previous=None))
        return RatedState(state.params, trained.previous, state)

    def update(key: Key[Array, ""], state: RatedState, batch: Batch) -> tuple[RatedState, Info]:
        moved, info = method.update(key, state.inner, batch)
        params = jax.tree.map(
            lambda old, new: old + state.rate * (new - old), state.inner.params, moved.params
        )
        return RatedState(params, state.rate, moved._replace(params=params)), info

    return method._replace(init=init, update=update, continues=True)


def unlearning_loop(
    model: Decoder, prompt_length: int, spec: StudySpec, method: str, num_forget: int
) -> Loop:
    """One method as a loop over updates, from `UnlearningRun` and `UnlearningShared` to the method's state.

    Parameters
    ----------
    model
        From ``decoder(spec of the model, spec.lora)``.
    prompt_length
        Of the tokens.
    spec
        Reading, adapters, epochs, batch size.
    method
        Name among ``spec.methods``.
    num_forget
        Questions of an edge.
    """
    settings = _LoopSettings(spec.reading, spec.lora, spec.epochs, spec.batch_size)
    return _unlearning_loop(model, prompt_length, settings, method, num_forget)


class _LoopSettings(NamedTuple):
    """What of the settings of a study decides on its programs."""

    reading: PresetName
    lora: LoraSpec | None
    epochs: int
    batch_size: int


@lru_cache(maxsize=32)  # one loop per method and settings, so that it is compiled once
def _unlearning_loop(
    model: Decoder, prompt_length: int, spec: _LoopSettings, method: str, num_forget: int
) -> Loop:
    # The divergence is also over the questions' tokens, all other terms are over answers only.
    tokens = token_model(model, 1 if method == "kl" else prompt_length)
    methods = pistol_methods(
        tokens,
        spec.reading,
        num_forget=num_forget,
        learning_rate=1.0,
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        wrap_optimizer=None if spec.lora is None else adapters_only,
    )
    rated = at_own_rate(methods[method])
    unlearner = rated if spec.lora is None else lora_unlearner(model, rated)

    def init(run: UnlearningRun, shared: UnlearningShared) -> Any:
        return unlearner.init(
            jax.random.fold_in(run.key, 0), Trained(run.params, shared.base, previous=run.rate)
        )

    def body(step: Int[Array, ""], state: Any, run: UnlearningRun, shared: UnlearningShared) -> Any:
        retain, forget = (
            take_batch(shared.pool, members, step, unlearner.batch_size)
            for members in (run.retain, run.forget)
        )
        return unlearner.update(jax.random.fold_in(run.key, step + 1), state, Batch(retain, forget))[0]

    return Loop(init, body, unlearner.num_updates)


def unlearn(
    questions: QuestionSet,
    spec: StudySpec,
    method: str,
    requests: Sequence[Request],
    fine_tuned: PyTree,
    *,
    label: str = "unlearning",
    reporter: Reporter | None = None,
) -> Unlearned:
    """Let fine-tuned models forget an edge each.

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
        Parameters of every run's model, with a leading axis.
    label, reporter
        For progress.
    """
    model = decoder(questions.model.spec, spec.lora)
    num_forget = len(questions.rows_of(requests[0].edge))
    loop = unlearning_loop(model, questions.tokens.prompt_length, spec, method, num_forget)
    orders = [_orders(questions, request) for request in requests]
    run = UnlearningRun(
        key=jnp.stack([_key(request) for request in requests]),
        params=fine_tuned,
        retain=jnp.asarray(np.stack([retain for retain, _ in orders])),
        forget=jnp.asarray(np.stack([forget for _, forget in orders])),
        rate=jnp.asarray([request.rate for request in requests], jnp.float32),
    )
    shared = UnlearningShared(questions.pool, jax.tree.map(jnp.asarray, questions.model.params))
    after = run_loops(loop, run, shared, label=label, reporter=reporter, options=RUN_OPTIONS)[0].params
    return Unlearned(after, np.asarray(_norms(after, fine_tuned)))


@jax.jit
def _norms(after: PyTree, before: PyTree) -> Float[Array, " runs"]:
    return jax.vmap(lambda one, other: optax.tree.norm(jax.tree.map(jnp.subtract, one, other)))(after, before)


def _key(request: Request) -> Key[Array, ""]:
    """The same for all methods and rates, so that these are compared with the same adapters."""
    return jax.random.fold_in(stream_key(request.seed, "noise"), zlib.crc32(request.edge.encode()))


def _orders(
    questions: QuestionSet, request: Request
) -> tuple[Int[np.ndarray, " retain"], Int[np.ndarray, " forget"]]:
    rng = np.random.default_rng([request.seed, *request.edge.encode()])
    forget = questions.of_edges([request.edge])
    return rng.permutation(np.flatnonzero(~forget)), rng.permutation(np.flatnonzero(forget))
