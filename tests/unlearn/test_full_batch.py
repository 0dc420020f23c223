import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import TrainingRun, TrainingShared, take_batch
from jaxaudit.unlearn.full_batch import descend, full_batch_training, full_batch_update, start_full_batch
from tests.unlearn import test_common as battery


def least_squares(params, examples):
    """Weighted mean of half the squared errors of a linear model."""
    errors = examples.x @ params - examples.y
    return jnp.sum(examples.weights * errors**2) / 2 / jnp.maximum(jnp.sum(examples.weights), 1)


def problem(size=10, features=3, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(size, features)), rng.normal(size=size)
    return Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.ones(size))


def closed_form(examples, start, learning_rate, num_steps):
    """Gradient descent on a quadratic: theta_t = theta* + (I - eta H)^t (theta_0 - theta*)."""
    kept = np.asarray(examples.weights) > 0
    x, y = np.asarray(examples.x, float)[kept], np.asarray(examples.y, float)[kept]
    hessian, best = x.T @ x / len(x), np.linalg.lstsq(x, y)[0]
    shrink = np.linalg.matrix_power(np.eye(len(hessian)) - learning_rate * hessian, num_steps)
    return best + shrink @ (np.asarray(start, float) - best)


def train(examples, members, micro_batch, num_steps, learning_rate=0.2, start=None):
    """The parameters after every update of the loop."""
    loop = full_batch_training(
        least_squares,
        learning_rate=learning_rate,
        num_steps=num_steps,
        num_members=len(members),
        micro_batch=micro_batch,
    )
    run = TrainingRun(jnp.asarray(members), jax.random.key(0))
    shared = TrainingShared(examples, jnp.ones(examples.x.shape[1]) if start is None else start)
    state = loop.init(run, shared)
    body, params = jax.jit(loop.body), [state.params]
    for step in range(loop.num_steps):
        state = body(step, state, run, shared)
        params.append(state.params)
    return np.array(params)


@pytest.mark.parametrize("micro_batch", [1, 3, 4, 7, 100])
def test_accumulation_equals_the_closed_form_whatever_the_mini_batch(micro_batch):
    examples, members = problem(), [4, 9, 1, 0, 7, 5, 2]
    params = train(examples, members, micro_batch, num_steps=5)
    used = jax.tree.map(lambda leaf: leaf[jnp.asarray(members)], examples)
    np.testing.assert_allclose(params[-1], closed_form(used, np.ones(3), 0.2, 5), rtol=1e-5)


def test_parameters_move_at_the_last_mini_batch_of_a_pass_only():
    params = train(problem(), list(range(7)), micro_batch=3, num_steps=4)
    moved = (np.diff(params, axis=0) != 0).any(axis=1)
    assert moved.tolist() == [False, False, True] * 4


def test_each_checkpoint_is_a_shorter_training():
    """Rewinding K steps is going back K passes of updates."""
    members = list(range(7))
    long, short = (train(problem(), members, 3, num_steps=number) for number in (6, 4))
    assert (long[-1 - 2 * 3] == short[-1]).all()


def test_weights_make_an_exact_mean():
    """Padding of unequal groups, also in a mini-batch that is all padding, and whatever it holds."""
    examples = problem()
    weights = jnp.array([1.0, 0, 1, 1, 0, 0, 1, 0, 1, 1])  # the second mini-batch of three holds one example
    padded = examples._replace(weights=weights, x=jnp.where(weights[:, None] > 0, examples.x, 1e3))
    expected = closed_form(padded, np.ones(3), 0.2, 5)
    for micro_batch in (1, 3, 10):
        got = train(padded, list(range(10)), micro_batch, num_steps=5)[-1]
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_no_example_at_all_moves_nothing():
    examples = problem()._replace(weights=jnp.zeros(10))
    params = train(examples, list(range(10)), 4, num_steps=2)
    assert (params == 1).all()


def test_a_network_takes_the_full_gradient_step():
    pool, params = battery.POOL, battery.trained_model().params
    update = jax.jit(full_batch_update(battery.LOSS, descend(0.5), 4))
    state = start_full_batch(params)
    for step in range(4):
        state, _ = update(jax.random.key(step), state, take_batch(pool, jnp.arange(16), step, 4))
    gradient = jax.grad(battery.LOSS)(params, pool)
    expected = jax.tree.map(lambda p, g: p - 0.5 * g, params, gradient)
    assert battery.largest_difference(state.params, expected) < 1e-6
    assert (int(state.position), float(state.weight_sum)) == (0, 0.0)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(state.gradient_sum))


def test_the_loop_is_deterministic_and_counts_its_updates():
    loop = full_batch_training(
        least_squares, learning_rate=0.1, num_steps=40, num_members=1247, micro_batch=128
    )
    assert loop.deterministic
    assert loop.num_steps == 40 * 10


@pytest.mark.parametrize(
    ("name", "value"),
    [("learning_rate", 0.0), ("num_steps", -1), ("num_members", 0), ("micro_batch", 0), ("micro_batch", -3)],
)
def test_bad_settings(name, value):
    settings = {"learning_rate": 0.1, "num_steps": 1, "num_members": 5, "micro_batch": 2, name: value}
    with pytest.raises(InputError, match=name):
        full_batch_training(least_squares, **settings)
