"""What the benchmarks of training share: one workload, the ways to carry it out, timing side by side, and the table.

Every way trains the same runs: same start, same batches in the same order, same plain SGD in float32. After the warm-up
the results are compared, so a way that computes something else is no candidate. Then the ways take turns, round after
round; ratios are taken within a round, because a shared machine is as slow for one as for the other.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxaudit.data import Examples
from jaxaudit.models import Model
from jaxaudit.runs import measured_matmul_peak, run_loops
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop

try:
    import pytorch_ways
    import torch
except ImportError:
    torch = None


@dataclass(frozen=True)
class Workload:
    """Training of ``num_runs`` models for ``epochs`` passes over ``members`` of the pool."""

    title: str
    model: Model
    pool: Examples
    num_members: int
    """Examples of each run; a multiple of the batch size."""
    num_runs: int
    batch_size: int
    network: Callable[[], Any]
    """The same network in PyTorch."""
    ensemble: Callable[[], Any]
    """The same, made of operations that PyTorch can batch over runs."""
    to_torch: Callable[[Any], dict[str, np.ndarray]]
    """Parameters under PyTorch's names and in its layout."""
    channels_first: bool = False
    epochs: int = 1
    learning_rate: float = 0.05
    make_loss: Callable[[Any], Any] = cross_entropy_loss

    @property
    def steps(self) -> int:
        return self.epochs * self.num_members // self.batch_size

    def members(self) -> np.ndarray:
        """Every run's examples in the order of training."""
        rng = np.random.default_rng(0)
        size = len(self.pool.y)
        return np.stack([rng.permutation(size)[: self.num_members] for _ in range(self.num_runs)])

    def initial_params(self) -> Any:
        return self.model.init_fn(jax.random.key(0))


class Way(NamedTuple):
    """How to carry a workload out: ``run()`` returns the last run's parameters under PyTorch's names."""

    name: str
    run: Callable[[], dict[str, np.ndarray]]
    stats: list[Any]
    """`RunStats` of the calls, for jaxaudit's own ways."""


def jax_ways(work: Workload) -> list[Way]:
    """jaxaudit, once per implementation of the model, and a loop over runs and steps around one compiled step."""
    spec = SgdSpec(work.epochs, work.learning_rate, work.learning_rate, work.batch_size)
    keys = jax.random.split(jax.random.key(1), work.num_runs)
    runs = TrainingRun(jax.numpy.asarray(work.members()), keys)
    shared = TrainingShared(work.pool, work.initial_params())
    ways = []
    for model in (work.model, *work.model.alternatives):
        loop = training_loop(work.make_loss(model.logits_fn), spec, work.num_members)
        suffix = f" ({model.description.split(', ')[-1]})" if work.model.alternatives else ""
        stats: list[Any] = []

        def together(loop: Any = loop, stats: list[Any] = stats) -> dict[str, np.ndarray]:
            state, how = run_loops(loop, runs, shared)
            stats.append(how)
            return work.to_torch(jax.tree.map(lambda leaf: leaf[-1], jax.block_until_ready(state.params)))

        step = jax.jit(
            lambda number, state, run, shared, loop=loop: loop.body(number, state, run, shared),
            donate_argnums=1,
        )

        def one_by_one(loop: Any = loop, step: Any = step) -> dict[str, np.ndarray]:
            for index in range(work.num_runs):
                run = jax.tree.map(lambda leaf, index=index: leaf[index], runs)
                state = jax.tree.map(jax.numpy.copy, loop.init(run, shared))
                for number in range(loop.num_steps):
                    state = step(np.int32(number), state, run, shared)
                jax.block_until_ready(state)
            return work.to_torch(state.params)

        ways += [
            Way(f"jaxaudit{suffix}", together, stats),
            Way(f"JAX, run after run{suffix}", one_by_one, []),
        ]
    return ways


def ways(work: Workload) -> list[Way]:
    """All of them; without PyTorch only JAX's."""
    found = jax_ways(work)
    if torch is not None:
        found += [Way(name, run, []) for name, run in pytorch_ways.ways(work)]
    return found


