"""The border: what is read, what is refused and with which words."""

import hashlib
import pickle
import zipfile

import numpy as np
import pytest

from jaxaudit import border
from jaxaudit.errors import InputError


def test_npz_round_trip_keeps_values_dtypes_and_names(tmp_path):
    arrays = {
        "a": np.arange(6, dtype=np.int8).reshape(2, 3),
        "text": np.array("grüße"),
        "empty": np.zeros((0, 2)),
    }
    border.write_npz(tmp_path / "f.npz", arrays)
    found = border.read_npz(tmp_path / "f.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_writing_the_same_arrays_twice_gives_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        border.write_npz(tmp_path / name, {"x": np.arange(5)})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_an_existing_file_is_kept_unless_asked(tmp_path):
    path = tmp_path / "f.npz"
    border.write_npz(path, {"x": np.arange(2)})
    with pytest.raises(InputError, match=r"f\.npz already exists; .* --overwrite \(overwrite=True\)"):
        border.write_npz(path, {"x": np.arange(3)})
    assert len(border.read_npz(path)["x"]) == 2
    border.write_npz(path, {"x": np.arange(3)}, overwrite=True)
    assert len(border.read_npz(path)["x"]) == 3


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "f.npz"
    border.write_npz(path, {"x": np.arange(2)})

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        border.write_npz(path, {"x": np.arange(3)}, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["f.npz"]
    assert len(border.read_npz(path)["x"]) == 2


def test_writing_into_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match=r"folder .*nowhere does not exist"):
        border.write_npz(tmp_path / "nowhere" / "f.npz", {"x": np.arange(2)})


def test_missing_file(tmp_path):
    for read in (border.read_npz, lambda path: list(border.read_csv(path))):
        with pytest.raises(InputError, match=r"no such file: .*gone\.x"):
            read(tmp_path / "gone.x")


class Bomb:
    """Unpickling this fails the test."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_pickled_array_is_named_and_never_loaded(tmp_path):
    np.savez(tmp_path / "f.npz", good=np.arange(2), bad=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="array 'bad' is pickled"):
        border.read_npz(tmp_path / "f.npz")


def test_a_pickle_in_disguise_is_refused(tmp_path):
    (tmp_path / "f.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="not an npz file or is damaged"):
        border.read_npz(tmp_path / "f.npz")


def test_an_empty_file_and_an_npy_file_are_no_npz(tmp_path):
    (tmp_path / "empty.npz").write_bytes(b"")
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, np.arange(3))
    for name in ("empty.npz", "array.npz"):
        with pytest.raises(InputError, match="not an npz file"):
            border.read_npz(tmp_path / name)


def test_every_flipped_byte_of_the_data_is_noticed(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, x=np.arange(4.0))
    good = path.read_bytes()
    start = good.index(np.arange(4.0).tobytes())
    for position in range(start, start + 32, 5):
        path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with pytest.raises(InputError, match="damaged"):
            border.read_npz(path)


def test_any_damage_is_an_input_error_and_leaves_no_file_open(tmp_path):
    path, rng = tmp_path / "f.npz", np.random.default_rng(0)
    np.savez(path, x=np.arange(4.0), name=np.array("text"))
    good = np.frombuffer(path.read_bytes(), np.uint8)
    refused = 0
    for _ in range(1000):
        damaged = good.copy()
        damaged[rng.integers(len(good), size=3)] = rng.integers(256, size=3)
        path.write_bytes(damaged[: rng.integers(len(good) // 2, 2 * len(good))].tobytes())
        try:
            border.read_npz(path)
        except InputError:
            refused += 1
    assert refused > 500


def test_a_broken_array_header_is_damage(tmp_path):
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + b"garbage garbage garbage")
    with pytest.raises(InputError, match=r"f\.npz is damaged"):
        border.read_npz(tmp_path / "f.npz")


def test_a_zip_of_other_things_is_no_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=r"'readme\.txt' is not an array"):
        border.read_npz(tmp_path / "f.npz")


def read(tmp_path, text):
    (tmp_path / "f.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(border.read_csv(tmp_path / "f.csv"))


def test_csv_rows_with_line_numbers_quotes_spaces_and_a_byte_order_mark(tmp_path):
    rows = read(tmp_path, '\ufeffa, b\n\n1,"x,y"\r\n 2 ,z\n')
    assert rows == [(1, ["a", "b"]), (3, ["1", "x,y"]), (4, ["2", "z"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"f\.csv is empty"),
        ("\n\n", r"f\.csv is empty"),
        ("a,b\n", r"f\.csv has a header but no rows"),
        ("a,b,a\n1,2,3\n", "column 'a' is in the header more than once"),
        ("a,b\n1,2\n3\n", "line 3: expected 2 cells, got 1"),
        (b"a,b\n\xff\xfe,1\n", "not a CSV file in UTF-8"),
        (b'a,b\n"1' + b"1" * 140_000 + b'",2\n', "not a CSV file in UTF-8: field larger"),
    ],
)
def test_csv_errors(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_content_hash_is_the_documented_one():
    array = np.array([[1, -2]], dtype=">i2")
    expected = hashlib.sha256(b"a|<i2|(1, 2)|" + b"\x01\x00\xfe\xff" + b"b|<f8|()|" + bytes(8)).hexdigest()
    assert border.content_hash({"b": np.array(0.0), "a": array}) == expected


def test_content_hash_sees_name_shape_dtype_value_and_nothing_else():
    x = np.arange(4, dtype=np.int32)
    others = [{"y": x}, {"x": x.reshape(2, 2)}, {"x": x.astype(np.uint32)}, {"x": x[::-1]}, {"x": x, "y": x}]
    hashes = {border.content_hash(arrays) for arrays in [{"x": x}, *others]}
    assert len(hashes) == 6
    assert border.content_hash({"x": np.repeat(x, 2)[::2]}) == border.content_hash({"x": x})


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (["b"], "^f lack 'a'; found 'b'$"),
        ([], "^f lack 'a', 'b'; found none$"),
        (["A", "b"], "^f lack 'a'; found 'A', 'b'; is 'A' meant to be 'a'\\?$"),
        (["a", "b", "faild"], "^f: is 'faild' meant to be 'failed'\\?$"),
    ],
)
def test_names_that_are_missing_or_misspelt(found, message):
    with pytest.raises(InputError, match=message):
        border.check_names("f", found, ("a", "b"), ("failed",))


def test_names_that_are_fine():
    border.check_names("f", ["a", "b", "failed", "epoch"], ("a", "b"), ("failed", "weights"))


def test_axes_of_another_number():
    with pytest.raises(InputError, match=r"x must have axes \(runs, groups\), got shape \(3,\)"):
        border.check_axes("x", np.ones(3), {"runs": None, "groups": None})


@pytest.mark.parametrize("values", [[1.0, np.nan], [np.inf, 1.0], [0.5, 1.0], [1e300, 1.0], [2.0**63]])
def test_integers_must_be_whole(values):
    with pytest.raises(InputError, match=r"n must be integers, got (nan|inf|0.5|1e\+300|9.2.*e\+18)"):
        border.as_integers("n", values)


def test_integers_and_floats_must_be_numbers():
    for convert in (border.as_integers, border.as_floats):
        with pytest.raises(InputError, match=r"n must be (integers|numbers), got dtype <U1"):
            convert("n", ["a"])
    assert border.as_integers("n", [2.0, -1]).dtype == np.int64
    edges = [-(2**63), 2**63 - 1]
    assert border.as_integers("n", edges).tolist() == edges
    assert border.as_integers("n", [True, False]).tolist() == [1, 0]
    assert border.as_integers("n", np.array([3], np.uint64)).tolist() == [3]
    np.testing.assert_array_equal(border.as_floats("n", [1, np.nan]), [1.0, np.nan])
