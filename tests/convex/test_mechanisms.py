"""The two mechanisms: noise and true epsilon against published numbers, numerical integration and limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from jaxaudit.convex.losses import CubicLoss, SquaredLoss
from jaxaudit.convex.mechanisms import GaussianPair, output_perturbation, perturbed_newton
from jaxaudit.convex.placements import cubic_points, opposed_points
from jaxaudit.convex.solve import unlearn_by_newton
from jaxaudit.errors import InputError

NEWTON = unlearn_by_newton(CubicLoss(0.2, 0.001), cubic_points(1000, 50, 10.0), radius=2.5)
DATA = opposed_points(
    np.random.RandomState(42), 70, 30, dimension=2, slope=0.5, half_range=10.0, forget_norm=20.0
)


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(0.1, 0.619665), (5, 0.036977), (100, 0.0053807), (800, 0.00171961)]
)
def test_noise_of_table_2a(epsilon, sigma):
    assert perturbed_newton(NEWTON).sigma(epsilon, 0.01) == pytest.approx(sigma, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.1, 1.90836), (1, 0.375575), (100, 0.0165708)])
def test_noise_and_distance_of_table_2b(epsilon, sigma):
    pair = output_perturbation(SquaredLoss(), DATA, clip=0.1)
    assert pair.sigma(epsilon, 0.01) == pytest.approx(sigma, rel=5e-6)
    assert pair.distance / pair.sensitivity == pytest.approx(0.99944, abs=5e-6)
    assert np.linalg.norm(pair.unlearned) == pytest.approx(0.1)
    assert np.linalg.norm(pair.reference) == pytest.approx(0.1)


def test_weak_clipping_changes_nothing():
    pair = output_perturbation(SquaredLoss(), DATA, clip=10.0)
    np.testing.assert_allclose(pair.reference, np.linalg.lstsq(*DATA.retain)[0], rtol=1e-9)


@given(st.floats(0.01, 1), st.floats(0.05, 50), st.floats(1e-4, 0.2))
def test_the_true_epsilon_is_at_most_the_certified_one(share, certified, delta):
    pair = GaussianPair(np.array([share, 0.0]), np.zeros(2), sensitivity=1.0)
    limit = pair.limit(pair.sigma(certified, delta), delta)
    assert 0 <= limit <= certified * (1 + 1e-9)
    if share == 1:
        assert limit == pytest.approx(certified)


def test_the_true_epsilon_meets_delta_by_integration():
    pair = GaussianPair(np.array([0.05]), np.zeros(1), sensitivity=0.2)
    sigma = pair.sigma(5.0, 0.01)
    epsilon = pair.limit(sigma, 0.01)
    grid = np.linspace(-12 * sigma, 0.05 + 12 * sigma, 2_000_001)
    excess = norm.pdf(grid, 0.05, sigma) - math.exp(epsilon) * norm.pdf(grid, 0, sigma)
    assert np.trapezoid(np.maximum(excess, 0), grid) == pytest.approx(0.01, rel=1e-6)


def test_equal_means_have_nothing_to_find():
    assert GaussianPair(np.ones(2), np.ones(2), 1.0).limit(sigma=0.1, delta=0.01) == 0.0


def test_bad_input_is_named():
    with pytest.raises(InputError, match="sensitivity must be at least the distance of the means, 2, got 1"):
        GaussianPair(np.array([2.0]), np.zeros(1), 1.0)
    with pytest.raises(InputError, match="sensitivity must be positive, got 0"):
        GaussianPair(np.zeros(1), np.zeros(1), 0.0)
    with pytest.raises(InputError, match="clip must be positive, got -1"):
        output_perturbation(SquaredLoss(), DATA, clip=-1.0)
    border = unlearn_by_newton(CubicLoss(0.2, 0.001), cubic_points(1000, 50, 10.0), radius=2.0)
    with pytest.raises(
        InputError, match="radius must exceed the norm of both minimisers, got 2 on the border"
    ):
        perturbed_newton(border)
