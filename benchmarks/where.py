"""Where does the time of a training step go, by kind of operation?

python benchmarks/where.py
"""

import argparse
import gzip
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import jax
import lstm
import mlp
import tinynet
from common import Workload

from jaxaudit.runs import profile, run_loops
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, training_loop

# XLA hands matrix products over to a library (YNNPACK: "ynn"), with the sums and the arithmetic around them.
KINDS = {
    "matrix products": r"dot|ynn|gemm|matmul|custom-call",
    "convolutions": r"conv(?!ert)",
    "moving data (and what is fused into that)": r"copy|slice|concat|pad|gather|scatter|transpose|bitcast|reshape",
    "sums": r"reduce",
    "other elementwise": r"fusion|add|multiply|tanh|logistic|broadcast|select|compare|maximum|exponential",
}


def kind_of(operation: str) -> str | None:
    """The first kind whose pattern the operation's name has; ``None`` for loops and calls, which hold others."""
    if re.match(r"(while|call|conditional|body|condition|region|tuple|parameter|get-tuple)", operation):
        return None
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, operation)), "other")


def operations(folder: Path) -> Counter[str]:
    """Microseconds by operation, of XLA's events in the newest trace."""
    (path,) = folder.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    found: Counter[str] = Counter()
    for event in events:
        if "hlo_op" in event.get("args", {}):
            found[event["args"]["hlo_op"]] += event["dur"]
    return found


def measure(work: Workload) -> Counter[str]:
    """Share of every kind in the operations of jaxaudit's way, the compilation and a first round aside."""
    spec = SgdSpec(work.epochs, work.learning_rate, work.learning_rate, work.batch_size)
    loop = training_loop(work.make_loss(work.model.logits_fn), spec, work.num_members)
    runs = TrainingRun(work.members(), jax.random.split(jax.random.key(1), work.num_runs))
    shared = TrainingShared(work.pool, work.initial_params())
    run_loops(loop, runs, shared)
    with tempfile.TemporaryDirectory() as folder:
        with profile(folder):
            run_loops(loop, runs, shared)
        found = operations(Path(folder))
    kinds: Counter[str] = Counter()
    for operation, microseconds in found.items():
        kind = kind_of(operation)
        if kind is not None:
            kinds[kind] += microseconds
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--only", default="", help="measure only workloads whose title holds this")
    parser.add_argument("--json", type=Path, help="also write the microseconds to this file")
    arguments = parser.parse_args()
    results = {}
    for page in (mlp, lstm, tinynet):
        for work in page.workloads(arguments.smoke):
            if arguments.only not in work.title:
                continue
            kinds = results[work.title] = measure(work)
            total = max(sum(kinds.values()), 1)
            shares = ", ".join(f"{kind} {100 * time / total:.0f} %" for kind, time in kinds.most_common())
            print(f"{work.title}: {shares}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
