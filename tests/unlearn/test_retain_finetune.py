import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.unlearn import Batch, Trained, apply, retain_finetune


def squared_error(params, examples):
    return jnp.sum(examples.weights * (examples.x @ params - examples.y) ** 2)


def test_converges_to_the_least_squares_solution_of_the_retain_set():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    retain = Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.ones(20))
    forget = jax.tree.map(lambda leaf: leaf + 100.0, retain)
    method = retain_finetune(squared_error, optimizer=optax.sgd(0.01), num_updates=2000)
    method = method._replace(update=jax.jit(method.update))
    trained = Trained(jnp.zeros(3), jnp.zeros(3))
    result = apply(method, jax.random.key(0), trained, lambda step: Batch(retain, forget))
    np.testing.assert_allclose(result, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-4)


def test_any_optax_optimiser_fits():
    one = Examples(jnp.ones((1, 1)), jnp.ones(1), jnp.ones(1))
    method = retain_finetune(squared_error, optimizer=optax.adam(0.5), num_updates=1)
    moved = apply(
        method, jax.random.key(0), Trained(jnp.zeros(1), jnp.zeros(1)), lambda step: Batch(one, one)
    )
    assert float(moved[0]) == pytest.approx(
        0.5, rel=1e-4
    )  # Adam's first step has the size of its learning rate


def test_bad_number_of_updates():
    with pytest.raises(InputError, match="num_updates"):
        retain_finetune(squared_error, optimizer=optax.sgd(0.1), num_updates=-1)
