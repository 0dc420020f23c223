"""The battery that every unlearner of the registry passes before its own tests."""

from functools import lru_cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.models import mlp
from jaxaudit.models.softmax_regression import ridge_cross_entropy, softmax_regression
from jaxaudit.runs import run_loops
from jaxaudit.train import SgdSpec, cross_entropy_loss, take_batch
from jaxaudit.unlearn import (
    METHODS,
    Batch,
    MethodEntry,
    Problem,
    Recipe,
    Stages,
    Trained,
    UnlearningSpec,
    apply,
    as_stages,
    release_noise,
    repeat,
    then,
)
from jaxaudit.unlearn.clipping import ClippingSpec
from jaxaudit.unlearn.dampening import DampeningSpec
from jaxaudit.unlearn.descent_to_delete import DescentToDeleteSpec
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.gradient_difference import GradientDifferenceSpec
from jaxaudit.unlearn.hessian import HessianSpec
from jaxaudit.unlearn.interleaved import InterleavedSpec
from jaxaudit.unlearn.langevin import LangevinSpec
from jaxaudit.unlearn.newton import NewtonSpec
from jaxaudit.unlearn.output_perturbation import OutputPerturbationSpec
from jaxaudit.unlearn.random_labels import RandomLabelsSpec
from jaxaudit.unlearn.rewind import RewindSpec
from jaxaudit.unlearn.scrub import ScrubSpec

NUM_RETAIN, NUM_FORGET, BATCH, L2 = 11, 5, 4, 1.0


def sgd(epochs, learning_rate, **others):
    return SgdSpec(epochs, learning_rate, batch_size=BATCH, **others)


SPEC = UnlearningSpec(
    finetune=sgd(2, 0.1),
    ascent=sgd(1, 0.05, schedule="constant"),
    interleaved=InterleavedSpec(sgd=sgd(2, 0.1, schedule="constant")),
    difference=GradientDifferenceSpec(sgd=sgd(2, 0.1)),
    random_labels=RandomLabelsSpec(sgd=sgd(2, 0.1)),
    scrub=ScrubSpec(ascent=sgd(1, 0.05, clip_norm=1.0), descent=sgd(3, 0.1)),
    hessian=HessianSpec(num_recursions=2, depth=3, batch_size=BATCH, num_eigenvalue_updates=2),
    dampening=DampeningSpec(threshold=0.5, batch_size=BATCH),
    clipping=ClippingSpec(num_noisy_updates=3, batch_size=BATCH),
    clipping_finetune=sgd(1, 0.1),
    uncertified_clipping=ClippingSpec(radius=5.0, sigma=1e-4, batch_size=BATCH),
    uncertified_epochs=1,
    rewind=RewindSpec(num_steps=4, num_rewound=2, micro_batch=BATCH),
    l2=L2,
    newton=NewtonSpec(epsilon=10.0, batch_size=BATCH),
    output_perturbation=OutputPerturbationSpec(epsilon=10.0),
    descent_to_delete=DescentToDeleteSpec(unlearning_steps=2, batch_size=BATCH),
    langevin=LangevinSpec(unlearning_steps=2, batch_size=BATCH),
)
MODEL = mlp((3,), 4, hidden=(5,))
LOSS = cross_entropy_loss(MODEL.logits_fn)
PROBLEM = Problem(
    loss_fn=LOSS,
    logits_fn=MODEL.logits_fn,
    num_classes=4,
    training=sgd(2, 0.2),
    spec=SPEC,
    num_retain=NUM_RETAIN,
    num_forget=NUM_FORGET,
)
CONVEX_MODEL, CONSTANTS = softmax_regression((3,), 4, L2)
CONVEX_PROBLEM = PROBLEM._replace(
    loss_fn=ridge_cross_entropy(CONVEX_MODEL.logits_fn, L2),
    logits_fn=CONVEX_MODEL.logits_fn,
    constants=CONSTANTS,
)


def problem_of(entry):
    return CONVEX_PROBLEM if entry.suites == ("convex",) else PROBLEM


COMPOSITIONS = [
    MethodEntry(
        "release-noise", "", "", "", lambda problem: Recipe(release_noise(sigma=0.1)), frozenset(), noisy=True
    ),
    MethodEntry(
        "finetune-and-noise",
        "",
        "",
        "",
        lambda problem: Recipe(
            then(METHODS["retain-finetune"].build(problem).method, repeat(release_noise(sigma=0.1), 2))
        ),
        frozenset({"retain"}),
        noisy=True,
    ),
]
ENTRIES = [*METHODS.values(), *COMPOSITIONS]
entries = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


def make_pool(seed=0):
    rng = np.random.default_rng(seed)
    size = NUM_RETAIN + NUM_FORGET
    x = jnp.asarray(rng.normal(size=(size, 3)), jnp.float32)
    return Examples(x, jnp.asarray(rng.integers(0, 4, size), jnp.int32), jnp.ones(size))


