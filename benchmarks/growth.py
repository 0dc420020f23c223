"""What do more runs cost: time per run, compilation, memory?

python benchmarks/growth.py
"""

import argparse
import json
import statistics
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

from jaxaudit.data import Examples
from jaxaudit.models import mlp
from jaxaudit.runs import measured_matmul_peak, run_loops
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop


def measure(num_runs: int, epochs: int, rounds: int) -> dict[str, float]:
    """Training of the digits network, 1,247 examples and batches of 64 per run."""
    x, y = load_digits(return_X_y=True)
    pool = Examples(jnp.asarray(x / 16, jnp.float32), jnp.asarray(y), jnp.ones(len(y)))
    rng, model = np.random.default_rng(0), mlp((64,), 10)
    members = jnp.asarray(np.stack([rng.permutation(len(y))[:1247] for _ in range(num_runs)]))
    runs = TrainingRun(members, jax.random.split(jax.random.key(1), num_runs))
    shared = TrainingShared(pool, model.init_fn(jax.random.key(0)))
    loop = training_loop(cross_entropy_loss(model.logits_fn), SgdSpec(epochs, 0.1), 1247)
    _, first = run_loops(loop, runs, shared)
    seconds = statistics.median(run_loops(loop, runs, shared)[1].seconds for _ in range(rounds))
    return {
        "runs": num_runs,
        "seconds": seconds,
        "milliseconds_per_run": 1e3 * seconds / num_runs,
        "compile_seconds": first.compile_seconds,
        "mebibytes": first.program_bytes / 2**20,
        "share_of_matmul_peak": (first.flops or 0.0) / seconds / measured_matmul_peak(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    counts, epochs = ((1, 2), 1) if arguments.smoke else ((1, 4, 16, 64, 256), 10)
    print(
        f"JAX {jax.__version__} on {jax.devices()[0].device_kind}; digits MLP, {epochs} epochs of 20 updates"
    )
    print(f"{'runs':>6}{'seconds':>10}{'ms per run':>12}{'compile':>10}{'MiB':>9}{'share of peak':>15}")
    rows = []
    for num_runs in counts:
        row = measure(num_runs, epochs, arguments.rounds)
        rows.append(row)
        print(
            f"{num_runs:6}{row['seconds']:10.3f}{row['milliseconds_per_run']:12.1f}{row['compile_seconds']:8.1f} s"
            f"{row['mebibytes']:9.1f}{row['share_of_matmul_peak']:15.2f}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
