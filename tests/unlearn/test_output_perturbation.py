import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from jaxaudit.bound.gaussian import gaussian_epsilon
from jaxaudit.errors import InputError
from jaxaudit.unlearn import Trained, apply
from jaxaudit.unlearn.output_perturbation import (
    OutputPerturbationSpec,
    output_perturbation,
    output_perturbation_recipe,
    project_params,
)
from jaxaudit.unlearn.projected_descent import minimiser_distance
from tests.unlearn.test_projected_descent import CONSTANTS, LOSS


def release(method, params, seed=0):
    return apply(method, jax.random.key(seed), Trained(params, None), lambda step: None)


def sigma_of(recipe):
    noise = recipe.method.stages[-1]
    return float(
        noise.update(jax.random.key(1), noise.init(None, Trained(jnp.zeros(2), None)), None)[1]["sigma"]
    )


def recipe_of(constants=CONSTANTS, sizes=(11, 5), **settings):
    return output_perturbation_recipe(LOSS, constants, *sizes, OutputPerturbationSpec(**settings))


def test_projection_is_that_of_the_whole_vector():
    params = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}
    projected = release(project_params(radius=2.0), params)
    assert np.concatenate([np.ravel(leaf) for leaf in projected.values()]) == pytest.approx([1.2, 0, 1.6])
    inside = release(project_params(radius=5.1), params)
    assert all((inside[name] == params[name]).all() for name in params)
    assert not release(project_params(radius=2.0), jnp.zeros(3)).any()


def test_released_models_are_the_projection_plus_gaussian_noise():
    params = jnp.full(10_000, 0.5)  # of norm 50
    noise = release(output_perturbation(radius=10.0, sigma=0.3), params) - 0.1
    assert kstest(np.asarray(noise) / 0.3, "norm").pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.1, 1.90836), (1.0, 0.375575), (100.0, 0.0165708)])
def test_noise_of_the_papers_table(epsilon, sigma):
    """Radius 0.1, so a sensitivity of 0.2, at delta = 0.01."""
    recipe = recipe_of(epsilon=epsilon, delta=0.01, radius=0.1)
    assert sigma_of(recipe) == pytest.approx(sigma, rel=1e-5)
    assert recipe.certificate.reason.endswith("the diameter of the ball, whatever the training was")
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (epsilon, 0.01)


def test_few_examples_to_forget_need_less_noise_than_the_diameter():
    recipe = recipe_of(sizes=(999, 1), epsilon=2.0)
    distance = minimiser_distance(CONSTANTS, 999, 1)
    assert distance < 0.1 * CONSTANTS.radius
    # The certified distance has a little added for training that is not exact.
    assert gaussian_epsilon(distance, sigma_of(recipe), 1e-5) == pytest.approx(2.0, rel=1e-3)
    assert "if training was full-batch gradient descent" in recipe.certificate.reason


def test_an_assumed_sensitivity_says_so():
    recipe = recipe_of(sensitivity=0.05, epsilon=2.0)
    assert gaussian_epsilon(0.05, sigma_of(recipe), 1e-5) == pytest.approx(2.0, rel=1e-5)
    assert not recipe.certificate.certified
    assert "nominally (2, 1e-05)" in recipe.certificate.reason
    assert "an assumption, smaller than the" in recipe.certificate.reason
    assert "whatever the training was" in recipe_of(sensitivity=1e3).certificate.reason


def test_noise_falls_with_epsilon_and_delta():
    sigmas = [sigma_of(recipe_of(epsilon=epsilon)) for epsilon in (0.0, 0.1, 1.0, 10.0)]
    assert np.all(np.diff(sigmas) < 0)
    assert sigma_of(recipe_of(delta=1e-3)) < sigma_of(recipe_of(delta=1e-5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: project_params(radius=0.0), "radius must be positive, got 0.0"),
        (lambda: output_perturbation(radius=1.0, sigma=-0.1), "sigma must not be negative, got -0.1"),
        (lambda: recipe_of(radius=-1.0), "radius must be positive, got -1.0"),
        (lambda: recipe_of(sensitivity=0.0), "sensitivity must be positive and finite, got 0.0"),
        (lambda: recipe_of(delta=0.0), r"delta must be in \(0, 1\), got 0.0"),
        (lambda: recipe_of(epsilon=-1.0), "epsilon must not be negative, got -1.0"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
