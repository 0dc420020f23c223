"""Layers for images that stay fast when every run has its own parameters.

``vmap`` turns a convolution over per-run kernels into a grouped convolution, which is several times slower, and the
gradient of max-pooling into a scatter. The layers here compute the same numbers from static slices, sums and one
matrix product. So are all their derivatives, forward mode and higher ones included.
"""

from typing import Any

import jax.numpy as jnp
from flax import linen
from jax import lax
from jaxtyping import Array, Float

Images = Float[Array, "examples height width channels"]


def convolve(images: Images, kernel: Float[Array, "3 3 channels features"]) -> Images:
    """A 3x3 convolution with stride 1 and zero padding ("SAME"), channels last.

    Parameters
    ----------
    images
        Inputs.
    kernel
        Window rows, window columns, input channels, output channels.

    Returns
    -------
    ``out[n, i, j, o] = sum_{a, b, c} images[n, i + a - 1, j + b - 1, c] * kernel[a, b, c, o]``, zero outside.

    Examples
    --------
    >>> convolve(jnp.ones((1, 3, 3, 1)), jnp.ones((3, 3, 1, 1)))[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]
    """
    patches = _neighbours(_neighbours(images, axis=2), axis=1)
    return patches @ kernel.reshape(-1, kernel.shape[-1])


def _neighbours(images: Images, axis: int) -> Images:
    """The pixel before, the pixel itself and the pixel after it along an axis, side by side in the channels."""
    widths = [(1, 1) if dim == axis else (0, 0) for dim in range(images.ndim)]
    padded, size = jnp.pad(images, widths), images.shape[axis]
    return jnp.concatenate([lax.slice_in_dim(padded, i, i + size, axis=axis) for i in range(3)], axis=-1)


def conv_general_dilated(lhs: Array, rhs: Array, window_strides: Any, padding: Any, **options: Any) -> Array:
    """`convolve` where it applies, `jax.lax.conv_general_dilated` otherwise; for the argument of that name in Flax.

    Parameters
    ----------
    lhs, rhs, window_strides, padding, options
        As in `jax.lax.conv_general_dilated`.

    Examples
    --------
    >>> from flax import linen
    >>> layer = linen.Conv(4, (3, 3), conv_general_dilated=conv_general_dilated)
    """
    if _is_plain(lhs, rhs, window_strides, padding, options):
        return convolve(lhs, rhs)
    return lax.conv_general_dilated(lhs, rhs, window_strides, padding, **options)


def _is_plain(lhs: Array, rhs: Array, window_strides: Any, padding: Any, options: dict[str, Any]) -> bool:
    """Whether this is a 3x3 convolution with stride 1 and "SAME" padding over channels-last images."""
    numbers = options.get("dimension_numbers")
    if lhs.ndim != 4 or rhs.shape[:2] != (3, 3) or numbers is None:
        return False
    same = padding == "SAME" or (not isinstance(padding, str) and [tuple(p) for p in padding] == [(1, 1)] * 2)
    ones = (window_strides, options.get("lhs_dilation"), options.get("rhs_dilation"))
    return (
        same
        and all(tuple(value or (1, 1)) == (1, 1) for value in ones)
        and lax.conv_dimension_numbers(lhs.shape, rhs.shape, numbers) == _CHANNELS_LAST
        and options.get("feature_group_count", 1) == options.get("batch_group_count", 1) == 1
        and options.get("precision") is None
        and options.get("preferred_element_type") is None
    )


_CHANNELS_LAST = lax.conv_dimension_numbers((1, 1, 1, 1), (1, 1, 1, 1), ("NHWC", "HWIO", "NHWC"))


def max_pool(images: Images) -> Images:
    """The largest of each 2x2 window, stride 2; an odd last row or column is left out.

    The gradient goes to the first of equal values, row by row, as with `flax.linen.max_pool`.

    Parameters
    ----------
    images
        Inputs of at least 2x2 pixels.

    Examples
    --------
    >>> max_pool(jnp.arange(8.0).reshape(1, 2, 4, 1)).ravel().tolist()
    [5.0, 7.0]
    """
    examples, height, width, channels = images.shape
    images = images[:, : height // 2 * 2, : width // 2 * 2]
    windows = images.reshape(examples, height // 2, 2, width // 2, 2, channels)
    rows = [_first_largest(windows[:, :, row, :, 0], windows[:, :, row, :, 1]) for row in range(2)]
    return _first_largest(*rows)


def _first_largest(first: Array, second: Array) -> Array:
    """Elementwise maximum; NaN wins, as in `jnp.maximum`."""
    return jnp.where((first >= second) | jnp.isnan(first), first, second)


class GroupNorm(linen.Module):
    """Group normalisation as `flax.linen.GroupNorm` defines it, with the same parameters.

    Means are taken over the pixels first, where channels lie side by side in memory, and over the few channels of a
    group after that; one reduction over both is several times slower on a CPU. Statistics are float32.
    """

    num_groups: int
    epsilon: float = 1e-6
    dtype: Any = jnp.float32

    @linen.compact
    def __call__(self, images: Images) -> Images:
        examples, *_, channels = images.shape
        scale = self.param("scale", linen.initializers.ones, (channels,))
        bias = self.param("bias", linen.initializers.zeros, (channels,))

        def group_mean(values: Images) -> Float[Array, "examples 1 1 channels"]:
            groups = values.mean((1, 2)).reshape(examples, self.num_groups, -1).mean(-1)
            return jnp.repeat(groups, channels // self.num_groups, axis=-1)[:, None, None]

        images = images.astype(jnp.float32)
        mean = group_mean(images)
        # Rounding may make the difference of the two means negative.
        variance = jnp.maximum(group_mean(images**2) - mean**2, 0.0)
        factor = lax.rsqrt(variance + self.epsilon) * scale
        return ((images - mean) * factor + bias).astype(self.dtype)
