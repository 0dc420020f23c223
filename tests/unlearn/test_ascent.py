import jax
import jax.numpy as jnp
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.unlearn import Batch, Trained, apply, gradient_ascent


def quadratic(params, examples):
    return 0.5 * jnp.sum((params - examples.x) ** 2)


def test_climbs_away_from_the_forget_set_at_the_closed_form_speed():
    """On a quadratic, k steps of rate a multiply the distance to the forget point by (1 + a)^k."""
    retain = Examples(jnp.array([50.0]), jnp.zeros(1), jnp.ones(1))
    forget = Examples(jnp.array([2.0]), jnp.zeros(1), jnp.ones(1))
    method = gradient_ascent(quadratic, optimizer=optax.sgd(0.1), num_updates=5)
    trained = Trained(jnp.array([3.0]), jnp.zeros(1))
    result = apply(method, jax.random.key(0), trained, lambda step: Batch(retain, forget))
    assert float(result[0] - 2.0) == pytest.approx(1.1**5, rel=1e-5)


def test_reported_loss_is_negative_because_it_is_minimised():
    one = Examples(jnp.array([2.0]), jnp.zeros(1), jnp.ones(1))
    method = gradient_ascent(quadratic, optimizer=optax.sgd(0.1), num_updates=1)
    state = method.init(jax.random.key(0), Trained(jnp.array([3.0]), jnp.zeros(1)))
    _, info = method.update(jax.random.key(0), state, Batch(one, one))
    assert float(info["loss"]) == -0.5
    assert float(info["gradient_norm"]) == 1.0
