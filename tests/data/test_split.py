"""Splitting one set of records: a partition, uniform, and refused where it does not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxaudit.data import Examples
from jaxaudit.data.split import Records, split_records
from jaxaudit.errors import InputError


def records(n):
    # The only feature is the record's own number, so that a split can be read from the values.
    return Records(np.arange(n, dtype=float)[:, None], np.arange(n) % 2, tuple(f"r{i}" for i in range(n)), 2)


def split(n=30, seed=0, **options):
    return split_records(records(n), name="toy", description="Toy.", seed=seed, **options)


def numbers(examples):
    return examples.x[..., 0][examples.weights > 0].astype(int).tolist()


@given(st.integers(10, 60), st.integers(2, 3), st.integers(1, 2), st.integers(0, 3), st.integers(0, 2**40))
def test_random_split_is_a_partition(n, num_groups, group_size, num_holdout, seed):
    sizes = {"num_groups": num_groups, "group_size": group_size, "num_holdout": num_holdout or None}
    data = split(n, seed, **sizes)
    retain, groups, holdout = map(numbers, (data.retain, data.groups, data.holdout))
    assert sorted(retain + groups + holdout) == list(range(n))
    rest = n - num_groups * group_size
    assert len(holdout) == (num_holdout or max(1, rest // 5))
    assert data.groups.y.shape == (num_groups, group_size)
    assert (retain, holdout) == (sorted(retain), sorted(holdout))
    assert [record for group in data.group_ids for record in group] == [f"r{i}" for i in groups]
    for part in (data.retain, data.groups, data.holdout):
        np.testing.assert_array_equal(part.y, part.x[..., 0] % 2)


def test_every_record_is_equally_often_candidate_and_held_out():
    candidate, held_out, trials = np.zeros(12), np.zeros(12), 3000
    for seed in range(trials):
        data = split(12, seed, num_groups=4, num_holdout=3)
        candidate[numbers(data.groups)] += 1
        held_out[numbers(data.holdout)] += 1
    # Five standard deviations of a binomial count.
    assert (abs(candidate - trials / 3) < 5 * np.sqrt(trials * 2 / 9)).all()
    assert (abs(held_out - trials / 4) < 5 * np.sqrt(trials * 3 / 16)).all()


def test_same_seed_same_split_other_seed_other_split():
    assert split(seed=3).fingerprint == split(seed=3).fingerprint
    assert split(seed=3).fingerprint != split(seed=4).fingerprint


def test_the_documented_draws():
    rng = np.random.default_rng(5)
    drawn = rng.permutation(20)[:6]
    rest = rng.permutation([i for i in range(20) if i not in drawn])
    data = split(20, seed=5, num_groups=3, group_size=2, num_holdout=4)
    assert numbers(data.groups) == drawn.tolist()
    assert numbers(data.holdout) == sorted(rest[:4])
    assert numbers(data.retain) == sorted(rest[4:])


@pytest.mark.parametrize(("n", "size", "expected"), [(30, 1, 10), (30, 4, 2), (4, 1, 2), (1600, 1, 500)])
def test_default_number_of_groups(n, size, expected):
    data = split(n, group_size=size) if n > 2 * size else None
    assert data.num_groups == expected


def test_requested_groups_of_unequal_size():
    data = split(20, forget_ids=(("r7", "r2"), ("r5",)), num_holdout=3)
    assert data.group_ids == (("r7", "r2"), ("r5",))
    assert data.groups.x[..., 0].tolist() == [[7, 2], [5, 5]]
    assert data.groups.weights.tolist() == [[1, 1], [1, 0]]
    assert sorted(numbers(data.retain) + numbers(data.holdout)) == [
        i for i in range(20) if i not in (2, 5, 7)
    ]
    assert (
        "2 candidate groups of 1 to 2 as requested, 14 records retained, 3 held out; split seed 0"
        in data.description
    )


def test_own_held_out_records_are_used():
    own = records(5)
    data = split(20, holdout=Examples(own.x + 100, own.y, np.ones(5)), num_groups=4)
    assert numbers(data.holdout) == [100, 101, 102, 103, 104]
    assert data.num_retain == 16
    assert data.description.endswith(
        "4 candidate groups of 1 drawn uniformly, 16 records retained, 5 held out; split seed 0."
    )
    with pytest.raises(InputError, match=r"num_holdout must be left out, .*; got 2"):
        split(20, holdout=Examples(own.x, own.y, np.ones(5)), num_holdout=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_groups": 10, "group_size": 3}, r"must leave some of the 30 records, got 10 \* 3"),
        (
            {"num_groups": 20, "num_holdout": 10},
            "num_holdout must leave a record to retain, got 10: 10 records are in no",
        ),
        ({"num_groups": 1}, "num_groups must be an integer of at least 2, got 1"),
        ({"num_groups": 2.5}, "num_groups must be an integer of at least 2, got 2.5"),
        ({"group_size": 0}, "group_size must be an integer of at least 1, got 0"),
        ({"num_holdout": 0}, "num_holdout must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        (
            {"forget_ids": (("r1",), ("r99",), ("x",))},
            r"the data has no record 'r99' \(2 unknown ids; .* 30 ids .* 'r0'",
        ),
        ({"forget_ids": (("r1",), ("r2", "r1"))}, "got record id 'r1' twice"),
        ({"forget_ids": (("r1", "r2"),)}, "at least 2 groups of at least one record, got 1 with 2 records$"),
        ({"forget_ids": (("r1",), ())}, "groups of at least one record, got 2 with 1, 0 records$"),
        ({"forget_ids": ()}, "groups of at least one record, got 0 with no records$"),
        ({"forget_ids": (("r1 r2",),)}, r"no record 'r1 r2' \(1 unknown .*\); separate ids by commas$"),
        ({"forget_ids": (("r99",), ("x y",))}, r"no record 'r99' .*'r2'\)$"),
        (
            {"forget_ids": (("r1",), ("r2",)), "num_groups": 2, "group_size": 3},
            "come from forget_ids, got num_groups=2, group_size=3 too$",
        ),
        (
            {"forget_ids": (("r1",), ("r2",)), "num_groups": 2},
            r"come from forget_ids, got num_groups=2 too$",
        ),
        (
            {"forget_ids": (("r1",), ("r2",)), "group_size": 2},
            r"come from forget_ids, got group_size=2 too$",
        ),
    ],
)
def test_refused(options, message):
    with pytest.raises(InputError, match=message):
        split(**options)
