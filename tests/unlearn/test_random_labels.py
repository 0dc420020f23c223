import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import chisquare

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.train import cross_entropy_loss, take_batch
from jaxaudit.unlearn import Batch, Trained, apply, retain_finetune
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.random_labels import random_labels

LOSS = cross_entropy_loss(lambda params, x: x @ params)
NUM_CLASSES, NUM_FORGET, BATCH = 4, 7, 3


def make_pool(seed=0, size=12):
    rng = np.random.default_rng(seed)
    x = jnp.asarray(rng.normal(size=(size, 5)), jnp.float32)
    return Examples(x, jnp.asarray(rng.integers(0, NUM_CLASSES, size), jnp.int32), jnp.ones(size))


POOL = make_pool()
RETAIN, FORGET = jnp.arange(5), 5 + jnp.arange(NUM_FORGET)
TRAINED = Trained(jnp.asarray(np.random.default_rng(0).normal(size=(5, 4)), jnp.float32), jnp.zeros((5, 4)))


def batch_at(step):
    return Batch(*(take_batch(POOL, rows, step, BATCH) for rows in (RETAIN, FORGET)))


def make(loss=LOSS, forget_weight=0.2, num_updates=6, optimizer=None, **change):
    settings = {"num_classes": NUM_CLASSES, "num_forget": NUM_FORGET, "batch_size": BATCH, **change}
    return random_labels(
        loss,
        optimizer=optimizer or optax.sgd(0.3),
        num_updates=num_updates,
        forget_weight=forget_weight,
        **settings,
    )


def labels_seen(method, key, num_updates, batch_fn=batch_at):
    """Labels of the forget batches as the loss sees them."""
    seen = []

    def spy(params, examples):
        seen.append(np.asarray(examples.y))
        return jnp.sum(params) * 0.0

    method = method(spy)
    state = method.init(key, TRAINED)
    with jax.disable_jit():
        for step in range(num_updates):
            state, _ = method.update(key, state, batch_fn(step))
    return seen[1::2]  # every update looks at the retain batch first


def test_labels_are_wrong_and_uniform_on_the_other_classes():
    many = 6000
    forget = Examples(jnp.zeros((many, 5)), jnp.arange(many, dtype=jnp.int32) % NUM_CLASSES, jnp.ones(many))
    (labels,) = labels_seen(
        lambda spy: make(spy, num_forget=many, batch_size=many),
        jax.random.key(1),
        1,
        lambda step: Batch(forget, forget),
    )
    true = np.asarray(forget.y)
    assert (labels != true).all()
    assert set(labels) == set(range(NUM_CLASSES))
    table = np.zeros((NUM_CLASSES, NUM_CLASSES))
    np.add.at(table, (true, labels), 1)
    others = table[~np.eye(NUM_CLASSES, dtype=bool)]
    assert chisquare(others).pvalue > 1e-3


def test_labels_stay_the_same_in_every_pass():
    first, second = np.split(np.stack(labels_seen(make, jax.random.key(2), 6)), 2)
    np.testing.assert_array_equal(first, second)
    other = np.stack(labels_seen(make, jax.random.key(3), 3))
    assert (first != other).any()


def test_every_run_has_labels_of_its_own():
    loop = stage_loop(make(num_updates=1))
    keys = jax.random.split(jax.random.key(0), 3)
    params = jnp.tile(TRAINED.params, (3, 1, 1))
    runs = RunInput(keys, params, jnp.tile(FORGET, (3, 1)))
    states = run_loops(loop, runs, SharedInput(POOL, RETAIN, TRAINED.initial_params))[0]
    assert len(np.unique(states.offsets.reshape(3, -1), axis=0)) == 3


def test_steps_are_those_on_the_union_with_the_drawn_labels():
    """One weighted gradient over retain and relabelled examples, with weights that do not need two batches."""
    method = make(num_updates=3, forget_weight=0.25)
    key = jax.random.key(4)
    labels = labels_seen(lambda spy: make(spy), jax.random.fold_in(jax.random.fold_in(key, 0), 0), 3)
    params = TRAINED.params
    for step in range(3):
        retain, forget = batch_at(step)
        x = jnp.concatenate([retain.x, forget.x])
        y = jnp.concatenate([retain.y, labels[step]])
        shares = jnp.concatenate(
            [0.75 * retain.weights / retain.weights.sum(), 0.25 * forget.weights / forget.weights.sum()]
        )

        def loss(params, x=x, y=y, shares=shares):
            log_probabilities = jax.nn.log_softmax(x @ params)
            return -jnp.sum(shares * log_probabilities[jnp.arange(len(y)), y])

        params = params - 0.3 * jax.grad(loss)(params)
    np.testing.assert_allclose(apply(method, key, TRAINED, batch_at), params, rtol=1e-5, atol=1e-6)


def test_without_forget_weight_it_is_fine_tuning():
    optimizer = optax.sgd(optax.linear_schedule(0.3, 0.0, 6), momentum=0.9)
    finetuned = retain_finetune(LOSS, optimizer=optimizer, num_updates=6, batch_size=BATCH)
    ours = apply(make(forget_weight=0, optimizer=optimizer), jax.random.key(0), TRAINED, batch_at)
    theirs = apply(finetuned, jax.random.key(0), TRAINED, batch_at)
    np.testing.assert_array_equal(ours, theirs)


def test_two_classes_swap():
    pool = POOL._replace(y=POOL.y % 2)
    batch = Batch(*(take_batch(pool, rows, 0, BATCH) for rows in (RETAIN, FORGET)))
    (labels,) = labels_seen(lambda spy: make(spy, num_classes=2), jax.random.key(0), 1, lambda step: batch)
    np.testing.assert_array_equal(labels, 1 - np.asarray(batch.forget.y))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_classes": 1}, "num_classes must be an integer of at least 2, got 1"),
        ({"num_forget": 0}, "num_forget must be an integer of at least 1, got 0"),
        ({"forget_weight": 1.5}, r"forget_weight must be in \[0, 1\], got 1.5"),
        ({"forget_weight": float("nan")}, "forget_weight must be a finite number, got nan"),
        ({"num_updates": -1}, "num_updates must be an integer of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        make(**change)


def test_labels_of_another_shape():
    method = make(batch_size=BATCH + 1)
    state = method.init(jax.random.key(0), TRAINED)
    with pytest.raises(InputError, match=r"batch_size = 4 labels, got shape \(3,\)"):
        method.update(jax.random.key(0), state, batch_at(0))
