"""Training one model: pure functions, no jit, no vmap. `jaxaudit.runs` knows how to do it many times at once.

Base training of a data set and exact retraining on the retain set are the same function, fed with other examples.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from jaxaudit.checks import check_integer
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.schedules import ScheduleName, make_schedule

Params: TypeAlias = PyTree[Float[Array, "..."]]
LogitsFn = Callable[[Params, Array], Float[Array, "examples classes"]]
LossFn = Callable[[Params, Examples], Float[Array, ""]]
Info = dict[str, Array]


class TrainState(NamedTuple):
    """Parameters and the optimiser's state; the step count lives in the latter."""

    params: Params
    optimizer_state: Any


class TrainingRun(NamedTuple):
    """What differs between the trainings of an audit."""

    members: Int[Array, " members"]
    """Indices into the pool of the examples that this run trains on, in the fixed order."""
    key: Key[Array, ""]
    """This run's key, for training that is random (dropout, noise); fold the step into it."""


class TrainingShared(NamedTuple):
    """What all trainings of an audit share."""

    pool: Examples
    """All candidate examples."""
    initial_params: Params
    """The starting point x0."""


class Loop(NamedTuple):
    """One run as a loop: what `jaxaudit.runs` repeats over the run axis.

    ``init(per_run, shared) -> carry`` and ``body(step, carry, per_run, shared) -> carry`` describe **one** run;
    ``per_run`` is that run's slice, ``shared`` is the same for all runs. Both are pure.
    """

    init: Callable[[Any, Any], Any]
    body: Callable[[Int[Array, ""], Any, Any, Any], Any]
    num_steps: int
    deterministic: bool = False
    """Whether equal members give equal results: no random number is drawn from the run's key. Then runs with the same
    sign vector are trained once."""


@dataclass(frozen=True)
class SgdSpec:
    """SGD with a learning rate that follows a schedule over all updates; plain, unless momentum or decay is asked for.

        g <- gradient, shortened to norm ``clip_norm``;  g <- g + weight_decay params;  params <- params - rate_t g

    Parameters
    ----------
    epochs
        Passes over the examples; the order is the same in every pass.
    learning_rate
        First value of the schedule; of ``one-cycle`` the largest. Positive.
    end_learning_rate
        Last value of ``linear`` and ``cosine``, not negative. The other schedules have none of their own.
    batch_size
        Examples per update. The last batch of an epoch is filled up with weight 0, so no example is left out.
    momentum
        0 (default) is plain SGD; below 1.
    schedule
        ``linear`` (default), ``one-cycle``, ``cosine`` or ``constant``; see `jaxaudit.schedules`.
    weight_decay
        Added to the gradient of every parameter, biases and scales included, after clipping; not negative.
    clip_norm
        Largest Euclidean norm of the gradient of all parameters together; ``None``: no limit.

    Examples
    --------
    >>> SgdSpec(epochs=2, learning_rate=0.1, batch_size=64).num_updates(100)
    4
    """

    epochs: int
    learning_rate: float
    end_learning_rate: float = 0.0
    batch_size: int = 64
    momentum: float = 0.0
    schedule: ScheduleName = "linear"
    weight_decay: float = 0.0
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, low=0)
        check_integer("batch_size", self.batch_size, low=1)
        if not 0 < self.learning_rate < math.inf or not 0 <= self.end_learning_rate < math.inf:
            raise InputError(
                "learning_rate must be positive and end_learning_rate not negative, "
                f"got {self.learning_rate} and {self.end_learning_rate}"
            )
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum must be in [0, 1), got {self.momentum}")
        if not 0 <= self.weight_decay < math.inf:
            raise InputError(f"weight_decay must not be negative, got {self.weight_decay}")
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise InputError(f"clip_norm must be positive or None, got {self.clip_norm}")
        self._schedule(1)  # so that a wrong name or end is found here

    def num_updates(self, num_examples: int) -> int:
        """Updates in all epochs over this many examples."""
        return self.epochs * num_batches(num_examples, self.batch_size)

    def optimizer(self, num_updates: int) -> optax.GradientTransformation:
        """The optax optimiser for a training of this many updates."""
        sgd = optax.sgd(self._schedule(max(num_updates, 1)), momentum=self.momentum or None)
        before = []
        if self.clip_norm is not None:
            before.append(optax.clip_by_global_norm(self.clip_norm))
        if self.weight_decay:
            before.append(optax.add_decayed_weights(self.weight_decay))
        return optax.chain(*before, sgd) if before else sgd

    def _schedule(self, num_updates: int) -> optax.Schedule:
        return make_schedule(self.schedule, self.learning_rate, num_updates, self.end_learning_rate)


