import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.runs import RunPlan, programs, run_loops, workers
from jaxaudit.runs.workers import num_workers, side_by_side
from jaxaudit.train import Loop


def test_calls_are_under_way_at_once_and_results_keep_their_order():
    barrier = threading.Barrier(3)  # nobody passes before all three are there

    def call(number):
        barrier.wait(timeout=30)
        return number

    calls = [lambda number=number: call(number) for number in range(6)]
    assert side_by_side(calls, workers=3) == list(range(6))


def test_one_worker_stays_in_the_callers_thread():
    assert side_by_side([threading.get_ident] * 2, workers=1) == [threading.get_ident()] * 2


def test_an_error_reaches_the_caller():
    def fail():
        raise MemoryError("full")

    with pytest.raises(MemoryError, match="full"):
        side_by_side([fail, lambda: 1], workers=2)


def test_one_worker_for_every_core_that_a_single_cpu_device_has(monkeypatch):
    device = jax.devices()[0]
    monkeypatch.setattr(workers, "_num_cores", lambda: 6)
    assert num_workers((device,)) == 6 // len(jax.local_devices())
    assert num_workers((device, device)) == 1


@pytest.mark.parametrize("strategy", ["scan", "step", "sequential"])
def test_threads_do_not_change_a_bit(monkeypatch, strategy):
    loop = Loop(lambda run, _: run, lambda step, carry, run, _: jnp.sin(carry @ carry) + run, 7)
    per_run = jax.random.normal(jax.random.key(0), (9, 32, 32))
    plan, results = RunPlan(strategy, 9, None if strategy == "sequential" else 2), []
    for count in (1, 3):
        monkeypatch.setattr(programs, "num_workers", lambda devices, count=count: count)
        results.append(np.asarray(run_loops(loop, per_run, None, plan=plan)[0]))
    np.testing.assert_array_equal(*results)
