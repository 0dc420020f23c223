import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import cross_entropy_loss
from jaxaudit.unlearn import Batch, Trained, apply, gradient_ascent, retain_finetune
from jaxaudit.unlearn.gradient_difference import gradient_difference

LOSS = cross_entropy_loss(lambda params, x: x @ params)


def examples(seed, size, num_padding=0):
    rng = np.random.default_rng(seed)
    x = jnp.asarray(rng.normal(size=(size, 4)), jnp.float32)
    weights = jnp.arange(size) < size - num_padding
    return Examples(x, jnp.asarray(rng.integers(0, 3, size), jnp.int32), weights.astype(jnp.float32))


BATCH = Batch(retain=examples(1, 6), forget=examples(2, 5, num_padding=2))
TRAINED = Trained(jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)), jnp.float32), jnp.zeros((4, 3)))


def unlearn(method):
    method = method._replace(update=jax.jit(method.update))
    return apply(method, jax.random.key(0), TRAINED, lambda step: BATCH)


def difference(retain_weight, num_updates=4, optimizer=None):
    return gradient_difference(
        LOSS, optimizer=optimizer or optax.sgd(0.3), num_updates=num_updates, retain_weight=retain_weight
    )


def softmax_gradient(params, part):
    """Mean of x (p - onehot(y))^T over the examples that are not padding, in NumPy."""
    x, y, weights = (np.asarray(leaf) for leaf in part)
    logits = x @ params
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return x.T @ ((p - np.eye(3)[y]) * weights[:, None]) / weights.sum()


@pytest.mark.parametrize("retain_weight", [0.25, 0.5, 0.95])
def test_steps_have_the_closed_form_of_softmax_regression(retain_weight):
    params = np.asarray(TRAINED.params, float)
    for _ in range(4):
        retain, forget = (softmax_gradient(params, part) for part in BATCH)
        params = params - 0.3 * (retain_weight * retain - (1 - retain_weight) * forget)
    np.testing.assert_allclose(unlearn(difference(retain_weight)), params, rtol=1e-4, atol=1e-6)


def test_the_ends_are_fine_tuning_and_ascent():
    optimizer = optax.sgd(optax.linear_schedule(0.3, 0.0, 4), momentum=0.9)
    options = {"optimizer": optimizer, "num_updates": 4}
    np.testing.assert_array_equal(
        unlearn(difference(1, optimizer=optimizer)), unlearn(retain_finetune(LOSS, **options))
    )
    np.testing.assert_array_equal(
        unlearn(difference(0, optimizer=optimizer)), unlearn(gradient_ascent(LOSS, **options))
    )


def test_equal_weights_and_equal_data_stay_where_they_are():
    method = difference(0.5)
    same = Batch(retain=BATCH.retain, forget=BATCH.retain)
    np.testing.assert_array_equal(
        apply(method, jax.random.key(0), TRAINED, lambda step: same), TRAINED.params
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"retain_weight": 1.5}, r"retain_weight must be in \[0, 1\], got 1.5"),
        ({"retain_weight": -0.1}, r"retain_weight must be in \[0, 1\], got -0.1"),
        ({"retain_weight": float("nan")}, "retain_weight must be a finite number, got nan"),
        ({"num_updates": -1}, "num_updates must be an integer of at least 0, got -1"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        difference(**{"retain_weight": 0.9, **change})