def num_batches(num_examples: int, batch_size: int) -> int:
    """Batches per epoch, the last one possibly filled up.

    Examples
    --------
    >>> num_batches(1247, 64)
    20
    """
    return -(-num_examples // batch_size)


def take_batch(
    pool: Examples, members: Int[Array, " members"], step: Int[Array, ""] | int, batch_size: int
) -> Examples:
    """The batch of update ``step`` when the members are read in their order, again and again.

    Parameters
    ----------
    pool
        All candidate examples.
    members
        Indices into the pool, in the order of training; their number is fixed, so one compilation serves all runs.
    step
        Update number, counted from 0 and continued over epochs.
    batch_size
        Examples per batch; places past the last member have weight 0.

    Examples
    --------
    >>> pool = Examples(jnp.arange(5.0), jnp.arange(5), jnp.ones(5))
    >>> take_batch(pool, jnp.array([4, 0, 2]), 1, 2)
    Examples(x=Array([2., 2.], dtype=float32), y=Array([2, 2], dtype=int32), weights=Array([1., 0.], dtype=float32))
    """
    places = (step % num_batches(len(members), batch_size)) * batch_size + jnp.arange(batch_size)
    index = members[jnp.minimum(places, len(members) - 1)]
    inside = (places < len(members)).astype(pool.weights.dtype)
    taken = jax.tree.map(lambda leaf: leaf[index], pool)  # x may be several arrays, as tokens are
    return taken._replace(weights=taken.weights * inside)


@lru_cache(maxsize=64)  # the same function for the same model, so that programs built on it are compiled once
def cross_entropy_loss(logits_fn: LogitsFn) -> LossFn:
    """Mean cross-entropy over the examples of weight 1, in nats; a sequence counts as the mean over its tokens.

    Examples
    --------
    >>> loss = cross_entropy_loss(lambda params, x: x @ params)
    >>> examples = Examples(jnp.eye(2), jnp.array([0, 1]), jnp.array([1.0, 0.0]))
    >>> print(f"{loss(jnp.zeros((2, 2)), examples):.4f}")
    0.6931
    """

    def loss(params: Params, examples: Examples) -> Float[Array, ""]:
        losses = optax.softmax_cross_entropy_with_integer_labels(logits_fn(params, examples.x), examples.y)
        losses = losses.reshape(len(losses), -1).mean(axis=-1)
        return jnp.sum(losses * examples.weights) / jnp.maximum(jnp.sum(examples.weights), 1.0)

    return loss


def start_training(params: Params, optimizer: optax.GradientTransformation) -> TrainState:
    """State before the first update."""
    return TrainState(params, optimizer.init(params))


def training_step(
    loss_fn: LossFn, optimizer: optax.GradientTransformation, state: TrainState, examples: Examples
) -> tuple[TrainState, Info]:
    """One update of the optimiser on the loss of one batch.

    Returns
    -------
    The next state, and for logging the loss before the update and the norm of its gradient.
    """
    loss, gradient = jax.value_and_grad(loss_fn)(state.params, examples)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer_state, state.params)
    info = {"loss": loss, "gradient_norm": optax.tree.norm(gradient)}
    return TrainState(optax.apply_updates(state.params, updates), optimizer_state), info


@lru_cache(maxsize=64)
def training_loop(loss_fn: LossFn, spec: SgdSpec, num_members: int) -> Loop:
    """Base training as a loop over updates, from `TrainingRun` and `TrainingShared` to a `TrainState`.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``.
    spec
        Epochs, batch size and learning rate.
    num_members
        Examples that each run trains on.

    Examples
    --------
    >>> shared = TrainingShared(Examples(jnp.arange(3.0), jnp.arange(3), jnp.ones(3)), jnp.zeros(()))
    >>> run = TrainingRun(jnp.array([2, 0]), jax.random.key(0))
    >>> halfway = SgdSpec(epochs=1, learning_rate=0.5, end_learning_rate=0.5, batch_size=1)
    >>> loop = training_loop(lambda params, examples: jnp.sum((params - examples.x) ** 2), halfway, 2)
    >>> state = loop.init(run, shared)
    >>> [float((state := loop.body(step, state, run, shared)).params) for step in range(loop.num_steps)]
    [2.0, 0.0]
    """
    num_updates = spec.num_updates(num_members)
    optimizer = spec.optimizer(num_updates)

    def init(run: TrainingRun, shared: TrainingShared) -> TrainState:
        return start_training(shared.initial_params, optimizer)

    def body(step: Int[Array, ""], state: TrainState, run: TrainingRun, shared: TrainingShared) -> TrainState:
        batch = take_batch(shared.pool, run.members, step, spec.batch_size)
        return training_step(loss_fn, optimizer, state, batch)[0]

    return Loop(init, body, num_updates, deterministic=True)
