"""Gradient ascent on the forget set."""

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from jaxaudit.data import Examples
from jaxaudit.train import LossFn, Params
from jaxaudit.unlearn.base import Unlearner, gradient_unlearner


def gradient_ascent(
    loss_fn: LossFn, *, optimizer: optax.GradientTransformation, num_updates: int, batch_size: int = 64
) -> Unlearner:
    """Climb the loss of the run's own forget set (equation 17, Appendix G.6 of the paper).

        params <- params + rate_t * gradient of the loss on the forget batch

    Never looks at retain data; usually followed by `retain_finetune`, joined by `then`. The paper takes 2 passes at a
    constant rate (0.001 on CIFAR-100, 0.05 on Shakespeare), then a one-cycle schedule with peak 0.1, or 0.1. Its code
    climbs on other examples than the run's own: on the whole pool of candidates (CIFAR-100) or on all training text
    (Shakespeare). A heuristic without guarantee.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``; its negative is minimised.
    optimizer
        For instance ``optax.sgd(0.02)``.
    num_updates, batch_size
        Number of mini-batch updates, and examples in each.

    Examples
    --------
    >>> import jax
    >>> from jaxaudit.unlearn import Batch, Trained
    >>> loss = lambda params, examples: jnp.mean((params - examples.x) ** 2)
    >>> one = lambda value: Examples(jnp.full(1, value), jnp.zeros(1, int), jnp.ones(1))
    >>> method = gradient_ascent(loss, optimizer=optax.sgd(0.5), num_updates=1)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> state, info = method.update(jax.random.key(1), state, Batch(retain=one(3.0), forget=one(9.0)))
    >>> float(state.params)
    -9.0
    """

    def negative_loss(params: Params, examples: Examples) -> Float[Array, ""]:
        return jnp.negative(loss_fn(params, examples))

    return gradient_unlearner(
        negative_loss, optimizer, num_updates, batch_size, examples=lambda batch: batch.forget
    )
