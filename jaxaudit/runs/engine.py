"""Carry out a loop for many runs: in parts that fit the memory, in segments that show progress, resumable."""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from jaxaudit.errors import InputError
from jaxaudit.progress import Advance, Reporter, SilentReporter
from jaxaudit.runs.devices import agree, is_key, join_runs, share, take_runs
from jaxaudit.runs.options import RunOptions, RunPlan, Saver
from jaxaudit.runs.programs import COMPILATIONS, Program, step_facts
from jaxaudit.runs.stats import RunStats, peak_bytes
from jaxaudit.runs.strategies import Job, choose_plan, count_runs
from jaxaudit.train import Loop

_SEGMENT_SECONDS = 0.5
_SAVE_SECONDS = 30.0


def run_loops(
    loop: Loop,
    per_run: PyTree,
    shared: PyTree,
    *,
    carry: PyTree | None = None,
    steps: tuple[int, int] | None = None,
    options: RunOptions | None = None,
    plan: RunPlan | Callable[[], RunPlan] | None = None,
    saver: Saver | None = None,
    label: str = "runs",
    reporter: Reporter | None = None,
) -> tuple[PyTree, RunStats]:
    """Carry out the same loop for many runs.

    Parameters
    ----------
    loop
        One run, without any run axis.
    per_run
        Arguments that differ between runs: every leaf has a leading axis of length ``num_runs``.
    shared
        Arguments that all runs share.
    carry
        Where to go on, for a loop that was stopped: what an earlier call returned. ``None`` starts with ``loop.init``.
        It stays usable.
    steps
        First step and the one to stop before; ``None`` is all steps.
    options
        How to do it.
    plan
        A strategy and chunk that were chosen before, followed as they are, or a function that gives them; see
        `plan_runs`.
    saver
        Where progress is kept: asked for every part before it starts, and told at most every 30 s and at its end.
    label, reporter
        What is shown as progress.

    Returns
    -------
    The final carry of every run (leading axis ``num_runs``), and how it was done. On several devices it is spread over
    them if they divide ``num_runs``, otherwise kept on each; `to_host` fetches it.

    Raises
    ------
    InputError
        If the arguments do not fit each other, or the saver returns something else than was saved.

    Examples
    --------
    >>> double = Loop(lambda x, _: x, lambda step, carry, x, _: carry * 2, num_steps=3)
    >>> final, stats = run_loops(double, jnp.array([1.0, 2.0]), None)
    >>> final.tolist(), stats.plan
    ([8.0, 16.0], RunPlan(strategy='scan', chunk=2, block=None))
    """
    began, compiled_before = time.perf_counter(), COMPILATIONS.seconds
    job = Job.of(loop, per_run, shared, options or RunOptions())
    first, stop = _check_steps(loop, steps, carry, job.num_runs)
    reporter = reporter or SilentReporter()
    plan, plan_seconds = _decide(plan or (lambda: choose_plan(job, label, reporter)))
    starts = range(0, job.num_runs, plan.chunk)
    work = _Work(job, job.program(plan), plan, share(shared, job.devices), carry, first, stop, saver)
    pieces: list[tuple[PyTree, int]] = []
    computed = 0
    with reporter.task(label, len(starts) * max(stop - first, 1)) as advance:
        for part in range(len(starts)):
            done, new_pieces = _run_part(work, part, advance)
            computed += done
            pieces.extend(new_pieces)
    result = join_runs(pieces, job.devices)
    facts = step_facts(loop, job.shapes)
    steps_counted = stop - first if loop.num_steps else 1  # without steps it is `init` that was counted
    return result, RunStats(
        num_runs=job.num_runs,
        num_steps=stop - first,
        plan=plan,
        program_bytes=work.program.bytes_so_far(),
        seconds=time.perf_counter() - began,
        compile_seconds=COMPILATIONS.seconds - compiled_before,
        plan_seconds=plan_seconds,
        flops=None if facts.flops is None else facts.flops * steps_counted * job.num_runs,
        in_float32=facts.in_float32,
        devices=tuple(str(device) for device in job.devices),
        matmul_precision=job.options.matmul_precision,
        computed=computed / (job.num_runs * max(stop - first, 1)),
        peak_bytes=peak_bytes(),
    )


def map_runs(
    function: Callable[[Any, Any], Any], per_run: PyTree, shared: PyTree, **options: Any
) -> tuple[PyTree, RunStats]:
    """Apply ``function(per_run, shared)`` of one run to all runs. Options as in `run_loops`.

    Examples
    --------
    >>> map_runs(lambda x, y: x + y, jnp.arange(3), 10)[0].tolist()
    [10, 11, 12]
    """
    return run_loops(mapping_loop(function), per_run, shared, **options)


@lru_cache(maxsize=64)  # one loop per function, so that it is compiled once
def mapping_loop(function: Callable[[Any, Any], Any]) -> Loop:
    """A loop without steps, whose carry is ``function(per_run, shared)``.

    Examples
    --------
    >>> mapping_loop(max).num_steps, mapping_loop(max) is mapping_loop(max)
    (0, True)
    """
    return Loop(function, _no_step, 0)


def _no_step(step: Any, carry: Any, per_run: Any, shared: Any) -> Any:
    return carry