POOL = make_pool()
RETAIN, FORGET = jnp.arange(NUM_RETAIN), NUM_RETAIN + jnp.arange(NUM_FORGET)


def trained_model(seed=1, entry=COMPOSITIONS[0]):
    """Parameters, x0 and checkpoint that have nothing in common."""
    keys = [jax.random.key(number) for number in (seed, 99, 98)]
    if problem_of(entry) is CONVEX_PROBLEM:  # its own start is 0
        return Trained(*(0.1 * jax.random.normal(key, (4, 4)) for key in keys))
    return Trained(*map(MODEL.init_fn, keys))


def batch_at(step, pool=POOL):
    return Batch(retain=take_batch(pool, RETAIN, step, BATCH), forget=take_batch(pool, FORGET, step, BATCH))


def stages_of(entry):
    return as_stages(entry.build(problem_of(entry)).method).stages


def starts_of(entry):
    """Every stage, with what the stages before it (two updates each) left behind."""
    trained = trained_model(entry=entry)
    for stage in stages_of(entry):
        yield stage, trained
        state = jitted(stage.init)(jax.random.key(0), trained)
        for step in range(min(stage.num_updates, 2)):
            state, _ = jitted(stage.update)(jax.random.key(step + 1), state, batch_at(step))
        trained = trained._replace(params=state.params, previous=state)


jitted = lru_cache(maxsize=None)(jax.jit)
"""One compilation for all tests; that nothing is lost by it is a test of its own."""


def largest_difference(left, right):
    return max(float(abs(a - b).max()) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right)))


def unlearn_in_loop(entry, key, trained, pool=POOL):
    stages = (
        stage._replace(init=jitted(stage.init), update=jitted(stage.update)) for stage in stages_of(entry)
    )
    return apply(Stages(tuple(stages)), key, trained, lambda step: batch_at(step, pool))


def one_by_one(loop, runs, shared):
    """What `run_loops` does, one run after the other."""
    results = []
    for index in range(len(runs.key)):
        run = jax.tree.map(lambda leaf, i=index: leaf[i], runs)
        state = jitted(loop.init)(run, shared)
        for step in range(loop.num_steps):
            state = jitted(loop.body)(step, state, run, shared)
        results.append(state)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


