import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from jaxaudit.unlearn.vectors import add_gaussian_noise, project


def tree(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    shapes = {"a": (3, 4), "b": (), "c": (5,)}
    return {name: jnp.asarray(scale * rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}


def flat(params):
    return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(params)])


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e4, 1e36])
@pytest.mark.parametrize("radius", [1e-3, 0.5, 30.0])
def test_projection_is_the_formula_in_double_precision(scale, radius):
    params = tree(scale=scale)
    vector = flat(params)
    expected = vector * min(1.0, radius / np.linalg.norm(vector))
    got = flat(project(params, radius))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert np.linalg.norm(got) <= radius * (1 + 1e-6)


def test_projection_is_the_nearest_point_of_the_ball():
    """The variational inequality: no point of the ball is on the far side of the projection."""
    vector, rng = flat(tree()), np.random.default_rng(1)
    nearest = flat(project(tree(), 0.7))
    others = rng.normal(size=(1000, len(vector)))
    others *= 0.7 * rng.uniform(size=(1000, 1)) / np.linalg.norm(others, axis=1, keepdims=True)
    assert ((others - nearest) @ (vector - nearest)).max() <= 1e-6


def test_inside_the_ball_nothing_changes_by_a_bit():
    params = tree()
    for leaf, same in zip(jax.tree.leaves(params), jax.tree.leaves(project(params, 1e3))):
        assert (leaf == same).all()


def test_the_zero_vector_stays_zero():
    zeros = jax.tree.map(jnp.zeros_like, tree())
    with jax.debug_nans(True):
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(project(zeros, 0.1)))


def test_types_are_kept():
    params = {"half": jnp.full(3, 2.0, jnp.bfloat16), "single": jnp.full(3, 2.0)}
    for changed in (project(params, 1.0), add_gaussian_noise(jax.random.key(0), params, 1.0)):
        assert changed["half"].dtype == jnp.bfloat16
        assert changed["single"].dtype == jnp.float32


def test_noise_is_gaussian_independent_between_leaves_and_added():
    params = {"a": jnp.full((40, 50), 2.0), "b": jnp.full((40, 50), -1.0)}
    noisy = add_gaussian_noise(jax.random.key(0), params, 0.3)
    noise = {name: np.ravel(noisy[name] - params[name]) / 0.3 for name in params}
    for values in noise.values():
        assert kstest(values, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise["a"], noise["b"])[0, 1]) < 4 / np.sqrt(2000)


def test_no_noise_changes_nothing():
    params = tree()
    for leaf, same in zip(
        jax.tree.leaves(params), jax.tree.leaves(add_gaussian_noise(jax.random.key(0), params, 0.0))
    ):
        assert (leaf == same).all()
