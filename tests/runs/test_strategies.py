import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models import mlp
from jaxaudit.progress import SilentReporter
from jaxaudit.runs import (
    COMPILATIONS,
    Choice,
    RunOptions,
    RunPlan,
    fastest,
    map_runs,
    plan_runs,
    run_loops,
    strategies,
)
from jaxaudit.runs.strategies import Job, count_runs
from jaxaudit.train import Loop, SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop
from tests.runs.waves import assert_close, make_runs, wave


class Listener(SilentReporter):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


def test_matrix_products_are_scanned_without_measurement(monkeypatch):
    monkeypatch.setattr(strategies, "_measure", None)
    before = COMPILATIONS.count
    _, stats = run_loops(wave(4), make_runs(3), 0.2)
    assert stats.plan == RunPlan("scan", 3)
    assert COMPILATIONS.count == before + 2


def test_a_convolution_is_measured_and_the_faster_way_is_taken_and_said(monkeypatch):
    monkeypatch.setattr(strategies, "_WORTH_MEASURING_SECONDS", 0.0)
    times = {"step": 3e-6, "sequential": 2e-6}
    asked = []
    monkeypatch.setattr(
        strategies, "_measure", lambda job, strategy: asked.append(strategy) or times[strategy]
    )
    listener, loop = Listener(), wave(4, convolution=True)
    for _ in range(3):
        plan = plan_runs(loop, make_runs(3), 0.2, label="waves", reporter=listener)
    assert plan == RunPlan("sequential", 3)
    assert asked == ["step", "sequential"]  # remembered the second time
    assert listener.lines[0] == (
        "waves: a step of one run takes 3 µs as 'step', 2 µs as 'sequential'; taking 'sequential'"
    )


def test_small_jobs_are_done_before_a_second_candidate_is_compiled():
    before, listener, loop = COMPILATIONS.count, Listener(), wave(4, convolution=True)
    _, stats = run_loops(loop, make_runs(3), 0.2, reporter=listener)
    assert stats.plan.strategy == "step"
    assert COMPILATIONS.count == before + 2
    assert listener.lines == []


def test_measured_for_real(monkeypatch):
    monkeypatch.setattr(strategies, "_WORTH_MEASURING_SECONDS", 0.0)
    monkeypatch.setattr(strategies, "_MEASURE_SECONDS", 0.01)
    loop, per_run, listener = wave(40, convolution=True), make_runs(3), Listener()
    chosen, stats = run_loops(loop, per_run, 0.2, reporter=listener)
    assert stats.plan.strategy in ("step", "sequential")
    assert "taking" in listener.lines[0]
    other = "sequential" if stats.plan.strategy == "step" else "step"
    assert_close(chosen, run_loops(loop, per_run, 0.2, options=RunOptions(other))[0], atol=1e-5)


def _products(size, num_steps=2):
    return Loop(lambda run, _: run, lambda step, carry, run, _: carry @ carry, num_steps), np.ones(
        (3, size, size)
    )


def test_heavy_steps_are_measured_run_by_run_as_well(monkeypatch):
    monkeypatch.setattr(strategies, "_WORTH_MEASURING_SECONDS", 0.0)
    times, asked = {"scan": 3e-6, "sequential": 2e-6}, []
    monkeypatch.setattr(
        strategies, "_measure", lambda job, strategy: asked.append(strategy) or times[strategy]
    )
    light, heavy = 208, 224  # 18.0 and 22.5 MFLOP a step
    assert plan_runs(*_products(light), None).strategy == "scan"
    assert asked == []
    assert plan_runs(*_products(heavy), None).strategy == "sequential"
    assert asked == ["scan", "sequential"]
    assert plan_runs(*_products(heavy, num_steps=0), None).strategy == "scan"


def test_the_main_job_is_planned_without_measurement(monkeypatch):
    monkeypatch.setattr(strategies, "_measure", None)
    before = COMPILATIONS.count
    plan = plan_runs(*digits_training(60))
    assert plan.strategy == "scan"
    assert COMPILATIONS.count - before == 2  # the plan's own program


def test_what_was_measured_patiently_is_not_measured_again(monkeypatch):
    times, asked = {"step": 3e-9, "sequential": 2e-9}, []
    monkeypatch.setattr(
        strategies, "_measure", lambda job, strategy: asked.append(strategy) or times[strategy]
    )
    loop, runs = wave(4, convolution=True), make_runs(3)
    assert plan_runs(loop, runs, 0.2).strategy == "step"  # not worth a second candidate
    assert fastest({"wave": loop}, runs, 0.2).plan.strategy == "sequential"
    assert asked == ["step", "sequential"]
    assert plan_runs(loop, runs, 0.2).strategy == "sequential"
    assert asked == ["step", "sequential"]


def test_a_convolution_outside_of_any_loop_is_done_run_by_run_on_cpu():
    def function(run, shared):
        return jnp.convolve(run, shared, "same")

    signals = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float32)
    result, stats = map_runs(function, signals, jnp.ones(3))
    assert stats.plan.strategy == "sequential"
    np.testing.assert_allclose(
        result, [np.convolve(signal, np.ones(3), "same") for signal in signals], rtol=1e-5
    )


