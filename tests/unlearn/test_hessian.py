from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize
from scipy.special import expit

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models import mlp
from jaxaudit.runs import run_loops
from jaxaudit.train import cross_entropy_loss
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.hessian import HessianSpec, hessian_unlearning, hessian_vector_product

NUM_RETAIN, NUM_FORGET, DIM, PENALTY = 30, 10, 3, 0.1
RNG = np.random.default_rng(0)
X = RNG.normal(size=(NUM_RETAIN + NUM_FORGET, DIM))
Y = (X @ np.array([1.0, -2.0, 0.5]) + RNG.normal(size=len(X)) > 0) * 1.0
RETAIN, FORGET = slice(0, NUM_RETAIN), slice(NUM_RETAIN, None)
BATCH = Batch(
    *(
        Examples(jnp.asarray(X[rows], jnp.float32), jnp.asarray(Y[rows], jnp.float32), jnp.ones(len(X[rows])))
        for rows in (RETAIN, FORGET)
    )
)
EXACT = HessianSpec(
    num_recursions=1, depth=400, scale=0.6, batch_size=64, damping=0.0, sigma=0.0, num_eigenvalue_updates=0
)
"""With one batch of everything there is no sampling error."""


def logistic_loss(params, examples):
    margins = examples.x @ params
    losses = jnp.logaddexp(0.0, margins) - examples.y * margins
    return jnp.vdot(examples.weights, losses) / jnp.sum(examples.weights) + PENALTY / 2 * jnp.sum(params**2)


def linear_loss(params, examples):
    errors = examples.x @ params - examples.y
    return jnp.vdot(examples.weights, errors**2) / 2 / jnp.sum(examples.weights)


def logistic_gradient(w, rows):
    return X[rows].T @ (expit(X[rows] @ w) - Y[rows]) / len(X[rows]) + PENALTY * w


def logistic_hessian(w, rows):
    p = expit(X[rows] @ w)
    return (X[rows].T * (p * (1 - p))) @ X[rows] / len(X[rows]) + PENALTY * np.eye(DIM)


def logistic_optimum():
    """Of all the data, in double precision."""
    every = slice(None)
    fit = minimize(
        lambda w: np.mean(np.logaddexp(0, X @ w) - Y * (X @ w)) + PENALTY / 2 * w @ w,
        np.zeros(DIM),
        jac=lambda w: logistic_gradient(w, every),
        tol=1e-12,
    )
    assert np.abs(logistic_gradient(fit.x, every)).max() < 1e-6
    return fit.x


def build(loss, spec, num_retain=NUM_RETAIN, num_forget=NUM_FORGET):
    return hessian_unlearning(loss, num_retain=num_retain, num_forget=num_forget, spec=spec)


def unlearned(loss, start, spec, batch=BATCH):
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), start)
    return apply(build(loss, spec), jax.random.key(0), Trained(start, start), lambda step: batch)


def last_states(loss, start, spec, batch=BATCH):
    """The last state of every stage, in a jitted loop, and all that they measure."""
    states, measured, previous = [], {}, None
    start = jnp.asarray(start, jnp.float32)
    for stage in build(loss, spec).stages:
        state = stage.init(jax.random.key(1), Trained(start, start, None, previous))

        def step(index, state, update=stage.update):
            return update(jax.random.fold_in(jax.random.key(2), index), state, batch)[0]

        state = jax.lax.fori_loop(0, stage.num_updates, step, state)
        measured |= stage.measure(state) if stage.measure else {}
        states.append(state)
        start, previous = state.params, state
    return states, {name: float(value) for name, value in measured.items()}


def quadratic(curvatures):
    """Loss ``sum_i mu_i p_i^2 / 2``, whatever the data."""
    return lambda params, examples: 0.5 * jnp.sum(jnp.asarray(curvatures, jnp.float32) * params**2)


def test_hessian_vector_products_against_the_full_hessian():
    model = mlp((DIM,), 2, hidden=(4,))
    params, loss = model.init_fn(jax.random.key(0)), cross_entropy_loss(model.logits_fn)
    examples = BATCH.retain._replace(y=BATCH.retain.y.astype(int))
    flat, unflatten = ravel_pytree(params)
    hessian = jax.jit(jax.hessian(lambda vector: loss(unflatten(vector), examples)))(flat)
    vector = jax.random.normal(jax.random.key(1), flat.shape)
    multiply = jax.jit(lambda tree: hessian_vector_product(loss, params, examples, tree, damping=0.5))
    product = multiply(unflatten(vector))
    np.testing.assert_allclose(ravel_pytree(product)[0], hessian @ vector + 0.5 * vector, atol=1e-5)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_the_step_is_the_newton_step_of_the_retain_set(damping):
    start = np.array([0.5, 0.5, -1.0])
    step = np.linalg.solve(
        logistic_hessian(start, RETAIN) + damping * np.eye(DIM), logistic_gradient(start, RETAIN)
    )
    states, measured = last_states(logistic_loss, start, replace(EXACT, damping=damping))
    np.testing.assert_allclose(states[-1].params, start - step, rtol=2e-5)
    assert measured["residual"] < 1e-5
    assert measured["diverged"] == 0


