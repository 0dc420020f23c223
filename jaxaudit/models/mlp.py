"""A multilayer perceptron."""

from collections.abc import Sequence
from functools import lru_cache

import jax.numpy as jnp
from flax import linen
from jaxtyping import Array, Float

from jaxaudit.errors import InputError
from jaxaudit.models.base import ComputeDtype, Model, check_compute_dtype, from_linen


class Mlp(linen.Module):
    """Dense layers with ReLU between them and He initialisation, which suits ReLU; inputs are flattened."""

    hidden: Sequence[int]
    num_classes: int
    compute_dtype: ComputeDtype = "float32"

    @linen.compact
    def __call__(self, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        x = x.reshape(len(x), -1)
        kernel_init, dtype = linen.initializers.he_normal(), jnp.dtype(self.compute_dtype)
        for width in self.hidden:
            x = linen.relu(linen.Dense(width, kernel_init=kernel_init, dtype=dtype)(x))
        return linen.Dense(self.num_classes, kernel_init=kernel_init, dtype=dtype)(x).astype(jnp.float32)


def mlp(
    input_shape: Sequence[int],
    num_classes: int,
    hidden: Sequence[int] = (128, 128),
    *,
    compute_dtype: ComputeDtype = "float32",
) -> Model:
    """A ReLU network, by default with two hidden layers of 128 units.

    Parameters
    ----------
    input_shape
        Shape of one example.
    num_classes
        Number of classes, at least 2.
    hidden
        Width of each hidden layer.
    compute_dtype
        ``"float32"``, or ``"bfloat16"`` for activations and products; parameters and logits stay float32.

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
    check_compute_dtype(compute_dtype)
    return _mlp(tuple(input_shape), num_classes, tuple(hidden), compute_dtype)


@lru_cache(
    maxsize=16
)  # the same functions for the same sizes, so that programs built on them are compiled once
def _mlp(
    input_shape: tuple[int, ...], num_classes: int, hidden: tuple[int, ...], compute_dtype: ComputeDtype
) -> Model:
    model = from_linen(Mlp(hidden, num_classes, compute_dtype), jnp.zeros((1, *input_shape)))
    description = f"MLP {'-'.join(map(str, [*input_shape, *hidden, num_classes]))}, ReLU"
    if compute_dtype != "float32":
        description += f", computed in {compute_dtype}"
    return model._replace(description=description)
