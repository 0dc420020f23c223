"""Carries loops and functions out for all runs, remembers how it went, and resumes what was interrupted."""

from collections.abc import Callable, Mapping
from typing import Any

from jaxtyping import PyTree

from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.runs import (
    RunOptions,
    RunPlan,
    RunStats,
    mapping_loop,
    measured_matmul_peak,
    plan_runs,
    run_loops,
    to_host,
)
from jaxaudit.store import Progress
from jaxaudit.train import Loop

Looks = Mapping[int, Callable[[PyTree], None]]
"""What to do with the carry of all runs after so many steps."""
Arrays = dict[str, Any]
"""Arrays by name, on the device or on the host."""
_RESULT = "result"
_WORTH_A_MEASUREMENT = 10.0  # seconds; the measurement takes about a third of one


class Executor:
    """The run axis, with one set of options, one reporter and one place to keep progress.

    Parameters
    ----------
    options
        How to carry runs out.
    reporter
        Where progress goes.
    progress
        Where it is kept; ``None``: nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> double = Loop(lambda x, _: x, lambda step, carry, x, _: carry * 2, num_steps=3)
    >>> executor, seen = Executor(), []
    >>> final = executor.run(double, np.array([1.0, 2.0]), None, name="double", looks={1: seen.append})
    >>> final.tolist(), seen[0].tolist(), list(executor.stats)
    ([8.0, 16.0], [2.0, 4.0], ['double'])
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        reporter: Reporter | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.options = options or RunOptions()
        self.reporter = reporter or SilentReporter()
        self.progress = progress
        self.stats: dict[str, list[RunStats]] = {}
        """Of every computation, by its label."""
        self.reused: dict[str, int] = {}
        """Numbers of runs whose result was found in the store, by the label of the computation."""

    def run(
        self,
        loop: Loop,
        per_run: PyTree,
        shared: PyTree,
        *,
        name: str,
        label: str | None = None,
        looks: Looks | None = None,
    ) -> PyTree:
        """Carry out a loop for all runs.

        Parameters
        ----------
        loop, per_run, shared
            As in `jaxaudit.runs.run_loops`.
        name
            Where progress is kept.
        label
            What is shown; default: the name.
        looks
            Called on the way with the carry of all runs. Keep what they saw, and leave them out when resuming: the loop
            then goes on from where it was.

        Returns
        -------
        The final carry of all runs.
        """
        looks = looks or {}
        call = self._prepare(loop, per_run, shared, name, label or name)
        carry, first = None, 0
        for stop in sorted({*looks, loop.num_steps}):
            if self.progress is not None:
                # A carry in memory need not be read again.
                least = 0 if carry is None else first + 1
                call["saver"] = self.progress.saver(name, least, stop)
            carry = self._run(loop, per_run, shared, call, carry=carry, steps=(first, stop))
            first = stop
            if stop in looks:
                looks[stop](carry)
        return carry

    def map(
        self, function: Callable[[Any, Any], Any], per_run: PyTree, shared: PyTree, *, name: str, label: str
    ) -> PyTree:
        """``function(per_run, shared)`` of every run; its result is not kept, as it is quick."""
        loop = mapping_loop(function)
        return self._run(loop, per_run, shared, self._prepare(loop, per_run, shared, name, label))

    def once(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays kept under a name; otherwise those computed now, which are then kept.

        Parameters
        ----------
        name
            Where they are kept. Whatever else is kept below it is forgotten afterwards.
        compute
            What to do if they are not there.
        """
        kept = self.recall(name)
        if kept is not None:
            return kept
        if self.progress is None:
            return compute()
        result = {key: to_host(array) for key, array in compute().items()}  # in their order
        self.progress.keep(f"{name}/{_RESULT}", list(result.values()), {"names": list(result)})
        self.progress.tidy(name, keep=_RESULT)
        return result

    def recall(self, name: str) -> Arrays | None:
        """What `once` kept under a name; ``None`` if it is not there or damaged."""
        piece = None if self.progress is None else self.progress.load(f"{name}/{_RESULT}")
        return None if piece is None else dict(zip(piece.note["names"], piece.leaves))

    def finish(self) -> None:
        """Forget everything but what `once` kept: the same work is then done at once, should it be asked for again."""
        if self.progress is not None:
            self.progress.finish(_RESULT)

    def forget(self, name: str) -> None:
        """Forget all that is kept under a name or below it."""
        if self.progress is not None:
            self.progress.forget(name)

    def _prepare(self, loop: Loop, per_run: PyTree, shared: PyTree, name: str, label: str) -> dict[str, Any]:
        """Options of `run_loops`, which asks for the plan of the first time if this is not it."""
        call: dict[str, Any] = {"options": self.options, "label": label, "reporter": self.reporter}
        progress = self.progress
        if progress is None:
            return call

        def plan() -> RunPlan:
            return progress.plan(name, self.options, lambda: plan_runs(loop, per_run, shared, **call))

        return call | {"plan": plan}

    def _run(
        self, loop: Loop, per_run: PyTree, shared: PyTree, call: dict[str, Any], **options: Any
    ) -> PyTree:
        result, stats = run_loops(loop, per_run, shared, **call, **options)
        call["plan"] = stats.plan  # the next part of the same computation goes on with it
        self.stats.setdefault(call["label"], []).append(stats)
        return result


def phases(executor: Executor, seconds: float) -> list[dict[str, Any]]:
    """How every computation went, in plain JSON types.

    Parameters
    ----------
    executor
        After the work.
    seconds
        Wall time of the whole work: the machine's peak is measured only if that takes a small part of it.
    """
    peak = None
    if seconds > _WORTH_A_MEASUREMENT:
        peak = measured_matmul_peak(executor.options.matmul_precision)
    reused = executor.reused
    found = [{"name": label, "from_store": reused[label]} for label in reused if label not in executor.stats]
    return found + [
        {"name": label, "from_store": reused.get(label)} | _phase(stats, peak)
        for label, stats in executor.stats.items()
    ]


def _phase(stats: list[RunStats], peak: float | None) -> dict[str, Any]:
    """One computation, which looks on the way may have cut into several calls."""
    first, run_seconds = stats[0], sum(one.run_seconds for one in stats)
    num_steps = sum(one.num_steps for one in stats)
    steps = sum(one.num_runs * one.num_steps * one.computed for one in stats)
    runs = steps / num_steps if num_steps else sum(one.num_runs * one.computed for one in stats)
    flops = None
    if all(one.flops is not None for one in stats):
        flops = sum((one.flops or 0.0) * one.computed for one in stats) / run_seconds
    # The peak is that of float32 products: others may be several times as fast.
    share = None if flops is None or peak is None else flops / (peak * len(first.devices))
    return {
        "runs": first.num_runs,
        "steps": num_steps,
        "strategy": first.plan.strategy,
        "runs_at_once": first.plan.chunk,
        "runs_per_program": first.plan.block,
        "seconds": sum(one.seconds for one in stats),
        "compile_seconds": sum(one.compile_seconds for one in stats),
        "plan_seconds": sum(one.plan_seconds for one in stats),
        "runs_per_second": runs / run_seconds,
        "steps_per_second": steps / run_seconds,
        "flops_per_second": flops,
        "share_of_peak": share if all(one.in_float32 for one in stats) else None,
        "devices": len(first.devices),
        "matmul_precision": first.matmul_precision,
    }
