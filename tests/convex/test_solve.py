"""Minimisers against SciPy, scikit-learn and closed forms; the Newton step against retraining and Lemma 3."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression, LogisticRegression

from jaxaudit.convex.losses import Constants, CubicLoss, LogisticLoss, Points, SquaredLoss
from jaxaudit.convex.placements import ForgetRequest, boundary_points, cubic_points, opposed_points
from jaxaudit.convex.solve import (
    minimise,
    newton_distance_bound,
    newton_unlearn,
    project,
    unlearn_by_newton,
)
from jaxaudit.errors import InputError

CUBIC = CubicLoss(0.2, 0.001), cubic_points(1000, 50, 10.0)


def logistic_points(seed, size=60, dimension=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, dimension))
    return Points(features, np.where(features[:, 0] + rng.normal(size=size) > 0, 1.0, -1.0))


def scipy_minimum(loss, points, radius):
    """Sequential quadratic programming on the ball."""
    return minimize(
        lambda w: loss.values(w, points).mean(),
        np.zeros(points.features.shape[1]),
        jac=lambda w: loss.gradients(w, points).mean(axis=0),
        constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    ).x


def test_cubic_minimum_is_the_root_of_a_quadratic():
    loss, data = CUBIC
    pull = 10 * 50 / 1050
    root = (-0.2 + math.sqrt(0.2**2 - 2 * 0.001 * pull)) / 0.001
    np.testing.assert_allclose(minimise(loss, data.everything, 2.5), root, rtol=1e-12)
    bounded = minimize(
        lambda w: loss.values(w, data.everything).mean(), 0.0, bounds=[(-2.5, 2.5)], method="L-BFGS-B"
    )
    np.testing.assert_allclose(minimise(loss, data.everything, 2.5), bounded.x, rtol=1e-5)
    assert minimise(loss, data.retain, 2.5) == 0
    assert minimise(loss, data.everything, 2.0) == -2.0


@pytest.mark.parametrize("radius", [0.3, 1.0, math.inf])
@pytest.mark.parametrize("loss", [LogisticLoss(0.02), SquaredLoss()], ids=["logistic", "squared"])
def test_minimum_on_a_ball_equals_scipys(loss, radius):
    points = logistic_points(0)
    ours = minimise(loss, points, radius)
    np.testing.assert_allclose(ours, scipy_minimum(loss, points, min(radius, 100)), atol=1e-6)
    if radius == 0.3:
        assert np.linalg.norm(ours) == pytest.approx(0.3)
    # Optimal: the gradient vanishes, or it points straight out of the ball.
    gradient = loss.gradients(ours, points).mean(axis=0)
    outwards = max(-gradient @ ours, 0) / (ours @ ours)
    assert np.linalg.norm(gradient + outwards * ours) < 1e-10


def test_free_minima_equal_scikit_learns():
    points = logistic_points(1)
    model = LogisticRegression(C=1 / (60 * 0.05), fit_intercept=False, tol=1e-12, max_iter=1000)
    coefficients = model.fit(points.features, points.labels).coef_[0]
    np.testing.assert_allclose(minimise(LogisticLoss(0.05), points), coefficients, rtol=1e-6)
    linear = LinearRegression(fit_intercept=False).fit(*points).coef_
    np.testing.assert_allclose(minimise(SquaredLoss(), points), linear, rtol=1e-10)


def test_weights_of_table_2b():
    data = opposed_points(
        np.random.RandomState(42), 70, 30, dimension=2, slope=0.5, half_range=10.0, forget_norm=20.0
    )
    trained, retrained = (minimise(SquaredLoss(), points) for points in (data.everything, data.retain))
    # As the code behind the paper's Table 2b finds them.
    np.testing.assert_allclose(trained, [-3.2559, 0.6365, -0.1656], atol=5.1e-5)
    np.testing.assert_allclose(retrained, [0.4816, -0.1231, 0.0072], atol=5.1e-5)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=4), st.floats(0.1, 10))
def test_projection_is_the_nearest_point(values, radius):
    weights = np.array(values)
    nearest = project(weights, radius)
    assert np.linalg.norm(nearest) <= radius * (1 + 1e-12)
    others = np.random.default_rng(0).normal(size=(50, len(values)))
    others *= radius / np.maximum(np.linalg.norm(others, axis=1, keepdims=True), radius)
    assert (np.linalg.norm(others - weights, axis=1) >= np.linalg.norm(nearest - weights) - 1e-12).all()


# The Newton step


def test_newton_step_of_the_squared_loss_is_retraining():
    points = logistic_points(2)
    data = ForgetRequest(Points(*(part[:45] for part in points)), Points(*(part[45:] for part in points)))
    step = newton_unlearn(SquaredLoss(), data, minimise(SquaredLoss(), points))
    np.testing.assert_allclose(step, minimise(SquaredLoss(), data.retain), rtol=1e-9)


def test_newton_step_equals_newton_on_the_retain_loss():
    # The sum of all gradients is 0 at the minimum, so the forget gradients are minus the retain gradients.
    points, loss = logistic_points(3), LogisticLoss(0.1)
    data = ForgetRequest(Points(*(part[:50] for part in points)), Points(*(part[50:] for part in points)))
    trained = minimise(loss, points)
    newton = trained - np.linalg.solve(
        loss.hessian(trained, data.retain), loss.gradients(trained, data.retain).mean(axis=0)
    )
    np.testing.assert_allclose(newton_unlearn(loss, data, trained), newton, rtol=1e-9)


def test_table_2a_before_noise():
    result = unlearn_by_newton(*CUBIC, radius=2.5)
    # As the code behind the paper's Table 2a finds them.
    np.testing.assert_allclose(result.trained, -2.395296, atol=5e-7)
    np.testing.assert_allclose(result.unlearned, 0.0145175, atol=5e-8)
    assert result.distance_bound == pytest.approx(0.064942, abs=5e-7)
    assert result.ratio == pytest.approx(0.2235, abs=5e-5)
    assert result.is_interior
    assert not unlearn_by_newton(*CUBIC, radius=2.0).is_interior


@given(st.floats(0.05, 0.5), st.floats(0.02, 0.9), st.floats(0.5, 3), st.floats(0.5, 20), st.integers(1, 60))
def test_lemma_3_holds_for_cubic_problems(regularisation, bend, radius, distance, num_forget):
    loss = CubicLoss(regularisation, bend * regularisation / radius)
    result = unlearn_by_newton(loss, cubic_points(100, num_forget, distance), radius)
    if result.is_interior:
        assert result.ratio <= 1


@pytest.mark.parametrize("seed", range(5))
def test_lemma_3_holds_for_logistic_problems(seed):
    loss = LogisticLoss(1.0)
    data = boundary_points(
        np.random.default_rng(seed), 100, 10, dimension=2, agreement=0.8, forget_norm=1.0 + seed
    )
    result = unlearn_by_newton(loss, data, loss.minimiser_radius)
    assert result.is_interior
    assert 0 < result.ratio < 1


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"radius must be positive, got 0"):
        minimise(*CUBIC[:1], CUBIC[1].retain, 0.0)
    with pytest.raises(InputError, match="radius must be below"):
        minimise(CUBIC[0], CUBIC[1].retain)
    with pytest.raises(InputError, match="linearly independent"):
        minimise(SquaredLoss(), Points(np.ones((5, 2)), np.zeros(5)))
    with pytest.raises(InputError, match="num_forgotten must be an integer between 0 and 10, got 11"):
        newton_distance_bound(Constants(1, 1, 1, 1), 10, 11)
