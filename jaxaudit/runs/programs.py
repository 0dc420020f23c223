"""Compiled programs: one-run functions over a block of runs per device, compiled once per loop and shapes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params
from jaxtyping import PyTree

from jaxaudit.runs.devices import EVERYWHERE, RUNS, Devices, sharding, spread
from jaxaudit.runs.options import Precision, Strategy
from jaxaudit.runs.workers import num_workers, side_by_side
from jaxaudit.train import Loop


@dataclass
class Compilations:
    """What this process has compiled so far for the run axis."""

    count: int = 0
    seconds: float = 0.0


COMPILATIONS = Compilations()


class Shapes(NamedTuple):
    """Shapes and types of a loop's arguments for **one** run, hashable."""

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], Any], ...]

    @classmethod
    def of(cls, per_run: PyTree, shared: PyTree) -> "Shapes":
        """Those of arguments for many runs."""
        per_run, shared = jax.eval_shape(lambda: (per_run, shared))
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), per_run)
        leaves, structure = jax.tree.flatten((one, shared))
        return cls(structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))

    def arguments(self) -> tuple[PyTree, PyTree]:
        """``per_run`` of one run and ``shared``, as shapes."""
        leaves = [jax.ShapeDtypeStruct(*leaf) for leaf in self.leaves]
        per_run, shared = jax.tree.unflatten(self.structure, leaves)
        return per_run, shared


@dataclass(frozen=True)
class Setting:
    """Everything beside the size that makes one program differ from another."""

    loop: Loop
    shapes: Shapes
    strategy: Strategy
    devices: Devices
    precision: str | None
    """JAX's name of it; see `stated_precision`."""

    def carry(self) -> PyTree:
        """Shapes of one run's carry."""
        return jax.eval_shape(self.loop.init, *self.shapes.arguments())


@dataclass
class Program:
    """A loop compiled for ``size`` runs (a multiple of the number of devices).

    ``start`` and ``advance`` are compiled when they are first asked for, and then called directly, so that nothing is
    compiled twice. ``"scan"`` and ``"step"`` hold any number of runs, ``"sequential"`` one per device.
    """

    setting: Setting
    size: int

    @cached_property
    def start(self) -> Callable[[PyTree, PyTree], PyTree]:
        """``(per_run, shared) -> carry``."""
        init = _over_runs(self.setting, self.setting.loop.init, (True, False))
        return self._compile(init, (True, False), self._arguments())

    @cached_property
    def _loop(self) -> Callable[..., Any]:
        body = self.setting.loop.body
        one_step = _over_runs(self.setting, body, (False, True, True, False))
        carry = self._many(self.setting.carry())
        step = jax.ShapeDtypeStruct((), jnp.int32)
        if self.setting.strategy != "scan":

            def next_step(carry: Any, step: Any, per_run: Any, shared: Any) -> Any:
                return one_step(step, carry, per_run, shared)

            return self._compile(
                next_step, (True, False, True, False), (carry, step, *self._arguments()), donate=(0,)
            )

        def advance(carry: Any, first: Any, stop: Any, per_run: Any, shared: Any) -> Any:
            def next_carry(step: Any, carry: Any) -> Any:
                return one_step(step, carry, per_run, shared)

            return jax.lax.fori_loop(first, stop, next_carry, carry)

        runs = (True, False, False, True, False)
        return self._compile(advance, runs, (carry, step, step, *self._arguments()), donate=(0,))

    def advance(self, carry: PyTree, first: int, stop: int, per_run: PyTree, shared: PyTree) -> PyTree:
        """The carry after steps ``first`` to ``stop - 1``; the carry that was given is used up."""
        if self.setting.strategy == "scan":
            return self._loop(carry, np.int32(first), np.int32(stop), per_run, shared)
        for step in range(first, stop):
            carry = self._loop(carry, np.int32(step), per_run, shared)
        return carry

    def start_all(self, runs: Sequence[PyTree], shared: PyTree) -> list[PyTree]:
        """``start`` of several blocks, side by side where that is faster; waits for them."""
        start = self.start  # compiled before any thread asks for it
        calls = [partial(_wait, start, block, shared) for block in runs]
        return side_by_side(calls, num_workers(self.setting.devices))

    def advance_all(
        self, carries: Sequence[PyTree], first: int, stop: int, runs: Sequence[PyTree], shared: PyTree
    ) -> list[PyTree]:
        """``advance`` of several blocks, side by side where that is faster; waits for them."""
        _ = self._loop  # compiled before any thread asks for it
        calls = [
            partial(_wait, self.advance, carry, first, stop, block, shared)
            for carry, block in zip(carries, runs)
        ]
        return side_by_side(calls, num_workers(self.setting.devices))

    def bytes(self) -> int:
        """Memory per device of the larger of the two programs."""
        loops = [self._loop] if self.setting.loop.num_steps else []
        return max(_bytes(compiled) for compiled in (self.start, *loops))

    def bytes_so_far(self) -> int:
        """The same for what is compiled by now; 0 if nothing was needed."""
        compiled = [self.__dict__[name] for name in ("start", "_loop") if name in self.__dict__]
        return max(map(_bytes, compiled), default=0)

    def _arguments(self) -> tuple[PyTree, PyTree]:
        per_run, shared = self.setting.shapes.arguments()
        return self._many(per_run), shared

    def _many(self, tree: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((self.size, *leaf.shape), leaf.dtype), tree)

    def _compile(
        self, block: Callable[..., Any], runs: tuple[bool, ...], arguments: Any, donate: tuple[int, ...] = ()
    ) -> Callable[..., Any]:
        began = time.perf_counter()
        devices = self.setting.devices
        layouts = [sharding(devices, RUNS if axis else EVERYWHERE) for axis in runs]
        program = jax.jit(
            spread(block, devices, runs),
            in_shardings=tuple(layouts),
            out_shardings=sharding(devices, RUNS),
            donate_argnums=donate,
        )
        with jax.default_matmul_precision(self.setting.precision):
            compiled = program.lower(*arguments).compile()
        COMPILATIONS.count += 1
        COMPILATIONS.seconds += time.perf_counter() - began
        return compiled


