import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from jaxaudit.errors import InputError
from jaxaudit.unlearn import Trained, apply, release_noise, repeat

PARAMS = {"a": jnp.full((40, 50), 2.0), "b": jnp.full(3000, -1.0)}


def noise_of(method, seed=0):
    released = apply(method, jax.random.key(seed), Trained(PARAMS, PARAMS), lambda step: None)
    return jax.tree.map(lambda new, old: np.asarray(new - old), released, PARAMS)


def test_noise_is_gaussian_with_the_declared_deviation():
    noise = noise_of(release_noise(sigma=0.3))
    values = np.concatenate([leaf.ravel() for leaf in noise.values()]) / 0.3
    assert kstest(values, "norm").pvalue > 1e-3


def test_parameters_of_equal_shape_get_different_noise():
    params = {"a": jnp.zeros(5), "b": jnp.zeros(5)}
    released = apply(release_noise(sigma=1.0), jax.random.key(0), Trained(params, params), lambda step: None)
    assert not np.array_equal(released["a"], released["b"])


def test_noise_of_several_stages_adds_up_in_squares():
    noise = noise_of(repeat(release_noise(sigma=0.1), 4))
    assert np.std(noise["b"]) == pytest.approx(0.2, rel=0.1)


def test_no_noise_changes_nothing():
    assert all((leaf == 0).all() for leaf in noise_of(release_noise(sigma=0.0)).values())


@pytest.mark.parametrize("sigma", [-1.0, float("nan"), float("inf")])
def test_bad_sigma(sigma):
    with pytest.raises(InputError, match="sigma must"):
        release_noise(sigma=sigma)
