import jax
import jax.numpy as jnp
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.unlearn import Stages, Trained, Unlearner, apply, as_stages, no_unlearning, repeat, then
from jaxaudit.unlearn.base import gradient_unlearner


def adding(value, num_updates=1):
    """A toy unlearner that adds a constant to the parameters at every update."""

    def init(key, trained):
        return trained

    def update(key, state, batch):
        return state._replace(params=state.params + value), {}

    return Unlearner(init, update, num_updates)


def noise():
    def update(key, state, batch):
        return state._replace(params=state.params + jax.random.normal(key)), {}

    return Unlearner(lambda key, trained: trained, update, 1)


def run(method, key=0):
    trained = Trained(jnp.zeros(()), jnp.zeros(()))
    return float(apply(method, jax.random.key(key), trained, lambda step: None))


def test_then_hands_the_parameters_on_and_flattens():
    method = then(adding(1.0), then(adding(10.0, 2), adding(100.0)))
    assert isinstance(method, Stages)
    assert len(method.stages) == 3
    assert run(method) == 121.0


def test_repeat_does_it_again():
    assert run(repeat(then(adding(1.0), adding(2.0)), 3)) == 9.0


def test_equal_stages_draw_different_noise():
    once, twice = run(noise()), run(repeat(noise(), 2))
    assert once != 0
    assert twice != pytest.approx(2 * once, abs=1e-3)


def test_as_stages_is_idempotent():
    stages = as_stages(no_unlearning())
    assert as_stages(stages) is stages


@pytest.mark.parametrize("times", [0, -1])
def test_repeat_needs_a_positive_count(times):
    with pytest.raises(InputError, match=f"times must be an integer of at least 1, got {times}"):
        repeat(no_unlearning(), times)


@pytest.mark.parametrize("value", [-1, 1.5, "3"])
def test_num_updates_is_checked(value):
    with pytest.raises(InputError, match="num_updates must be an integer of at least 0, got"):
        gradient_unlearner(lambda params, examples: 0.0, optax.identity(), value, 4, examples=None)
