"""Results on disk: whole or not at all, and a damaged one is made again."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.study.resultstore import ResultStore, params_from_arrays, params_to_arrays


def test_another_process_finds_what_was_put(tmp_path):
    ResultStore(tmp_path / "new").put(
        "before/seed-1", {"recall": np.arange(3.0), "text": np.array(["8.", "Łódź"])}
    )
    found = ResultStore(tmp_path / "new").get("before/seed-1")
    assert found["recall"].tolist() == [0.0, 1.0, 2.0]
    assert found["text"].tolist() == ["8.", "Łódź"]
    assert ResultStore(tmp_path / "new").get("before/seed-2") is None


def test_a_damaged_file_counts_as_not_there(tmp_path):
    ResultStore(tmp_path).put("one", {"recall": np.ones(2)})
    (tmp_path / "one.npz").write_bytes(b"half a file")
    assert ResultStore(tmp_path).get("one") is None


def test_what_is_there_is_replaced(tmp_path):
    results = ResultStore(tmp_path)
    for value in (1.0, 2.0):
        results.put("one", {"x": np.array(value)})
    assert float(ResultStore(tmp_path).get("one")["x"]) == 2.0
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_parameters_come_back_as_they_were(micro):
    params = micro.model.params
    back = params_from_arrays(params_to_arrays(params), params)
    jax.tree.map(np.testing.assert_array_equal, params, back)


def test_half_precision_comes_back_from_a_file(tmp_path):
    params = {"kernel": jnp.array([1.0, -0.1], jnp.bfloat16), "weight": jnp.ones(1)}
    ResultStore(tmp_path).put("weights", params_to_arrays(params))
    back = params_from_arrays(ResultStore(tmp_path).get("weights"), params)
    jax.tree.map(np.testing.assert_array_equal, params, back)
    assert back["kernel"].dtype == jnp.bfloat16


def test_what_is_large_can_be_kept_on_disk_only(tmp_path):
    results = ResultStore(tmp_path)
    results.put("weights", {"x": np.ones(3)}, keep=False)
    assert results._memory == {}
    np.testing.assert_array_equal(results.get("weights")["x"], np.ones(3))
    memory = ResultStore(None)
    memory.put("weights", {"x": np.ones(3)}, keep=False)  # there is no disk
    assert memory.get("weights") is not None


def test_what_is_not_kept_is_read_again(tmp_path):
    results = ResultStore(tmp_path)
    results.put("one", {"a": np.ones(2)}, keep=False)
    assert results.get("one", keep=False)["a"].tolist() == [1.0, 1.0]
    assert not results._memory
    assert results.get("one")["a"].tolist() == [1.0, 1.0]
    assert list(results._memory) == ["one"]
