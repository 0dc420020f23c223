"""Interleaved descent-ascent: retain descent, with ascent on the forget set in every few steps."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LossFn, Params, SgdSpec, TrainState, training_step
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


@dataclass(frozen=True)
class InterleavedSpec:
    """Settings of the interleaved phase; retain fine-tuning follows it."""

    num_descents: int = 1
    """Retain steps before each combined step, the paper's q."""
    forget_weight: float = 1.0
    """Weight of the forget gradient in a combined step, the paper's lambda."""
    sgd: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=5, learning_rate=0.2, schedule="constant"))
    """Passes over the retain set, and the learning rate, which the paper holds constant in this phase."""


class InterleavedState(NamedTuple):
    """Parameters, the optimiser's state, and the number of the next update."""

    params: Params
    optimizer_state: Any
    step: Int[Array, ""]


def interleaved_descent_ascent(
    loss_fn: LossFn,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    num_descents: int,
    forget_weight: float,
    batch_size: int = 64,
    num_forget_batches: int = 1,
) -> Unlearner:
    """Descend on the retain set, and in every ``(q + 1)``-th step climb on the run's own forget set (IDA).

        params <- params - rate_t (g_retain - lambda 1{t = 0 mod (q + 1)} g_forget),    t = 1, 2, ...

    Equation 16 of the paper (Appendix G.5), with the learning rate on both gradients. The paper does not say where t
    starts; counted from 1, the combined step is the last of each cycle, as in its code. Retain fine-tuning follows,
    joined by `then`: the paper's CIFAR-100 runs take 10 epochs at a constant rate of 0.001 with lambda 0.75 and q of
    1, 2 or 4, then a one-cycle schedule with peak 0.1. A heuristic without guarantee.

    Update t is fed forget batch t modulo their number. If that number and q + 1 have a common divisor, the combined
    steps would meet the same batches over and over and never the others; so after each ``lcm(q + 1, batches)`` updates
    one more retain step is put in, and every forget batch gets its turn.

    The forget gradient is computed in every update and multiplied by 0 where it is not used: two gradients per update.
    A switch (`lax.cond`) would save nothing, because over many runs at once (`vmap`) both of its sides are computed.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a mean over the examples.
    optimizer
        For instance ``optax.sgd(0.2)``. Weight decay in it counts once per step, not once per gradient.
    num_updates, batch_size
        Number of mini-batch updates, retain and combined ones together, and examples of each kind.
    num_descents
        Retain steps per combined step, the paper's q, at least 1. For q = 0 use `gradient_difference`.
    forget_weight
        The paper's lambda, not negative; 0 is plain retain fine-tuning.
    num_forget_batches
        Batches in one pass over the forget set, ``num_batches(num_forget, batch_size)``; 1 (default) never puts in a
        retain step: exactly equation 16.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> import jax
    >>> loss = lambda params, examples: jnp.mean(examples.x) * params
    >>> one = lambda slope: Examples(jnp.full(1, slope), jnp.zeros(1, int), jnp.ones(1))
    >>> settings = {"optimizer": optax.sgd(1.0), "num_updates": 4}
    >>> method = interleaved_descent_ascent(loss, num_descents=1, forget_weight=0.5, **settings)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> batch = Batch(retain=one(1.0), forget=one(10.0))
    >>> [float((state := method.update(jax.random.key(1), state, batch)[0]).params) for _ in range(4)]
    [-1.0, 3.0, 2.0, 6.0]
    """
    check_integer("num_updates", num_updates, low=0)
    check_integer("batch_size", batch_size, low=1)
    check_integer("num_forget_batches", num_forget_batches, low=1)
    cycle = check_integer("num_descents", num_descents, low=1) + 1
    if check_real("forget_weight", forget_weight) < 0:
        raise InputError(f"forget_weight must not be negative, got {forget_weight}")
    # A whole number of cycles, after which batches and cycles are in step again; the retain step breaks the step.
    period = math.lcm(cycle, num_forget_batches) + (math.gcd(cycle, num_forget_batches) > 1)

    def init(key: Key[Array, ""], trained: Trained) -> InterleavedState:
        return InterleavedState(trained.params, optimizer.init(trained.params), jnp.zeros((), jnp.int32))

    def update(key: Key[Array, ""], state: InterleavedState, batch: Batch) -> tuple[InterleavedState, Info]:
        combined = (state.step % period + 1) % cycle == 0

        def objective(params: Params, retain: Examples) -> Float[Array, ""]:
            return loss_fn(params, retain) - forget_weight * combined * loss_fn(params, batch.forget)

        before = TrainState(state.params, state.optimizer_state)
        after, info = training_step(objective, optimizer, before, batch.retain)
        return InterleavedState(*after, step=state.step + 1), info

    return Unlearner(init, update, num_updates, batch_size, gradients_per_example=2.0)
