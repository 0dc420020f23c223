import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants, ridge_cross_entropy, softmax_regression

L2, CLASSES, FEATURES = 0.02, 3, 2
MODEL, CONSTANTS = softmax_regression((FEATURES,), CLASSES, L2, constant_feature=0.05)
LOSS = ridge_cross_entropy(MODEL.logits_fn, L2)


def features(x, **options):
    """phi(x), read off as the logits of the identity matrix."""
    size = x.shape[1] + 1
    model, _ = softmax_regression((size - 1,), size, 1.0, **options)
    return np.asarray(model.logits_fn(jnp.eye(size), jnp.asarray(x)))


def one(x, y):
    return Examples(jnp.asarray(x)[None], jnp.asarray([y]), jnp.ones(1))


def gradient(params, examples):
    return jax.grad(LOSS)(params, examples).ravel()


def hessian(params, examples):
    return jax.hessian(lambda flat: LOSS(flat.reshape(params.shape), examples))(params.ravel())


def draws(number, seed=0):
    """Parameters anywhere in the ball and examples of norm 1, as hostile as random ones get."""
    rng = np.random.default_rng(seed)
    params = rng.normal(size=(number, FEATURES + 1, CLASSES))
    norms = np.linalg.norm(params, axis=(1, 2), keepdims=True)
    params *= CONSTANTS.radius * rng.uniform(size=(number, 1, 1)) ** 2 / norms
    x = 0.5 + 10 * rng.normal(size=(number, 1, FEATURES))
    examples = Examples(x, rng.integers(CLASSES, size=(number, 1)), np.ones((number, 1)))
    return jax.tree.map(jnp.asarray, (params.astype(np.float32), examples._replace(x=x.astype(np.float32))))


def at_draws(function, params, examples):
    return np.asarray(jax.jit(jax.vmap(function))(params, examples))


def test_features_are_centred_shortened_and_of_norm_at_most_one():
    x = np.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5], [100.5, 0.5, -299.5]], np.float32)
    expected = np.array([[0, 0, 0, 0.3], [1 / 3, 0, 0, 0.3], [10**-0.5, 0, -3 * 10**-0.5, 0.3]]) / 1.09**0.5
    assert features(x) == pytest.approx(expected, abs=1e-6)
    assert np.linalg.norm(features(x), axis=1).max() == pytest.approx(1)
    other = features(x, center=0.0, feature_bound=1.0, constant_feature=1.0)
    assert other[1] == pytest.approx(np.array([1.5, 0.5, 0.5, 2.75**0.5]) / 5.5**0.5)


def test_loss_is_the_cross_entropy_plus_the_regulariser():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, 5)
    params = rng.normal(size=(FEATURES + 1, CLASSES)).astype(np.float32)
    weights = np.array([1, 0, 1, 1, 0])
    logits = features(x, constant_feature=0.05) @ params
    losses = -log_softmax(logits, axis=1)[np.arange(5), y]
    expected = losses @ weights / 3 + L2 / 2 * (params**2).sum()
    assert float(LOSS(params, Examples(x, y, weights))) == pytest.approx(expected, rel=1e-6)


def test_hessian_lies_between_strong_convexity_and_smoothness():
    spectra = np.linalg.eigvalsh(at_draws(hessian, *draws(500)))
    assert spectra.min() >= CONSTANTS.strong_convexity - 1e-6
    assert spectra.max() <= CONSTANTS.smoothness + 1e-6
    model, constants = softmax_regression((FEATURES,), 2, L2)
    loss = ridge_cross_entropy(model.logits_fn, L2)
    even = jax.jit(jax.hessian(lambda flat: loss(flat.reshape(3, 2), one([9.0, 9.0], 0))))(jnp.zeros(6))
    assert np.linalg.eigvalsh(even)[[0, -1]] == pytest.approx(
        [constants.strong_convexity, constants.smoothness], abs=1e-6
    )


def test_gradients_are_at_most_lipschitz_and_get_there():
    assert np.linalg.norm(at_draws(gradient, *draws(2000)), axis=1).max() <= CONSTANTS.lipschitz
    phi = features(np.array([[99.0, 0.5]], np.float32), constant_feature=0.05)[0]
    certain = jnp.asarray(CONSTANTS.radius / math.sqrt(2) * np.outer(phi, [1, -1, 0]), jnp.float32)
    worst = np.linalg.norm(gradient(certain, one([99.0, 0.5], 1)))
    assert 0.99 * CONSTANTS.lipschitz < worst <= CONSTANTS.lipschitz * (1 + 1e-6)


def test_gradients_of_two_examples_are_at_most_the_spread_apart_and_nearly_get_there():
    params, examples = draws(2000)
    others = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), examples)
    apart = at_draws(gradient, params, examples) - at_draws(gradient, params, others)
    assert np.linalg.norm(apart, axis=1).max() <= CONSTANTS.gradient_spread
    # Two examples close together, on the wrong sides of a steep border; the spread is the same in every ball.
    params = jnp.zeros((3, 3)).at[0].set(jnp.array([50.0, -50.0, 0.0]))
    left, right = one([0.5 + 2.0, 20.5], 1), one([0.5 - 2.0, 20.5], 0)
    apart = np.linalg.norm(gradient(params, left) - gradient(params, right))
    assert 0.98 * CONSTANTS.gradient_spread < apart <= CONSTANTS.gradient_spread


