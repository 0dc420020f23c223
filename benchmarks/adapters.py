"""Adapters of many runs on one base: what does it save, in time and memory, against a copy of the base per run?

python benchmarks/adapters.py [--size tiny|small|smollm2] [--runs 4]

Every way carries out the same step of training, of the same adapters on the same questions, 60 % of whose places are
real tokens. ``smollm2`` has the sizes of SmolLM2-135M and random parameters (540 MB per copy: mind the memory). Memory
is the compiler's own sum of arguments, results and temporaries; ratios are taken within a round.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxaudit.data import Examples
from jaxaudit.llm import (
    PRESETS,
    AdamWSpec,
    DecoderSpec,
    LoraShared,
    LoraSpec,
    decoder,
    init_adapters,
    lora_tuning_loop,
    packed_size,
)
from jaxaudit.train import TrainingRun
from jaxaudit.unlearn.preference import Tokens

SMOLLM2 = DecoderSpec(49152, width=576, num_layers=30, num_heads=9, num_kv_heads=3, hidden=1536)
SIZES = {"tiny": PRESETS["tiny"](420), "small": PRESETS["small"](420), "smollm2": SMOLLM2}
LORA = LoraSpec(dropout=0.0)
COLUMNS, PROMPT, BATCH, COUNT = 70, 57, 16, 64


class Way(NamedTuple):
    """One compiled step of all runs, or of one after the other."""

    name: str
    step: Callable[[Any], Any]
    """From the states of all runs to those after a step; the old ones are used up."""
    mebibytes: float


def questions(vocabulary: int) -> Examples:
    """Rows of 28 to 56 real tokens."""
    rng = np.random.default_rng(0)
    first = rng.integers(8, 36, COUNT)[:, None]
    last = PROMPT + rng.integers(1, COLUMNS - PROMPT, COUNT)[:, None]
    real = (np.arange(COLUMNS) >= first) & (np.arange(COLUMNS) < last)
    ids = np.where(real, rng.integers(2, vocabulary, real.shape), 0)
    answer = real & (np.arange(COLUMNS) >= PROMPT)
    tokens = Tokens(*(jnp.asarray(leaf, jnp.float32) for leaf in (ids, answer, real)))
    return Examples(tokens._replace(ids=jnp.asarray(ids, jnp.int32)), jnp.zeros(COUNT, int), jnp.ones(COUNT))


def ways(spec: DecoderSpec, num_runs: int) -> tuple[list[Way], Callable[[], Any]]:
    """All ways, and a function that makes the states to start from."""
    model, pool = decoder(spec, LORA), questions(spec.vocabulary_size)
    rng = np.random.default_rng(1)
    orders = np.stack([rng.permutation(COUNT) for _ in range(num_runs)])
    runs = TrainingRun(jnp.asarray(orders), jax.random.split(jax.random.key(1), num_runs))
    shared = LoraShared(pool, init_adapters(jax.random.key(2), spec, LORA), model.init_fn(jax.random.key(0)))
    packed = packed_size(pool.x.real, orders, BATCH)
    padded_loop, loop = (
        lora_tuning_loop(model, AdamWSpec(1, 1e-3, BATCH), COUNT, PROMPT, size) for size in (None, packed)
    )
    copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * num_runs), shared.base)
    own = LoraShared(None, None, 0)
    found = [
        _together("one base, real tokens only", loop, runs, shared, None),
        _together("one base", padded_loop, runs, shared, None),
        _together("a base per run", padded_loop, runs, shared._replace(base=copies), own),
        _one_by_one("one base, run after run, real tokens only", loop, runs, shared),
    ]
    return found, lambda: jax.vmap(loop.init, in_axes=(0, None))(runs, shared)


def _together(name: str, loop: Any, runs: Any, shared: Any, axes: Any) -> Way:
    def step(state: Any, runs: Any, shared: Any) -> Any:
        return jax.vmap(loop.body, in_axes=(None, 0, 0, axes))(jnp.int32(1), state, runs, shared)

    states = jax.eval_shape(jax.vmap(loop.init, in_axes=(0, axes)), runs, shared)
    compiled = jax.jit(step, donate_argnums=0).lower(states, runs, shared).compile()
    return Way(name, lambda state: compiled(state, runs, shared), _mebibytes(compiled))


def _one_by_one(name: str, loop: Any, runs: Any, shared: Any) -> Way:
    def step(states: Any, number: Any, runs: Any, shared: Any) -> Any:
        run, state = jax.tree.map(lambda leaf: leaf[number], (runs, states))
        new = loop.body(jnp.int32(1), state, run, shared)
        return jax.tree.map(lambda leaf, moved: leaf.at[number].set(moved), states, new)

    states = jax.eval_shape(jax.vmap(loop.init, in_axes=(0, None)), runs, shared)
    number = jax.ShapeDtypeStruct((), jnp.int32)
    compiled = jax.jit(step, donate_argnums=0).lower(states, number, runs, shared).compile()

    def all_runs(states: Any) -> Any:
        for one in range(len(runs.members)):
            states = compiled(states, np.int32(one), runs, shared)
        return states

    return Way(name, all_runs, _mebibytes(compiled))


def _mebibytes(compiled: Any) -> float:
    memory = compiled.memory_analysis()
    sizes = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return (sizes - memory.alias_size_in_bytes) / 2**20


def measure(size: str, num_runs: int, rounds: int) -> list[dict[str, Any]]:
    """Seconds per step of all runs and memory, by way; the first way is what the others are compared with."""
    candidates, start = ways(SIZES[size], num_runs)
    states = {way.name: jax.block_until_ready(way.step(start())) for way in candidates}
    # The gradients as Adam keeps them: its first step is their sign, which rounding turns where a gradient is near 0.
    first, *others = (optax.tree_utils.tree_get(states[way.name], "mu") for way in candidates)
    for other in others:
        for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-4 * np.abs(one).max())
    seconds: dict[str, list[float]] = {way.name: [] for way in candidates}
    for number in range(rounds):
        for way in candidates if number % 2 == 0 else candidates[::-1]:
            began = time.perf_counter()
            states[way.name] = jax.block_until_ready(way.step(states[way.name]))
            seconds[way.name].append(time.perf_counter() - began)
    best = candidates[0]
    return [
        {
            "way": way.name,
            "seconds": statistics.median(seconds[way.name]),
            "times_as_long": statistics.median(a / b for a, b in zip(seconds[way.name], seconds[best.name])),
            "mebibytes": way.mebibytes,
            "times_the_memory": way.mebibytes / best.mebibytes,
        }
        for way in candidates
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="two runs, one round: does it work at all?")
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    num_runs, rounds = (2, 1) if arguments.smoke else (arguments.runs, arguments.rounds)
    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}; {arguments.size}, {num_runs} runs")
    print(f"{'':44}{'s per step':>11}{'times':>7}{'MiB':>9}{'times':>7}")
    rows = measure(arguments.size, num_runs, rounds)
    for row in rows:
        print(
            f"{row['way']:44}{row['seconds']:11.3f}{row['times_as_long']:7.2f}{row['mebibytes']:9.0f}"
            f"{row['times_the_memory']:7.2f}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
