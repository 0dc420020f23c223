import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.train import cross_entropy_loss, take_batch
from jaxaudit.unlearn import Batch, Trained
from jaxaudit.unlearn.accumulate import accumulate, gradient_sum, squared_gradient_sum, weighted_mean
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop

NUM_RETAIN, NUM_FORGET, CLASSES = 11, 5, 3
LOSS = cross_entropy_loss(lambda params, x: x @ params)
WEIGHTS = np.ones(NUM_RETAIN + NUM_FORGET)
WEIGHTS[[3, 13]] = 0  # padding, among the retain and among the forget examples
RETAIN, FORGET = np.arange(NUM_RETAIN), NUM_RETAIN + np.arange(NUM_FORGET)


def make_pool(garbage=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(WEIGHTS), 4))
    x[WEIGHTS == 0] += garbage
    y = rng.integers(0, CLASSES, len(WEIGHTS))
    return Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y), jnp.asarray(WEIGHTS, jnp.float32))


POOL = make_pool()
PARAMS = jnp.asarray(np.random.default_rng(1).normal(size=(4, CLASSES)), jnp.float32)


def softmax_gradients(rows):
    """Closed form, one gradient per example of weight 1: the outer product of x and (probabilities - one hot)."""
    rows = rows[WEIGHTS[rows] == 1]
    x, y = np.asarray(POOL.x, float)[rows], np.asarray(POOL.y)[rows]
    odds = np.exp(x @ np.asarray(PARAMS, float))
    error = odds / odds.sum(1, keepdims=True) - np.eye(CLASSES)[y]
    return x[:, :, None] * error[:, None, :]


def pass_over(method, pool=POOL, previous=None):
    state, update = (
        method.init(jax.random.key(0), Trained(PARAMS, PARAMS, None, previous)),
        jax.jit(method.update),
    )
    for step in range(method.num_updates):
        parts = [take_batch(pool, jnp.asarray(rows), step, method.batch_size) for rows in (RETAIN, FORGET)]
        state, _ = update(jax.random.key(0), state, Batch(*parts))
    return state


@pytest.mark.parametrize("batch_size", [1, 4, 64])
@pytest.mark.parametrize(("part", "rows"), [("retain", RETAIN), ("forget", FORGET)])
@pytest.mark.parametrize(("statistic", "power"), [(gradient_sum, 1), (squared_gradient_sum, 2)])
def test_a_pass_gives_the_mean_over_all_examples(batch_size, part, rows, statistic, power):
    method = accumulate(statistic(LOSS), part=part, num_examples=len(rows), batch_size=batch_size)
    summed = pass_over(method).sums[part]
    np.testing.assert_allclose(weighted_mean(summed), (softmax_gradients(rows) ** power).mean(0), rtol=2e-5)
    assert float(summed.weight) == len(rows) - 1


@pytest.mark.parametrize("statistic", [gradient_sum, squared_gradient_sum])
def test_padding_may_hold_anything(statistic):
    method = accumulate(statistic(LOSS), part="retain", num_examples=NUM_RETAIN, batch_size=4)
    clean, dirty = (pass_over(method, pool).sums["retain"].total for pool in (POOL, make_pool(1e25)))
    np.testing.assert_array_equal(clean, dirty)


def test_a_stage_that_continues_keeps_the_sums_before():
    first = pass_over(accumulate(gradient_sum(LOSS), part="retain", num_examples=NUM_RETAIN))
    second = pass_over(
        accumulate(gradient_sum(LOSS), part="forget", num_examples=NUM_FORGET, continues=True), previous=first
    )
    assert second.sums.keys() == {"retain", "forget"}
    np.testing.assert_array_equal(second.sums["retain"].total, first.sums["retain"].total)
    np.testing.assert_array_equal(second.params, PARAMS)


def test_the_driver_makes_one_pass():
    method = accumulate(gradient_sum(LOSS), part="forget", num_examples=NUM_FORGET, batch_size=2)
    forget = jnp.asarray([FORGET, FORGET[::-1]])
    runs = RunInput(jax.random.split(jax.random.key(0), 2), jnp.stack([PARAMS, PARAMS]), forget)
    state, _ = run_loops(stage_loop(method), runs, SharedInput(POOL, jnp.asarray(RETAIN), PARAMS))
    for total in state.sums["forget"].total:
        np.testing.assert_allclose(total, softmax_gradients(FORGET).sum(0), rtol=2e-5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"part": "test"}, "part must be one of retain, forget, got 'test'"),
        ({"num_examples": 0}, "num_examples must be an integer of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
    ],
)
def test_bad_arguments(setting, message):
    with pytest.raises(InputError, match=message):
        accumulate(gradient_sum(LOSS), **{"part": "retain", "num_examples": 3, **setting})
