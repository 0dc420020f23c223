"""Models on a shelf are found by what they were trained on, and by nothing else."""

import jax
import numpy as np
import pytest

from jaxaudit.store import TrainedShelf

LIKE = {"bias": jax.ShapeDtypeStruct((2,), "float32")}


def params(*values):
    return {"bias": np.array([[value, value] for value in values], np.float32)}


def shelf(store, key="3f", said=None):
    return TrainedShelf(store, key, {"data": "toy"}, [].append if said is None else said.append)


def test_rows_come_back_in_the_order_asked_for_from_several_pieces(tmp_path):
    shelf(tmp_path).put(10, ["a", "b"], params(1, 2))
    shelf(tmp_path).put(10, ["c"], params(3))
    found, there = shelf(tmp_path).take(10, ["c", "x", "a"], LIKE)
    np.testing.assert_array_equal(found["bias"], params(3, 0, 1)["bias"])
    assert there.tolist() == [True, False, True]


def test_another_training_or_another_update_finds_nothing(tmp_path):
    shelf(tmp_path).put(10, ["a"], params(1))
    assert not shelf(tmp_path, "4e").take(10, ["a"], LIKE)[1].any()
    assert not shelf(tmp_path).take(9, ["a"], LIKE)[1].any()


@pytest.mark.parametrize(
    "damage", [lambda text: text[:20], lambda text: text.replace('"data": "toy"', '"data": "toys"')]
)
def test_a_damaged_piece_is_said_and_replaced(tmp_path, damage):
    said = []
    shelf(tmp_path).put(10, ["a", "b"], params(1, 2))
    shelf(tmp_path).put(10, ["c"], params(3))
    for path in tmp_path.glob("trained/*/*/*/piece.json"):
        if '"a"' in path.read_text():
            path.write_text(damage(path.read_text()))
    found, there = shelf(tmp_path, said=said).take(10, ["a", "b", "c"], LIKE)
    assert there.tolist() == [False, False, True]
    assert len(said) == 1
    assert "is damaged" in said[0]
    shelf(tmp_path).put(10, ["a", "b"], params(1, 2))
    found, there = shelf(tmp_path, said=said).take(10, ["a", "b", "c"], LIKE)
    assert there.all()
    np.testing.assert_array_equal(found["bias"], params(1, 2, 3)["bias"])
    assert len(said) == 1


def test_models_of_another_shape_are_not_taken(tmp_path):
    shelf(tmp_path).put(10, ["a"], params(1))
    assert not shelf(tmp_path).take(10, ["a"], {"bias": jax.ShapeDtypeStruct((3,), "float32")})[1].any()
    assert not shelf(tmp_path).take(10, ["a"], {"bias": jax.ShapeDtypeStruct((2,), "float64")})[1].any()


def test_what_a_piece_does_not_have_is_not_read(tmp_path, monkeypatch):
    shelf(tmp_path).put(10, ["a"], params(1))
    monkeypatch.setattr("jaxaudit.store.trained.read_piece", None)
    assert not shelf(tmp_path).take(10, ["b"], LIKE)[1].any()