def check_agreement(results: dict[str, dict[str, np.ndarray]]) -> None:
    """Every way ends at the same parameters, up to rounding that training has amplified."""
    first, *others = results
    for other in others:
        for name, value in results[first].items():
            scale = np.abs(value).max() + 1e-3
            np.testing.assert_allclose(
                results[other][name] / scale, value / scale, atol=0.02, err_msg=f"{first} and {other}: {name}"
            )


def time_side_by_side(
    candidates: Sequence[Way], rounds: int
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Seconds of the warm-up, compilation included, and of every round, by way."""
    warm_up, results = {}, {}
    for way in candidates:
        began = time.perf_counter()
        results[way.name] = way.run()
        warm_up[way.name] = time.perf_counter() - began
    check_agreement(results)
    seconds: dict[str, list[float]] = {way.name: [] for way in candidates}
    for number in range(rounds):
        order = candidates if number % 2 == 0 else candidates[::-1]
        for way in order:
            began = time.perf_counter()
            way.run()
            seconds[way.name].append(time.perf_counter() - began)
    return warm_up, seconds


def report(work: Workload, candidates: Sequence[Way], warm_up: Any, seconds: Any) -> dict[str, Any]:
    """The numbers of one workload, ready for JSON."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    rivals = [name for name in medians if name.startswith("PyTorch")]
    best = min(rivals or medians, key=medians.__getitem__)
    rows = []
    for way in candidates:
        ratios = sorted(b / a for a, b in zip(seconds[way.name], seconds[best]))
        row = {
            "way": way.name,
            "seconds": medians[way.name],
            "microseconds_per_run_and_step": 1e6 * medians[way.name] / work.num_runs / work.steps,
            "first_call_extra_seconds": max(0.0, warm_up[way.name] - medians[way.name]),
            "times_as_fast": statistics.median(ratios),
            "times_as_fast_range": [ratios[0], ratios[-1]],
        }
        if way.stats:
            last = way.stats[-1]
            row["plan"] = f"{last.plan.strategy}, {last.plan.block or last.plan.chunk} at once"
            row["mebibytes_per_run"] = last.program_bytes / min(last.plan.chunk, work.num_runs) / 2**20
            if last.flops is not None:
                row["share_of_matmul_peak"] = last.flops / medians[way.name] / measured_matmul_peak()
        rows.append(row)
    title = f"{work.title}; {work.num_runs} runs x {work.steps} steps of {work.batch_size} examples"
    return {"title": title, "compared_with": best, "rows": rows}


def show(result: dict[str, Any]) -> None:
    """Print one workload as a table."""
    print(
        f"\n{result['title']}\n('times' = as fast as \"{result['compared_with']}\", median and range over rounds)"
    )
    print(f"{'':44}{'seconds':>9}{'us/run/step':>13}{'times':>7}{'range':>13}{'first call +':>14}")
    for row in result["rows"]:
        low, high = row["times_as_fast_range"]
        print(
            f"{row['way']:44}{row['seconds']:9.3f}{row['microseconds_per_run_and_step']:13.0f}"
            f"{row['times_as_fast']:7.2f}{f'{low:.2f}-{high:.2f}':>13}{row['first_call_extra_seconds']:12.1f} s"
        )
        if "plan" in row:
            share = row.get("share_of_matmul_peak")
            peak = f", {share:.2f} of the matrix-product peak" if share is not None else ""
            print(f"    {row['plan']}, {row['mebibytes_per_run']:.1f} MiB per run{peak}")


def main(question: str, workloads: Callable[[bool], Sequence[Workload]]) -> None:
    """Command line of one page: ``workloads(smoke)`` are measured one after the other."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round: does it work at all?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="measure only workloads whose title holds this")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}, {jax.device_count()} device(s)")
    if torch is None:
        print("PyTorch is not installed: its rows are left out (pip install 'jaxaudit[bench]')")
    else:
        print(f"PyTorch {torch.__version__}, {pytorch_ways.describe()}")
    results = []
    for work in workloads(arguments.smoke):
        if arguments.only not in work.title:
            continue
        candidates = ways(work)
        measured = time_side_by_side(candidates, 1 if arguments.smoke else arguments.rounds)
        results.append(report(work, candidates, *measured))
        show(results[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))
