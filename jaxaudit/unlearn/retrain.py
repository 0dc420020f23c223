"""The two ends of the scale: exact retraining, and doing nothing."""

from functools import lru_cache

import jax.numpy as jnp
import optax

from jaxaudit.train import LossFn
from jaxaudit.unlearn.base import Unlearner, gradient_unlearner


def exact_retraining(
    loss_fn: LossFn, *, optimizer: optax.GradientTransformation, num_updates: int, batch_size: int = 64
) -> Unlearner:
    """Throw the trained model away and train again from x0 on the retain set: unlearning by definition.

    The same updates as base training, on other examples. Never looks at forget data or at the trained parameters, so
    with fixed x0 and order its result is the same whatever was forgotten, and every audit of it must find nothing.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``.
    optimizer
        The optimiser of base training.
    num_updates, batch_size
        Number of mini-batch updates, and examples in each.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxaudit.unlearn import Trained
    >>> method = exact_retraining(lambda params, examples: 0.0, optimizer=optax.sgd(0.1), num_updates=0)
    >>> float(method.init(jax.random.key(0), Trained(jnp.ones(()), initial_params=jnp.zeros(()))).params)
    0.0
    """
    return gradient_unlearner(
        loss_fn,
        optimizer,
        num_updates,
        batch_size,
        examples=lambda batch: batch.retain,
        start=lambda trained: trained.initial_params,
    )


@lru_cache(maxsize=1)
def no_unlearning() -> Unlearner:
    """Return the trained model as it is: what an audit must catch.

    Examples
    --------
    >>> no_unlearning().num_updates
    0
    """
    return gradient_unlearner(
        lambda params, examples: jnp.zeros(()), optax.identity(), 0, 1, examples=lambda batch: batch.retain
    )
