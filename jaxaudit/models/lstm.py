"""A recurrent network over characters."""

from functools import lru_cache
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from jaxaudit.checks import check_integer
from jaxaudit.models.base import ComputeDtype, Model, check_compute_dtype
from jaxaudit.train import Params

Weights = dict[str, Array]


def char_lstm(
    vocabulary_size: int = 100,
    embedding: int = 8,
    hidden: int = 256,
    layers: int = 2,
    *,
    compute_dtype: ComputeDtype = "float32",
) -> Model:
    """The paper's network for Shakespeare: an embedding, a stack of LSTM layers, a dense layer; next-character logits.

    ``logits_fn(params, characters)`` maps integers ``(batch, time)`` in ``0 ... vocabulary_size - 1`` to logits
    ``(batch, time, vocabulary)``; place ``t`` has seen characters 0 to t. Every example starts from a zero state.

    Parameters are named, shaped and initialised as PyTorch's ``nn.Embedding`` (standard normal), ``nn.LSTM`` and
    ``nn.Linear`` (uniform within one over the square root of ``hidden``) do it, two bias vectors per layer included,
    so that weights can be copied either way.

    Parameters
    ----------
    vocabulary_size
        Number of characters, at least 2.
    embedding
        Length of the vector that stands for a character.
    hidden
        Units of each layer.
    layers
        Number of layers.
    compute_dtype
        ``"float32"``, or ``"bfloat16"`` for activations and products; parameters, cell states and logits stay float32.

    Raises
    ------
    InputError
        If a size is not a positive integer.

    References
    ----------
    Sarmasarkar, Koloskova, Koyejo, *Auditing of Unlearning Algorithms*, 2026: the Shakespeare experiments.

    Examples
    --------
    >>> params = jax.eval_shape(char_lstm().init_fn, jax.random.key(0))
    >>> sum(leaf.size for leaf in jax.tree.leaves(params))
    825220
    """
    return _char_lstm(
        check_integer("vocabulary_size", vocabulary_size, low=2),
        check_integer("embedding", embedding, low=1),
        check_integer("hidden", hidden, low=1),
        check_integer("layers", layers, low=1),
        compute_dtype,
    )


@lru_cache(
    maxsize=16
)  # the same functions for the same sizes, so that programs built on them are compiled once
def _char_lstm(
    vocabulary_size: int, embedding: int, hidden: int, layers: int, compute_dtype: ComputeDtype
) -> Model:
    check_compute_dtype(compute_dtype)
    dtype = jnp.dtype(compute_dtype)

    def init_fn(key: Key[Array, ""]) -> Params:
        table_key, lstm_key, linear_key = jax.random.split(key, 3)
        return {
            "embedding": {"weight": jax.random.normal(table_key, (vocabulary_size, embedding), jnp.float32)},
            "lstm": _uniform(lstm_key, lstm_shapes(embedding, hidden, layers), 1 / sqrt(hidden)),
            "linear": _uniform(
                linear_key,
                {"weight": (vocabulary_size, hidden), "bias": (vocabulary_size,)},
                1 / sqrt(hidden),
            ),
        }

    def logits_fn(
        params: Params, characters: Int[Array, "batch time"]
    ) -> Float[Array, "batch time vocabulary"]:
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        sequence = params["embedding"]["weight"][characters.T]
        for layer in range(layers):
            sequence = lstm_layer(sequence, *(params["lstm"][f"{name}_l{layer}"] for name in _NAMES))
        logits = sequence @ params["linear"]["weight"].T + params["linear"]["bias"]
        return logits.swapaxes(0, 1).astype(jnp.float32)

    description = f"LSTM {layers} x {hidden}, embedding {embedding}, {vocabulary_size} characters"
    if compute_dtype != "float32":
        description += f", computed in {compute_dtype}"
    return Model(init_fn, logits_fn, description)


_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def lstm_shapes(inputs: int, hidden: int, layers: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters, under PyTorch's names.

    Examples
    --------
    >>> lstm_shapes(8, 16, 1)
    {'weight_ih_l0': (64, 8), 'weight_hh_l0': (64, 16), 'bias_ih_l0': (64,), 'bias_hh_l0': (64,)}
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(layers):
        sizes = (
            (4 * hidden, hidden if layer else inputs),
            (4 * hidden, hidden),
            (4 * hidden,),
            (4 * hidden,),
        )
        shapes |= {f"{name}_l{layer}": size for name, size in zip(_NAMES, sizes)}
    return shapes


def _uniform(key: Key[Array, ""], shapes: dict[str, tuple[int, ...]], bound: float) -> Weights:
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.uniform(key, shape, jnp.float32, minval=-bound, maxval=bound)
        for key, (name, shape) in zip(keys, shapes.items())
    }


def lstm_layer(
    sequence: Float[Array, "time batch inputs"],
    input_kernel: Float[Array, "gates inputs"],
    recurrent_kernel: Float[Array, "gates hidden"],
    input_bias: Float[Array, " gates"],
    recurrent_bias: Float[Array, " gates"],
) -> Float[Array, "time batch hidden"]:
    """One LSTM layer over a sequence, from a zero state; gates in PyTorch's order (input, forget, cell, output).

    The products with the inputs do not depend on the state: they are one matrix product for all times. Each step then
    needs one product for all four gates.

    Parameters
    ----------
    sequence
        Inputs, time first.
    input_kernel, recurrent_kernel, input_bias, recurrent_bias
        ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh`` of PyTorch's ``nn.LSTM``; 4 x hidden rows.

    Returns
    -------
    The hidden state after every step: with ``z = W x_t + b + U h_{t-1} + b'`` split into ``i, f, g, o``,
    ``c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g)`` and ``h_t = sigmoid(o) tanh(c_t)``.

    Examples
    --------
    >>> layer = (jnp.zeros((8, 3)), jnp.zeros((8, 2)), jnp.zeros(8), jnp.zeros(8))
    >>> lstm_layer(jnp.ones((5, 4, 3)), *layer).shape
    (5, 4, 2)
    """
    projected = sequence @ input_kernel.T + (input_bias + recurrent_bias)
    dtype, recurrent = projected.dtype, recurrent_kernel.T
    shape = (sequence.shape[1], recurrent_kernel.shape[1])

    def step(state: tuple[Array, Array], from_input: Array) -> tuple[Any, Array]:
        hidden, cell = state
        enter, keep, new, leave = jnp.split(from_input + hidden @ recurrent, 4, axis=-1)
        # The cell is a sum over time: it is kept in float32 whatever the products are computed in.
        cell = jax.nn.sigmoid(keep).astype(jnp.float32) * cell + (
            jax.nn.sigmoid(enter) * jnp.tanh(new)
        ).astype(jnp.float32)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell).astype(dtype)
        return (hidden, cell), hidden

    start = (jnp.zeros(shape, dtype), jnp.zeros(shape, jnp.float32))
    return lax.scan(step, start, projected)[1]