def unlearn_many(entry, keys, models, carry_out):
    """All stages of several runs, each stage carried out by ``carry_out(loop, runs, shared) -> states``."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
    shared = SharedInput(POOL, RETAIN, models[0].initial_params)
    params, state = stacked.params, None
    for index, stage in enumerate(stages_of(entry)):
        stage_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, index)
        forget = jnp.tile(FORGET, (len(keys), 1))
        runs = RunInput(stage_keys, params, forget, stacked.checkpoint, state if stage.continues else None)
        state = carry_out(stage_loop(stage), runs, shared)
        params = state.params
    return params


@entries
def test_jit_equals_eager(entry):
    key = jax.random.key(0)
    for stage, trained in starts_of(entry):
        eager = stage.update(key, stage.init(key, trained), batch_at(0))
        jitted = jax.jit(stage.update)(key, jax.jit(stage.init)(key, trained), batch_at(0))
        assert largest_difference(eager[0].params, jitted[0].params) < 1e-6
        assert jax.tree.structure(eager) == jax.tree.structure(jitted)


@entries
def test_run_axis_equals_one_by_one(entry):
    keys = jax.random.split(jax.random.key(3), 3)
    models = [trained_model(seed, entry) for seed in (1, 2, 3)]
    many = unlearn_many(entry, keys, models, lambda *args: run_loops(*args)[0])
    single = unlearn_many(entry, keys, models, one_by_one)
    assert largest_difference(many, single) < 1e-5


@entries
def test_run_axis_equals_the_plain_loop(entry):
    if any(stage.sampling == "random" for stage in stages_of(entry)):
        return  # the driver draws the batches, the plain loop is handed them
    keys = jax.random.split(jax.random.key(3), 2)
    models = [trained_model(seed, entry) for seed in (1, 2)]
    many = unlearn_many(entry, keys, models, one_by_one)
    for run, (key, model) in enumerate(zip(keys, models)):
        single = unlearn_in_loop(entry, key, model)
        assert largest_difference(jax.tree.map(lambda leaf, i=run: leaf[i], many), single) < 1e-5


@entries
def test_same_key_gives_the_same_bits(entry):
    key = jax.random.key(4)
    first, second = (unlearn_in_loop(entry, key, trained_model(entry=entry)) for _ in range(2))
    chex.assert_trees_all_equal(first, second)


@entries
def test_another_key_changes_the_result_exactly_if_the_method_is_noisy(entry):
    one, other = (unlearn_in_loop(entry, jax.random.key(seed), trained_model(entry=entry)) for seed in (5, 6))
    assert (largest_difference(one, other) > 0) == entry.noisy


@entries
def test_state_keeps_structure_shapes_and_types(entry):
    key = jax.random.key(0)
    for stage, trained in starts_of(entry):
        state = jitted(stage.init)(key, trained)
        after, info = jitted(stage.update)(key, state, batch_at(0))
        assert state._fields[0] == "params"
        assert jax.tree.structure(state) == jax.tree.structure(after)
        for before, later in zip(jax.tree.leaves(state), jax.tree.leaves(after)):
            assert (jnp.shape(before), jnp.asarray(before).dtype) == (later.shape, later.dtype)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(info))


@entries
def test_one_trace_serves_all_updates(entry):
    for stage, trained in starts_of(entry):
        traces = []

        def update(key, state, batch, stage=stage, traces=traces):
            traces.append(1)
            return stage.update(key, state, batch)[0]

        jitted, state = jax.jit(update), stage.init(jax.random.key(0), trained)
        for step in range(3):
            state = jitted(jax.random.key(step), state, batch_at(step))
        assert len(traces) == 1


@entries
def test_zero_updates_leave_the_model_where_the_method_says_it_starts(entry):
    starts = {"trained": "params", "initial": "initial_params", "checkpoint": "checkpoint"}
    for number, (stage, trained) in enumerate(starts_of(entry)):
        start = stage.init(jax.random.key(0), trained).params
        source = starts[entry.starts_from] if number == 0 else "params"
        chex.assert_trees_all_equal(start, getattr(trained, source))


@entries
@pytest.mark.parametrize("part", ["retain", "forget"])
def test_only_declared_data_changes_the_result(entry, part):
    rows = RETAIN if part == "retain" else FORGET
    changed = POOL._replace(x=POOL.x.at[rows].add(1.0))
    key, trained = jax.random.key(0), trained_model(entry=entry)
    moved = largest_difference(
        unlearn_in_loop(entry, key, trained), unlearn_in_loop(entry, key, trained, changed)
    )
    assert (moved > 0) == (part in entry.reads)


@entries
def test_padding_never_counts(entry):
    """Examples of weight 0 may hold anything."""
    key = jax.random.key(0)
    for stage, trained in starts_of(entry):
        state, update = jitted(stage.init)(key, trained), jitted(stage.update)
        plain = batch_at(0)
        masked = jax.tree.map(lambda leaf: leaf, plain)
        masked = Batch(*(part._replace(weights=part.weights.at[-1].set(0.0)) for part in masked))
        garbage = Batch(*(part._replace(x=part.x.at[-1].set(1e3)) for part in masked))
        chex.assert_trees_all_equal(
            update(key, state, masked)[0].params, update(key, state, garbage)[0].params
        )


def plain_descent(params, spec, num_examples, rows, sign=1.0):
    """The optimiser by itself, on batches cut by hand."""
    num_updates = spec.epochs * -(-num_examples // BATCH)
    end = spec.learning_rate if spec.schedule == "constant" else spec.end_learning_rate
    optimizer = optax.sgd(optax.linear_schedule(spec.learning_rate, end, num_updates))
    state = optimizer.init(params)
    for _ in range(spec.epochs):
        for start in range(0, num_examples, BATCH):
            batch = jax.tree.map(lambda leaf, i=rows[start : start + BATCH]: leaf[i], POOL)
            updates, state = optimizer.update(
                jax.tree.map(lambda g: sign * g, jax.grad(LOSS)(params, batch)), state
            )
            params = optax.apply_updates(params, updates)
    return params


def test_methods_are_the_plain_optimiser_on_their_data():
    trained = trained_model()
    finetuned = plain_descent(trained.params, PROBLEM.spec.finetune, NUM_RETAIN, RETAIN)
    retrained = plain_descent(trained.initial_params, PROBLEM.training, NUM_RETAIN, RETAIN)
    climbed = plain_descent(trained.params, PROBLEM.spec.ascent, NUM_FORGET, FORGET, sign=-1.0)
    ascent = plain_descent(climbed, PROBLEM.spec.finetune, NUM_RETAIN, RETAIN)
    expected = {
        "none": trained.params,
        "retain-finetune": finetuned,
        "ascent": ascent,
        "retrain": retrained,
    }
    for name, params in expected.items():
        got = unlearn_in_loop(METHODS[name], jax.random.key(0), trained)
        assert largest_difference(got, params) < 1e-6, name


def test_keys_are_never_reused():
    with jax.debug_key_reuse(True):
        for entry in ENTRIES:
            unlearn_in_loop(entry, jax.random.key(0), trained_model(entry=entry))
