import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.data import Examples
from jaxaudit.models import mlp
from jaxaudit.runs import run_loops
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop
from jaxaudit.unlearn import exact_retraining, no_unlearning
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop

MODEL = mlp((4,), 3, hidden=(8,))
LOSS = cross_entropy_loss(MODEL.logits_fn)
SPEC = SgdSpec(3, 0.2, batch_size=4)


def make_shared(size=14):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(size, 4)), jnp.float32)
    pool = Examples(x, jnp.asarray(rng.integers(0, 3, size), jnp.int32), jnp.ones(size))
    return SharedInput(pool, jnp.array([5, 2, 9, 0, 1, 7, 3, 4, 8, 6]), MODEL.init_fn(jax.random.key(0)))


def retrain(shared, runs=3):
    num_updates = SPEC.num_updates(10)
    method = exact_retraining(
        LOSS, optimizer=SPEC.optimizer(num_updates), num_updates=num_updates, batch_size=SPEC.batch_size
    )
    trained = jax.tree.map(
        lambda leaf: leaf + jnp.arange(runs).reshape(-1, *[1] * leaf.ndim), shared.initial_params
    )
    run = RunInput(jax.random.split(jax.random.key(1), runs), trained, jnp.arange(10, 10 + runs)[:, None])
    return run_loops(stage_loop(method), run, shared)[0].params


def test_result_is_bit_identical_whatever_was_trained_and_forgotten():
    for leaf in jax.tree.leaves(retrain(make_shared())):
        np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape))


def test_is_base_training_on_the_retain_set():
    shared = make_shared()
    loop = training_loop(LOSS, SPEC, 10)
    run = TrainingRun(shared.retain[None], jax.random.split(jax.random.key(0), 1))
    base, _ = run_loops(loop, run, TrainingShared(shared.pool, shared.initial_params))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b[0], atol=1e-6), retrain(shared), base.params)


def test_no_unlearning_changes_nothing():
    shared = make_shared()
    params = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 1]), shared.initial_params)
    run = RunInput(jax.random.split(jax.random.key(1), 2), params, jnp.array([[10], [11]]))
    result, stats = run_loops(stage_loop(no_unlearning()), run, shared)
    jax.tree.map(np.testing.assert_array_equal, result.params, params)
    assert stats.num_steps == 0