def test_the_fastest_of_equal_loops():
    def slow(step, carry, run, shared):
        return jax.lax.fori_loop(0, 300, lambda _, x: x @ shared, carry)

    quick = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry @ shared, 5)
    listener = Listener()
    loops = {"slow": quick._replace(body=slow), "quick": quick}
    choice = fastest(loops, jnp.ones((3, 30, 30)), jnp.eye(30), label="products", reporter=listener)
    assert choice == Choice("quick", RunPlan("scan", 3), choice.seconds)
    assert choice.seconds["slow"] > 10 * choice.seconds["quick"] > 0
    assert listener.lines[0].startswith("products: a step of one run takes")
    assert listener.lines[0].endswith("taking quick")


def test_nothing_to_choose_from():
    with pytest.raises(InputError, match="loops must hold at least one loop, got none"):
        fastest({}, jnp.ones(2), None)


def _double(x, _):
    return 2 * x


def test_a_small_memory_budget_makes_smaller_chunks():
    per_run = jnp.ones((64, 1000))
    whole, all_at_once = map_runs(_double, per_run, None)
    budget = all_at_once.program_bytes // 4
    parts, stats = map_runs(_double, per_run, None, options=RunOptions(memory_budget=budget))
    np.testing.assert_array_equal(whole, parts)
    assert stats.chunk == 16
    assert stats.program_bytes <= budget


@pytest.mark.parametrize("strategy", ["scan", "step", "sequential"])
def test_a_budget_that_nothing_fits_still_runs_one_by_one(strategy):
    options = RunOptions(strategy, memory_budget=1)
    _, stats = run_loops(wave(2), make_runs(3), 0.1, options=options)
    assert stats.chunk == 1


def test_sequential_chunks_keep_what_fits_beside_one_run():
    loop, per_run = Loop(lambda run, _: run, lambda step, carry, run, _: carry + 1, 2), jnp.ones((64, 1000))
    one = run_loops(loop, per_run, None, options=RunOptions("sequential"))[1].program_bytes
    options = RunOptions("sequential", memory_budget=one + 20 * 2 * 4000)
    plan = plan_runs(loop, per_run, None, options=options)
    assert plan == RunPlan("sequential", 16)  # 21 fit; four chunks of equal size


def test_large_steps_are_done_in_blocks_that_stay_in_the_caches(monkeypatch):
    monkeypatch.setattr(strategies, "num_workers", lambda devices: 2)
    loop = Loop(lambda run, _: run, lambda step, carry, run, _: carry @ carry, 2)
    options = RunOptions("scan")
    assert plan_runs(loop, jnp.ones((60, 8, 8)), None) == RunPlan("scan", 60)
    plan = plan_runs(
        loop, jnp.ones((60, 64, 64)), None, options=options
    )  # they fit, but two cores share them
    assert plan == RunPlan("scan", 60, 30)
    plan = plan_runs(loop, jnp.ones((60, 512, 512)), None, options=options)  # 1 MiB a step: 3 runs per core
    assert plan == RunPlan("scan", 60, 3)
    assert (
        plan_runs(loop, jnp.ones((58, 512, 512)), None, options=options).block == 3
    )  # 20 blocks, as many per core
    per_run = jax.random.normal(jax.random.key(0), (5, 768, 768)) / 40  # 2.25 MiB: 1 run per core
    blocks, stats = run_loops(loop, per_run, None, options=options)
    assert stats.plan == RunPlan("scan", 5, 1)
    whole, _ = run_loops(loop, per_run, None, plan=RunPlan("scan", 5))
    np.testing.assert_allclose(blocks, whole, atol=1e-4)


@pytest.mark.parametrize(
    "per_run", [{}, {"a": jnp.ones(2), "b": jnp.ones(3)}, jnp.ones(()), jnp.ones((0, 2))]
)
def test_bad_run_axis(per_run):
    with pytest.raises(InputError, match="leading axis of runs"):
        count_runs(per_run)


def digits_training(num_runs, epochs=100):
    """The training of the main job: 1,247 records, a 64-128-128-10 network."""
    model, members = mlp((64,), 10), 1247
    loop = training_loop(cross_entropy_loss(model.logits_fn), SgdSpec(epochs, 0.3), members)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1497, 64)).astype(np.float32)
    pool = Examples(jnp.asarray(x), jnp.asarray(rng.integers(0, 10, 1497)), jnp.ones(1497))
    order = np.stack([rng.permutation(1497)[:members] for _ in range(num_runs)])
    runs = TrainingRun(jnp.asarray(order), jax.random.split(jax.random.key(0), num_runs))
    return loop, runs, TrainingShared(pool, model.init_fn(jax.random.key(1)))


@pytest.mark.slow
def test_a_thousand_default_models_fit_the_default_budget_at_once():
    loop, runs, shared = digits_training(1000)
    plan = plan_runs(loop, runs, shared)
    assert plan.chunk == 1000
    for block in (plan.block, 1000):
        needed = Job.of(loop, runs, shared, RunOptions()).program(RunPlan("scan", 1000, block)).bytes()
        assert 0 < needed < 2 * 2**30
