"""What the experiments would cost, without carrying them out and without data: ``--dry-run``."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from cifar100_jobs import JobKey, design_of, methods_of, network
from cifar100_page import markdown_table
from cifar100_presets import Preset

from jaxaudit.data import Examples
from jaxaudit.models import Model
from jaxaudit.runs import measured_matmul_peak
from jaxaudit.runs.programs import Shapes, step_facts
from jaxaudit.signs import num_sign_vectors
from jaxaudit.train import (
    Loop,
    TrainingRun,
    TrainingShared,
    cross_entropy_loss,
    num_batches,
    training_loop,
)
from jaxaudit.unlearn import as_stages

_DIGITS = (8, 8, 1), 10
_CIFAR100 = (32, 32, 3), 100
_GRADIENT = 3
"""Cost of a gradient, in evaluations."""
_SHARE = 0.25
"""Share of the matrix-product peak that training and evaluating small networks reached on 2 CPU cores."""


class _Cost(NamedTuple):
    """Of one audit."""

    runs: int
    trainings: int
    updates: int
    """Of training, per run."""
    gradients: float
    """Gradients of single images, in all runs together."""


class _Sizes(NamedTuple):
    """Of the whole preset."""

    model: Model
    num_retain: int
    num_evaluated: int
    """Images that every look reads."""
    shape: tuple[int, int, int]


def estimate(preset: Preset, source: str, keys: Sequence[JobKey]) -> str:
    """Runs, updates, FLOPs, memory and estimated time here of some audits, as text."""
    sizes = _sizes(preset, source)
    flops, step_bytes = _of_one_update(preset, sizes)
    peak = measured_matmul_peak()
    costs, known = [], set()
    for key in keys:
        costs.append(_cost(preset, key, sizes, known))
    rows = [
        [
            str(key),
            f"{cost.runs:,}",
            f"{cost.trainings:,}",
            f"{cost.updates:,}",
            f"{cost.gradients:.2g}",
            f"{cost.gradients * flops / 1e12:,.1f}",
            _time(cost.gradients * flops / (peak * _SHARE)),
        ]
        for key, cost in zip(keys, costs)
    ]
    total = sum(cost.gradients for cost in costs) * flops
    header = ["audit", "runs", "models trained", "updates each", "image gradients", "TFLOP", "time here"]
    pool = (sizes.num_retain + preset.num_candidates) * 4 * _size(sizes.shape)
    return "\n".join(
        [
            markdown_table(header, rows),
            "",
            f"in all: {total / 1e12:,.1f} TFLOP, about {_time(total / (peak * _SHARE))} here, at {_SHARE:.0%} of the "
            f"{peak / 1e9:,.0f} GFLOP/s of a matrix product ({jax.default_backend()})",
            f"memory: {pool / 2**20:,.1f} MiB of images, {step_bytes / 2**20:,.1f} MiB of results per training step "
            "of one run; as many runs at once as fit 2 GiB",
            "what is in the store already is not subtracted",
        ]
    )


def _sizes(preset: Preset, source: str) -> _Sizes:
    (height, width, channels), num_classes = _DIGITS if source == "digits" else _CIFAR100
    size = preset.image_size
    shape = (height, width, channels) if size is None else (size, size, channels)
    model = network(preset, shape, min(preset.num_classes or num_classes, num_classes))
    num_train, num_test = preset.num_train or 50_000, preset.num_test or 10_000
    return _Sizes(model, num_train - preset.num_candidates, num_train + num_test, shape)


def _of_one_update(preset: Preset, sizes: _Sizes) -> tuple[float, int]:
    """FLOPs per image and bytes of results of one update of training, from the shapes alone."""
    num_members = sizes.num_retain + preset.num_candidates // 2
    loop = training_loop(cross_entropy_loss(sizes.model.logits_fn), preset.training, num_members)
    facts = step_facts(loop, _shapes(preset, sizes, num_members))
    return (facts.flops or 0.0) / preset.training.batch_size, facts.result_bytes


def _shapes(preset: Preset, sizes: _Sizes, num_members: int) -> Shapes:
    count = sizes.num_retain + preset.num_candidates
    params = jax.eval_shape(sizes.model.init_fn, jax.random.key(0))
    pool = Examples(
        jax.ShapeDtypeStruct((count, *sizes.shape), jnp.float32),
        jax.ShapeDtypeStruct((count,), jnp.int32),
        jax.ShapeDtypeStruct((count,), jnp.float32),
    )
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 1))
    run = TrainingRun(jax.ShapeDtypeStruct((1, num_members), jnp.int32), keys)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), run)
    leaves, structure = jax.tree.flatten((one, TrainingShared(pool, params)))
    return Shapes(structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))


def _cost(preset: Preset, key: JobKey, sizes: _Sizes, known: set[object]) -> _Cost:
    design = design_of(preset, key)
    runs = design.num_calibration_runs + design.num_audit_runs
    recipes = methods_of(preset, key, sizes.model, sizes.num_retain)
    num_members = sizes.num_retain + preset.num_groups(key.group_size) // 2 * key.group_size
    distinct = min(runs, num_sign_vectors(design.num_groups)) if design.num_groups < 30 else runs
    gradients, updates, trainings = 0.0, 0, 0
    for training in dict.fromkeys(recipe.training or preset.training for recipe in recipes.values()):
        own_updates, batch_size = _updates(preset, training, num_members)
        updates += own_updates
        name = (key.split, key.group_size, key.seed, training)
        if name not in known:
            known.add(name)
            trainings += distinct
            gradients += distinct * own_updates * batch_size
    for recipe in recipes.values():
        gradients += (1 if recipe.same_for_all else runs) * as_stages(recipe.method).cost
        gradients += runs * len({*recipe.record_at, None}) * sizes.num_evaluated / _GRADIENT
    return _Cost(runs, trainings, updates, gradients)


def _updates(preset: Preset, training: object, num_members: int) -> tuple[int, int]:
    """Updates and images per update; a loop of its own is that of rewind-to-delete."""
    if isinstance(training, Loop):
        return preset.rewind.num_steps * num_batches(
            num_members, preset.rewind.micro_batch
        ), preset.rewind.micro_batch
    return training.num_updates(num_members), training.batch_size  # type: ignore[attr-defined]


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
