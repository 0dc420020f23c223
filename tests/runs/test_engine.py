import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.progress import LineReporter
from jaxaudit.runs import COMPILATIONS, RunOptions, RunPlan, engine, map_runs, plan_runs, run_loops, to_host
from jaxaudit.train import Loop
from tests.runs.waves import assert_close, assert_equal, by_hand, make_runs, wave

STRATEGIES = ["scan", "step", "sequential"]


class MemorySaver:
    """Keeps everything in host memory; stops the job after a number of saves, like a kill."""

    def __init__(self, kept=None, stop_after=None):
        self.kept, self.stop_after, self.calls = dict(kept or {}), stop_after, []

    def load(self, part):
        return self.kept.get(part)

    def save(self, part, step, carry, done):
        if len(self.calls) == self.stop_after:
            raise KeyboardInterrupt
        self.calls.append((part, step, done))
        self.kept[part] = (step, jax.tree.map(np.copy, to_host(carry)))


@pytest.mark.parametrize("convolution", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equals_a_loop_over_runs(strategy, convolution):
    loop, per_run = wave(9, convolution), make_runs(5)
    many, stats = run_loops(loop, per_run, 0.3, options=RunOptions(strategy))
    assert_close(many, by_hand(loop, per_run, 0.3), atol=1e-5)
    assert (stats.num_runs, stats.num_steps, stats.plan) == (5, 9, RunPlan(strategy, 5))
    assert stats.program_bytes > 0
    assert stats.computed == 1


@pytest.mark.parametrize(("strategy", "chunk"), [("scan", 2), ("step", 2), ("sequential", 3), ("step", 100)])
def test_chunks_do_not_change_the_result(chunk, strategy):
    loop, per_run = wave(), make_runs(5)
    whole, _ = run_loops(loop, per_run, 0.3)
    parts, stats = run_loops(loop, per_run, 0.3, options=RunOptions(strategy, chunk))
    assert_close(parts, whole, atol=1e-6)
    assert stats.chunk == min(chunk, 5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_map_runs_is_the_function_of_every_run(strategy):
    result, stats = map_runs(lambda x, y: {"sum": x + y}, jnp.arange(4), 3, options=RunOptions(strategy, 3))
    assert result["sum"].tolist() == [3, 4, 5, 6]
    assert stats.num_steps == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stopping_and_going_on_repeats_the_bits(strategy):
    loop, per_run, options = wave(), make_runs(5), RunOptions(strategy, 2)
    whole, _ = run_loops(loop, per_run, 0.3, options=options)
    carry = None
    for steps in [(0, 11), (11, 11), (11, 30), (30, 37)]:
        before = None if carry is None else to_host(carry)
        new, stats = run_loops(loop, per_run, 0.3, carry=carry, steps=steps, options=options)
        assert stats.num_steps == steps[1] - steps[0]
        if carry is not None:
            assert_equal(carry, before)  # the caller's carry is not used up
        carry = new
    assert_equal(carry, whole)


def test_init_is_called_only_without_a_carry():
    calls = []
    loop = Loop(lambda run, shared: calls.append(1) or run, lambda step, carry, run, shared: carry + 1, 3)
    plan = RunPlan("scan", 2)
    result, _ = run_loops(loop, jnp.zeros(2), None, carry=jnp.array([5.0, 7.0]), steps=(1, 3), plan=plan)
    assert result.tolist() == [7, 9]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("stop_after", [0, 4])
def test_resumed_runs_repeat_the_bits(strategy, stop_after, monkeypatch):
    """Saved after every segment, killed, started again twice."""
    monkeypatch.setattr(engine, "_SAVE_SECONDS", -1.0)
    loop, per_run, plan = wave(), make_runs(5), RunPlan(strategy, 2)
    whole, _ = run_loops(loop, per_run, 0.3, plan=plan)
    kept = {}
    for stop in (stop_after, 2):
        saver = MemorySaver(kept, stop)
        with pytest.raises(KeyboardInterrupt):
            run_loops(loop, per_run, 0.3, plan=plan, saver=saver)
        kept = saver.kept
    saver = MemorySaver(kept)
    result, stats = run_loops(loop, per_run, 0.3, plan=plan, saver=saver)
    assert_equal(result, whole)
    assert stats.computed < 1 or stop_after == 0
    assert {part for part, (step, _) in saver.kept.items() if step == 37} == {0, 1, 2}


def test_nothing_is_compiled_or_computed_if_all_is_saved():
    loop, per_run, plan = wave(), make_runs(5), RunPlan("scan", 2)
    saver = MemorySaver()
    whole, _ = run_loops(loop, per_run, 0.3, plan=plan, saver=saver)
    assert [call[0] for call in saver.calls if call[2]] == [0, 1, 2]
    saver.calls.clear()
    before = COMPILATIONS.count
    twin = loop._replace(init=lambda run, shared: loop.init(run, shared))  # not in the cache of programs
    again, stats = run_loops(twin, per_run, 0.3, plan=plan, saver=saver)
    assert_equal(again, whole)
    assert (stats.computed, COMPILATIONS.count, saver.calls) == (0, before, [])


def test_leaves_and_key_data_may_be_given_back():
    loop = Loop(
        lambda run, shared: {"key": run, "x": jnp.zeros(2)},
        lambda step, carry, run, shared: {
            "key": jax.random.fold_in(carry["key"], step),
            "x": carry["x"] + jax.random.normal(carry["key"], 2),
        },
        4,
    )
    keys = jax.random.split(jax.random.key(1), 3)
    half, _ = run_loops(loop, keys, None, steps=(0, 2))
    saver = MemorySaver({0: (2, jax.tree.leaves(to_host(half)))})
    resumed, _ = run_loops(loop, keys, None, saver=saver)
    assert_equal(to_host(resumed), to_host(run_loops(loop, keys, None)[0]))


def test_a_loop_without_steps_is_saved_too():
    saver = MemorySaver()
    function = _double
    map_runs(function, jnp.arange(3), None, options=RunOptions(chunk=2), saver=saver)
    assert saver.calls == [(0, 0, True), (1, 0, True)]
    assert map_runs(function, jnp.zeros(3, int), None, options=RunOptions(chunk=2), saver=saver)[
        0
    ].tolist() == [
        0,
        2,
        4,
    ]


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ((99, jnp.zeros(3)), "saved step must be between 0 and 2, got 99 in part 0"),
        ((1, jnp.zeros(4)), r"saved part 0 must hold arrays of shapes \[\(3,\)\], got \[\(4,\)\]"),
        ((1, [jnp.zeros(3), jnp.zeros(3)]), "saved part 0 must hold arrays"),
    ],
)
def test_bad_saved_parts(saved, message):
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry + 1, 2)
    with pytest.raises(InputError, match=message):
        run_loops(loop, jnp.zeros(3), None, saver=MemorySaver({0: saved}))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_that_diverges_changes_no_other_by_a_bit(strategy):
    loop, per_run, options = wave(9, convolution=True), make_runs(6), RunOptions(strategy)
    healthy, _ = run_loops(loop, per_run, 0.3, options=options)
    sick = {**per_run, "start": per_run["start"].at[3].set(jnp.nan)}
    result, _ = run_loops(loop, sick, 0.3, options=options)
    assert np.isnan(result["x"][3]).all()
    others = np.array([0, 1, 2, 4, 5])
    np.testing.assert_array_equal(result["x"][others], healthy["x"][others])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [20])
