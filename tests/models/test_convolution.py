import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from jax import lax

from jaxaudit.models.convolution import GroupNorm, conv_general_dilated, convolve, max_pool

LAYOUT = ("NHWC", "HWIO", "NHWC")


def normal(seed, *shape, dtype=jnp.float32):
    return jax.random.normal(jax.random.key(seed), shape).astype(dtype)


def with_gradients(function, *arguments):
    """The result, and the gradient of its product with a fixed array in every argument."""
    result, pull_back = jax.vjp(function, *arguments)
    return result, *pull_back(normal(9, *result.shape, dtype=result.dtype))


def lax_convolve(images, kernel):
    return lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)


@pytest.mark.parametrize(
    ("height", "width", "channels", "features"), [(4, 4, 2, 3), (5, 3, 1, 4), (1, 1, 2, 2), (2, 7, 3, 1)]
)
def test_convolution_and_both_gradients_equal_lax(height, width, channels, features):
    arguments = normal(0, 2, height, width, channels), normal(1, 3, 3, channels, features)
    for got, want in zip(with_gradients(convolve, *arguments), with_gradients(lax_convolve, *arguments)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_convolution_follows_its_definition():
    images, kernel = np.asarray(normal(0, 2, 3, 4, 2)), np.asarray(normal(1, 3, 3, 2, 2))
    want = np.zeros((2, 3, 4, 2))
    for n, i, j, o, a, b in itertools.product(range(2), range(3), range(4), range(2), range(3), range(3)):
        if 0 <= i + a - 1 < 3 and 0 <= j + b - 1 < 4:
            want[n, i, j, o] += images[n, i + a - 1, j + b - 1] @ kernel[a, b, :, o]
    np.testing.assert_allclose(convolve(images, kernel), want, rtol=1e-5, atol=1e-5)


def test_every_run_has_its_own_kernel():
    arguments = normal(0, 3, 2, 5, 4, 2), normal(1, 3, 3, 3, 2, 3)

    def all_runs(function):
        return jax.vmap(lambda images, kernel: with_gradients(function, images, kernel))(*arguments)

    for got, want in zip(all_runs(convolve), all_runs(lax_convolve)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_bfloat16_stays_bfloat16_and_close():
    exact = normal(0, 2, 4, 4, 2), normal(1, 3, 3, 2, 3)
    halves = [argument.astype(jnp.bfloat16) for argument in exact]
    for got, want in zip(with_gradients(convolve, *halves), with_gradients(lax_convolve, *exact)):
        assert got.dtype == jnp.bfloat16
        # 8 bits of mantissa, sums of at most 32 terms.
        np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=0.03, atol=0.2)


def test_second_derivatives_equal_those_of_lax():
    images, kernel, direction = normal(0, 1, 3, 3, 2), normal(1, 3, 3, 2, 2), normal(2, 3, 3, 2, 2)

    def curvature(function):
        gradient = jax.grad(lambda kernel: jnp.sum(jnp.tanh(function(images, kernel))))
        return jax.jvp(gradient, (kernel,), (direction,))[1]  # forward over reverse

    np.testing.assert_allclose(curvature(convolve), curvature(lax_convolve), rtol=1e-4, atol=1e-5)


def test_compiled_gradients_hold_neither_convolution_nor_scatter():
    arguments = normal(0, 3, 2, 4, 4, 2), normal(1, 3, 3, 3, 2, 2)

    def loss(images, kernel):
        return jnp.sum(jnp.tanh(max_pool(convolve(images, kernel))))

    text = jax.jit(jax.vmap(jax.grad(loss, (0, 1)))).lower(*arguments).as_text()
    assert "stablehlo.dot_general" in text
    for slow in ("convolution", "scatter", "reduce_window", "gather"):
        assert f"stablehlo.{slow}" not in text


@pytest.mark.parametrize(
    ("layer", "fast"),
    [
        ({"kernel_size": (3, 3)}, True),
        ({"kernel_size": (3, 3), "padding": 1}, True),
        ({"kernel_size": (3, 3), "padding": "VALID"}, False),
        ({"kernel_size": (3, 3), "padding": [(0, 2), (1, 1)]}, False),
        ({"kernel_size": (3, 3), "strides": 2}, False),
        ({"kernel_size": (3, 3), "kernel_dilation": 2}, False),
        ({"kernel_size": (3, 3), "padding": 1, "input_dilation": 2}, False),
        ({"kernel_size": (3, 3), "feature_group_count": 2}, False),
        ({"kernel_size": (3, 3), "precision": "highest"}, False),
        ({"kernel_size": (1, 1)}, False),
        ({"kernel_size": (5, 3)}, False),
        ({"kernel_size": (3,)}, False),
    ],
)
def test_within_flax_it_replaces_what_it_can_and_leaves_the_rest(layer, fast):
    x = normal(0, 2, 5, 4) if layer["kernel_size"] == (3,) else normal(0, 2, 5, 5, 4)
    plain, ours = linen.Conv(2, **layer), linen.Conv(2, **layer, conv_general_dilated=conv_general_dilated)
    variables = plain.init(jax.random.key(0), x)
    np.testing.assert_allclose(ours.apply(variables, x), plain.apply(variables, x), rtol=1e-5, atol=1e-5)
    text = jax.jit(ours.apply).lower(variables, x).as_text()
    assert ("stablehlo.convolution" not in text) == fast


def test_other_layouts_are_left_to_lax():
    images, kernel = normal(0, 2, 3, 3, 3), normal(1, 3, 3, 3, 3)
    for numbers in (("NCHW", "HWIO", "NHWC"), ("NHWC", "HWOI", "NHWC"), ("NCHW", "OIHW", "NCHW"), None):
        want = lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        got = conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 3), (2, 2)])
def test_pooling_and_its_gradient_equal_flax_even_with_ties(height, width):
    def flax_pool(images):
        return linen.max_pool(images, (2, 2), (2, 2))

    ties = jax.random.randint(jax.random.key(0), (3, height, width, 4), 0, 3).astype(jnp.float32)
    for images in (normal(1, 3, height, width, 4), ties):
        for got, want in zip(with_gradients(max_pool, images), with_gradients(flax_pool, images)):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("place", range(4))
def test_pooling_keeps_nan(place):
    images = jnp.arange(4.0).at[place].set(jnp.nan).reshape(1, 2, 2, 1)
    assert jnp.isnan(max_pool(images)).all()


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_and_its_gradients_equal_flax(groups):
    variables = {"params": {"scale": normal(1, 6), "bias": normal(2, 6)}}
    images = 3 * normal(0, 2, 4, 3, 6) + 1
    ours, flax = GroupNorm(groups), linen.GroupNorm(groups)
    assert jax.tree.all(
        jax.tree.map(
            np.array_equal, ours.init(jax.random.key(0), images), flax.init(jax.random.key(0), images)
        )
    )
    got, want = (with_gradients(layer.apply, variables, images) for layer in (ours, flax))
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_group_norm_of_constant_images_is_its_bias():
    variables = {"params": {"scale": jnp.ones(4), "bias": jnp.arange(4.0)}}
    images = jnp.full((2, 3, 3, 4), 7.3)
    np.testing.assert_allclose(
        GroupNorm(2).apply(variables, images), jnp.broadcast_to(jnp.arange(4.0), (2, 3, 3, 4)), atol=0.01
    )
