"""Losses: derivatives against finite differences, constants against searches that attain them."""

import itertools
import math

import numpy as np
import pytest

from jaxaudit.checks import check_positive
from jaxaudit.convex.losses import CubicLoss, LogisticLoss, Points, SquaredLoss
from jaxaudit.errors import InputError

RNG = np.random.default_rng(0)
POINTS = Points(RNG.normal(size=(7, 3)), RNG.choice([-1.0, 1.0], 7))
LOSSES = [CubicLoss(0.5, 0.1), LogisticLoss(0.15), SquaredLoss()]
by_name = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def slope(function, weights, step=1e-5):
    """Central differences in every weight, the last axis."""
    units = step * np.eye(len(weights))
    return np.stack([(function(weights + u) - function(weights - u)) / (2 * step) for u in units], axis=-1)


def test_values_by_hand():
    one = Points(np.array([[2.0]]), np.array([-1.0]))
    weights = np.array([3.0])
    assert CubicLoss(0.5, 0.1).values(weights, one) == pytest.approx(0.25 * 9 + 0.1 / 6 * 27 - 6)
    assert LogisticLoss(0.5).values(weights, one) == pytest.approx(math.log1p(math.exp(6)) + 0.25 * 9)
    assert SquaredLoss().values(weights, one) == pytest.approx((6 + 1) ** 2 / 2)


@by_name
def test_derivatives_equal_finite_differences(loss):
    weights = RNG.normal(size=3)
    gradients = slope(lambda w: loss.values(w, POINTS), weights)
    np.testing.assert_allclose(loss.gradients(weights, POINTS), gradients, rtol=1e-7, atol=1e-8)
    hessian = slope(lambda w: loss.gradients(w, POINTS).mean(axis=0), weights)
    np.testing.assert_allclose(loss.hessian(weights, POINTS), hessian, rtol=1e-7, atol=1e-8)


@by_name
def test_constants_hold_on_the_ball(loss):
    radius = 2.0
    constants = loss.constants(POINTS, radius)
    directions = RNG.normal(size=(300, 3))
    lengths = radius * RNG.random((300, 1)) ** (1 / 3)
    inside = lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    hessians = [loss.hessian(weights, POINTS) for weights in inside]
    for weights, hessian in zip(inside, hessians):
        curvatures = np.linalg.eigvalsh(hessian)
        assert constants.strong_convexity <= curvatures[0] + 1e-12
        assert curvatures[-1] <= constants.smoothness
        assert np.linalg.norm(loss.gradients(weights, POINTS), axis=1).max() <= constants.lipschitz
    changes = [np.linalg.norm(a - b, 2) for a, b in itertools.pairwise(hessians)]
    steps = np.linalg.norm(np.diff(inside, axis=0), axis=1)
    assert (np.array(changes) <= constants.hessian_lipschitz * steps + 1e-12).all()


def test_cubic_constants_are_attained_at_the_ends():
    loss, radius = CubicLoss(0.2, 0.001), 2.5
    points = Points(np.array([[0.0], [-10.0]]), np.zeros(2))
    constants = loss.constants(points, radius)
    low, high = np.array([-radius]), np.array([radius])
    assert constants.strong_convexity == pytest.approx(loss.hessian(low, points).item(), rel=1e-14)
    assert constants.smoothness == pytest.approx(loss.hessian(high, points).item(), rel=1e-14)
    assert constants.lipschitz == pytest.approx(loss.gradients(high, points)[1].item(), rel=1e-14)
    assert (constants.strong_convexity, constants.lipschitz) == pytest.approx((0.1975, 10.503125))


def test_logistic_constants_are_attained():
    loss, radius = LogisticLoss(0.15), 4.0
    x = np.array([3.0, 4.0])
    point = Points(x[None], np.ones(1))
    constants = loss.constants(point, radius)
    assert constants.smoothness == pytest.approx(np.linalg.eigvalsh(loss.hessian(np.zeros(2), point))[-1])
    along = x / 25  # margin 1 per unit
    margins = np.linspace(-4, 4, 8001)
    hessians = [loss.hessian(margin * along, point)[0, 0] for margin in margins]
    steepest = np.abs(np.diff(hessians)).max() / (margins[1] - margins[0]) * 5 / (x[0] / 5) ** 2
    assert steepest == pytest.approx(constants.hessian_lipschitz, rel=1e-5)
    against = -radius * x / 5
    assert np.linalg.norm(loss.gradients(against, point)) == pytest.approx(constants.lipschitz, rel=1e-8)


def test_squared_constants_are_attained():
    loss = SquaredLoss()
    constants = loss.constants(POINTS, 2.0)
    assert constants.strong_convexity == pytest.approx(
        np.linalg.svd(POINTS.features, compute_uv=False)[-1] ** 2 / 7
    )
    steepest = max(
        np.linalg.norm(loss.gradients(side * 2 * x / np.linalg.norm(x), POINTS)[i])
        for i, x in enumerate(POINTS.features)
        for side in (-1, 1)
    )
    assert constants.lipschitz == pytest.approx(steepest, rel=1e-12)
    assert constants.hessian_lipschitz == 0
    assert loss.constants(POINTS, math.inf).lipschitz == math.inf


def test_a_logistic_minimiser_has_at_most_the_stated_norm():
    separable = Points(np.array([[50.0], [-50.0]]), np.array([1.0, -1.0]))
    for regularisation in (0.01, 1.0):
        loss = LogisticLoss(regularisation)
        grid = np.linspace(0, 2 * loss.minimiser_radius, 4001)
        best = grid[np.argmin([loss.values(np.array([w]), separable).mean() for w in grid])]
        assert best <= loss.minimiser_radius


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"cubic must be positive, got -1"):
        CubicLoss(0.2, -1)
    with pytest.raises(InputError, match=r"regularisation must be positive, got 0"):
        LogisticLoss(0.0)
    with pytest.raises(InputError, match=r"radius must be below regularisation / cubic = 200, got 200"):
        CubicLoss(0.2, 0.001).constants(POINTS, 200.0)
    with pytest.raises(InputError, match="features must have linearly independent columns"):
        SquaredLoss().constants(Points(np.ones((5, 2)), np.zeros(5)), 1.0)
    with pytest.raises(InputError, match="clip must be a finite number"):
        check_positive(clip=math.nan)
