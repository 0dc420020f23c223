"""The run axis: one-run pure functions are repeated over many runs here, and nowhere else.

All runs are advanced together in one jitted program. The host calls it in segments of a second or so (their length
is an argument of the program, not a constant of it, so it is compiled once), which is what makes progress visible.
If the runs do not fit the memory budget, they are done in chunks of equal size.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.train import Loop

DEFAULT_MEMORY_BUDGET = 2 * 2**30
_SEGMENT_SECONDS = 0.5


@dataclass(frozen=True)
class RunStats:
    """How the runs were carried out."""

    num_runs: int
    num_steps: int
    chunk: int
    """Runs that were advanced together."""
    program_bytes: int
    """Memory of the compiled program for one chunk: arguments, results and temporaries."""
    seconds: float


def run_loops(
    loop: Loop,
    per_run: PyTree,
    shared: PyTree,
    *,
    chunk: int | Literal["auto"] = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    label: str = "runs",
    reporter: Reporter | None = None,
) -> tuple[PyTree, RunStats]:
    """Carry out the same loop for many runs at once.

    Parameters
    ----------
    loop
        One run, without any run axis.
    per_run
        Arguments that differ between runs: every leaf has a leading axis of length ``num_runs``.
    shared
        Arguments that all runs share.
    chunk
        Runs per program; ``"auto"`` takes as many as the memory budget allows, by the compiler's own analysis.
    memory_budget
        Bytes that one program may use, its arguments and results included; only ``chunk="auto"`` looks at it. What is
        returned for all runs is kept besides.
    label, reporter
        What is shown as progress.

    Returns
    -------
    The final carry of every run (leading axis ``num_runs``), and how it was done.

    Examples
    --------
    >>> double = Loop(lambda x, _: x, lambda step, carry, x, _: carry * 2, num_steps=3)
    >>> final, stats = run_loops(double, jnp.array([1.0, 2.0]), None)
    >>> final.tolist(), stats.chunk
    ([8.0, 16.0], 2)
    """
    num_runs = _num_runs(per_run)
    started = time.perf_counter()
    if chunk == "auto":
        size, program = _fitting_program(loop, per_run, shared, num_runs, memory_budget)
    else:
        if chunk < 1:
            raise InputError(f"chunk must be at least 1 or 'auto', got {chunk}")
        size = min(chunk, num_runs)
        program = _compile(loop, per_run, shared, size)
    starts = range(0, num_runs, size)
    parts = []
    with (reporter or SilentReporter()).task(label, len(starts) * max(loop.num_steps, 1)) as advance:
        for start in starts:
            carry = _run_chunk(loop, program, _slice(per_run, start, size), shared, advance)
            parts.append(carry)
    # The last chunk repeats its last run to keep its shape; the repeats are cut off here.
    parts[-1] = jax.tree.map(lambda leaf: leaf[: num_runs - starts[-1]], parts[-1])
    result = parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    return result, RunStats(num_runs, loop.num_steps, size, program.bytes, time.perf_counter() - started)


def map_runs(
    function: Callable[[Any, Any], Any], per_run: PyTree, shared: PyTree, **options: Any
) -> tuple[PyTree, RunStats]:
    """Apply ``function(per_run, shared)`` of one run to all runs. Options as in `run_loops`.

    Examples
    --------
    >>> map_runs(lambda x, y: x + y, jnp.arange(3), 10)[0].tolist()
    [10, 11, 12]
    """
    return run_loops(_mapping(function), per_run, shared, **options)


@lru_cache(maxsize=64)
def _mapping(function: Callable[[Any, Any], Any]) -> Loop:
    return Loop(function, _no_step, 0)


def _no_step(step: Any, carry: Any, per_run: Any, shared: Any) -> Any:
    return carry


class _Program(NamedTuple):
    """A loop compiled for a number of runs."""

    start: Callable[..., Any]
    advance: Callable[..., Any] | None
    """``None`` for a loop without steps."""
    bytes: int


def _compile(loop: Loop, per_run: PyTree, shared: PyTree, size: int) -> _Program:
    shapes = (_shapes(per_run, size), _shapes(shared))
    leaves, structure = jax.tree.flatten(shapes)
    return _compile_cached(loop, structure, tuple(leaves))


@lru_cache(maxsize=64)
def _compile_cached(loop: Loop, structure: Any, leaves: tuple[jax.ShapeDtypeStruct, ...]) -> _Program:
    """Compile once per loop and shapes; the executables are called directly, so nothing is compiled twice."""
    per_run, shared = jax.tree.unflatten(structure, leaves)

    def start(per_run: Any, shared: Any) -> Any:
        return jax.vmap(loop.init, in_axes=(0, None), axis_size=_num_runs(per_run))(per_run, shared)

    def advance(carry: Any, first: Any, stop: Any, per_run: Any, shared: Any) -> Any:
        one_step = jax.vmap(loop.body, in_axes=(None, 0, 0, None))
        return jax.lax.fori_loop(
            first, stop, lambda step, carry: one_step(step, carry, per_run, shared), carry
        )

    start_compiled = jax.jit(start).lower(per_run, shared).compile()
    if not loop.num_steps:
        return _Program(start_compiled, None, _bytes(start_compiled))
    carry = jax.eval_shape(start, per_run, shared)
    step = jax.ShapeDtypeStruct((), jnp.int32)
    compiled = jax.jit(advance, donate_argnums=0).lower(carry, step, step, per_run, shared).compile()
    return _Program(start_compiled, compiled, max(_bytes(compiled), _bytes(start_compiled)))


def _bytes(compiled: Any) -> int:
    memory = compiled.memory_analysis()
    return int(
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes
    )


def _fitting_program(
    loop: Loop, per_run: PyTree, shared: PyTree, num_runs: int, memory_budget: int
) -> tuple[int, _Program]:
    """The largest chunk whose compiled program stays within the budget, in chunks of nearly equal size."""
    size = num_runs
    while True:
        program = _compile(loop, per_run, shared, size)
        if program.bytes <= memory_budget or size == 1:
            return size, program
        smaller = max(1, min(size - 1, int(size * memory_budget / program.bytes)))
        size = math.ceil(num_runs / math.ceil(num_runs / smaller))


def _run_chunk(
    loop: Loop, program: _Program, per_run: PyTree, shared: PyTree, progress: Callable[[int], None]
) -> Any:
    carry = jax.block_until_ready(program.start(per_run, shared))
    if program.advance is None:
        progress(1)
        return carry
    first, length = 0, 1
    while first < loop.num_steps:
        stop = min(first + length, loop.num_steps)
        began = time.perf_counter()
        carry = program.advance(carry, np.int32(first), np.int32(stop), per_run, shared)
        jax.block_until_ready(carry)
        seconds = max(time.perf_counter() - began, 1e-6)
        progress(stop - first)
        first, length = stop, max(1, min(4 * length, int((stop - first) / seconds * _SEGMENT_SECONDS)))
    return carry


def _shapes(tree: PyTree, size: int | None = None) -> PyTree:
    """Shapes and types of a pytree, with the leading axis replaced by ``size`` if one is given."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        dims = leaf.shape if size is None else (size, *leaf.shape[1:])
        return jax.ShapeDtypeStruct(dims, leaf.dtype)

    return jax.tree.map(shape, jax.eval_shape(lambda: tree))


def _slice(per_run: PyTree, start: int, size: int) -> PyTree:
    def cut(leaf: Any) -> Any:
        return leaf[jnp.minimum(jnp.arange(start, start + size), len(leaf) - 1)]

    return per_run if size == _num_runs(per_run) else jax.tree.map(cut, per_run)


def _num_runs(per_run: PyTree) -> int:
    lengths = {jnp.shape(leaf)[0] if jnp.ndim(leaf) else None for leaf in jax.tree.leaves(per_run)}
    if len(lengths) != 1 or None in lengths or 0 in lengths:
        raise InputError(
            f"every leaf of per_run must have the same leading axis of runs, got lengths {lengths}"
        )
    (length,) = lengths
    assert length is not None
    return length
