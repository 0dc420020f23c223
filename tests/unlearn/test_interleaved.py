import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import take_batch
from jaxaudit.unlearn import Batch, Trained, apply, retain_finetune
from jaxaudit.unlearn.gradient_difference import gradient_difference
from jaxaudit.unlearn.interleaved import interleaved_descent_ascent

RATE = 0.1


def quadratic(params, examples):
    distances = jnp.sum((params - examples.x) ** 2, axis=-1)
    return 0.5 * jnp.sum(distances * examples.weights) / jnp.sum(examples.weights)


def points(values):
    x = jnp.asarray(values, jnp.float32)
    return Examples(x, jnp.zeros(len(x), jnp.int32), jnp.ones(len(x)))


RETAIN, FORGET = points([[1.0, 2.0]]), points([[-3.0, 0.5]])
TRAINED = Trained(jnp.array([0.5, -0.5]), jnp.zeros(2))


def whole_sets(step):
    return Batch(RETAIN, FORGET)


def unlearn(method, batch_fn=whole_sets, trained=TRAINED):
    method = method._replace(update=jax.jit(method.update))
    return np.asarray(apply(method, jax.random.key(0), trained, batch_fn))


def interleaved(num_updates, num_descents=1, forget_weight=0.75, optimizer=None, **options):
    return interleaved_descent_ascent(
        quadratic,
        optimizer=optimizer or optax.sgd(RATE),
        num_updates=num_updates,
        num_descents=num_descents,
        forget_weight=forget_weight,
        **options,
    )


@pytest.mark.parametrize("num_descents", [1, 2, 4])
def test_every_last_step_of_a_cycle_is_a_combined_one(num_descents):
    """Equation 16 in NumPy, t counted from 1, with the gradients of a quadratic."""
    params, retain, forget = (np.asarray(a) for a in (TRAINED.params, RETAIN.x[0], FORGET.x[0]))
    for t in range(1, 12):
        indicator = t % (num_descents + 1) == 0
        params = params - RATE * ((params - retain) - 0.75 * indicator * (params - forget))
        np.testing.assert_allclose(unlearn(interleaved(t, num_descents)), params, rtol=1e-5)


def test_without_forget_weight_it_is_fine_tuning():
    momentum = optax.sgd(optax.linear_schedule(0.2, 0.0, 7), momentum=0.9)
    finetuned = retain_finetune(quadratic, optimizer=momentum, num_updates=7)
    ours = interleaved(7, 2, forget_weight=0.0, optimizer=momentum)
    np.testing.assert_array_equal(unlearn(ours), unlearn(finetuned))


def test_a_longer_cycle_than_updates_is_fine_tuning():
    finetuned = retain_finetune(quadratic, optimizer=optax.sgd(RATE), num_updates=5)
    np.testing.assert_array_equal(unlearn(interleaved(5, num_descents=5)), unlearn(finetuned))


def test_a_combined_step_is_a_step_of_gradient_difference():
    """With beta = 1 / (1 + lambda) at (1 + lambda) times the rate."""
    weight = 0.75
    ours = unlearn(interleaved(2, 1, weight))
    after_descent = unlearn(retain_finetune(quadratic, optimizer=optax.sgd(RATE), num_updates=1))
    difference = gradient_difference(
        quadratic, optimizer=optax.sgd(RATE * (1 + weight)), num_updates=1, retain_weight=1 / (1 + weight)
    )
    theirs = unlearn(difference, trained=TRAINED._replace(params=jnp.asarray(after_descent)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def combined_steps(num_descents, num_forget_batches, num_updates):
    """The updates in which the forget gradient counts: only they move the parameters if the retain loss is flat."""

    def flat_on_retain(params, examples):
        return params * jnp.sum(examples.x)

    method = interleaved_descent_ascent(
        flat_on_retain,
        optimizer=optax.sgd(1.0),
        num_updates=num_updates,
        num_descents=num_descents,
        forget_weight=1.0,
        num_forget_batches=num_forget_batches,
    )
    state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    batch = Batch(retain=points([0.0]), forget=points([1.0]))
    moved = []
    for step in range(num_updates):
        after, _ = method.update(jax.random.key(1), state, batch)
        if float(after.params) != float(state.params):
            moved.append(step)
        state = after
    return moved


@pytest.mark.parametrize(("num_descents", "num_forget_batches"), [(1, 1), (1, 4), (2, 4), (3, 6), (5, 4)])
def test_every_forget_batch_is_climbed_equally_often(num_descents, num_forget_batches):
    cycle, rounds = num_descents + 1, 2
    divisor = np.gcd(cycle, num_forget_batches)
    period = np.lcm(cycle, num_forget_batches) + (divisor > 1)
    steps = combined_steps(num_descents, num_forget_batches, int(period * divisor * rounds))
    counts = np.bincount(np.asarray(steps) % num_forget_batches, minlength=num_forget_batches)
    assert (counts == rounds).all()
    gaps = set(np.diff(steps))
    assert gaps <= ({cycle, cycle + 1} if divisor > 1 else {cycle})


def test_the_forget_batches_are_those_of_the_run_in_their_order():
    pool = points([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 4.0], [5.0, 5.0]])
    retain, forget = jnp.array([0, 1]), jnp.array([2, 3, 4])

    def batches(step):
        return Batch(take_batch(pool, retain, step, 1), take_batch(pool, forget, step, 1))

    params = np.asarray(TRAINED.params)
    for step in range(6):
        gradient = params - np.asarray(pool.x[step % 2])
        if step % 2:
            gradient = gradient - 0.75 * (params - np.asarray(pool.x[2 + step % 3]))
        params = params - RATE * gradient
    np.testing.assert_allclose(unlearn(interleaved(6, batch_size=1), batches), params, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_descents": 0}, "num_descents must be an integer of at least 1, got 0"),
        ({"forget_weight": -0.5}, "forget_weight must not be negative, got -0.5"),
        ({"forget_weight": float("nan")}, "forget_weight must be a finite number, got nan"),
        ({"num_updates": -1}, "num_updates must be an integer of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"num_forget_batches": 0}, "num_forget_batches must be an integer of at least 1, got 0"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        interleaved(**{"num_updates": 1, **change})
