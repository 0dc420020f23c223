import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.schedules import make_schedule
from jaxaudit.train import (
    SgdSpec,
    TrainingRun,
    TrainingShared,
    cross_entropy_loss,
    num_batches,
    take_batch,
    training_loop,
)


def make_pool(size=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size)
    x = np.eye(3)[y] + 0.7 * rng.normal(size=(size, 3))
    return Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32), jnp.ones(size))


def linear(params, x):
    return x @ params["w"] + params["b"]


def train(loop, members, pool, initial_params):
    runs = TrainingRun(jnp.asarray(members), jax.random.split(jax.random.key(0), len(members)))
    return run_loops(loop, runs, TrainingShared(pool, initial_params))[0].params


X0 = {"w": jnp.zeros((3, 3)), "b": jnp.zeros(3)}


def test_an_epoch_reads_every_member_once_in_its_order():
    pool, members = make_pool(), jnp.array([7, 3, 11, 0, 20, 5, 1])
    batches = [take_batch(pool, members, step, 3) for step in range(3)]
    x = np.concatenate([batch.x[np.asarray(batch.weights) > 0] for batch in batches])
    np.testing.assert_array_equal(x, pool.x[members])
    assert sum(float(batch.weights.sum()) for batch in batches) == 7
    np.testing.assert_array_equal(take_batch(pool, members, 3, 3).x, batches[0].x)


def test_padding_of_the_pool_stays_padding():
    pool = make_pool()._replace(weights=jnp.ones(30).at[4].set(0.0))
    assert take_batch(pool, jnp.array([4, 5]), 0, 2).weights.tolist() == [0.0, 1.0]


def test_loss_is_the_weighted_mean():
    pool = make_pool(6)
    params = {"w": jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)), jnp.float32), "b": jnp.zeros(3)}
    loss = cross_entropy_loss(linear)
    half = pool._replace(weights=jnp.array([1.0, 1, 1, 0, 0, 0]))
    first = jax.tree.map(lambda leaf: leaf[:3], pool)
    assert float(loss(params, half)) == pytest.approx(float(loss(params, first)), rel=1e-6)
    assert float(loss(params, pool._replace(weights=jnp.zeros(6)))) == 0.0


def test_training_finds_the_optimum_of_a_convex_problem():
    """Full-batch descent on logistic regression reaches scikit-learn's solution."""
    pool = make_pool(200)
    spec = SgdSpec(epochs=3000, learning_rate=1.0, end_learning_rate=1.0, batch_size=200)
    params = train(training_loop(cross_entropy_loss(linear), spec, 200), jnp.arange(200)[None], pool, X0)
    oracle = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(np.asarray(pool.x), np.asarray(pool.y))
    ours = linear(jax.tree.map(lambda leaf: leaf[0], params), pool.x)
    probabilities = jax.nn.softmax(ours)
    np.testing.assert_allclose(probabilities, oracle.predict_proba(np.asarray(pool.x)), atol=2e-3)


def test_equal_members_give_equal_models_and_others_do_not():
    pool = make_pool()
    members = jnp.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 5]])
    loop = training_loop(cross_entropy_loss(linear), SgdSpec(4, 0.1, batch_size=2), 5)
    weights = np.asarray(train(loop, members, pool, X0)["w"])
    np.testing.assert_array_equal(weights[0], weights[1])
    assert abs(weights[0] - weights[2]).max() > 1e-4


