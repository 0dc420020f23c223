"""Gradient difference (NegGrad+): descent on the retain set and ascent on the forget set in every step."""

from dataclasses import dataclass, field

import optax
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LossFn, Params, SgdSpec, TrainState, start_training, training_step
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


@dataclass(frozen=True)
class GradientDifferenceSpec:
    """Settings of gradient difference."""

    retain_weight: float = 0.7
    """Weight of the retain loss, Kurmanji et al.'s beta, in [0, 1]; the forget loss has the rest, negative."""
    sgd: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=5, learning_rate=0.3))
    """Passes over the retain set, learning rate."""


def gradient_difference(
    loss_fn: LossFn,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    retain_weight: float,
    batch_size: int = 64,
) -> Unlearner:
    """Minimise the retain loss minus the loss of the run's own forget set, in every step.

        params <- params - rate_t (beta g_retain - (1 - beta) g_forget)

    NegGrad+ of Kurmanji et al. (2023), who take beta = 0.95 on small and 0.9999 on large problems. With beta = 1/2 it
    is the gradient difference of Liu, Liu and Stone (2022) at half the rate. Interleaved descent-ascent
    (`interleaved_descent_ascent`) without any retain steps in between (q = 0), with rate eta and weight lambda, is
    gradient difference with beta = 1 / (1 + lambda) and rate (1 + lambda) eta. A heuristic without guarantee: the
    forget loss has no upper limit, so with a small beta the model is destroyed.

    Two gradients per update: one retain and one forget batch.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a mean over the examples.
    optimizer
        For instance ``optax.sgd(optax.linear_schedule(0.3, 0.0, num_updates))``.
    num_updates, batch_size
        Number of mini-batch updates, and examples of each kind.
    retain_weight
        Beta, in [0, 1]: 1 is retain fine-tuning, 0 is gradient ascent on the forget set.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Kurmanji, Triantafillou, Hayes and Triantafillou (2023), Towards Unbounded Machine Unlearning.
    Liu, Liu and Stone (2022), Continual Learning and Private Unlearning.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> loss = lambda params, examples: jnp.mean(examples.x) * params
    >>> one = lambda slope: Examples(jnp.full(1, slope), jnp.zeros(1, int), jnp.ones(1))
    >>> method = gradient_difference(loss, optimizer=optax.sgd(1.0), num_updates=1, retain_weight=0.75)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> state, info = method.update(jax.random.key(1), state, Batch(retain=one(4.0), forget=one(8.0)))
    >>> float(state.params)
    -1.0
    """
    check_integer("num_updates", num_updates, low=0)
    check_integer("batch_size", batch_size, low=1)
    if not 0 <= check_real("retain_weight", retain_weight) <= 1:
        raise InputError(f"retain_weight must be in [0, 1], got {retain_weight}")

    def init(key: Key[Array, ""], trained: Trained) -> TrainState:
        return start_training(trained.params, optimizer)

    def update(key: Key[Array, ""], state: TrainState, batch: Batch) -> tuple[TrainState, Info]:
        def objective(params: Params, retain: Examples) -> Float[Array, ""]:
            return retain_weight * loss_fn(params, retain) - (1 - retain_weight) * loss_fn(
                params, batch.forget
            )

        return training_step(objective, optimizer, state, batch.retain)

    return Unlearner(init, update, num_updates, batch_size, gradients_per_example=2.0)
