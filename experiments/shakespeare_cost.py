"""What the Shakespeare experiment costs, from its sizes alone: ``--dry-run``."""

from typing import NamedTuple

import jax
from shakespeare_presets import Preset, methods_of

from jaxaudit.data import AuditData
from jaxaudit.runs import measured_matmul_peak
from jaxaudit.unlearn import as_stages

_EMBEDDING, _LAYERS = 8, 2
_SHARE = 0.15
"""Share of the matrix-product peak that small recurrent networks reach on 2 CPU cores (`benchmarks/lstm.py`)."""


class Cost(NamedTuple):
    """Of one computation, in all runs together."""

    name: str
    updates: int
    """Per run."""
    gradients: float
    """Gradients of one window."""
    flops: float


def flops_per_gradient(preset: Preset) -> float:
    """Floating-point operations of the gradient of one window: three times a pass forward."""
    hidden, window = preset.hidden, preset.text["window"]
    vocabulary = preset.text.get("vocabulary_size", 100)
    cells = 4 * hidden * (_EMBEDDING + hidden) + (_LAYERS - 1) * 4 * hidden * 2 * hidden
    return 3 * 2 * window * float(cells + hidden * vocabulary)


def costs(preset: Preset, data: AuditData) -> list[Cost]:
    """Of training and of every method; scores are cheap."""
    runs = preset.design.num_calibration_runs + preset.design.num_audit_runs
    flops = flops_per_gradient(preset)
    members = data.num_retain + data.num_groups // 2 * data.group_size
    updates = preset.training.num_updates(members)
    work = {"training": (updates, float(updates * preset.training.batch_size))}
    for name, recipe in methods_of(preset, data).items():
        stages = as_stages(recipe.method)
        work[name] = (sum(stage.num_updates for stage in stages.stages), stages.cost)
    return [
        Cost(name, number, runs * gradients, runs * gradients * flops)
        for name, (number, gradients) in work.items()
    ]


def dry_run(preset: Preset, data: AuditData) -> str:
    """Runs, updates, FLOPs, memory and the estimated time here, as text."""
    found = costs(preset, data)
    runs = preset.design.num_calibration_runs + preset.design.num_audit_runs
    rate = _SHARE * measured_matmul_peak()
    total = sum(one.flops for one in found)
    lines = [f"{'':<18}{'updates':>10}{'gradients':>12}{'TFLOP':>14}{'time here':>16}"]
    lines += [
        f"{one.name:<18}{one.updates:>10,}{one.gradients:>12.2g}{one.flops / 1e12:>14,.2f}"
        f"{_time(one.flops / rate):>16}"
        for one in found
    ]
    params = jax.eval_shape(preset.model.init_fn, jax.random.key(0))
    model_bytes = 4 * sum(leaf.size for leaf in jax.tree.leaves(params))
    pool_bytes = sum(leaf.nbytes for leaf in data.pool)
    lines += [
        data.description,
        f"{runs} runs ({preset.design.num_calibration_runs} to calibrate), each on {data.num_retain:,} retain windows "
        f"and {data.num_groups // 2} of {data.num_groups} chunks of up to {data.group_size} windows",
        f"in all {total / 1e12:,.1f} TFLOP, about {_time(total / rate)} here, at {_SHARE:.0%} of the peak of a matrix "
        f"product ({rate / _SHARE / 1e9:,.0f} GFLOP/s, {jax.default_backend()}); nothing in the store is subtracted",
        f"memory: {pool_bytes / 2**20:,.1f} MiB of windows, {model_bytes / 2**20:,.2f} MiB per model, "
        f"{runs * model_bytes / 2**20:,.1f} MiB for the trained models; as many runs at once as fit 2 GiB",
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"
