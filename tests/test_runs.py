import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit import runs
from jaxaudit.errors import InputError
from jaxaudit.runs import map_runs, run_loops
from jaxaudit.train import Loop


def wave(num_steps=37):
    """A loop whose result depends on the step number, the run and the shared argument."""
    return Loop(
        init=lambda run, shared: {"x": run["start"], "noise": jnp.zeros(2)},
        body=lambda step, carry, run, shared: {
            "x": carry["x"] * 0.9 + jnp.sin(step * shared) * run["scale"],
            "noise": carry["noise"] + jax.random.normal(jax.random.fold_in(run["key"], step), 2),
        },
        num_steps=num_steps,
    )


def make_runs(count):
    rng = np.random.default_rng(0)
    return {
        "start": jnp.asarray(rng.normal(size=(count, 3)), jnp.float32),
        "scale": jnp.arange(1.0, count + 1),
        "key": jax.random.split(jax.random.key(0), count),
    }


def by_hand(loop, per_run, shared):
    results = []
    for index in range(len(per_run["scale"])):
        run = jax.tree.map(lambda leaf, i=index: leaf[i], per_run)
        carry = loop.init(run, shared)
        for step in range(loop.num_steps):
            carry = loop.body(step, carry, run, shared)
        results.append(carry)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


def test_equals_a_loop_over_runs():
    loop, per_run = wave(), make_runs(5)
    many, stats = run_loops(loop, per_run, 0.3)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), many, by_hand(loop, per_run, 0.3))
    assert (stats.num_runs, stats.num_steps, stats.chunk) == (5, 37, 5)
    assert stats.program_bytes > 0


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_chunks_do_not_change_the_result(chunk):
    loop, per_run = wave(), make_runs(5)
    whole, _ = run_loops(loop, per_run, 0.3)
    parts, stats = run_loops(loop, per_run, 0.3, chunk=chunk)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), whole, parts)
    assert stats.chunk == min(chunk, 5)


def test_a_small_memory_budget_makes_smaller_chunks():
    per_run = jnp.ones((64, 1000))
    whole, all_at_once = map_runs(_double, per_run, None)
    parts, stats = map_runs(_double, per_run, None, memory_budget=all_at_once.program_bytes // 4)
    np.testing.assert_array_equal(whole, parts)
    assert stats.chunk < 64
    assert stats.program_bytes <= all_at_once.program_bytes // 4


def test_a_budget_that_nothing_fits_still_runs_one_by_one():
    _, stats = map_runs(_double, jnp.ones((3, 10)), None, memory_budget=1)
    assert stats.chunk == 1


def _double(x, _):
    return 2 * x


@pytest.mark.parametrize("count", [5, 40])
def test_one_compilation_for_any_number_of_steps_and_segments(count, monkeypatch):
    """The body is traced twice at most per program: once for shapes and once for compilation."""
    traces = []

    def body(step, carry, run, shared):
        traces.append(1)
        return carry + step

    monkeypatch.setattr(runs, "_SEGMENT_SECONDS", 1e-9)  # every segment is a single step
    run_loops(Loop(lambda run, shared: run, body, num_steps=count), jnp.zeros(7), None)
    assert len(traces) <= 2


def test_the_same_loop_is_compiled_once(monkeypatch):
    compiled = []
    original = runs._compile_cached.__wrapped__
    runs._compile_cached.cache_clear()
    monkeypatch.setattr(
        runs, "_compile_cached", runs.lru_cache(lambda *args: compiled.append(1) or original(*args))
    )
    loop = wave()
    for scale in (0.1, 0.2, 0.3):
        run_loops(loop, make_runs(4), scale)
    assert len(compiled) == 1


def test_a_run_that_diverges_changes_no_other_by_a_bit():
    loop, per_run = wave(), make_runs(6)
    healthy, _ = run_loops(loop, per_run, 0.3)
    sick = {**per_run, "start": per_run["start"].at[3].set(jnp.nan)}
    result, _ = run_loops(loop, sick, 0.3)
    assert np.isnan(result["x"][3]).all()
    others = [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(result["x"][jnp.array(others)], healthy["x"][jnp.array(others)])


def test_input_survives_donation():
    """Buffers are donated inside; the caller's arrays must stay usable."""
    per_run = make_runs(3)
    loop = Loop(lambda run, shared: run["start"], lambda step, carry, run, shared: carry + 1, 3)
    run_loops(loop, per_run, None)
    np.testing.assert_array_equal(per_run["start"] + 0, make_runs(3)["start"])


@pytest.mark.parametrize(
    "per_run", [{}, {"a": jnp.ones(2), "b": jnp.ones(3)}, jnp.ones(()), jnp.ones((0, 2))]
)
def test_bad_run_axis(per_run):
    with pytest.raises(InputError, match="leading axis of runs"):
        map_runs(_double, per_run, None)


def test_bad_chunk():
    with pytest.raises(InputError, match="chunk must be at least 1 or 'auto', got 0"):
        map_runs(_double, jnp.ones(2), None, chunk=0)


def test_progress_is_complete(capsys):
    from jaxaudit.progress import LineReporter

    run_loops(wave(), make_runs(3), 0.1, chunk=2, label="waves", reporter=LineReporter())
    assert "waves: done in" in capsys.readouterr().err