def _decide(plan: RunPlan | Callable[[], RunPlan]) -> tuple[RunPlan, float]:
    """The plan, and how long it took to choose it, compilation aside."""
    if isinstance(plan, RunPlan):
        return plan, 0.0
    began, compiled_before = time.perf_counter(), COMPILATIONS.seconds
    chosen = plan()
    return chosen, max(time.perf_counter() - began - (COMPILATIONS.seconds - compiled_before), 0.0)


class _Work(NamedTuple):
    """What the parts of one call have in common."""

    job: Job
    program: Program
    plan: RunPlan
    shared: PyTree
    carry: PyTree | None
    first: int
    stop: int
    saver: Saver | None

    def pieces_of(self, part: int) -> list[tuple[int, int]]:
        """First run and number of runs of every block of a part."""
        start = part * self.plan.chunk
        end = min(start + self.plan.chunk, self.job.num_runs)
        return [(run, min(self.program.size, end - run)) for run in range(start, end, self.program.size)]

    def take(self, tree: PyTree, start: int, count: int) -> PyTree:
        return take_runs(tree, start, count, self.program.size, self.job.devices)


def _run_part(work: _Work, part: int, progress: Advance) -> tuple[int, list[tuple[PyTree, int]]]:
    """Steps of runs that were carried out, and the carries of a part with their numbers of runs."""
    pieces = work.pieces_of(part)
    counts = [count for _, count in pieces]
    step, saved = _load(work, part, counts)
    progress(step - work.first)
    if saved is not None and step == work.stop:
        return 0, [(saved, sum(counts))]
    runs = [work.take(work.job.per_run, *piece) for piece in pieces]
    carries = _begin(work, pieces, runs, saved)
    done = max(work.stop - step, 1) * sum(counts)
    if step == work.stop:
        progress(1)
    saved_at = time.perf_counter()
    for segment_first, segment_stop in _segments(step, work.stop):
        carries = work.program.advance_all(carries, segment_first, segment_stop, runs, work.shared)
        progress(segment_stop - segment_first)
        if segment_stop < work.stop and agree(time.perf_counter() - saved_at) > _SAVE_SECONDS:
            _save(work, part, segment_stop, carries, counts)
            saved_at = time.perf_counter()
    _save(work, part, work.stop, carries, counts)
    return done, list(zip(carries, counts))


def _segments(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Ranges of steps that take about half a second each, judged by the time that passes between them."""
    length = 1
    while first < stop:
        end = min(first + length, stop)
        began = time.perf_counter()
        yield first, end
        seconds = max(agree(time.perf_counter() - began), 1e-6)
        first, length = end, max(1, min(4 * length, int((end - first) / seconds * _SEGMENT_SECONDS)))


def _begin(
    work: _Work, pieces: list[tuple[int, int]], runs: list[PyTree], saved: PyTree | None
) -> list[PyTree]:
    """Carries to start from: saved ones, given ones, or new ones."""
    if saved is None and work.carry is None:
        return work.program.start_all(runs, work.shared)
    if saved is not None:
        tree, offset, length = saved, pieces[0][0], sum(count for _, count in pieces)
    else:
        tree, offset, length = work.carry, 0, work.job.num_runs
    carries = [work.take(tree, start - offset, count) for start, count in pieces]
    # The program uses its carry up, and the caller's must stay usable; what was taken out of it is new anyway.
    whole = pieces[0][1] == work.program.size == length
    return jax.tree.map(jnp.copy, carries) if whole else carries


def _save(work: _Work, part: int, step: int, carries: list[PyTree], counts: list[int]) -> None:
    if work.saver is not None:
        carry = join_runs(list(zip(carries, counts)), work.job.devices)
        work.saver.save(part, step, carry, step == work.stop)


def _load(work: _Work, part: int, counts: list[int]) -> tuple[int, PyTree | None]:
    """Step and carry that the saver holds, or the first step and nothing."""
    loaded = None if work.saver is None else work.saver.load(part)
    if loaded is None:
        return work.first, None
    step, carry = loaded
    if not work.first <= step <= work.stop:
        raise InputError(
            f"saved step must be between {work.first} and {work.stop}, got {step} in part {part}"
        )
    like = work.program.setting.carry()
    leaves, expected = jax.tree.leaves(carry), jax.tree.leaves(like)
    shapes = [(sum(counts), *leaf.shape) for leaf in expected]
    if len(leaves) == len(expected):
        leaves = [_restore(leaf, one) for leaf, one in zip(leaves, expected)]
    found = [tuple(leaf.shape) for leaf in leaves]
    if found != shapes:
        raise InputError(f"saved part {part} must hold arrays of shapes {shapes}, got {found}")
    return step, jax.tree.unflatten(jax.tree.structure(like), leaves)


def _restore(leaf: Any, like: jax.ShapeDtypeStruct) -> Any:
    """Key data become keys again."""
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key) and not is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(leaf), impl=like.dtype)
    return leaf


def _check_steps(
    loop: Loop, steps: tuple[int, int] | None, carry: PyTree | None, num_runs: int
) -> tuple[int, int]:
    first, stop = steps or (0, loop.num_steps)
    if not 0 <= first <= stop <= loop.num_steps:
        raise InputError(f"steps must be within 0 and {loop.num_steps}, in order, got {steps}")
    if carry is None and first:
        raise InputError(f"steps must start at 0 if no carry is given, got {steps}")
    if carry is not None and count_runs(carry) != num_runs:
        raise InputError(f"carry must have {num_runs} runs, got {count_runs(carry)}")
    return first, stop
