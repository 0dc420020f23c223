"""Named streams of random keys, so that initialisation, order, sign vectors and noise never share randomness."""

import zlib
from typing import Literal

import jax
from jaxtyping import Array, Key

from jaxaudit.checks import check_integer

Stream = Literal["init", "order", "sign", "noise"]


def stream_key(seed: int, stream: Stream) -> Key[Array, ""]:
    """The typed key of one named stream of a seed.

    ``init`` and ``order`` are used once, and what they draw is the same for all runs (the adversary knows it);
    ``sign`` and ``noise`` are split over runs.

    Examples
    --------
    >>> init, noise = stream_key(0, "init"), stream_key(0, "noise")
    >>> bool((jax.random.key_data(init) == jax.random.key_data(noise)).all())
    False
    """
    # Larger seeds would silently be equal to smaller ones.
    check_integer("seed", seed, low=0, high=2**32 - 1)
    return jax.random.fold_in(jax.random.key(seed), zlib.crc32(stream.encode()))
