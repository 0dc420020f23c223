"""Loops are carried out once, whatever interrupts them."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.pipeline import Executor, phases
from jaxaudit.runs import COMPILATIONS, RunOptions
from jaxaudit.runs.strategies import choose_plan
from jaxaudit.store import Progress
from jaxaudit.train import Loop

LOOP = Loop(lambda x, shared: x, lambda step, carry, x, shared: carry * 2 + step, num_steps=6)
STARTS = np.arange(5.0, dtype=np.float32)


class KilledError(Exception):
    pass


def expected(steps):
    value = STARTS
    for step in range(steps):
        value = value * 2 + step
    return value


def executor(store=None, **options):
    progress = None if store is None else Progress(store, "3f", pytest.fail)
    return Executor(RunOptions(**options), progress=progress)


@pytest.mark.parametrize("kept", [False, True])
def test_looks_see_the_carry_on_the_way(tmp_path, kept):
    seen = {}
    looks = {stop: lambda carry, stop=stop: seen.update({stop: np.asarray(carry)}) for stop in (4, 1, 6)}
    one = executor(tmp_path if kept else None, chunk=2)
    final = one.run(LOOP, STARTS, None, name="loop", looks=looks)
    np.testing.assert_array_equal(final, expected(6))
    assert list(seen) == [1, 4, 6]
    for stop, carry in seen.items():
        np.testing.assert_array_equal(carry, expected(stop))
    assert [stats.num_steps for stats in one.stats["loop"]] == [1, 3, 2]


def test_after_an_interruption_only_what_is_left_is_carried_out(tmp_path):
    def kill(carry):
        raise KilledError

    with pytest.raises(KilledError):
        executor(tmp_path, chunk=2).run(LOOP, STARTS, None, name="loop", looks={2: kill})
    again = executor(tmp_path, chunk=2)
    np.testing.assert_array_equal(again.run(LOOP, STARTS, None, name="loop"), expected(6))
    (stats,) = again.stats["loop"]
    assert stats.computed == pytest.approx(4 / 6)
    assert stats.plan.chunk == 2


def test_a_state_beyond_the_look_that_is_wanted_is_no_help(tmp_path):
    executor(tmp_path).run(LOOP, STARTS, None, name="loop")
    seen = []
    final = executor(tmp_path).run(
        LOOP, STARTS, None, name="loop", looks={2: lambda carry: seen.append(np.asarray(carry))}
    )
    np.testing.assert_array_equal(seen[0], expected(2))
    np.testing.assert_array_equal(final, expected(6))


def test_a_result_is_computed_once(tmp_path):
    arrays = {"b": np.arange(3.0), "a": np.array([True])}
    assert executor().once("scores", lambda: arrays) is arrays
    assert executor(tmp_path).recall("scores") is None
    executor(tmp_path).once("scores", lambda: arrays)
    kept = executor(tmp_path).once("scores", lambda: 1 / 0)
    assert list(kept) == ["b", "a"]
    np.testing.assert_array_equal(kept["b"], arrays["b"])
    one = executor(tmp_path)
    one.forget("scores")
    assert one.recall("scores") is None


def test_functions_of_single_runs(tmp_path):
    for one in (executor(), executor(tmp_path)):
        result = one.map(lambda x, shared: x + shared, STARTS, 10.0, name="sum", label="sum")
        np.testing.assert_array_equal(result, STARTS + 10)


def test_phases_add_up_the_calls_of_a_computation():
    one = executor(chunk=5)
    one.reused["training"] = 7
    one.run(LOOP, STARTS, None, name="loop", looks={2: lambda carry: None})
    found, phase = phases(one, seconds=0.0)
    assert found == {"name": "training", "from_store": 7}
    assert (phase["name"], phase["runs"], phase["steps"], phase["from_store"]) == ("loop", 5, 6, None)
    assert (phase["strategy"], phase["runs_at_once"], phase["share_of_peak"]) == ("scan", 5, None)
    assert phase["steps_per_second"] == pytest.approx(6 * phase["runs_per_second"])
    stats = one.stats["loop"]
    assert phase["runs_per_second"] == pytest.approx(5 / sum(each.run_seconds for each in stats))


def test_the_share_of_the_peak_is_told_of_long_work(monkeypatch):
    monkeypatch.setattr("jaxaudit.pipeline.executor.measured_matmul_peak", lambda precision: 1e6)
    one = executor()
    one.run(LOOP, STARTS, None, name="loop")
    (phase,) = phases(one, seconds=100.0)
    assert phase["share_of_peak"] == pytest.approx(phase["flops_per_second"] / 1e6)


@pytest.mark.parametrize("kept", [False, True])
def test_compilation_and_planning_count_the_same_with_and_without_a_store(tmp_path, kept, monkeypatch):
    """A budget makes planning compile; with a store that is done before the loop starts."""
    slow = []

    def choose(job, label, reporter):
        time.sleep(0.3)
        slow.append(1)
        return choose_plan(job, label, reporter)

    monkeypatch.setattr("jaxaudit.runs.engine.choose_plan", choose)
    monkeypatch.setattr("jaxaudit.runs.strategies.choose_plan", choose)
    loop = Loop(lambda x, shared: x, lambda step, carry, x, shared: carry * 2 + step, num_steps=6)
    one, before = executor(tmp_path if kept else None), COMPILATIONS.seconds
    began = time.perf_counter()
    one.run(loop, STARTS, None, name="loop", looks={2: lambda carry: None, 4: lambda carry: None})
    spent = time.perf_counter() - began
    (phase,) = phases(one, seconds=0.0)
    assert len(slow) == 1  # the next parts of the loop go on with the plan
    assert phase["compile_seconds"] == pytest.approx(COMPILATIONS.seconds - before)
    assert phase["compile_seconds"] > 0
    assert phase["plan_seconds"] >= 0.3
    assert phase["plan_seconds"] + phase["compile_seconds"] < phase["seconds"] <= spent
    run_seconds = phase["seconds"] - phase["plan_seconds"] - phase["compile_seconds"]
    assert phase["runs_per_second"] == pytest.approx(5 / run_seconds)


def test_other_types_than_float32_have_no_share_of_its_peak(monkeypatch):
    monkeypatch.setattr("jaxaudit.pipeline.executor.measured_matmul_peak", lambda precision: 1e6)
    for dtype, known in ((jnp.float32, True), (jnp.bfloat16, False)):
        one = executor()

        def product(x, shared, dtype=dtype):
            return x.astype(dtype) @ x.astype(dtype)

        one.map(product, np.ones((2, 3, 3), np.float32), None, name="product", label="product")
        (phase,) = phases(one, seconds=100.0)
        assert (phase["share_of_peak"] is not None) is known
        assert phase["flops_per_second"] > 0
