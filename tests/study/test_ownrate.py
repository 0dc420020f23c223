"""A run's own rate is the method's rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.study import at_own_rate
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.preference import PRESETS
from jaxaudit.unlearn.preference.presets import pistol_optimizer


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_its_own_rate_is_the_rate_of_the_optimiser(preset, rate):
    """On a quadratic, with warm-up, decay of rate and weights, and clipping."""

    def method(own):
        optimizer = pistol_optimizer(PRESETS[preset], learning_rate=own, num_updates=8, epochs=4)
        return gradient_ascent(
            lambda params, examples: -jnp.sum((params - examples.x) ** 2),
            optimizer=optimizer,
            num_updates=8,
            batch_size=1,
        )

    start = jnp.array([1.0, -2.0])
    one = Examples(jnp.array([3.0, 0.5]), jnp.zeros(1, int), jnp.ones(1))
    batches = lambda step: Batch(one, one)  # noqa: E731
    key = jax.random.key(0)
    expected = apply(method(rate), key, Trained(start, start), batches)
    found = apply(at_own_rate(method(1.0)), key, Trained(start, start, previous=jnp.array(rate)), batches)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert float(jnp.abs(expected - start).max()) > 0