def test_hessian_lipschitz_bounds_differences_and_is_attained():
    params, examples = draws(500)
    others = jnp.roll(params, 1, axis=0)
    changes = at_draws(hessian, params, examples) - at_draws(hessian, others, examples)
    distances = np.linalg.norm(params - others, axis=(1, 2))
    assert (np.linalg.norm(changes, 2, axis=(1, 2)) <= CONSTANTS.hessian_lipschitz * distances + 1e-6).all()
    # Two classes of the probabilities that maximise the third moment, along the direction between them.
    phi = features(np.array([[99.0, 0.5]], np.float32), constant_feature=0.05)[0]
    direction = jnp.asarray(np.outer(phi, [1, -1, 0]) / math.sqrt(2), jnp.float32)
    odds = math.log((3 + math.sqrt(3)) / (3 - math.sqrt(3)))
    params = jnp.asarray(np.outer(phi, [odds / 2, -odds / 2, -30]), jnp.float32)

    def along(t):
        return LOSS(params + t * direction, one([99.0, 0.5], 0))

    third = jax.grad(jax.grad(jax.grad(along)))(0.0)
    assert abs(third) == pytest.approx(CONSTANTS.hessian_lipschitz, rel=1e-4)


@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_minimisers_are_inside_the_ball_and_not_far_inside(l2):
    model, constants = softmax_regression((FEATURES,), CLASSES, l2)
    loss = ridge_cross_entropy(model.logits_fn, l2)
    value = jax.jit(jax.value_and_grad(lambda flat, examples: loss(flat.reshape(3, 3), examples)))

    def in_float64(flat, examples):
        return tuple(np.asarray(part, float) for part in value(flat, examples))

    angles = 2 * np.pi * np.arange(CLASSES) / CLASSES
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    norms = []
    for x in (
        corners,
        np.ones((CLASSES, FEATURES)),
        np.random.default_rng(0).normal(size=(CLASSES, FEATURES)),
    ):
        for y in (np.arange(CLASSES), np.zeros(CLASSES, int)):
            examples = Examples(jnp.asarray(100 * x, jnp.float32), jnp.asarray(y), jnp.ones(CLASSES))
            found = minimize(in_float64, np.zeros(9), args=(examples,), jac=True)
            norms.append(np.linalg.norm(found.x))
    assert 0.4 * constants.radius < max(norms) <= constants.radius


def test_a_ball_that_may_miss_minimisers_says_so():
    small = softmax_regression((FEATURES,), CLASSES, L2, radius=1.0)[1]
    assert (small.radius, small.minimisers_inside) == (1.0, False)
    assert small.lipschitz == pytest.approx(math.sqrt(2) + L2)
    assert softmax_regression((FEATURES,), CLASSES, L2, radius=99.0)[1].minimisers_inside


def test_equal_arguments_give_the_same_functions():
    again, _ = softmax_regression((FEATURES,), CLASSES, L2, constant_feature=0.05)
    assert again.logits_fn is MODEL.logits_fn
    assert ridge_cross_entropy(again.logits_fn, L2) is LOSS


def test_parameters_start_at_zero_whatever_the_shape_of_an_example():
    model, constants = softmax_regression((8, 8, 1), 10, 0.1)
    params = model.init_fn(jax.random.key(0))
    assert params.shape == (65, 10)
    assert constants.dim == params.size
    assert not params.any()
    assert model.logits_fn(params, jnp.ones((2, 8, 8, 1))).shape == (2, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be an integer of at least 2, got 1"),
        ({"l2": 0.0}, "l2 must be positive, got 0.0"),
        ({"l2": float("nan")}, "l2 must be a finite number, got nan"),
        ({"radius": 0.0}, "radius must be positive, got 0.0"),
        ({"feature_bound": -1.0}, "feature_bound must be positive, got -1.0"),
        ({"constant_feature": 0.0}, "constant_feature must be positive, got 0.0"),
        ({"input_shape": (0,)}, "input_shape must be an integer of at least 1, got 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        softmax_regression(**{"input_shape": (4,), "num_classes": 3, "l2": 0.1} | arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strong_convexity": 0.0}, "strong_convexity must be positive, got 0.0"),
        ({"smoothness": 0.01}, "smoothness must be at least strong_convexity, got 0.01 and 0.02"),
        ({"hessian_lipschitz": -1.0}, "hessian_lipschitz must not be negative, got -1.0"),
        ({"dim": 0}, "dim must be an integer of at least 1, got 0"),
    ],
)
def test_bad_constants(change, message):
    with pytest.raises(InputError, match=message):
        replace(CONSTANTS, **change)


def test_negative_regulariser():
    with pytest.raises(InputError, match="l2 must not be negative, got -1"):
        ridge_cross_entropy(MODEL.logits_fn, -1.0)
    assert isinstance(CONSTANTS, ConvexConstants)