@pytest.mark.parametrize("depth", [1, 2, 40])
def test_a_finite_depth_gives_the_partial_neumann_sum(depth):
    """Along an eigenvector, negative or not: sum_(j <= depth) (1 - mu / s)^j times the gradient."""
    start, mu = np.array([1.0, 2.0, -3.0, 2.0, 0.5]), np.array([0.1, 1.0, 1.9, 0.0, -0.05])
    neumann = sum((1 - mu) ** power for power in range(depth + 1))
    states, measured = last_states(quadratic(mu), start, replace(EXACT, depth=depth, scale=1.0))
    np.testing.assert_allclose(states[-1].params, start - neumann * mu * start, rtol=1e-5)
    left = (1 - mu) ** depth * mu * start  # what the last update added
    assert measured["residual"] == pytest.approx(np.linalg.norm(left) / np.linalg.norm(mu * start), rel=1e-4)


@pytest.mark.parametrize("gradient", ["retain", "forget"])
def test_from_a_full_data_optimum_both_gradients_give_the_same_step(gradient):
    start = logistic_optimum()
    step = np.linalg.solve(logistic_hessian(start, RETAIN), logistic_gradient(start, RETAIN))
    states, _ = last_states(logistic_loss, start, replace(EXACT, gradient=gradient))
    assert np.abs(step).max() > 0.01
    np.testing.assert_allclose(states[-1].params, start - step, atol=2e-5)


@pytest.mark.parametrize("gradient", ["retain", "forget"])
def test_on_a_quadratic_one_step_is_retraining(gradient):
    optimum = np.linalg.lstsq(X, Y, rcond=None)[0]
    retrained = np.linalg.lstsq(X[RETAIN], Y[RETAIN], rcond=None)[0]
    states, _ = last_states(linear_loss, optimum, replace(EXACT, scale=1.5, gradient=gradient))
    assert np.abs(optimum - retrained).max() > 0.01
    np.testing.assert_allclose(states[-1].params, retrained, atol=2e-5)


def test_padding_does_not_change_the_forget_step():
    extra = Examples(*(jnp.concatenate([leaf, leaf[:3]]) for leaf in BATCH.forget))
    padded = BATCH._replace(forget=extra._replace(weights=extra.weights.at[NUM_FORGET:].set(0.0)))
    spec = replace(EXACT, gradient="forget", depth=20)
    start = np.array([0.3, -1.0, 0.2])
    plain, same = (last_states(logistic_loss, start, spec, batch)[0][-1].params for batch in (BATCH, padded))
    np.testing.assert_allclose(plain, same, rtol=1e-6)


def test_recursions_start_afresh_and_are_averaged():
    """Without sampling error all recursions are equal, and so is their mean."""
    start = np.array([0.5, 0.5, -1.0])
    one, three = (
        last_states(logistic_loss, start, replace(EXACT, depth=5, num_recursions=count))[0][-1].params
        for count in (1, 3)
    )
    np.testing.assert_allclose(one, three, rtol=1e-6)


def test_random_mini_batches_approach_the_newton_step():
    start = np.array([0.5, 0.5, -1.0])
    step = np.linalg.solve(logistic_hessian(start, RETAIN), logistic_gradient(start, RETAIN))
    pool = Examples(*(jnp.concatenate(leaves) for leaves in zip(*BATCH)))
    shared = SharedInput(pool, jnp.arange(NUM_RETAIN), jnp.zeros(DIM))
    keys, params = jax.random.split(jax.random.key(0), 8), jnp.tile(jnp.asarray(start, jnp.float32), (8, 1))
    forget, state = jnp.tile(NUM_RETAIN + jnp.arange(NUM_FORGET), (8, 1)), None
    for stage in build(logistic_loss, replace(EXACT, scale=4.0, depth=150, batch_size=20)).stages:
        runs = RunInput(keys, params, forget, None, state if stage.continues else None)
        state, _ = run_loops(stage_loop(stage), runs, shared)
        params = state.params
    errors = np.asarray(params) - (start - step)
    assert np.linalg.norm(errors, axis=1).max() < 0.2 * np.linalg.norm(step)
    assert len(np.unique(np.asarray(params), axis=0)) == 8
    assert np.linalg.norm(errors.mean(0)) < 0.05 * np.linalg.norm(step)