def stated_precision(precision: Precision) -> str | None:
    """JAX's name of a precision; that of ``"default"`` is what the user has set with JAX's own option, if anything.

    Examples
    --------
    >>> with jax.default_matmul_precision("high"):
    ...     stated_precision("highest"), stated_precision("default")
    ('highest', 'high')
    """
    own: str | None = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return own if precision == "default" else precision


@lru_cache(maxsize=64)
def program(setting: Setting, size: int) -> Program:
    """The program for ``size`` runs, made once."""
    return Program(setting, size)


def _over_runs(setting: Setting, function: Callable[..., Any], runs: tuple[bool, ...]) -> Callable[..., Any]:
    """``function`` of one run over one device's block of runs; results always have the axis."""
    if setting.strategy != "sequential":
        return jax.vmap(function, in_axes=tuple(0 if axis else None for axis in runs))

    def alone(*arguments: Any) -> Any:
        first = [
            jax.tree.map(lambda leaf: leaf[0], argument) if axis else argument
            for argument, axis in zip(arguments, runs)
        ]
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(*first))

    return alone


def _wait(function: Callable[..., PyTree], *arguments: Any) -> PyTree:
    return jax.block_until_ready(function(*arguments))


def _bytes(compiled: Any) -> int:
    memory = compiled.memory_analysis()
    if memory is None:
        return 0
    return int(
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes
    )


_PRODUCTS = ("dot_general", "conv_general_dilated")


class StepFacts(NamedTuple):
    """What is known about one step of one run without compiling it."""

    has_convolution: bool
    flops: float | None
    result_bytes: int
    """Bytes of the results of all operations: an upper bound of what the step works on."""
    in_float32: bool
    """Whether every matrix product and convolution takes float32 only."""


@lru_cache(maxsize=256)
def step_facts(loop: Loop, shapes: Shapes) -> StepFacts:
    """Look at the operations of one step of one run; of ``init`` if the loop has no steps.

    Parameters
    ----------
    loop, shapes
        The loop and its arguments.
    """
    arguments = shapes.arguments()
    if loop.num_steps:
        carry = jax.eval_shape(loop.init, *arguments)
        traced = jax.jit(loop.body).trace(jax.ShapeDtypeStruct((), jnp.int32), carry, *arguments)
    else:
        traced = jax.jit(loop.init).trace(*arguments)
    cost = traced.lower().cost_analysis() or {}
    operations = list(_operations(traced.jaxpr.jaxpr))
    products = [operation for operation in operations if operation.primitive.name in _PRODUCTS]
    return StepFacts(
        has_convolution=any(operation.primitive.name == "conv_general_dilated" for operation in products),
        flops=cost.get("flops"),
        result_bytes=sum(_size(result.aval) for operation in operations for result in operation.outvars),
        in_float32=all(factor.aval.dtype == jnp.float32 for product in products for factor in product.invars),
    )


def _operations(jaxpr: Any) -> Iterator[Any]:
    """All operations, those inside of others included (a loop's body once)."""
    for equation in jaxpr.eqns:
        inner = list(jaxprs_in_params(equation.params))
        for one in inner:
            yield from _operations(one)
        if not inner:
            yield equation


def _size(array: Any) -> int:
    return int(np.prod(array.shape)) * array.dtype.itemsize
