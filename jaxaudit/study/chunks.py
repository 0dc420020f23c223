"""Many things, a few at a time, and every time equally many, so that one compiled program serves all."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Int

_Item = TypeVar("_Item")


def in_chunks(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    """Parts in their order; the last one may be shorter, see `filled`.

    Examples
    --------
    >>> list(in_chunks("abc", 2))
    [['a', 'b'], ['c']]
    """
    for first in range(0, len(items), size):
        yield list(items[first : first + size])


def filled(part: Sequence[_Item], size: int) -> list[_Item]:
    """A part that is as long as all others: its last item is repeated.

    Examples
    --------
    >>> filled(["c"], 2)
    ['c', 'c']
    """
    return [*part, *[part[-1]] * (size - len(part))]


def row_blocks(num_rows: int, numbers_per_row: int, limit: int) -> list[Int[np.ndarray, " size"]]:
    """Row numbers in blocks of one size that hold about ``limit`` numbers at most; the last row is repeated.

    Parameters
    ----------
    num_rows
        At least 1.
    numbers_per_row
        Of what is computed for a row.
    limit
        A block has at least one row, even if that alone has more numbers.

    Examples
    --------
    >>> [block.tolist() for block in row_blocks(5, 10, limit=20)]
    [[0, 1], [2, 3], [4, 4]]
    """
    blocks = -(-num_rows // max(1, limit // numbers_per_row))
    size = -(-num_rows // blocks)
    return [np.minimum(np.arange(first, first + size), num_rows - 1) for first in range(0, num_rows, size)]