def test_tracing_does_not_grow_with_steps_and_segments(count, strategy, monkeypatch):
    """Once for its operations, and at most twice for its compilation."""
    traces = []

    def body(step, carry, run, shared):
        traces.append(1)
        return carry + step

    monkeypatch.setattr(engine, "_SEGMENT_SECONDS", 1e-9)  # every segment is a single step
    loop = Loop(lambda run, shared: run, body, num_steps=count)
    run_loops(loop, jnp.zeros(7), None, options=RunOptions(strategy))
    assert len(traces) <= 3


@pytest.mark.parametrize(
    ("strategy", "count"), [("scan", 5), ("scan", 5000), ("step", 5000), ("sequential", 300)]
)
def test_two_compilations_for_any_number_of_runs_and_calls(count, strategy):
    """One of the start, one of the loop; repeated calls and the last, shorter chunk need no more."""
    loop = Loop(lambda run, shared: run * 2, lambda step, carry, run, shared: carry + step * shared, 2)
    before = COMPILATIONS.count
    for scale in (0.1, 0.2, 0.3):
        run_loops(loop, jnp.arange(float(count)), scale, options=RunOptions(strategy, chunk=3 * count // 4))
    assert COMPILATIONS.count - before == 2


def test_the_same_function_is_compiled_once():
    before = COMPILATIONS.count
    for _ in range(3):
        map_runs(_triple, jnp.ones(3), None)
    assert COMPILATIONS.count - before == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_input_survives_donation(strategy):
    per_run = make_runs(3)
    loop = Loop(lambda run, shared: run["start"], lambda step, carry, run, shared: carry + 1, 3)
    run_loops(loop, per_run, None, options=RunOptions(strategy))
    np.testing.assert_array_equal(per_run["start"] + 0, make_runs(3)["start"])


def test_numpy_arguments_are_welcome():
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry + shared, 2)
    for strategy in STRATEGIES:
        result, _ = run_loops(loop, np.arange(3.0), np.float64(0.5), options=RunOptions(strategy, 2))
        assert result.tolist() == [1, 2, 3]


def test_stats_say_how_it_went():
    size, steps, runs = 32, 5, 3
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry @ shared, steps)
    _, stats = run_loops(loop, jnp.ones((runs, size, size)), jnp.eye(size))
    assert stats.flops == pytest.approx(2 * size**3 * steps * runs, rel=0.01)
    assert 0 < stats.compile_seconds < stats.seconds
    assert stats.devices == (str(jax.devices()[0]),)
    assert stats.matmul_precision == "highest"
    assert stats.peak_bytes > stats.program_bytes


