"""Rotary positions: every pair of coordinates of a query or key turns by an angle that grows with the position.

A head's vector is read as two halves; coordinate i of the first half and of the second are a pair, as in the published
weights of the Llama family in Hugging Face's layout.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxaudit.llm.spec import DecoderSpec, RopeScaling


def rope_frequencies(spec: DecoderSpec) -> Float[np.ndarray, " half"]:
    """Angles per token, in radians: ``theta^(-2 i / head_dim)``, stretched as the spec says.

    References
    ----------
    Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding.

    Examples
    --------
    >>> rope_frequencies(DecoderSpec(10, width=8, num_heads=2, rope_theta=100.0)).tolist()
    [1.0, 0.1]
    """
    frequencies = spec.rope_theta ** (-np.arange(0, spec.head_size, 2) / spec.head_size)
    scaling = spec.rope_scaling
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    return _llama3(frequencies, scaling)


def _llama3(frequencies: Float[np.ndarray, " half"], scaling: RopeScaling) -> Float[np.ndarray, " half"]:
    """Fast waves stay, slow ones are stretched, and the share of either changes along a line between the two."""
    waves_in_length = scaling.original_length * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    share = np.clip((waves_in_length - low) / (high - low), 0.0, 1.0)
    return share * frequencies + (1 - share) * frequencies / scaling.factor


def rope_angles(
    spec: DecoderSpec, positions: Int[Array, "examples tokens"]
) -> tuple[Float[Array, "examples tokens half"], Float[Array, "examples tokens half"]]:
    """Cosine and sine of every position's angles."""
    angles = positions[..., None] * jnp.asarray(rope_frequencies(spec), jnp.float32)
    return jnp.cos(angles), jnp.sin(angles)


def rotate(
    heads: Float[Array, "examples tokens heads size"],
    cosine: Float[Array, "examples tokens half"],
    sine: Float[Array, "examples tokens half"],
) -> Float[Array, "examples tokens heads size"]:
    """Turn every pair of coordinates by its angle, in float32.

    Examples
    --------
    >>> quarter = jnp.zeros((1, 1, 1)), jnp.ones((1, 1, 1))
    >>> rotate(jnp.array([[[[1.0, 0.0]]]]), *quarter).tolist()
    [[[[0.0, 1.0]]]]
    """
    cosine, sine = cosine[:, :, None], sine[:, :, None]
    first, second = jnp.split(heads.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
    return turned.astype(heads.dtype)
