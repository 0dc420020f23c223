"""Full-batch gradient descent, one mini-batch per update.

The gradient is accumulated over mini-batches in the state: an update that is not the last of its pass only adds to the
sum, and the last one also makes the step. Training and unlearning use the same update.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from jaxaudit.checks import check_integer, check_positive
from jaxaudit.data import Examples
from jaxaudit.train import Info, Loop, LossFn, Params, TrainingRun, TrainingShared, num_batches, take_batch

Move = Callable[[Key[Array, ""], Params, Params], Params]
"""``(key, params, mean gradient) -> params``: one step."""
Update = Callable[[Key[Array, ""], "FullBatchState", Examples], tuple["FullBatchState", Info]]


class FullBatchState(NamedTuple):
    """Parameters, and the part of the full-batch gradient that has been summed up."""

    params: Params
    gradient_sum: Params
    """Sum of the gradients of the examples seen in this pass."""
    weight_sum: Float[Array, ""]
    """Sum of their weights."""
    position: Int[Array, ""]
    """Mini-batches seen in this pass."""
    gradient_norm: Float[Array, ""]
    """Of the mean loss, at the parameters before the last step; 0 before the first."""


def start_full_batch(params: Params) -> FullBatchState:
    """State at the start of a pass."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return FullBatchState(params, zeros, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros(()))


def descend(learning_rate: float) -> Move:
    """The plain step: ``params - learning_rate * gradient``."""
    check_positive(learning_rate=learning_rate)

    def move(key: Key[Array, ""], params: Params, gradient: Params) -> Params:
        return jax.tree.map(lambda p, g: p - learning_rate * g, params, gradient)

    return move


def full_batch_update(loss_fn: LossFn, move: Move, num_micro_batches: int) -> Update:
    """One update of full-batch gradient descent: one mini-batch of a pass.

        params <- move(params, (sum over batches of weight * gradient) / (sum of weights)),    at the last

    Parameters
    ----------
    loss_fn
        The weighted mean over the examples of a mini-batch, so its gradient counts as often as they weigh together;
        plus anything that depends on the parameters alone.
    move
        What to do with the full-batch gradient, such as `descend`.
    num_micro_batches
        Mini-batches per pass.
    """

    def update(key: Key[Array, ""], state: FullBatchState, examples: Examples) -> tuple[FullBatchState, Info]:
        loss, gradient = jax.value_and_grad(loss_fn)(state.params, examples)
        weight = jnp.sum(examples.weights)
        total = jax.tree.map(lambda s, g: s + weight.astype(g.dtype) * g, state.gradient_sum, gradient)
        total_weight = state.weight_sum + weight
        added = FullBatchState(state.params, total, total_weight, state.position + 1, state.gradient_norm)
        mean = jax.tree.map(lambda s: s / jnp.maximum(total_weight, 1).astype(s.dtype), total)
        norm = optax.tree.norm(mean).astype(state.gradient_norm.dtype)
        moved = start_full_batch(move(key, state.params, mean))._replace(gradient_norm=norm)
        # A select on arrays, not a branch: a model evaluated inside a branch is slow.
        last = added.position == num_micro_batches
        return jax.tree.map(lambda one, other: jnp.where(last, one, other), moved, added), {"loss": loss}

    return update


def full_batch_loop(
    loss_fn: LossFn,
    move: Move,
    start: Callable[[Params], Params],
    *,
    num_steps: int,
    num_members: int,
    micro_batch: int,
    deterministic: bool,
) -> Loop:
    """Base training by any full-batch steps, from ``start(x0)``, as a loop whose carry is a `FullBatchState`.

    Parameters
    ----------
    loss_fn, move
        As in `full_batch_update`.
    start
        ``x0 -> params``.
    num_steps
        Steps on all members; at least 0. Each takes ``ceil(num_members / micro_batch)`` updates of the loop, between
        which the parameters do not move.
    num_members
        Examples that each run trains on, at least 1.
    micro_batch
        Examples per update.
    deterministic
        Whether ``move`` ignores its key.
    """
    passes = num_passes(num_steps, micro_batch, num_members=num_members)
    update = full_batch_update(loss_fn, move, passes)

    def init(run: TrainingRun, shared: TrainingShared) -> FullBatchState:
        return start_full_batch(start(shared.initial_params))

    def body(
        step: Int[Array, ""], state: FullBatchState, run: TrainingRun, shared: TrainingShared
    ) -> FullBatchState:
        examples = take_batch(shared.pool, run.members, step, micro_batch)
        return update(jax.random.fold_in(run.key, step), state, examples)[0]

    return Loop(init, body, num_steps * passes, deterministic=deterministic)


def num_passes(num_steps: int, micro_batch: int, **num_examples: int) -> int:
    """Updates per step.

    Examples
    --------
    >>> num_passes(5, 128, num_retain=997)
    8
    """
    check_integer("num_steps", num_steps, low=0)
    check_integer("micro_batch", micro_batch, low=1)
    ((name, count),) = num_examples.items()
    return num_batches(check_integer(name, count, low=1), micro_batch)


@lru_cache(maxsize=64)
def full_batch_training(
    loss_fn: LossFn, *, learning_rate: float, num_steps: int, num_members: int, micro_batch: int = 128
) -> Loop:
    """Base training by full-batch gradient descent, as a loop whose carry is a `FullBatchState`.

    One gradient step takes ``ceil(num_members / micro_batch)`` updates of the loop; between two steps the parameters do
    not move. Deterministic: equal members give equal models.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, the weighted mean over the examples.
    learning_rate
        Constant; positive.
    num_steps
        Gradient steps, T; at least 0.
    num_members
        Examples that each run trains on, at least 1.
    micro_batch
        Examples per update.

    Examples
    --------
    >>> shared = TrainingShared(Examples(jnp.arange(3.0), jnp.arange(3), jnp.ones(3)), jnp.zeros(()))
    >>> run = TrainingRun(jnp.array([2, 0, 1]), jax.random.key(0))
    >>> def loss_fn(params, examples):
    ...     squares = examples.weights * (params - examples.x) ** 2 / 2
    ...     return squares.sum() / examples.weights.sum()
    >>> loop = full_batch_training(loss_fn, learning_rate=0.5, num_steps=1, num_members=3, micro_batch=2)
    >>> state = loop.init(run, shared)
    >>> [float((state := loop.body(step, state, run, shared)).params) for step in range(loop.num_steps)]
    [0.0, 0.5]
    """
    return full_batch_loop(
        loss_fn,
        descend(learning_rate),
        _as_it_is,
        num_steps=num_steps,
        num_members=num_members,
        micro_batch=micro_batch,
        deterministic=True,
    )


def _as_it_is(params: Params) -> Params:
    return params