@pytest.mark.parametrize(
    ("steps", "message"),
    [((0, 38), "within 0 and 37"), ((-1, 3), "within 0 and 37"), ((3, 2), "within"), ((2, 3), "start at 0")],
)
def test_bad_steps(steps, message):
    with pytest.raises(InputError, match=f"steps must .*{message}"):
        run_loops(wave(), make_runs(2), 0.1, steps=steps)


def test_bad_carry():
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry, 1)
    with pytest.raises(InputError, match="carry must have 2 runs, got 3"):
        run_loops(loop, jnp.ones(2), None, carry=jnp.ones(3), steps=(0, 1))


def test_progress_is_complete(capsys):
    totals = []

    class Counting(LineReporter):
        def task(self, label, total):
            totals.append(total)
            return super().task(label, total)

    options = RunOptions(chunk=2)
    run_loops(wave(), make_runs(3), 0.1, options=options, label="waves", reporter=Counting())
    assert "waves: done in" in capsys.readouterr().err
    assert totals == [2 * 37]


def _double(x, _):
    return 2 * x


def _triple(x, _):
    return 3 * x


def test_a_carry_is_copied_only_if_it_would_be_used_up(monkeypatch):
    loop, carry = (
        Loop(lambda run, shared: run, lambda step, carry, run, shared: carry + 1, 3),
        jnp.arange(5.0),
    )
    copied, copy = [], jnp.copy
    monkeypatch.setattr(engine.jnp, "copy", lambda leaf: copied.append(1) or copy(leaf))
    for chunk, copies in ((5, 1), (2, 0), (3, 0)):
        copied.clear()
        plan = RunPlan("scan", chunk)
        result, _ = run_loops(loop, jnp.zeros(5), None, carry=carry, steps=(1, 3), plan=plan)
        assert result.tolist() == [2, 3, 4, 5, 6]
        assert carry.tolist() == [0, 1, 2, 3, 4]
        assert len(copied) == copies


@pytest.mark.parametrize(("size", "chunk"), [(5, 5), (5, 2), (5, 3)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_a_saver_gives_stays_as_it_was(size, chunk, strategy):
    """Large and aligned arrays, which JAX may use where they lie."""
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry + 1, 3)
    starts = [range(at, min(at + chunk, size)) for at in range(0, size, chunk)]
    kept = {part: (1, np.stack([np.full(4096, run) for run in runs])) for part, runs in enumerate(starts)}
    before = {part: state.copy() for part, (_, state) in kept.items()}
    saver = MemorySaver(kept)
    saver.save = lambda *arguments: None
    result, _ = run_loops(
        loop, jnp.zeros((size, 4096), int), None, plan=RunPlan(strategy, chunk), saver=saver
    )
    assert result[:, 0].tolist() == [2, 3, 4, 5, 6]
    for part, state in before.items():
        np.testing.assert_array_equal(saver.kept[part][1], state)


def test_planning_is_timed_apart(monkeypatch):
    """What is measured beforehand is no work on the runs."""

    def measure(job, strategy):
        time.sleep(0.3)
        return 1e-9

    monkeypatch.setattr("jaxaudit.runs.strategies._measure", measure)
    _, stats = run_loops(wave(4, convolution=True), make_runs(3), 0.1)
    assert stats.plan_seconds >= 0.3
    assert stats.seconds >= stats.plan_seconds + stats.compile_seconds + stats.run_seconds - 1e-6


def test_a_plan_may_be_a_function_whose_time_is_planning():
    compiled = []

    def plan():
        time.sleep(0.2)
        chosen = plan_runs(loop, per_run, 0.1)
        compiled.append(COMPILATIONS.seconds - before)
        return chosen

    loop, per_run = wave(4), make_runs(3)
    before = COMPILATIONS.seconds
    result, stats = run_loops(loop, per_run, 0.1, plan=plan)
    assert_equal(result, run_loops(loop, per_run, 0.1)[0])
    assert stats.plan == RunPlan("scan", 3)
    assert stats.plan_seconds >= 0.2
    assert stats.compile_seconds >= compiled[0] > 0
    assert stats.run_seconds == pytest.approx(stats.seconds - stats.compile_seconds - stats.plan_seconds)


def test_a_call_without_steps_counts_no_operations_of_steps():
    size = 32
    loop = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry @ shared, 5)
    _, stats = run_loops(loop, jnp.ones((3, size, size)), jnp.eye(size), steps=(0, 0))
    assert stats.flops == 0
    assert (stats.flops_per_second, stats.steps_per_second) == (0, 0)
    _, stats = map_runs(lambda x, y: x @ y, jnp.ones((3, size, size)), jnp.eye(size))
    assert stats.flops == pytest.approx(3 * 2 * size**3, rel=0.01)


@pytest.mark.parametrize(("dtype", "expected"), [(jnp.float32, True), (jnp.bfloat16, False)])
def test_products_of_other_types_are_told(dtype, expected):
    def product(x, y):
        return (x.astype(dtype) @ y.astype(dtype)).astype(jnp.float32)

    assert map_runs(product, jnp.ones((3, 4, 4)), jnp.eye(4))[1].in_float32 is expected
