import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models import char_lstm, from_linen, from_nnx, mlp, tinynet
from jaxaudit.runs import run_loops
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop


class NnxMlp(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 8, rngs=rngs)
        self.second = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


class LinenMlp(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(2)(linen.relu(linen.Dense(8)(x)))


def trained_accuracy(model):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(60, 3)), jnp.float32)
    pool = Examples(x, (x[:, 0] > 0).astype(jnp.int32), jnp.ones(60))
    loop = training_loop(cross_entropy_loss(model.logits_fn), SgdSpec(40, 0.5, batch_size=20), 60)
    runs = TrainingRun(jnp.tile(jnp.arange(60), (2, 1)), jax.random.split(jax.random.key(1), 2))
    state, _ = run_loops(loop, runs, TrainingShared(pool, model.init_fn(jax.random.key(0))))
    logits = jax.vmap(lambda params: model.logits_fn(params, x))(state.params)
    return float((logits.argmax(-1) == pool.y).mean())


def test_linen_and_nnx_modules_train_over_the_run_axis():
    assert trained_accuracy(from_linen(LinenMlp(), jnp.zeros((1, 3)))) > 0.9
    assert trained_accuracy(from_nnx(NnxMlp)) > 0.9


def test_logits_are_the_modules_own():
    x = jnp.ones((4, 3))
    module = LinenMlp()
    model = from_linen(module, x)
    params = model.init_fn(jax.random.key(1))
    np.testing.assert_array_equal(model.logits_fn(params, x), module.apply({"params": params}, x))
    nnx_model = from_nnx(NnxMlp)
    np.testing.assert_array_equal(
        nnx_model.logits_fn(nnx_model.init_fn(jax.random.key(1)), x),
        NnxMlp(nnx.Rngs(params=jax.random.key(1)))(x),
    )


def test_parameters_follow_the_key():
    model = from_nnx(NnxMlp)
    one, same, other = (jax.tree.leaves(model.init_fn(jax.random.key(seed)))[-1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert abs(one - other).max() > 0


SMALL_MODELS = {
    "mlp": (lambda dtype: mlp((6,), 3, (8,), compute_dtype=dtype), jnp.float32, (5, 6)),
    "tinynet": (lambda dtype: tinynet((4, 4, 1), 3, (4,), 2, compute_dtype=dtype), jnp.float32, (5, 4, 4, 1)),
    "lstm": (lambda dtype: char_lstm(6, 4, 8, 1, compute_dtype=dtype), jnp.int32, (5, 6)),
}


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_bfloat16_keeps_parameters_gradients_and_logits_in_float32(name):
    make, dtype, shape = SMALL_MODELS[name]
    exact, model = make("float32"), make("bfloat16")
    params = model.init_fn(jax.random.key(0))
    x = (3 * jax.random.uniform(jax.random.key(1), shape)).astype(dtype)

    def both(logits_fn):
        loss = jax.value_and_grad(lambda params: jnp.mean(logits_fn(params, x) ** 2))
        return logits_fn(params, x), *loss(params)

    rounded, precise = both(model.logits_fn), both(exact.logits_fn)
    assert {leaf.dtype for leaf in jax.tree.leaves((params, rounded))} == {jnp.dtype("float32")}
    difference = float(jnp.linalg.norm(rounded[0] - precise[0]) / jnp.linalg.norm(precise[0]))
    assert 1e-5 < difference < 0.03  # it did round, by what 8 bits of mantissa allow
    for one, other in zip(jax.tree.leaves(rounded[2]), jax.tree.leaves(precise[2])):
        assert float(jnp.linalg.norm(one - other)) < 0.1 * float(jnp.linalg.norm(other)) + 1e-3
    jax.tree.map(np.testing.assert_array_equal, params, exact.init_fn(jax.random.key(0)))
    assert model.description == f"{exact.description}, computed in bfloat16"


def test_unknown_compute_dtype():
    with pytest.raises(InputError, match=r"compute_dtype must be one of .*, got 'float8'"):
        mlp((4,), 2, compute_dtype="float8")
