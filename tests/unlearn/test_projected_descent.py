"""Also the convex toy problems that the tests of certified methods share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import kstest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants, ridge_cross_entropy, softmax_regression
from jaxaudit.runs import run_loops
from jaxaudit.train import TrainingRun, TrainingShared, take_batch
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.projected_descent import (
    DescentStep,
    contraction,
    drift,
    forget_share,
    largest_learning_rate,
    minimiser_distance,
    projected_descent,
    projected_descent_training,
    trained_distance,
    training_error,
)

# --- a small softmax regression ---------------------------------------------------------------------------------------

L2, NUM_RETAIN, NUM_FORGET = 0.1, 11, 5
MODEL, CONSTANTS = softmax_regression((3,), 3, L2)
LOSS = ridge_cross_entropy(MODEL.logits_fn, L2)
RATE = largest_learning_rate(CONSTANTS)


def make_pool(seed=0):
    """Forget examples of one class at one place, where they pull most."""
    rng = np.random.default_rng(seed)
    size = NUM_RETAIN + NUM_FORGET
    x, y = 3 * rng.normal(size=(size, 3)), rng.integers(0, 3, size)
    x[NUM_RETAIN:], y[NUM_RETAIN:] = 9.0, 0
    return Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32), jnp.ones(size))


POOL = make_pool()
RETAIN, FORGET = jnp.arange(NUM_RETAIN), NUM_RETAIN + jnp.arange(NUM_FORGET)
ALL = jnp.arange(NUM_RETAIN + NUM_FORGET)
PHI = np.asarray(MODEL.logits_fn(jnp.eye(4), POOL.x), float)


def gradient(flat, rows):
    """Of the mean loss, by hand, in double precision."""
    w, phi = flat.reshape(4, 3), PHI[rows]
    return (phi.T @ (softmax(phi @ w, axis=1) - np.eye(3)[POOL.y[rows]]) / len(phi) + L2 * w).ravel()


def minimiser(rows):
    def value(flat):
        w, phi = flat.reshape(4, 3), PHI[rows]
        logits = phi @ w
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(phi)), POOL.y[rows]]
        return losses.mean() + L2 / 2 * flat @ flat, gradient(flat, rows)

    return minimize(value, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def descend_by_hand(flat, rows, num_steps, step):
    for _ in range(num_steps):
        flat = flat - step.learning_rate * gradient(flat, rows)
        flat = flat * min(1, step.radius / np.linalg.norm(flat))
    return flat


def train_one(loop, members, initial=None, pool=POOL, key=0):
    """The final state of one run."""
    runs = TrainingRun(members[None], jax.random.split(jax.random.key(key), 1))
    start = jnp.zeros((4, 3)) if initial is None else initial
    state, _ = run_loops(loop, runs, TrainingShared(pool, start))
    return jax.tree.map(lambda leaf: leaf[0], state)


def batches_of(size, pool=POOL):
    return lambda step: Batch(take_batch(pool, RETAIN, step, size), take_batch(pool, FORGET, step, size))


# --- a loss of one parameter that attains the bounds ------------------------------------------------------------------

MU = 0.5
QUADRATIC = ConvexConstants(MU, 1.5, 9.0, 2 * MU, 0.0, radius=1e3, dim=1)
"""mu/2 (w - z)^2 with z in [-1, 1]."""


def quadratic_loss(params, examples):
    losses = MU / 2 * (params - examples.x) ** 2
    return jnp.sum(losses * examples.weights) / jnp.maximum(jnp.sum(examples.weights), 1)


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 4, 100])
@pytest.mark.parametrize("radius", [0.7, 50.0])
def test_descent_is_that_of_numpy_whatever_the_batch_size(batch_size, radius):
    step = DescentStep(0.8, radius)
    start = np.random.default_rng(0).normal(size=(4, 3)) / 10
    method = projected_descent(LOSS, step, num_steps=3, num_retain=NUM_RETAIN, batch_size=batch_size)
    trained = Trained(jnp.asarray(start, jnp.float32), None)
    method = method._replace(update=jax.jit(method.update))
    result = apply(method, jax.random.key(0), trained, batches_of(method.batch_size))
    expected = descend_by_hand(start.ravel(), np.asarray(RETAIN), 3, step)
    assert np.ravel(result) == pytest.approx(expected, abs=1e-6)


def test_training_is_that_of_numpy_and_starts_on_the_ball():
    step = DescentStep(0.8, 0.7)
    loop = projected_descent_training(LOSS, step, num_steps=3, num_members=16, batch_size=5)
    state = train_one(loop, ALL, initial=jnp.full((4, 3), 9.0))
    start = np.full(12, 0.7 / 12**0.5)
    assert np.ravel(state.params) == pytest.approx(descend_by_hand(start, np.asarray(ALL), 3, step), abs=1e-6)
    before = descend_by_hand(start, np.asarray(ALL), 2, step)
    assert float(state.gradient_norm) == pytest.approx(
        np.linalg.norm(gradient(before, np.asarray(ALL))), rel=1e-5
    )


def test_examples_of_weight_zero_do_not_count():
    padded = POOL._replace(weights=POOL.weights.at[jnp.array([1, 7])].set(0.0))
    loop = projected_descent_training(
        LOSS, DescentStep(0.8, 50.0), num_steps=4, num_members=NUM_RETAIN, batch_size=3
    )
    others = np.setdiff1d(RETAIN, [1, 7])
    expected = descend_by_hand(np.zeros(12), others, 4, DescentStep(0.8, 50.0))
    assert np.ravel(train_one(loop, RETAIN, pool=padded).params) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("num_steps", [2, 10, 40])
def test_training_error_bounds_the_distance_to_the_minimiser(num_steps):
    loop = projected_descent_training(
        LOSS, DescentStep(RATE, CONSTANTS.radius), num_steps=num_steps, num_members=16
    )
    error = np.linalg.norm(np.ravel(train_one(loop, ALL).params) - minimiser(np.asarray(ALL)))
    assert error <= training_error(CONSTANTS, RATE, num_steps) + 1e-6


def test_one_step_brings_points_together_by_the_contraction():
    rng = np.random.default_rng(0)
    rates = [0.3 * RATE, RATE]
    for rate in rates:
        step, factor = DescentStep(rate, CONSTANTS.radius), contraction(CONSTANTS, rate)
        for _ in range(50):
            pair = [rng.normal(size=12) * 3, rng.normal(size=12) * 3]
            after = [descend_by_hand(flat, np.asarray(ALL), 1, step) for flat in pair]
            assert np.linalg.norm(np.subtract(*after)) <= factor * np.linalg.norm(np.subtract(*pair))


def test_the_contraction_is_attained_by_a_quadratic():
    for curvature, rate in ((MU, 0.7), (MU, 1.0), (1.5, 1.0)):
        assert abs(1 - rate * curvature) <= contraction(QUADRATIC, rate) + 1e-12
    assert contraction(QUADRATIC, 1.0) == 1 - MU


def test_minimisers_are_within_their_bound_and_quadratics_attain_it():
    real = np.linalg.norm(minimiser(np.asarray(ALL)) - minimiser(np.asarray(RETAIN)))
    assert 0.02 * minimiser_distance(CONSTANTS, 11, 5) < real <= minimiser_distance(CONSTANTS, 11, 5)
    z = np.repeat([-1.0, 1.0], [75, 25])
    assert minimiser_distance(QUADRATIC, 75, 25) == pytest.approx(z.mean() - z[:75].mean())


@pytest.mark.parametrize("num_steps", [1, 3, 30])
def test_drift_is_attained_by_a_quadratic(num_steps):
    centres = [-0.5, -1.0]  # means of z = -1 (75 times) and 1 (25 times), and of the retain set
    ends = []
    for centre in centres:
        w = 0.0
        for _ in range(num_steps):
            w -= 0.8 * MU * (w - centre)
        ends.append(w)
    bound = drift(QUADRATIC, 75, 25, learning_rate=0.8, num_steps=num_steps)
    assert bound == pytest.approx(ends[0] - ends[1], rel=1e-12)


@pytest.mark.parametrize("num_steps", [1, 5, 30])
def test_trained_models_are_within_their_bound(num_steps):
    step = DescentStep(RATE, CONSTANTS.radius)
    ends = [descend_by_hand(np.zeros(12), np.asarray(rows), num_steps, step) for rows in (ALL, RETAIN)]
    bound = trained_distance(CONSTANTS, 11, 5, learning_rate=RATE, num_steps=num_steps)
    assert 0.02 * bound < np.linalg.norm(np.subtract(*ends)) <= bound <= 2 * CONSTANTS.radius


def noise_runs(sigma, num_steps, batch_size):
    """2,000 runs of descent on a flat loss: nothing but noise, before and after unlearning steps."""
    step = DescentStep(1.0, 1e6, sigma)
    loop = projected_descent_training(
        _flat_loss, step, num_steps=num_steps, num_members=4, batch_size=batch_size
    )
    runs = TrainingRun(jnp.tile(jnp.arange(4), (2000, 1)), jax.random.split(jax.random.key(0), 2000))
    pool = Examples(jnp.zeros(4), jnp.zeros(4, jnp.int32), jnp.ones(4))
    assert not loop.deterministic
    return np.asarray(run_loops(loop, runs, TrainingShared(pool, jnp.zeros(2)))[0].params)


def _flat_loss(params, examples):
    return 0.0 * jnp.sum(params)


@pytest.mark.parametrize(("num_steps", "batch_size"), [(1, None), (9, None), (4, 2)])
def test_every_step_adds_fresh_noise_of_the_declared_deviation_once(num_steps, batch_size):
    noise = noise_runs(0.3, num_steps, batch_size) / (0.3 * num_steps**0.5)
    assert kstest(noise.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.1


def test_equal_arguments_give_the_same_programs():
    arguments = (LOSS, DescentStep(RATE, 3.0))
    assert projected_descent_training(*arguments, num_steps=3, num_members=4) is projected_descent_training(
        *arguments, num_steps=3, num_members=4
    )
    assert projected_descent(*arguments, num_steps=3, num_retain=4) is projected_descent(
        *arguments, num_steps=3, num_retain=4
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DescentStep(0.0, 1.0), "learning_rate must be positive, got 0.0"),
        (lambda: DescentStep(0.1, 0.0), "radius must be positive, got 0.0"),
        (lambda: DescentStep(0.1, float("inf")), "radius must be a finite number, got inf"),
        (lambda: DescentStep(0.1, 1.0, -1.0), "sigma must not be negative, got -1.0"),
        (lambda: contraction(QUADRATIC, 1.01), r"learning_rate must be in \(0, 2 / \(mu \+ beta\) = 1\]"),
        (lambda: contraction(QUADRATIC, 0.0), "learning_rate must be in"),
        (lambda: forget_share(0, 1), "num_retain must be an integer of at least 1, got 0"),
        (lambda: forget_share(1, 0), "num_forget must be an integer of at least 1, got 0"),
        (lambda: training_error(QUADRATIC, 1.0, -1), "num_steps must be an integer of at least 0, got -1"),
        (
            lambda: projected_descent(LOSS, DescentStep(0.1, 1.0), num_steps=1, num_retain=1, batch_size=0),
            "batch_size must be an integer of at least 1, got 0",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
