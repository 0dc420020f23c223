"""The small convolutional network of the paper's CIFAR-100 experiments."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Literal, get_args

import jax.numpy as jnp
from flax import linen
from jaxtyping import Array, Float

from jaxaudit.errors import InputError
from jaxaudit.models.base import ComputeDtype, Model, check_compute_dtype, from_linen
from jaxaudit.models.convolution import GroupNorm, conv_general_dilated, max_pool

Convolution = Literal["patches", "lax"]


class TinyNet(linen.Module):
    """Blocks of two times (3x3 convolution, group normalisation, ReLU) and 2x2 max-pooling; a mean; a dense layer."""

    input_shape: tuple[int, int, int]
    num_classes: int
    widths: tuple[int, ...]
    groups: int
    convolution: Convolution
    compute_dtype: ComputeDtype

    @linen.compact
    def __call__(self, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        dtype, kernel_init = jnp.dtype(self.compute_dtype), linen.initializers.he_normal()
        convolve = partial(
            linen.Conv,
            kernel_size=(3, 3),
            kernel_init=kernel_init,
            dtype=dtype,
            conv_general_dilated=conv_general_dilated if self.convolution == "patches" else None,
        )
        x = x.reshape(len(x), *self.input_shape)
        for width in self.widths:
            for _ in range(2):
                x = convolve(width)(x)
                x = linen.relu(GroupNorm(self.groups, dtype=dtype)(x))
            x = max_pool(x)
        x = linen.Dense(self.num_classes, kernel_init=kernel_init, dtype=dtype)(x.mean((1, 2)))
        return x.astype(jnp.float32)


def tinynet(
    input_shape: Sequence[int] = (32, 32, 3),
    num_classes: int = 100,
    widths: Sequence[int] = (64, 128),
    groups: int = 8,
    *,
    convolution: Convolution = "patches",
    compute_dtype: ComputeDtype = "float32",
) -> Model:
    """The paper's network for CIFAR-100: four convolutions and one dense layer, 273,828 parameters.

    Kernels start from a truncated normal distribution of variance ``2 / fan_in`` (He), biases from 0. Group
    normalisation adds 1e-6 to the variance.

    Parameters
    ----------
    input_shape
        Height, width and channels of one example; examples may come flattened. Each block halves height and width.
    num_classes
        Number of classes, at least 2.
    widths
        Channels of each block of two convolutions, divisible by ``groups``.
    groups
        Groups of channels that are normalised together.
    convolution
        ``"patches"`` builds convolutions from slices and matrix products, which is faster for many runs at once on a
        CPU; ``"lax"`` uses JAX's. Both compute the same function; the other one is in ``alternatives``.
    compute_dtype
        ``"float32"``, or ``"bfloat16"`` for activations and products; parameters and logits stay float32.

    Raises
    ------
    InputError
        If a size does not fit.

    References
    ----------
    Sarmasarkar, Koloskova, Koyejo, *Auditing of Unlearning Algorithms*, 2026: the CIFAR-100 experiments.

    Examples
    --------
    >>> import jax
    >>> params = jax.eval_shape(tinynet().init_fn, jax.random.key(0))
    >>> sum(leaf.size for leaf in jax.tree.leaves(params))
    273828
    """
    shape, channels = tuple(input_shape), tuple(widths)
    if len(shape) != 3 or min(shape) < 1 or min(shape[:2]) < 2 ** len(channels):
        raise InputError(
            f"input_shape must be (height, width, channels) of at least {2 ** len(channels)} pixels each way "
            f"for {len(channels)} blocks, got {shape}"
        )
    if groups < 1 or not channels or any(width < 1 or width % groups for width in channels):
        raise InputError(f"widths must be positive multiples of groups = {groups}, got {channels}")
    if num_classes < 2:
        raise InputError(f"num_classes must be at least 2, got {num_classes}")
    if convolution not in get_args(Convolution):
        raise InputError(f"convolution must be one of {get_args(Convolution)}, got {convolution!r}")
    check_compute_dtype(compute_dtype)
    others = [name for name in get_args(Convolution) if name != convolution]
    build = partial(_tinynet, shape, num_classes, channels, groups, compute_dtype)
    return build(convolution)._replace(alternatives=tuple(map(build, others)))


@lru_cache(
    maxsize=32
)  # the same functions for the same sizes, so that programs built on them are compiled once
def _tinynet(
    shape: tuple[int, int, int],
    num_classes: int,
    widths: tuple[int, ...],
    groups: int,
    compute_dtype: ComputeDtype,
    convolution: Convolution,
) -> Model:
    module = TinyNet(shape, num_classes, widths, groups, convolution, compute_dtype)
    model = from_linen(module, jnp.zeros((1, *shape)))
    parts = [
        f"TinyNet {'-'.join(map(str, widths))}, input {'x'.join(map(str, shape))}, {num_classes} classes",
        f"GroupNorm({groups})",
        "convolutions as patches" if convolution == "patches" else "convolutions by lax",
    ]
    if compute_dtype != "float32":
        parts.append(f"computed in {compute_dtype}")
    return model._replace(description=", ".join(parts))
