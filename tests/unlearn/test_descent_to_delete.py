from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.bound.gaussian import gaussian_epsilon
from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.unlearn.base import Trained
from jaxaudit.unlearn.descent_to_delete import (
    DescentToDeleteSpec,
    descent_sensitivity,
    descent_to_delete,
    descent_to_delete_recipe,
)
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.projected_descent import DescentStep, largest_learning_rate, rounding_error
from tests.unlearn.test_projected_descent import (
    ALL,
    CONSTANTS,
    FORGET,
    LOSS,
    MU,
    POOL,
    QUADRATIC,
    RATE,
    RETAIN,
    descend_by_hand,
    train_one,
)


def bound(training_steps, unlearning_steps, constants=CONSTANTS, sizes=(11, 5), rate=RATE):
    return descent_sensitivity(
        constants,
        *sizes,
        learning_rate=rate,
        training_steps=training_steps,
        unlearning_steps=unlearning_steps,
    )


@pytest.mark.parametrize("steps", [(1, 0), (5, 3), (200, 0), (200, 10)])
def test_models_before_the_noise_are_within_the_sensitivity(steps):
    step = DescentStep(RATE, CONSTANTS.radius)
    ends = []
    for start in (ALL, RETAIN):
        trained = descend_by_hand(np.zeros(12), np.asarray(start), steps[0], step)
        ends.append(descend_by_hand(trained, np.asarray(RETAIN), steps[1], step))
    assert 0 < np.linalg.norm(np.subtract(*ends)) <= bound(*steps)


@pytest.mark.parametrize("steps", [(1, 1), (4, 2), (300, 5)])
def test_a_quadratic_attains_the_sensitivity(steps):
    ends = []
    for centre in (-0.5, -1.0):
        w = 0.0
        for centre_now, count in ((centre, steps[0]), (-1.0, steps[1])):
            for _ in range(count):
                w -= 0.8 * MU * (w - centre_now)
        ends.append(w)
    assert bound(*steps, QUADRATIC, (75, 25), 0.8) == pytest.approx(ends[0] - ends[1], rel=1e-9)


def test_sensitivity_falls_with_steps_and_with_fewer_to_forget():
    assert np.all(np.diff([bound(100, steps) for steps in range(20)]) < 0)
    assert bound(100, 5, sizes=(99, 1)) < bound(100, 5, sizes=(90, 10))
    assert bound(100, 0, replace(CONSTANTS, radius=0.1)) <= 0.2


def test_released_models_are_the_descent_plus_noise_of_the_certified_deviation():
    spec = DescentToDeleteSpec(epsilon=3.0, delta=1e-4, training_steps=30, unlearning_steps=5, batch_size=4)
    recipe = descent_to_delete_recipe(LOSS, CONSTANTS, 11, 5, spec)
    trained = train_one(recipe.training, ALL).params
    num_runs = 500
    params, keys = jnp.tile(trained, (num_runs, 1, 1)), jax.random.split(jax.random.key(0), num_runs)
    for stage in recipe.method.stages:
        runs = RunInput(keys, params, jnp.tile(FORGET, (num_runs, 1)))
        params = run_loops(stage_loop(stage), runs, SharedInput(POOL, RETAIN, trained))[0].params
    step = DescentStep(RATE, CONSTANTS.radius)
    expected = descend_by_hand(np.zeros(12), np.asarray(ALL), 30, step)
    expected = descend_by_hand(expected, np.asarray(RETAIN), 5, step)
    noise = np.asarray(params).reshape(num_runs, 12) - expected
    sigma = noise.std()
    assert abs(noise.mean()) < 4 * sigma / noise.size**0.5
    # The deviation of 6,000 draws is known within 1 % or so, and epsilon follows it about in proportion.
    assert gaussian_epsilon(bound(30, 5), sigma, 1e-4) == pytest.approx(3.0, rel=0.05)
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (3.0, 1e-4)
    assert recipe.training.deterministic


def test_noise_covers_the_rounding_of_single_precision():
    """Single precision stalls: after very many steps the iterates are not as close as the proof says."""
    spec = DescentToDeleteSpec(epsilon=3.0, unlearning_steps=2000)
    recipe = descent_to_delete_recipe(LOSS, CONSTANTS, 11, 5, spec)
    noise = recipe.method.stages[-1]
    state = noise.init(jax.random.key(0), Trained(jnp.zeros(10_000), jnp.zeros(10_000)))
    sigma = float(noise.update(jax.random.key(1), state, None)[0].params.std())
    assert bound(400, 2000) < 1e-30
    assert gaussian_epsilon(rounding_error(CONSTANTS, largest_learning_rate(CONSTANTS)), sigma, 1e-5) < 3.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound(1, -1), "unlearning_steps must be an integer of at least 0, got -1"),
        (lambda: bound(-1, 1), "num_steps must be an integer of at least 0, got -1"),
        (lambda: bound(1, 1, rate=9.0), "learning_rate must be in"),
        (
            lambda: descent_to_delete(LOSS, DescentStep(0.1, 1.0), num_steps=1, num_retain=1, sigma=-1.0),
            "sigma must not be negative, got -1.0",
        ),
        (
            lambda: descent_to_delete_recipe(LOSS, CONSTANTS, 11, 5, DescentToDeleteSpec(delta=1.0)),
            r"delta must be in \(0, 1\), got 1.0",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
