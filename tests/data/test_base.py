"""AuditData: what it promises about its arrays, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxaudit.data import AuditData, Examples, make_groups
from jaxaudit.errors import InputError


def examples(*shape, features=(3,), start=0.0):
    x = start + np.arange(np.prod(shape + features), dtype=np.float32).reshape(shape + features)
    return Examples(x, np.zeros(shape, np.int64), np.ones(shape))


def build(**changes):
    fields = {
        "name": "toy",
        "retain": examples(4),
        "groups": examples(3, 2, start=100),
        "holdout": examples(2, start=200),
        "group_ids": (("a", "b"), ("c", "d"), ("e", "f")),
        "num_classes": 2,
        "description": "toy data",
    }
    return AuditData(**(fields | changes))


def test_sizes_and_canonical_types():
    data = build()
    assert (data.num_groups, data.group_size, data.num_retain) == (3, 2, 4)
    for part in (data.retain, data.groups, data.holdout, data.pool):
        assert (part.x.dtype, part.y.dtype, part.weights.dtype) == (np.float32, np.int32, np.float32)


def test_pool_index_formula():
    data = build(
        retain=examples(4, features=(2, 3)),
        groups=examples(3, 2, features=(2, 3), start=100),
        holdout=examples(1, features=(2, 3)),
    )
    for i in range(4):
        np.testing.assert_array_equal(data.pool.x[i], data.retain.x[i])
    for j in range(3):
        for b in range(2):
            np.testing.assert_array_equal(data.pool.x[4 + j * 2 + b], data.groups.x[j, b])
    assert data.pool.y.shape == data.pool.weights.shape == (10,)


def test_arrays_are_read_only_and_the_callers_stay_writable():
    retain = Examples(np.ones((4, 3), np.float32), np.zeros(4, np.int32), np.ones(4, np.float32))
    data = build(retain=retain)
    for array in (*data.retain, *data.groups, *data.holdout, *data.pool):
        assert not array.flags.writeable
    retain.x[0] = 7
    assert data.retain.x[0, 0] == 1


def test_fingerprint_is_the_same_in_another_process():
    code = (
        "import numpy as np; from jaxaudit.data import *\n"
        "e = lambda *s: Examples(np.ones((*s, 3)), np.zeros(s), np.ones(s))\n"
        "print(AuditData('other', e(4), e(2, 1), e(1), (('a',), ('b',)), 2, '').fingerprint)"
    )
    ones = {
        part: examples(*shape) for part, shape in [("retain", (4,)), ("groups", (2, 1)), ("holdout", (1,))]
    }
    ones = {part: value._replace(x=np.ones_like(value.x)) for part, value in ones.items()}
    data = build(**ones, group_ids=(("c",), ("d",)))
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == data.fingerprint
    assert len(data.fingerprint) == 64


def test_fingerprint_changes_with_any_array():
    base = build()
    fingerprints = {base.fingerprint, build(num_classes=3).fingerprint}
    for part in ("retain", "groups", "holdout"):
        given = getattr(base, part)
        y, x, weights = given.y.copy(), given.x.copy(), given.weights.copy()
        y.flat[0], x.flat[0] = 1, -1
        fingerprints |= {build(**{part: given._replace(y=y)}).fingerprint}
        fingerprints |= {build(**{part: given._replace(x=x)}).fingerprint}
        weights.flat[0] = 0
        ids = (("b",), ("c", "d"), ("e", "f")) if part == "groups" else base.group_ids
        fingerprints |= {build(**{part: given._replace(weights=weights)}, group_ids=ids).fingerprint}
    assert len(fingerprints) == 11


BAD = [
    ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
    (
        {"retain": examples(4)._replace(y=np.zeros(5))},
        r"axis 0 \(examples\) of retain.x must have length 5, got 4",
    ),
    (
        {"retain": examples(4)._replace(weights=np.ones(3))},
        r"axis 0 \(examples\) of retain.weights .* 4, got 3",
    ),
    (
        {"holdout": examples(2, features=(5,))},
        r"axis 1 \(features 0\) of holdout.x must have length 3, got 5",
    ),
    (
        {"groups": examples(3, 2, features=(2,))},
        r"axis 2 \(features 0\) of groups.x must have length 3, got 2",
    ),
    ({"groups": examples(3)}, r"groups.y must have axes \(groups, examples\), got shape \(3,\)"),
    (
        {"holdout": examples(2, features=(3, 1))},
        r"holdout.x must have axes \(examples, features 0\), got shape",
    ),
    ({"groups": examples(1, 2), "group_ids": (("a", "b"),)}, "at least 2 candidate groups, got 1"),
    ({"retain": examples(0)}, "retain must hold at least one record, got none"),
    ({"holdout": examples(0)}, "holdout must hold at least one record, got none"),
    ({"retain": examples(4)._replace(weights=np.zeros(4))}, "retain must hold at least one record"),
    ({"retain": examples(4)._replace(y=np.array([0, 1, 2, 0]))}, r"retain.y must be in 0 .. .* = 1, got 2"),
    ({"retain": examples(4)._replace(y=np.array([0, -1, 1, 0]))}, r"retain.y must be in .*, got -1"),
    ({"retain": examples(4)._replace(y=np.array([0, 0.5, 1, 0]))}, "retain.y must be integers, got 0.5"),
    ({"retain": examples(4)._replace(weights=np.full(4, 0.5))}, "retain.weights must be 0 or 1, got 0.5"),
    ({"group_ids": (("a", "b"),)}, "group_ids must name 3 groups, got 1"),
    (
        {"group_ids": (("a", "b"), ("c",), ("e", "f"))},
        r"group 1 has 2 records \(weight 1\) but 1 record ids",
    ),
    (
        {"group_ids": (("a", "b"), ("c", "d"), ("e", "a"))},
        "one candidate group only, got record id 'a' twice",
    ),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build(**changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_features_must_be_finite_in_float32(value):
    x = np.ones((4, 3))
    x[2, 1] = value
    with pytest.raises(
        InputError, match=rf"retain.x must be finite in float32, got {value} at \(2, 1\)".replace("+", r"\+")
    ):
        build(retain=examples(4)._replace(x=x))


def test_a_group_needs_a_record():
    weights = np.array([[1, 1], [0, 0], [1, 1]])
    with pytest.raises(InputError, match=r"group 1 has 0 records \(weight 1\) but 0 record ids"):
        build(groups=examples(3, 2)._replace(weights=weights), group_ids=(("a", "b"), (), ("c", "d")))
    for positions in ([[0], []], []):
        with pytest.raises(InputError, match="every candidate group needs a record"):
            make_groups(np.ones((2, 1)), np.zeros(2, int), positions)


@given(st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=5), min_size=1, max_size=6))
def test_groups_of_unequal_size_are_padded_with_their_first_example(positions):
    x, y = np.random.default_rng(0).normal(size=(20, 2, 2)), np.arange(20) % 7
    groups = make_groups(x, y, positions)
    assert groups.y.shape == groups.weights.shape == (len(positions), max(map(len, positions)))
    for j, group in enumerate(positions):
        for b in range(groups.y.shape[1]):
            source = group[b] if b < len(group) else group[0]
            np.testing.assert_array_equal(groups.x[j, b], x[source])
            assert groups.y[j, b] == y[source]
            assert groups.weights[j, b] == (b < len(group))


def text(*shape, start=0):
    tokens = (start + np.arange(np.prod((*shape, 5)))).reshape(*shape, 5) % 7
    return Examples(tokens[..., :-1], tokens[..., 1:], np.ones(shape))


def build_text(**changes):
    parts = {"retain": text(4), "groups": text(3, 2, start=1), "holdout": text(2, start=2), "num_classes": 7}
    return build(**(parts | changes))


def test_text_has_a_label_per_token_and_stays_integer():
    data = build_text()
    assert data.is_text
    assert not build().is_text
    assert (data.num_groups, data.group_size, data.num_retain) == (3, 2, 4)
    assert data.pool.x.shape == data.pool.y.shape == (10, 4)
    assert data.pool.x.dtype == data.pool.y.dtype == np.int32
    np.testing.assert_array_equal(data.pool.y[4 + 1 * 2 + 1], data.groups.y[1, 1])
    np.testing.assert_array_equal(data.pool.x[:, 1:], data.pool.y[:, :-1])


def test_integer_features_of_a_classifier_become_floats_as_before():
    data = build(retain=examples(4)._replace(x=np.ones((4, 3), np.uint8)))
    assert data.retain.x.dtype == np.float32


def test_labels_per_token_of_real_features_leave_them_real():
    x = np.linspace(0, 1, 12).reshape(4, 3)
    frames = {part: examples(*shape) for part, shape in [("groups", (3, 2)), ("holdout", (2,))]}
    frames = {part: one._replace(y=np.zeros(one.x.shape)) for part, one in frames.items()}
    data = build(retain=Examples(x, np.zeros((4, 3)), np.ones(4)), **frames)
    np.testing.assert_array_equal(data.retain.x, x.astype(np.float32))


def test_one_id_may_stand_for_a_group_of_windows():
    assert build_text(group_ids=(("a",), ("b",), ("c",))).group_ids[2] == ("c",)
    with pytest.raises(InputError, match=r"group 0 has 2 records \(weight 1\) but 1 record ids"):
        build(group_ids=(("a",), ("b",), ("c",)))


def test_only_the_first_examples_may_be_scored():
    weights = np.array([[1, 1], [1, 0], [1, 1]])
    groups = text(3, 2)._replace(weights=weights)
    ids = (("a",), ("b",), ("c",))
    np.testing.assert_array_equal(build_text(groups=groups, group_ids=ids).score_weights, weights)
    data = build_text(groups=groups, group_ids=ids, num_scored=1)
    np.testing.assert_array_equal(data.score_weights, [[1], [1], [1]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"retain": text(4)._replace(x=text(4).x + 4)}, r"retain.x must be in 0 .. num_classes - 1 = 6, got"),
        (
            {"holdout": text(2)._replace(y=text(2).y - 7)},
            r"holdout.y must be in 0 .. num_classes - 1 = 6, got",
        ),
        ({"holdout": examples(2)}, r"holdout.y must have axes \(examples, tokens\), got shape \(2,\)"),
        (
            {"groups": text(3, 2)._replace(y=np.zeros((3, 2, 3)))},
            r"axis 2 \(tokens\) of groups.y must have length 4, got 3",
        ),
        ({"num_scored": 0}, "num_scored must be an integer between 1 and 2, got 0"),
        ({"num_scored": 3}, "num_scored must be an integer between 1 and 2, got 3"),
        (
            {
                "num_scored": 1,
                "groups": text(3, 2)._replace(weights=np.array([[1, 1], [0, 1], [1, 1]])),
                "group_ids": (("a",), ("b",), ("c",)),
            },
            "num_scored must leave an example in every group, got 1: group 1 has none",
        ),
    ],
)
def test_text_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build_text(**changes)
