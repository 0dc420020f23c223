import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

from jaxaudit.bound.gaussian import gaussian_epsilon, gaussian_sigma
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants, softmax_regression
from jaxaudit.train import take_batch
from jaxaudit.unlearn import Batch, Stages, Trained, apply
from jaxaudit.unlearn.newton import NewtonSpec, newton_recipe, newton_sensitivity, newton_step
from jaxaudit.unlearn.projected_descent import DescentStep, training_error
from tests.unlearn.test_projected_descent import (
    ALL,
    CONSTANTS,
    FORGET,
    L2,
    LOSS,
    PHI,
    QUADRATIC,
    RATE,
    RETAIN,
    batches_of,
    descend_by_hand,
    gradient,
    minimiser,
    quadratic_loss,
)


def jitted(method):
    return Stages(tuple(stage._replace(update=jax.jit(stage.update)) for stage in method.stages))


def newton(flat, batch_size=64):
    """Newton's step by the stages of the method, and the last state."""
    method = jitted(newton_step(LOSS, num_retain=11, num_forget=5, batch_size=batch_size))
    trained = Trained(jnp.asarray(flat.reshape(4, 3), jnp.float32), None)
    for stage in method.stages:
        state = stage.init(jax.random.key(0), trained)
        for step in range(stage.num_updates):
            state, _ = stage.update(jax.random.key(1), state, batches_of(batch_size)(step))
        trained = trained._replace(params=state.params, previous=state)
    return np.ravel(state.params).astype(float), method.stages[-1].measure(state)


def newton_by_hand(flat):
    phi = PHI[:11]
    p = softmax(phi @ flat.reshape(4, 3), axis=1)
    hessian = L2 * np.eye(12)
    for row, prob in zip(phi, p):
        hessian += np.kron(np.outer(row, row), np.diag(prob) - np.outer(prob, prob)) / 11
    return flat + np.linalg.solve(hessian, 5 * gradient(flat, np.asarray(FORGET)) / 11)


@pytest.mark.parametrize("batch_size", [3, 64])
def test_step_is_that_of_numpy_whatever_the_batch_size(batch_size):
    flat = np.random.default_rng(0).normal(size=12)
    assert newton(flat, batch_size)[0] == pytest.approx(newton_by_hand(flat), abs=1e-5)


def test_on_a_quadratic_the_step_is_retraining():
    x = jnp.array([0.3, -0.2, 0.9, 0.7, -1.0])
    pool = Examples(x, jnp.zeros(5, jnp.int32), jnp.ones(5))
    retain, forget = jnp.arange(3), jnp.array([3, 4])

    def batch_at(step):
        return Batch(take_batch(pool, retain, step, 2), take_batch(pool, forget, step, 2))

    method = newton_step(quadratic_loss, num_retain=3, num_forget=2, batch_size=2)
    result = apply(method, jax.random.key(0), Trained(x.mean(), None), batch_at)
    assert float(result) == pytest.approx(float(x[:3].mean()), abs=1e-6)


def test_cubic_loss_of_the_paper():
    """Values of the reference code: n = 1000 + 50, forget points at z = -10, M = 0.001, lambda_0 = 0.2."""
    m, lam = 0.001, 0.2

    def loss(params, examples):
        losses = lam / 2 * params**2 + m / 6 * params**3 - examples.x * params
        return jnp.sum(losses * examples.weights) / jnp.sum(examples.weights)

    pool = Examples(
        jnp.repeat(jnp.array([0.0, -10.0]), jnp.array([1000, 50])), jnp.zeros(1050), jnp.ones(1050)
    )
    batch = Batch(*(jax.tree.map(lambda leaf, i=i: leaf[i], pool) for i in (slice(1000), slice(1000, 1050))))
    full = (-lam + (lam**2 + 2 * m * -10 * 50 / 1050) ** 0.5) / m  # where lam w + m/2 w^2 = mean z
    assert full == pytest.approx(-2.395296, abs=1e-6)
    method = newton_step(loss, num_retain=1000, num_forget=50, batch_size=1000)
    step = apply(method, jax.random.key(0), Trained(jnp.float32(full), None), lambda step: batch)
    assert float(step) == pytest.approx(0.0145175, abs=2e-6)
    constants = ConvexConstants(lam - m * 2.5, lam + m * 2.5, lam * 2.5 + m / 2 * 2.5**2 + 10, 10, m, 2.5, 1)
    gamma = newton_sensitivity(constants, 1000, 50)
    assert float(step) / gamma == pytest.approx(0.2235, abs=1e-4)
    assert float(step) <= newton_sensitivity(constants, 1000, 50, bound="sharp")
    assert gaussian_sigma(gamma, 0.1, 0.01) == pytest.approx(0.619667, abs=1e-6)


