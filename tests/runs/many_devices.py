"""Run by tests in processes of their own: the engine on many devices gives what it gives on one.

Arguments: number of processes, number of this process, port. With one process, JAX must see 8 devices.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.runs import RunOptions, RunPlan, map_runs, run_loops, to_host
from jaxaudit.runs import fastest as fastest_of
from jaxaudit.runs.devices import join_runs
from jaxaudit.runs.strategies import Job
from tests.runs.waves import assert_close, assert_equal, make_runs, wave


class LocalSaver:
    """Keeps what `to_host` gathers."""

    def __init__(self):
        self.kept = {}

    def load(self, part):
        return self.kept.get(part)

    def save(self, part, step, carry, done):
        self.kept[part] = (step, jax.tree.leaves(to_host(carry)))


def check_results(count, one_device, chunk):
    """All strategies, at once and stopped on the way; ``one_device`` computes the same on one device."""
    per_run = make_runs(count)
    for strategy in ("scan", "step", "sequential"):
        loop = wave(7, convolution=strategy != "scan")
        expected = one_device(loop, per_run, strategy)
        options = RunOptions(strategy, chunk)
        result, stats = run_loops(loop, per_run, 0.3, options=options)
        assert_close(to_host(result), expected, atol=1e-6)
        assert len(stats.devices) == jax.device_count()
        half, _ = run_loops(loop, per_run, 0.3, steps=(0, 4), options=options)
        rest, _ = run_loops(loop, per_run, 0.3, carry=half, steps=(4, 7), options=options)
        assert_close(to_host(rest), expected, atol=1e-6)


def check_flow(count):
    """Results of one call go into the next, as when trained models are unlearned and scored."""
    states, _ = run_loops(wave(3), make_runs(count), 0.3)
    scores, _ = map_runs(lambda state, shared: state["x"].sum() * shared, states, 2.0)
    np.testing.assert_allclose(to_host(scores), 2 * to_host(states)["x"].sum(axis=1), rtol=1e-5)
    picked = jax.tree.map(lambda leaf: leaf[np.array([2, 0, 0])], states)
    few, _ = map_runs(lambda state, shared: state["x"], picked, None)
    assert_equal(to_host(few), to_host(states)["x"][[2, 0, 0]])


def check_resume(count):
    saver, plan = LocalSaver(), RunPlan("step", 4)
    whole, _ = run_loops(wave(5), make_runs(count), 0.3, plan=plan, saver=saver)
    assert sorted(saver.kept) == list(range(-(-count // 4)))
    del saver.kept[1]
    again, stats = run_loops(wave(5), make_runs(count), 0.3, plan=plan, saver=saver)
    assert_equal(to_host(again), to_host(whole))
    assert 0 < stats.computed < 1


def check_sharding_and_communication():
    """Parameters stay where they are: no program of the loop talks to another device."""
    count = 2 * jax.device_count()
    per_run = make_runs(count)
    result, _ = run_loops(wave(3), per_run, 0.3)
    assert result["x"].sharding.spec[0] == "runs"
    for strategy in ("scan", "step", "sequential"):
        job = Job.of(wave(3, convolution=True), per_run, 0.3, RunOptions(strategy))
        program = job.program(RunPlan(strategy, count))
        for compiled in (program.start, program._loop):
            text = compiled.as_text()
            assert not any(word in text for word in ("all-", "collective-", "reduce-scatter"))


def check_default_device():
    device = jax.local_devices()[-1]
    with jax.default_device(device):
        result, stats = map_runs(lambda x, _: 2 * x, jnp.arange(3), None)
    assert stats.devices == (str(device),)
    assert result.devices() == {device}


def check_decisions(count):
    """Every process takes the same way, although their clocks differ."""
    loops = {"one": wave(3), "other": wave(3)}
    names = fastest_of(loops, make_runs(count), 0.3)
    number = np.float32(sorted(loops).index(names.name))
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        gathered = multihost_utils.process_allgather(number)
        assert len(set(gathered.tolist())) == 1


def on_one_device(loop, per_run, strategy):
    return to_host(run_loops(loop, per_run, 0.3, options=RunOptions(strategy, num_devices=1))[0])


def on_this_process(loop, per_run, strategy):
    """With plain vmap, since the engine always uses all processes."""

    def whole(run):
        carry = loop.init(run, 0.3)
        for step in range(loop.num_steps):
            carry = loop.body(jnp.int32(step), carry, run, 0.3)
        return carry

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(whole))(per_run))


def main(num_processes, process, port):
    if num_processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"localhost:{port}", num_processes, process)
        assert jax.process_count() == num_processes
    else:
        assert len(jax.devices()) == 8
    reference = on_one_device if num_processes == 1 else on_this_process
    check_results(13, reference, "auto")
    check_flow(13)
    check_resume(13)
    if num_processes == 1:
        check_results(8, reference, 3)
        check_flow(16)
        check_default_device()
    check_sharding_and_communication()
    check_decisions(8)
    joined = join_runs([(jnp.arange(3.0), 2), (jnp.arange(3.0), 1)], (jax.local_devices()[0],))
    assert joined.tolist() == [0, 1, 0]
    print("passed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
