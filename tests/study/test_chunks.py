"""A few at a time."""

import numpy as np
import pytest

from jaxaudit.study.chunks import filled, in_chunks, row_blocks


def test_parts_hold_everything_once_in_order():
    parts = list(in_chunks(range(7), 3))
    assert [one for part in parts for one in part] == list(range(7))
    assert [filled(part, 3) for part in parts][-1] == [6, 6, 6]
    assert list(in_chunks([], 3)) == []


@pytest.mark.parametrize(("count", "limit"), [(7, 30), (7, 1), (6, 30), (7, 1000)])
def test_blocks_of_rows_have_one_size_and_hold_all(count, limit):
    blocks = row_blocks(count, 10, limit)
    assert len({len(block) for block in blocks}) == 1
    assert len(blocks[0]) <= max(1, limit // 10)
    assert np.concatenate(blocks)[:count].tolist() == list(range(count))
    assert set(np.concatenate(blocks)[count:].tolist()) <= {count - 1}