def test_exact_training_ends_within_the_sharp_bound_which_is_a_quarter_of_sekharis():
    full, retain = minimiser(np.asarray(ALL)), minimiser(np.asarray(RETAIN))
    error = np.linalg.norm(newton_by_hand(full) - retain)
    assert 0 < error < np.linalg.norm(full - retain)
    sharp, sekhari = (newton_sensitivity(CONSTANTS, 11, 5, bound=name) for name in ("sharp", "sekhari"))
    assert error <= sharp
    assert sharp <= sekhari / 4 * (1 + 1e-12)
    few = [newton_sensitivity(CONSTANTS, 999, 1, bound=name) for name in ("sharp", "sekhari")]
    assert few[0] == pytest.approx(few[1] / 4)


@pytest.mark.parametrize("num_steps", [1, 4, 12])
def test_training_that_stops_early_is_paid_for(num_steps):
    step = DescentStep(RATE, CONSTANTS.radius)
    full, retain = (
        descend_by_hand(np.zeros(12), np.asarray(rows), num_steps, step) for rows in (ALL, RETAIN)
    )
    residuals = [np.linalg.norm(gradient(w, np.asarray(r))) for w, r in ((full, ALL), (retain, RETAIN))]
    proved = CONSTANTS.smoothness * training_error(CONSTANTS, RATE, num_steps)
    assert max(residuals) <= proved
    error = np.linalg.norm(newton_by_hand(full) - retain)
    assert error <= newton_sensitivity(CONSTANTS, 11, 5, residual=max(residuals), bound="sharp")


def test_what_is_measured():
    flat = np.random.default_rng(0).normal(size=12)
    result, measured = newton(flat)
    assert float(measured["gradient_norm"]) == pytest.approx(
        np.linalg.norm(gradient(flat, np.asarray(ALL))), rel=1e-5
    )
    assert float(measured["step_norm"]) == pytest.approx(np.linalg.norm(result - flat), rel=1e-5)


def test_sensitivity_grows_with_what_is_forgotten_and_with_the_residual():
    values = [newton_sensitivity(CONSTANTS, 1000 - m, m) for m in (1, 10, 100)]
    assert values[1] / values[0] == pytest.approx(100)
    assert values[2] / values[1] == pytest.approx(100)
    residuals = [newton_sensitivity(CONSTANTS, 90, 10, residual=tau) for tau in (0.0, 1e-3, 1e-2)]
    assert np.all(np.diff(residuals) > 0)
    assert newton_sensitivity(QUADRATIC, 90, 10) == 0.0


@pytest.mark.parametrize("bound", ["sekhari", "sharp"])
def test_recipe_adds_the_noise_of_its_certificate(bound):
    spec = NewtonSpec(epsilon=2.0, delta=1e-3, bound=bound, training_steps=100, batch_size=8)
    recipe = newton_recipe(LOSS, CONSTANTS, 11, 5, spec)
    noise = recipe.method.stages[-1]
    state = noise.init(jax.random.key(0), Trained(jnp.zeros(20_000), None))
    sigma = float(noise.update(jax.random.key(1), state, None)[1]["sigma"])
    residual = CONSTANTS.smoothness * training_error(CONSTANTS, RATE, 100)
    distance = newton_sensitivity(CONSTANTS, 11, 5, residual=residual, bound=bound)
    assert gaussian_epsilon(distance, sigma, 1e-3) == pytest.approx(2.0, rel=1e-5)
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (2.0, 1e-3)
    assert [stage.num_updates for stage in recipe.method.stages] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: newton_sensitivity(CONSTANTS, 9, 1, bound="x"),
            "bound must be one of sekhari, sharp, got 'x'",
        ),
        (
            lambda: newton_sensitivity(CONSTANTS, 9, 1, residual=-1.0),
            "residual must not be negative, got -1.0",
        ),
        (
            lambda: newton_sensitivity(softmax_regression((3,), 3, L2, radius=1.0)[1], 9, 1),
            "radius must be large enough to hold every minimiser for a Newton step, got 1.0",
        ),
        (
            lambda: newton_step(LOSS, num_retain=0, num_forget=1),
            "num_retain must be an integer of at least 1, got 0",
        ),
        (
            lambda: newton_step(LOSS, num_retain=1, num_forget=1, batch_size=0),
            "batch_size must be an integer",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
