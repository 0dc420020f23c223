"""Data sets in npz and CSV files: both formats agree, and every mistake is named."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxaudit.data import load_file
from jaxaudit.errors import InputError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 3)).astype(np.float32), np.arange(12) % 3


def npz(tmp_path, **arrays):
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


def csv(tmp_path, text):
    (tmp_path / "data.csv").write_text(text)
    return tmp_path / "data.csv"


def test_arrays_of_any_feature_shape_and_index_ids(tmp_path):
    x = RNG.normal(size=(12, 2, 4, 1)).astype(np.float32)
    data = load_file(npz(tmp_path, x=x, y=Y), forget_ids=[["3"], ["10"]], num_holdout=2, seed=1)
    np.testing.assert_array_equal(data.groups.x[:, 0], x[[3, 10]])
    np.testing.assert_array_equal(data.groups.y[:, 0], Y[[3, 10]])
    assert (data.num_retain, data.name, data.num_classes) == (8, "data.npz", 3)
    assert data.description.startswith("Records of data.npz. 2 candidate groups")


def test_random_groups(tmp_path):
    data = load_file(npz(tmp_path, x=X, y=Y), num_groups=3, group_size=2, num_holdout=2, seed=1)
    assert (data.num_groups, data.group_size, data.num_retain, len(data.holdout.y)) == (3, 2, 4, 2)
    assert load_file(npz(tmp_path, x=X, y=Y), seed=1).num_groups == 4


def test_ids_of_either_kind(tmp_path):
    for ids in (
        np.arange(12) + 100,
        np.array([f"{i + 100}" for i in range(12)]),
        np.arange(100, 112).astype("S"),
    ):
        data = load_file(npz(tmp_path, x=X, y=Y, ids=ids), forget_ids=[["103"], ["110"]], seed=1)
        np.testing.assert_array_equal(data.groups.x[:, 0], X[[3, 10]])


@pytest.mark.parametrize(
    ("labels", "mapping"),
    [
        (np.array(["dog", "cat", "emu"])[Y], "Labels: 'cat' is 0, 'dog' is 1, 'emu' is 2."),
        (np.array([b"dog", b"cat", b"emu"])[Y], "Labels: 'cat' is 0, 'dog' is 1, 'emu' is 2."),
        (np.array([10, 9, 100])[Y], "Labels: 9 is 0, 10 is 1, 100 is 2."),
    ],
)
def test_labels_are_mapped_in_sorted_order(tmp_path, labels, mapping):
    data = load_file(npz(tmp_path, x=X, y=labels), forget_ids=[["0"], ["1"], ["2"]], seed=0)
    assert data.groups.y[:, 0].tolist() == [1, 0, 2]
    assert mapping in data.description


def test_own_held_out_part_shares_the_label_mapping(tmp_path):
    path = npz(tmp_path, x=X, y=Y + 5, holdout_x=X[:2] + 1, holdout_y=np.array([9, 6]))
    data = load_file(path, num_groups=2, seed=0)
    np.testing.assert_array_equal(data.holdout.x, X[:2] + 1)
    assert data.holdout.y.tolist() == [3, 1]
    assert (data.num_classes, data.num_retain) == (4, 10)


def test_table_with_ids_and_string_labels(tmp_path):
    text = "height,id,label,weight\n1.5,p1,b,10\n2e0,p2,a,-20\n0,p3,b,30\n4,p4,a,40\n5,p5,a,50\n"
    data = load_file(csv(tmp_path, text), forget_ids=[["p3"], ["p2", "p5"]], seed=0)
    assert data.groups.x.tolist() == [[[0, 30], [0, 30]], [[2, -20], [5, 50]]]
    assert data.groups.y[1].tolist() == [0, 0]
    assert "Labels: 'a' is 0, 'b' is 1." in data.description


def test_integer_labels_of_a_table_are_sorted_as_numbers(tmp_path):
    text = "a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate([10, 9, 10, 9, 100]))
    data = load_file(csv(tmp_path, text), forget_ids=[["0"], ["4"]], seed=0)
    assert data.groups.y[:, 0].tolist() == [1, 2]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(6, 15), st.integers(1, 4), st.integers(0, 1000), st.booleans())
def test_both_formats_give_the_same_data(tmp_path, n, features, seed, with_ids):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, features)) * 10.0 ** rng.integers(-30, 30, size=(n, features))).astype(
        np.float32
    )
    y, ids = np.array(["u", "v"])[np.arange(n) % 2], rng.permutation(n) + 1000
    header = ["label", *(["id"] if with_ids else []), *(f"f{i}" for i in range(features))]
    rows = [[y[i], *([ids[i]] if with_ids else []), *map(repr, x[i].tolist())] for i in range(n)]
    text = "\n".join(",".join(map(str, row)) for row in [header, *rows])
    options = {"seed": seed, "num_groups": 2, "num_holdout": 1}
    first = load_file(csv(tmp_path, text), **options)
    second = load_file(npz(tmp_path, x=x, y=y, **({"ids": ids} if with_ids else {})), **options)
    assert first.fingerprint == second.fingerprint
    assert first.group_ids == second.group_ids


def with_value(value):
    x = X.copy()
    x[4, 2] = value
    return x


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "arrays lack 'y'; found 'x'"),
        ({"X": X, "y": Y}, "arrays lack 'x'; found 'X', 'y'; is 'X' meant to be 'x'"),
        ({"x": X, "y": Y, "holdout_x": X}, "arrays lack 'holdout_y'"),
        ({"x": X, "y": Y, "holdout_y": Y}, "arrays lack 'holdout_x'"),
        ({"x": X, "y": Y, "id": Y}, "is 'id' meant to be 'ids'"),
        ({"x": X, "y": Y[:5]}, r"axis 0 \(records\) of y must have length 12, got 5"),
        ({"x": X, "y": np.eye(12)}, r"y must have axes \(records\), got shape \(12, 12\)"),
        ({"x": X, "y": Y, "ids": np.arange(3)}, r"axis 0 \(records\) of ids must have length 12, got 3"),
        (
            {"x": X, "y": Y, "ids": np.ones((12, 2), int)},
            r"ids must have axes \(records\), got shape \(12, 2\)",
        ),
        ({"x": X[:, 0], "y": Y}, r"x must have axes \(records, features, ...\), got shape \(12,\)"),
        ({"x": np.array(1.0), "y": Y}, r"x must have axes \(records, features, ...\), got shape \(\)"),
        ({"x": X.astype(str), "y": Y}, "x must hold numbers, got dtype <U"),
        ({"x": with_value(np.nan), "y": Y}, "x must be finite, got nan in record '4', feature 2"),
        (
            {"x": with_value(-np.inf), "y": Y, "ids": Y * 0 + np.arange(12) * 2},
            "got -inf in record '8', feature 2",
        ),
        ({"x": X, "y": Y.astype(float)}, "y must be integers or strings, got dtype float64"),
        ({"x": X, "y": Y, "ids": Y.astype(float)}, "ids must be integers or strings, got dtype float64"),
        ({"x": X, "y": Y, "ids": Y}, "every record needs its own id, got '0' twice"),
        ({"x": X, "y": np.zeros(12, int)}, "num_classes must be at least 2, got 1"),
        ({"x": X[:0], "y": Y[:0]}, "must leave some of the 0 records"),
        ({"x": X, "y": Y, "holdout_x": X[:3], "holdout_y": Y[:2]}, r"of holdout_y must have length 3, got 2"),
        (
            {"x": X, "y": Y, "holdout_x": X[:3, :2], "holdout_y": Y[:3]},
            r"axis 1 \(features 0\) of holdout.x must have length 3",
        ),
        (
            {"x": X, "y": Y, "holdout_x": with_value(np.nan), "holdout_y": Y},
            "holdout_x must be finite, got nan in record 4",
        ),
        (
            {"x": X, "y": Y, "holdout_x": np.array(0), "holdout_y": Y},
            r"holdout_x must have axes \(records, features, ...\)",
        ),
        (
            {"x": X, "y": Y, "holdout_x": X, "holdout_y": Y.astype(str)},
            "holdout_y must have labels of the same kind as y",
        ),
        ({"x": X, "y": Y.astype(object)}, "array 'y' is pickled"),
    ],
)
def test_refused_arrays(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        load_file(npz(tmp_path, **arrays), seed=0)


def test_a_float_too_large_for_float32(tmp_path):
    x = X.astype(np.float64)
    x[0, 0] = 1e300
    with pytest.raises(InputError, match="must be finite in float32, got 1e"):
        load_file(npz(tmp_path, x=x, y=Y), seed=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"data\.csv is empty"),
        ("a,label\n", "has a header but no rows"),
        ("a,lable\n1,0\n", "columns lack 'label'; found 'a', 'lable'; is 'lable' meant to be 'label'"),
        ("a,label,ids\n1,0,1\n", "is 'ids' meant to be 'id'"),
        ("id,label\n1,0\n", "no feature columns beside 'label' and 'id'"),
        ("a,b,label\n1,2,0\n3,x,1\n", "line 3, column 'b': expected a finite number, got 'x'"),
        ("a,b,label\n1,2,0\n3,,1\n", "line 3, column 'b': expected a finite number, got ''"),
        ("a,b,label\nnan,2,0\n", "line 2, column 'a': expected a finite number, got 'nan'"),
        ("a,b,label\n1,1e39,0\n", "line 2, column 'b': expected a finite number, got '1e39'"),
        ("a,label\n1,0\n2,\n", "line 3, column 'label': the label is missing"),
        ("a,label,id\n1,0,7\n2,1,7\n", "every record needs its own id, got '7' twice"),
        ("a,label,id\n1,0,7\n2,1,\n", "every record needs its own id, got ''"),
        ("a,label\n1,0\n2,1,3\n", "line 3: expected 2 cells, got 3"),
    ],
)
def test_refused_tables(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_file(csv(tmp_path, text), seed=0)


def test_refused_paths(tmp_path):
    with pytest.raises(InputError, match=r"no such file: .*gone\.npz"):
        load_file(tmp_path / "gone.npz", seed=0)
    (tmp_path / "data.json").write_text("{}")
    with pytest.raises(InputError, match=r"data must be a \.npz or \.csv file, got .*data\.json"):
        load_file(tmp_path / "data.json", seed=0)
