"""A multilayer perceptron."""

from collections.abc import Sequence
from functools import lru_cache

import jax.numpy as jnp
from flax import linen
from jaxtyping import Array, Float

from jaxaudit.errors import InputError
from jaxaudit.models.base import Model, from_linen


class Mlp(linen.Module):
    """Dense layers with ReLU between them and He initialisation, which suits ReLU; inputs are flattened."""

    hidden: Sequence[int]
    num_classes: int

    @linen.compact
    def __call__(self, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        x = x.reshape(len(x), -1)
        kernel_init = linen.initializers.he_normal()
        for width in self.hidden:
            x = linen.relu(linen.Dense(width, kernel_init=kernel_init)(x))
        return linen.Dense(self.num_classes, kernel_init=kernel_init)(x)


def mlp(input_shape: Sequence[int], num_classes: int, hidden: Sequence[int] = (128, 128)) -> Model:
    """A ReLU network, by default with two hidden layers of 128 units.

    Parameters
    ----------
    input_shape
        Shape of one example.
    num_classes
        Number of classes, at least 2.
    hidden
        Width of each hidden layer.

    Examples
    --------
    >>> import jax
    >>> params = mlp((64,), 10).init_fn(jax.random.key(0))
    >>> sum(leaf.size for leaf in jax.tree.leaves(params))
    26122
    """
    if num_classes < 2 or any(width < 1 for width in hidden):
        raise InputError(
            f"num_classes must be at least 2 and hidden widths positive, got {num_classes}, {hidden}"
        )
    return _mlp(tuple(input_shape), num_classes, tuple(hidden))


@lru_cache(
    maxsize=16
)  # the same functions for the same sizes, so that programs built on them are compiled once
def _mlp(input_shape: tuple[int, ...], num_classes: int, hidden: tuple[int, ...]) -> Model:
    model = from_linen(Mlp(hidden, num_classes), jnp.zeros((1, *input_shape)))
    return model._replace(description=f"MLP {'-'.join(map(str, [*input_shape, *hidden, num_classes]))}, ReLU")