def test_learning_rate_falls_linearly_to_its_end():
    """With gradient 1 everywhere the parameters fall by the sum of the learning rates."""
    pool = make_pool(4)
    spec = SgdSpec(epochs=5, learning_rate=0.5, end_learning_rate=0.0, batch_size=4)
    loop = training_loop(lambda params, examples: params, spec, 4)
    params = train(loop, jnp.arange(4)[None], pool, jnp.zeros(()))
    assert float(params[0]) == pytest.approx(-sum(0.5 * (1 - k / 5) for k in range(5)), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": -1}, "epochs must be an integer of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"end_learning_rate": -0.1}, "end_learning_rate not negative"),
        ({"learning_rate": float("inf")}, "learning_rate must be positive"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1.0"),
        ({"schedule": "step"}, "schedule must be one of linear, one-cycle, cosine, constant, got 'step'"),
        (
            {"schedule": "constant", "end_learning_rate": 0.2},
            "end_learning_rate must be 0 .* constant, got 0.2",
        ),
        ({"schedule": "one-cycle", "end_learning_rate": 0.1}, "end_learning_rate must be 0 .* one-cycle"),
        ({"weight_decay": -0.1}, "weight_decay must not be negative, got -0.1"),
        ({"weight_decay": float("nan")}, "weight_decay must not be negative, got nan"),
        ({"clip_norm": 0.0}, "clip_norm must be positive or None, got 0.0"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        SgdSpec(**{"epochs": 1, "learning_rate": 0.1, **change})


def descend(spec, gradients, params):
    """Updates with given gradients."""
    optimizer = spec.optimizer(len(gradients))
    state = optimizer.init(params)
    for gradient in gradients:
        updates, state = optimizer.update(gradient, state, params)
        params = jax.tree.map(jnp.add, params, updates)
    return params


def numpy_descent(gradients, params, rate, momentum, weight_decay, clip_norm):
    """Clip, decay, heavy ball: one vector of all parameters, in float64."""
    velocity = np.zeros_like(params)
    for gradient in gradients:
        norm = np.linalg.norm(gradient)
        clipped = gradient * min(1.0, clip_norm / norm)
        velocity = momentum * velocity + clipped + weight_decay * params
        params = params - rate * velocity
    return params


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.2])
@pytest.mark.parametrize("clip_norm", [None, 1.5])
def test_the_optimiser_is_the_formula(momentum, weight_decay, clip_norm):
    rng = np.random.default_rng(3)
    start, gradients = rng.normal(size=8), rng.normal(size=(5, 8))

    def tree(vector):
        return {"w": jnp.asarray(vector[:6].reshape(3, 2)), "b": jnp.asarray(vector[6:])}

    settings = {"momentum": momentum, "weight_decay": weight_decay, "clip_norm": clip_norm}
    spec = SgdSpec(1, 0.3, schedule="constant", **settings)
    ours = descend(spec, [tree(gradient) for gradient in gradients], tree(start))
    settings["clip_norm"] = clip_norm or np.inf
    expected = numpy_descent(gradients, start, 0.3, **settings)
    np.testing.assert_allclose(np.concatenate([ours["w"].ravel(), ours["b"]]), expected, rtol=1e-5, atol=1e-6)


def test_clipping_shortens_long_gradients_only():
    spec = SgdSpec(1, 1.0, schedule="constant", clip_norm=5.0)
    for gradient, step in (((3.0, 4.0), (3.0, 4.0)), ((6.0, 8.0), (3.0, 4.0)), ((0.0, 0.0), (0.0, 0.0))):
        moved = descend(spec, [jnp.array(gradient)], jnp.zeros(2))
        np.testing.assert_allclose(-moved, step, rtol=1e-6)


def test_weight_decay_alone_shrinks_every_parameter_by_the_closed_form():
    spec = SgdSpec(1, 0.5, schedule="constant", weight_decay=0.2)
    params = {"w": jnp.ones((2, 2)), "b": jnp.full(2, 3.0)}
    zero = jax.tree.map(jnp.zeros_like, params)
    shrunk = descend(spec, [zero] * 4, params)
    np.testing.assert_allclose(shrunk["w"], np.full((2, 2), 0.9**4), rtol=1e-6)
    np.testing.assert_allclose(shrunk["b"], np.full(2, 3 * 0.9**4), rtol=1e-6)


@pytest.mark.parametrize("schedule", ["linear", "one-cycle", "cosine", "constant"])
def test_the_schedule_runs_over_all_epochs(schedule):
    """With gradient 1 everywhere the parameters fall by the sum of the learning rates."""
    spec = SgdSpec(epochs=5, learning_rate=0.5, batch_size=2, schedule=schedule)
    loop = training_loop(lambda params, examples: params, spec, 4)
    params = train(loop, jnp.arange(4)[None], make_pool(4), jnp.zeros(()))
    rates = make_schedule(schedule, 0.5, 10)
    assert float(params[0]) == pytest.approx(-sum(float(rates(step)) for step in range(10)), rel=1e-5)


@pytest.mark.parametrize("schedule", ["linear", "one-cycle", "cosine", "constant"])
def test_no_epochs_and_one_update_are_trainings_too(schedule):
    for num_updates in (0, 1):
        spec = SgdSpec(epochs=num_updates, learning_rate=0.1, schedule=schedule)
        moved = descend(spec, [jnp.ones(1)] * num_updates, jnp.zeros(1))
        assert np.isfinite(moved).all()
        assert (float(moved[0]) < 0) == (num_updates == 1)


def test_num_batches():
    assert [num_batches(n, 64) for n in (1, 64, 65, 997, 1247)] == [1, 1, 2, 16, 20]
