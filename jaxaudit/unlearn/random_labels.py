"""Random-label fine-tuning: the forget examples are learned again, with labels that are wrong."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LossFn, Params, SgdSpec, TrainState, num_batches, training_step
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


@dataclass(frozen=True)
class RandomLabelsSpec:
    """Settings of the phase with random labels; retain fine-tuning may follow it."""

    forget_weight: float = 0.1
    """Weight of the loss on the relabelled forget set, in [0, 1]; the retain loss has the rest."""
    sgd: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=5, learning_rate=0.05))
    """Passes over the retain set, learning rate."""


class RandomLabelsState(NamedTuple):
    """Parameters, the optimiser's state, how far each wrong label is from the right one, the next update's number."""

    params: Params
    optimizer_state: Any
    offsets: Int[Array, "forget_batches batch"]
    step: Int[Array, ""]


def random_labels(
    loss_fn: LossFn,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    num_classes: int,
    num_forget: int,
    forget_weight: float,
    batch_size: int = 64,
) -> Unlearner:
    """Train on the retain set together with the run's own forget set under wrong labels.

        label of a forget example <- uniform on the other ``num_classes - 1`` classes, drawn once
        params <- params - rate_t ((1 - w) g_retain + w g_relabelled)

    The "unlearning" method of Graves, Nagisetty and Ganesh (2021). They train on the union of retain data and
    relabelled data, which is ``w`` = the share of forget examples; here it can be chosen. The labels are drawn from
    the run's noise key in ``init`` and kept for the whole stage, as in their work: batches are read in a fixed order,
    so a place in the table of labels always belongs to the same example. A heuristic without guarantee.

    Two gradients per update: one retain and one forget batch.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a mean over the examples that reads ``examples.y`` as classes.
    optimizer
        For instance ``optax.sgd(optax.linear_schedule(0.05, 0.0, num_updates))``.
    num_updates, batch_size
        Number of mini-batch updates, and examples of each kind.
    num_classes
        At least 2. Labels are 0 to ``num_classes - 1``, one per example.
    num_forget
        Forget examples of a run.
    forget_weight
        w, in [0, 1]: 0 is retain fine-tuning.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Graves, Nagisetty and Ganesh (2021), Amnesiac Machine Learning.

    Examples
    --------
    >>> loss = lambda params, examples: jnp.sum(examples.y) * params
    >>> settings = {"num_updates": 1, "num_classes": 2, "num_forget": 1, "forget_weight": 1.0, "batch_size": 1}
    >>> method = random_labels(loss, optimizer=optax.sgd(1.0), **settings)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> one = Examples(jnp.ones(1), jnp.zeros(1, int), jnp.ones(1))
    >>> float(method.update(jax.random.key(1), state, Batch(retain=one, forget=one))[0].params)
    -1.0
    """
    check_integer("num_updates", num_updates, low=0)
    check_integer("batch_size", batch_size, low=1)
    check_integer("num_classes", num_classes, low=2)
    num_forget_batches = num_batches(check_integer("num_forget", num_forget, low=1), batch_size)
    if not 0 <= check_real("forget_weight", forget_weight) <= 1:
        raise InputError(f"forget_weight must be in [0, 1], got {forget_weight}")

    def init(key: Key[Array, ""], trained: Trained) -> RandomLabelsState:
        # A shift by 1 to num_classes - 1, modulo num_classes, is uniform on the other classes.
        offsets = jax.random.randint(key, (num_forget_batches, batch_size), 1, num_classes, jnp.int32)
        optimizer_state = optimizer.init(trained.params)
        return RandomLabelsState(trained.params, optimizer_state, offsets, jnp.zeros((), jnp.int32))

    def update(key: Key[Array, ""], state: RandomLabelsState, batch: Batch) -> tuple[RandomLabelsState, Info]:
        if batch.forget.y.shape != (batch_size,):
            raise InputError(
                f"a forget batch must have batch_size = {batch_size} labels, got shape {batch.forget.y.shape}"
            )
        offsets = state.offsets[state.step % num_forget_batches]
        relabelled = batch.forget._replace(y=(batch.forget.y + offsets) % num_classes)

        def objective(params: Params, retain: Examples) -> Float[Array, ""]:
            return (1 - forget_weight) * loss_fn(params, retain) + forget_weight * loss_fn(params, relabelled)

        before = TrainState(state.params, state.optimizer_state)
        after, info = training_step(objective, optimizer, before, batch.retain)
        return RandomLabelsState(*after, offsets=state.offsets, step=state.step + 1), info

    return Unlearner(init, update, num_updates, batch_size, gradients_per_example=2.0)
