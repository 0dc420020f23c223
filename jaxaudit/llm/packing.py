"""Real tokens of a batch in one row, so that whatever is done token by token is not done for padding.

Matrices and norms see a row of real tokens only; attention sees each example by itself, as without packing.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxaudit.checks import check_integer

_MULTIPLE = 32
"""Sizes are rounded up to it, so that a few compiled programs serve all orders of the examples."""
_WORTH = 0.9
"""Of the padded tokens: with more real ones, moving them about costs what leaving out padding saves."""


class Packing(NamedTuple):
    """Where the real tokens of padded rows go, and where they come from."""

    place: Int[Array, " packed"]
    """Number of every packed token among the padded ones, row after row; past their end where there is none."""
    slot: Int[Array, " padded"]
    """Number of every padded token among the packed ones; past their end at padding."""


def make_packing(real: Float[Array, "examples tokens"], size: int) -> Packing:
    """Pack the real tokens in their order.

    Parameters
    ----------
    real
        0 at padding.
    size
        Packed tokens; at least as many as are real.

    Examples
    --------
    >>> packing = make_packing(jnp.array([[0.0, 1.0], [1.0, 0.0]]), 3)
    >>> packing.place.tolist(), packing.slot.tolist()
    ([1, 2, 4], [3, 0, 1, 3])
    """
    flags = real.reshape(-1) > 0
    place = jnp.nonzero(flags, size=size, fill_value=flags.size)[0]
    return Packing(place, jnp.where(flags, jnp.cumsum(flags) - 1, size))


def pack(x: Float[Array, "examples tokens width"], packing: Packing) -> Float[Array, "1 packed width"]:
    """The real tokens in one row, and zeros where there is none.

    Examples
    --------
    >>> pack(jnp.array([[[5.0], [6.0]]]), make_packing(jnp.array([[0.0, 1.0]]), 2)).tolist()
    [[[6.0], [0.0]]]
    """
    return _move(x.reshape(-1, x.shape[-1]), packing.place, packing.slot)[None]


def pack_ids(ids: Int[Array, "examples tokens"], packing: Packing) -> Int[Array, "1 packed"]:
    """`pack` for numbers of tokens, with 0 where there is none."""
    return ids.reshape(-1).at[packing.place].get(mode="fill", fill_value=0)[None]


def unpack(
    x: Float[Array, "1 packed width"], packing: Packing, num_examples: int
) -> Float[Array, "examples tokens width"]:
    """Undo `pack`, with zeros at padding.

    Examples
    --------
    >>> unpack(jnp.array([[[6.0], [0.0]]]), make_packing(jnp.array([[0.0, 1.0]]), 2), 1).tolist()
    [[[0.0], [6.0]]]
    """
    return _move(x[0], packing.slot, packing.place).reshape(num_examples, -1, x.shape[-1])


@jax.custom_vjp
def _move(x: Array, source: Array, target: Array) -> Array:
    """Row ``source[i]`` of x, or zeros past its end; ``target`` is the way back.

    Both ways are one-to-one, so the gradient is a move back: gathers, where JAX would derive slow scattered sums.
    """
    return x.at[source].get(mode="fill", fill_value=0)


def _move_forward(x: Array, source: Array, target: Array) -> tuple[Array, tuple[Array, Array]]:
    return _move(x, source, target), (source, target)


def _move_back(ways: tuple[Array, Array], gradient: Array) -> tuple[Array, None, None]:
    return _move(gradient, ways[1], ways[0]), None, None


_move.defvjp(_move_forward, _move_back)


def packed_size(
    real: Float[Any, "examples tokens"], orders: Int[Any, "runs members"], batch_size: int
) -> int | None:
    """Packed tokens that every batch of every run fits in, when members are read in their order.

    Parameters
    ----------
    real
        Of the pool, 0 at padding.
    orders
        Numbers of the pool's examples, a row per run; batches are cut as `jaxaudit.train.take_batch` does.
    batch_size
        Examples per batch.

    Returns
    -------
    The number of real tokens of the fullest batch, rounded up; ``None`` if packing would leave out too little.

    Examples
    --------
    >>> real = np.zeros((4, 100))
    >>> real[:, :30] = 1.0
    >>> packed_size(real, [[0, 1, 2]], 2), packed_size(np.ones((4, 100)), [[0, 1, 2]], 2)
    (64, None)
    """
    check_integer("batch_size", batch_size, low=1)
    lengths, members = (np.asarray(real) > 0).sum(axis=1), np.asarray(orders)
    places = np.arange(-(-members.shape[1] // batch_size) * batch_size)
    read = lengths[members[:, np.minimum(places, members.shape[1] - 1)]]
    fullest = int(read.reshape(len(members), -1, batch_size).sum(axis=2).max())
    size = -(-fullest // _MULTIPLE) * _MULTIPLE
    return size if size <= _WORTH * batch_size * np.shape(real)[1] else None