@pytest.mark.parametrize(("scale", "diverged"), [(1.05, 0), (0.95, 1), (1e-30, 1)])
def test_it_diverges_if_the_scale_is_below_half_the_largest_eigenvalue(scale, diverged):
    start = np.array([1.0, 1.0])
    states, measured = last_states(quadratic([2.0, 1.0]), start, replace(EXACT, scale=scale))
    assert measured["diverged"] == diverged
    # On a quadratic the Newton step ends at 0; a step that diverged is not taken at all.
    np.testing.assert_allclose(states[-1].params, start * diverged, atol=1e-5)
    for state in states:
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))
    assert np.isfinite(list(measured.values())).all()


def test_one_diverging_recursion_of_several_is_enough():
    spec = replace(EXACT, scale=0.5, num_recursions=3, depth=30)
    states, measured = last_states(quadratic([2.0]), np.ones(1), spec)
    assert measured["diverged"] == 1
    np.testing.assert_array_equal(states[-1].params, [1.0])


def test_a_zero_gradient_gives_no_step():
    states, measured = last_states(quadratic([2.0, 1.0]), np.zeros(2), replace(EXACT, scale=3.0))
    np.testing.assert_array_equal(states[-1].params, [0.0, 0.0])
    assert (measured["diverged"], measured["residual"]) == (0, 0)


def test_largest_eigenvalue_and_scale_with_full_batches():
    start = np.array([0.5, 0.5, -1.0])
    largest = np.linalg.eigvalsh(logistic_hessian(start, RETAIN))[-1] + 0.2
    spec = replace(EXACT, depth=1, damping=0.2, num_eigenvalue_updates=200)
    _, measured = last_states(logistic_loss, start, spec)
    assert measured["largest_eigenvalue"] == pytest.approx(largest, rel=1e-4)
    assert measured["converging_scale"] == pytest.approx(largest, rel=1e-4)


@pytest.mark.parametrize(("curvatures", "eigenvalue"), [([-2.0, 1.0], -2.0), ([0.0, 0.0], 0.0)])
def test_no_scale_converges_without_positive_curvature(curvatures, eigenvalue):
    spec = replace(EXACT, depth=1, num_eigenvalue_updates=100)
    _, measured = last_states(quadratic(curvatures), np.ones(2), spec)
    assert measured["largest_eigenvalue"] == pytest.approx(eigenvalue, abs=1e-5)
    assert measured["converging_scale"] == 0


def test_the_converging_scale_counts_the_spread_of_mini_batches():
    """One parameter, one example a batch with curvature a: the error is multiplied by 1 - a / s in each update, and
    shrinks in mean square if s > E a^2 / (2 E a)."""
    curvatures = np.array([0.5, 1.0, 6.0])
    pool = Examples(jnp.asarray(curvatures, jnp.float32), jnp.zeros(3), jnp.ones(3))

    def loss(params, examples):
        return jnp.mean(examples.x) * jnp.sum(params**2) / 2

    spec = replace(EXACT, num_eigenvalue_updates=4000, batch_size=1)
    stage = build(loss, spec).stages[0]
    runs = RunInput(jax.random.split(jax.random.key(0), 1), jnp.ones((1, 1)), jnp.zeros((1, 1), int))
    state, _ = run_loops(stage_loop(stage), runs, SharedInput(pool, jnp.arange(3), jnp.ones(1)))
    measured = jax.vmap(stage.measure)(state)
    assert float(measured["largest_eigenvalue"][0]) == pytest.approx(curvatures.mean(), rel=0.1)
    expected = (curvatures**2).mean() / curvatures.mean()
    assert float(measured["converging_scale"][0]) == pytest.approx(expected, rel=0.05)


def test_noise_has_the_declared_deviation():
    start = np.zeros(20_000)
    released = unlearned(quadratic(1.0), start, replace(EXACT, depth=1, sigma=0.3))
    assert float(jnp.std(released)) == pytest.approx(0.3, rel=0.03)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"num_recursions": 0}, "num_recursions must be an integer of at least 1, got 0"),
        ({"depth": 0}, "depth must be an integer of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"num_eigenvalue_updates": -1}, "num_eigenvalue_updates must be an integer of at least 0, got -1"),
        ({"scale": 0.0}, "scale must be positive, got 0.0"),
        ({"scale": float("inf")}, "scale must be a finite number, got inf"),
        ({"damping": -1e-3}, "damping must not be negative, got -0.001"),
        ({"sigma": -1.0}, "sigma must not be negative, got -1.0"),
        ({"gradient": "both"}, "gradient must be one of retain, forget, got 'both'"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(InputError, match=message):
        HessianSpec(**setting)
