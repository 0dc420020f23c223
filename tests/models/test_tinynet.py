import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

from jaxaudit.errors import InputError
from jaxaudit.models import tinynet

SMALL = {"input_shape": (8, 8, 3), "num_classes": 5, "widths": (4, 8), "groups": 2}


def shapes(params):
    return {layer: {name: leaf.shape for name, leaf in leaves.items()} for layer, leaves in params.items()}


def test_layers_of_the_papers_network():
    params = jax.eval_shape(tinynet().init_fn, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 273_828
    convolutions = [(3, 64), (64, 64), (64, 128), (128, 128)]
    expected = {
        f"Conv_{i}": {"kernel": (3, 3, *sizes), "bias": sizes[1:]} for i, sizes in enumerate(convolutions)
    }
    expected |= {
        f"GroupNorm_{i}": {"scale": (out,), "bias": (out,)} for i, (_, out) in enumerate(convolutions)
    }
    expected |= {"Dense_0": {"kernel": (128, 100), "bias": (100,)}}
    assert shapes(params) == expected


def reference_logits(params, x):
    """The same layers, straight from Flax."""

    def block(x, first):
        for i in (first, first + 1):
            x = linen.Conv(params[f"Conv_{i}"]["bias"].size, (3, 3)).apply({"params": params[f"Conv_{i}"]}, x)
            x = linen.relu(linen.GroupNorm(2).apply({"params": params[f"GroupNorm_{i}"]}, x))
        return linen.max_pool(x, (2, 2), (2, 2))

    return linen.Dense(5).apply({"params": params["Dense_0"]}, block(block(x, 0), 2).mean((1, 2)))


@pytest.mark.parametrize("convolution", ["patches", "lax"])
def test_logits_and_gradients_equal_flax_layers(convolution):
    model = tinynet(**SMALL, convolution=convolution)
    params = model.init_fn(jax.random.key(0))
    params = jax.tree.map(
        lambda leaf: leaf + 0.1 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), params
    )
    x = jax.random.normal(jax.random.key(1), (6, 8, 8, 3))

    def both(logits_fn):
        gradient = jax.grad(lambda params: jnp.sum(jax.nn.log_softmax(logits_fn(params, x))[:, 1]))
        return logits_fn(params, x), gradient(params)

    for one, other in zip(jax.tree.leaves(both(model.logits_fn)), jax.tree.leaves(both(reference_logits))):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_start_is_truncated_he_with_zero_biases():
    params = tinynet((4, 4, 3), 10, (64, 128)).init_fn(jax.random.key(0))
    for layer, fan_in in {"Conv_0": 27, "Conv_1": 576, "Conv_2": 576, "Conv_3": 1152, "Dense_0": 128}.items():
        kernel = np.asarray(params[layer]["kernel"])
        scale = np.sqrt(2 / fan_in)
        assert kernel.std() == pytest.approx(scale, rel=5 / np.sqrt(2 * kernel.size))
        # Truncated at two standard deviations of a normal whose truncated variance is 2 / fan_in.
        assert abs(kernel).max() <= 2 * scale / 0.87962566103423978 * (1 + 1e-6)
    for name, leaves in params.items():
        assert not leaves["bias"].any()
        assert "GroupNorm" not in name or (leaves["scale"] == 1).all()


def test_the_other_implementation_is_an_alternative():
    model = tinynet(**SMALL)
    (other,) = model.alternatives
    assert other.logits_fn is tinynet(**SMALL, convolution="lax").logits_fn
    assert other.logits_fn is not model.logits_fn
    assert other.alternatives == ()
    assert model.logits_fn is tinynet(**SMALL).logits_fn  # so programs are compiled once
    assert model.description == ("TinyNet 4-8, input 8x8x3, 5 classes, GroupNorm(2), convolutions as patches")


def test_examples_may_come_flattened_and_sizes_may_be_odd():
    model = tinynet((5, 7, 1), 2, (4,), 2)
    params = model.init_fn(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (3, 5, 7, 1))
    np.testing.assert_array_equal(model.logits_fn(params, x), model.logits_fn(params, x.reshape(3, -1)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_shape": (8, 8)}, "input_shape must be"),
        ({"input_shape": (3, 8, 1)}, "at least 4 pixels each way for 2 blocks, got \\(3, 8, 1\\)"),
        ({"widths": (4, 9)}, "widths must be positive multiples of groups = 2, got \\(4, 9\\)"),
        ({"widths": ()}, "widths must be"),
        ({"groups": 0}, "multiples of groups = 0"),
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ({"convolution": "fft"}, "convolution must be one of .*, got 'fft'"),
        ({"compute_dtype": "int8"}, "compute_dtype must be one of .*, got 'int8'"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(InputError, match=message):
        tinynet(**SMALL | changes)
