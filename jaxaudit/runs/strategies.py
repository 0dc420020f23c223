"""Which way is fastest here: by what is known beforehand where that settles it, by a short measurement otherwise."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.runs.devices import Devices, agree, choose_devices, padded, share, take_runs
from jaxaudit.runs.options import RunOptions, RunPlan, Strategy
from jaxaudit.runs.programs import Program, Setting, Shapes, program, stated_precision, step_facts
from jaxaudit.runs.workers import num_workers
from jaxaudit.train import Loop

_MEASURE_SECONDS = 0.3
_WORTH_MEASURING_SECONDS = 2.0
# A step with so many operations keeps all cores busy on its own. On two cores a convolutional network as matrix
# products (150 MFLOP) was faster run by run; multilayer perceptrons of the usual size (9 MFLOP) are so together.
_HEAVY_STEP_FLOPS = 20e6
# A step of all runs that takes a core less than some 10 microseconds is not shared among cores.
_WORTH_SHARING_FLOPS = 1e6
# Results of one step that a core works on without waiting for memory. Measured with multilayer perceptrons (1.4 MB a
# step: 2 runs per core are best) and small convolutional networks (several MB: the fewer the better).
_CACHE_BYTES_PER_CORE = 3 * 2**20


@dataclass(frozen=True)
class Choice:
    """Which of several equal loops is fastest here, and how."""

    name: str
    plan: RunPlan
    seconds: dict[str, float]
    """Time of one step of one run, by name, each carried out in its best way."""


@dataclass(frozen=True)
class Job:
    """One loop for many runs, before it is decided how."""

    loop: Loop
    per_run: PyTree
    shared: PyTree
    num_runs: int
    options: RunOptions
    devices: Devices
    shapes: Shapes

    @classmethod
    def of(cls, loop: Loop, per_run: PyTree, shared: PyTree, options: RunOptions) -> "Job":
        """Check the run axis and look up the devices."""
        num_runs = count_runs(per_run)
        devices = choose_devices(options.num_devices)
        return cls(loop, per_run, shared, num_runs, options, devices, Shapes.of(per_run, shared))

    def setting(self, strategy: Strategy) -> Setting:
        """What to compile."""
        precision = stated_precision(self.options.matmul_precision)
        return Setting(self.loop, self.shapes, strategy, self.devices, precision)

    def program(self, plan: RunPlan) -> Program:
        """The compiled program of a plan, for one block of runs."""
        size = 1 if plan.strategy == "sequential" else min(plan.block or plan.chunk, self.num_runs)
        return program(self.setting(plan.strategy), padded(size, self.devices))


def plan_runs(
    loop: Loop,
    per_run: PyTree,
    shared: PyTree,
    *,
    options: RunOptions | None = None,
    label: str = "runs",
    reporter: Reporter | None = None,
) -> RunPlan:
    """How `run_loops` would carry this out; given to it as ``plan``, nothing is decided again.

    Parameters
    ----------
    loop, per_run, shared, options, label, reporter
        As in `run_loops`.

    Examples
    --------
    >>> plan_runs(Loop(lambda x, _: x, lambda step, carry, x, _: carry * 2, 3), np.ones((5, 2)), None)
    RunPlan(strategy='scan', chunk=5, block=None)
    """
    job = Job.of(loop, per_run, shared, options or RunOptions())
    return choose_plan(job, label, reporter or SilentReporter())


def fastest(
    loops: Mapping[str, Loop],
    per_run: PyTree,
    shared: PyTree,
    *,
    options: RunOptions | None = None,
    label: str = "runs",
    reporter: Reporter | None = None,
) -> Choice:
    """Measure which of several loops that compute the same is fastest here; remembered in the process.

    Parameters
    ----------
    loops
        Equal computations by name, for instance with two implementations of a convolution.
    per_run, shared, options, label, reporter
        As in `run_loops`; the same for all loops.

    Examples
    --------
    >>> twice = Loop(lambda x, _: x, lambda step, carry, x, _: carry * 2, 3)
    >>> added = Loop(lambda x, _: x, lambda step, carry, x, _: carry + carry, 3)
    >>> fastest({"twice": twice, "added": added}, np.ones((5, 2)), None).plan
    RunPlan(strategy='scan', chunk=5, block=None)
    """
    if not loops:
        raise InputError("loops must hold at least one loop, got none")
    jobs = {name: Job.of(loop, per_run, shared, options or RunOptions()) for name, loop in loops.items()}
    measured = {name: _measure_all(job, _candidates(job), patient=True) for name, job in jobs.items()}
    seconds = {name: min(times.values()) for name, times in measured.items()}
    name = min(seconds, key=seconds.__getitem__)
    strategy = min(measured[name], key=measured[name].__getitem__)
    if reporter is not None and len(loops) > 1:
        reporter.say(f"{label}: a step of one run takes {_times(seconds)}; taking {name}")
    return Choice(name, _plan(jobs[name], strategy), seconds)


def choose_plan(job: Job, label: str, reporter: Reporter) -> RunPlan:
    """The strategy that was asked for or the fastest one, and a chunk that fits the memory budget."""
    candidates = _candidates(job)
    strategy = candidates[0]
    if len(candidates) > 1:
        seconds = _measure_all(job, candidates, patient=False)
        strategy = min(seconds, key=seconds.__getitem__)
        if len(seconds) > 1:
            reporter.say(f"{label}: a step of one run takes {_times(seconds)}; taking {strategy!r}")
    return _plan(job, strategy)


def count_runs(per_run: PyTree) -> int:
    """Length of the run axis.

    Raises
    ------
    InputError
        If the leaves do not have the same leading axis.

    Examples
    --------
    >>> count_runs({"a": np.ones((3, 2)), "b": np.ones(3)})
    3
    """
    lengths = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in jax.tree.leaves(per_run)}
    if len(lengths) != 1 or None in lengths or 0 in lengths:
        raise InputError(
            f"every leaf of per_run must have the same leading axis of runs, got lengths {lengths}"
        )
    (length,) = lengths
    assert length is not None
    return length


def _candidates(job: Job) -> tuple[Strategy, ...]:
    """Ways worth trying, the likeliest first.

    Models made of matrix products are fastest in one compiled loop, unless a step is heavy: then on CPU one run after
    the other may be faster. On CPU a convolution is many times slower inside a compiled loop, and a vmapped one (a
    grouped convolution) slower than one run after the other.
    """
    if job.options.strategy != "auto":
        return (job.options.strategy,)
    on_cpu, facts = job.devices[0].platform == "cpu", step_facts(job.loop, job.shapes)
    if not facts.has_convolution:
        heavy = (facts.flops or 0.0) > _HEAVY_STEP_FLOPS
        return ("scan", "sequential") if on_cpu and heavy and job.loop.num_steps else ("scan",)
    if not job.loop.num_steps:
        return ("sequential",) if on_cpu else ("scan",)
    return ("step", "sequential") if on_cpu else ("scan", "sequential")


_MEASURED: dict[Any, dict[Strategy, float]] = {}


def _measure_all(job: Job, candidates: tuple[Strategy, ...], patient: bool) -> dict[Strategy, float]:
    """Time of a step of one run, for each candidate; only the first if all work is done before the others compile."""
    options = (job.options.memory_budget, job.options.chunk, job.options.matmul_precision)
    key = (job.loop, job.shapes, job.devices, job.num_runs, options, candidates)
    seconds = _MEASURED.setdefault(key, {})
    for strategy in candidates:
        if strategy not in seconds:
            seconds[strategy] = agree(_measure(job, strategy))
        remaining = seconds[strategy] * job.num_runs * max(job.loop.num_steps, 1)
        if not patient and remaining < _WORTH_MEASURING_SECONDS:
            break
    return seconds


def _measure(job: Job, strategy: Strategy) -> float:
    """Seconds of one step of one run, the second time (the first warms up)."""
    compiled = job.program(_plan(job, strategy))
    shared = share(job.shared, job.devices)
    count = min(compiled.size, job.num_runs)
    blocks = min(num_workers(job.devices), -(-job.num_runs // compiled.size))
    runs = [take_runs(job.per_run, 0, count, compiled.size, job.devices)] * blocks
    together = compiled.size * blocks
    carries = compiled.start_all(runs, shared)
    if not job.loop.num_steps:
        return _seconds(lambda: compiled.start_all(runs, shared)) / together
    carries = compiled.advance_all(carries, 0, 1, runs, shared)
    steps = 1
    while True:
        began = time.perf_counter()
        carries = compiled.advance_all(carries, 0, steps, runs, shared)
        seconds = agree(time.perf_counter() - began)
        if seconds > _MEASURE_SECONDS or steps == job.loop.num_steps:
            return seconds / steps / together
        steps = min(job.loop.num_steps, max(2 * steps, int(steps * _MEASURE_SECONDS / max(seconds, 1e-6))))


def _seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _plan(job: Job, strategy: Strategy) -> RunPlan:
    """As many runs together as the memory budget allows, in chunks of nearly equal size."""
    budget, devices = job.options.memory_budget, len(job.devices)
    everything = -(-job.num_runs // devices)
    kept = _kept_bytes(job, strategy)
    if job.options.chunk != "auto":
        return _split(job, strategy, min(job.options.chunk, job.num_runs))
    # What the compiler cannot do without is known beforehand, and saves compiling for far too many runs.
    plan = _split(job, strategy, _even_chunk(job, min(everything, budget // max(kept, 1))))
    while True:
        program = job.program(plan)
        # Blocks that are not being worked on are kept beside the programs.
        chunk = padded(plan.chunk, job.devices)
        workers = min(num_workers(job.devices), -(-chunk // program.size))
        used = workers * program.bytes() + max(0, chunk - workers * program.size) // devices * kept
        if used <= budget or plan.chunk <= devices:
            return plan
        block = padded(plan.chunk, job.devices) // devices
        plan = _split(job, strategy, _even_chunk(job, min(block - 1, int(block * budget / used))))


def _split(job: Job, strategy: Strategy, chunk: int) -> RunPlan:
    """A chunk in blocks that stay in a core's caches, where that matters: as many for every core."""
    if strategy == "sequential" or job.devices[0].platform != "cpu":
        return RunPlan(strategy, chunk)
    facts = step_facts(job.loop, job.shapes)
    per_core = _CACHE_BYTES_PER_CORE // max(facts.result_bytes, 1)
    blocks = math.ceil(chunk / (max(1, per_core) * len(job.devices)))
    if (facts.flops or 0.0) * chunk > _WORTH_SHARING_FLOPS:
        workers = num_workers(job.devices)
        blocks = min(chunk, math.ceil(blocks / workers) * workers)
    if blocks == 1:
        return RunPlan(strategy, chunk)
    return RunPlan(strategy, chunk, padded(math.ceil(chunk / blocks), job.devices))


def _even_chunk(job: Job, per_device: int) -> int:
    """At most so many runs per device, in as many chunks as that takes, but of nearly equal size."""
    devices, per_device = len(job.devices), max(1, per_device)
    if per_device * devices >= job.num_runs:
        return job.num_runs
    chunks = math.ceil(job.num_runs / (per_device * devices))
    return padded(math.ceil(job.num_runs / chunks), job.devices)


def _kept_bytes(job: Job, strategy: Strategy) -> int:
    """Bytes of one run's arguments and carry."""
    tree = (job.shapes.arguments()[0], job.setting(strategy).carry())
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _times(seconds: Mapping[Any, float]) -> str:
    return ", ".join(f"{1e6 * value:,.0f} µs as {name!r}" for name, value in seconds.items())
