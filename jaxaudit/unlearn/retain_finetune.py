"""Fine-tuning on the retain set."""

import optax

from jaxaudit.train import LossFn
from jaxaudit.unlearn.base import Unlearner, gradient_unlearner


def retain_finetune(
    loss_fn: LossFn, *, optimizer: optax.GradientTransformation, num_updates: int, batch_size: int = 64
) -> Unlearner:
    """Go on training, on the retain set only (Appendix G.7 of the paper).

        params <- params - rate_t * gradient of the loss on the retain batch

    Never looks at forget data. It is model clipping (equation 14) with unlimited radii and without noise; the paper's
    rates are one-cycle with peak 0.1 (CIFAR-100) and constant 0.1 (Shakespeare). A heuristic without guarantee.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``.
    optimizer
        For instance ``optax.sgd(optax.linear_schedule(0.1, 0.0, num_updates))``.
    num_updates, batch_size
        Number of mini-batch updates, and examples in each.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxaudit.data import Examples
    >>> from jaxaudit.unlearn import Batch, Trained
    >>> loss = lambda params, examples: jnp.mean((params - examples.x) ** 2)
    >>> one = lambda value: Examples(jnp.full(1, value), jnp.zeros(1, int), jnp.ones(1))
    >>> method = retain_finetune(loss, optimizer=optax.sgd(0.5), num_updates=1)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> state, info = method.update(jax.random.key(1), state, Batch(retain=one(3.0), forget=one(9.0)))
    >>> float(state.params)
    3.0
    """
    return gradient_unlearner(
        loss_fn, optimizer, num_updates, batch_size, examples=lambda batch: batch.retain
    )
