import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.schedules import constant, cosine, linear, make_schedule, one_cycle


def values(schedule, num_steps):
    return np.asarray([float(schedule(step)) for step in range(num_steps)])


def test_one_cycle_has_the_corners_of_the_papers_trainings():
    """133,200 updates (400 epochs of 333) with peak 0.06."""
    schedule, peak, total = one_cycle(0.06, 133_200), 0.06, 133_200
    corners = {0: peak / 25, 39_960: peak, 113_220: peak / 25, total: peak / 250_000}
    for step, value in corners.items():
        assert float(schedule(step)) == pytest.approx(value, rel=1e-5), step
    assert float(schedule(10 * total)) == pytest.approx(peak / 250_000, rel=1e-5)


@pytest.mark.parametrize("total", [2, 3, 7, 20, 101])
def test_one_cycle_is_linear_between_its_corners(total):
    rise, fall = int(0.3 * total), int(0.85 * total)
    expected = np.interp(
        np.arange(total + 3), [0, rise, fall, total], [0.2 / 25, 0.2, 0.2 / 25, 0.2 / 250_000]
    )
    if rise == 0:
        expected[0] = 0.2  # the rise has no length: the cycle starts at its peak
    np.testing.assert_allclose(values(one_cycle(0.2, total), total + 3), expected, rtol=1e-5)
    optax_values = values(optax.linear_onecycle_schedule(total, 0.2), total + 3)
    np.testing.assert_allclose(values(one_cycle(0.2, total), total + 3), optax_values, rtol=1e-6)


def test_one_cycle_too_short_for_a_peak_falls_from_its_first_value():
    np.testing.assert_allclose(values(one_cycle(0.25, 1), 2), [0.01, 1e-6], rtol=1e-6)


def test_one_cycle_takes_other_corners():
    schedule = one_cycle(1.0, 10, pct_start=0.5, pct_final=0.9, div=10.0, final_div=100.0)
    np.testing.assert_allclose(
        [float(schedule(step)) for step in (0, 5, 9, 10)], [0.1, 1.0, 0.1, 1e-3], rtol=1e-5
    )


def test_cosine_is_the_recurrence_of_its_derivation():
    """A point that turns on a circle by the same angle at every update, seen from the side."""
    height, turned, step = [], 1.0 + 0.0j, complex(math.cos(math.pi / 12), math.sin(math.pi / 12))
    for _ in range(13):
        height.append(1e-4 + (0.1 - 1e-4) * (1 + turned.real) / 2)
        turned *= step
    np.testing.assert_allclose(values(cosine(0.1, 12, 1e-4), 13), height, rtol=1e-5)


def test_cosine_by_hand_and_constant_afterwards():
    formula = [0.1 + 0.3 * (1 + math.cos(math.pi * step / 5)) / 2 for step in range(6)]
    np.testing.assert_allclose(values(cosine(0.4, 5, 0.1), 8), [*formula, 0.1, 0.1], rtol=1e-6)


def test_linear_and_constant():
    np.testing.assert_allclose(values(linear(0.4, 4, 0.2), 6), [0.4, 0.35, 0.3, 0.25, 0.2, 0.2], rtol=1e-6)
    assert values(constant(0.3), 3).tolist() == [0.3, 0.3, 0.3]


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("linear", linear(0.3, 8)),
        ("cosine", cosine(0.3, 8)),
        ("one-cycle", one_cycle(0.3, 8)),
        ("constant", constant(0.3)),
    ],
)
def test_schedules_by_name(name, schedule):
    np.testing.assert_array_equal(values(make_schedule(name, 0.3, 8), 10), values(schedule, 10))


@pytest.mark.parametrize("name", ["linear", "cosine", "one-cycle", "constant"])
def test_schedules_can_be_traced(name):
    """The update number is an array inside the compiled loop."""
    schedule = make_schedule(name, 0.3, 8)
    steps = jnp.arange(10, dtype=jnp.int32)
    traced = jax.jit(jax.vmap(lambda step: jnp.asarray(schedule(step))))(steps)
    np.testing.assert_allclose(traced, values(schedule, 10), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear(0.0, 4), "peak must be positive, got 0.0"),
        (lambda: linear(0.1, 4, -1.0), "end must not be negative, got -1.0"),
        (lambda: linear(0.1, 0), "num_updates must be an integer of at least 1, got 0"),
        (lambda: constant(float("inf")), "peak must be a finite number, got inf"),
        (lambda: cosine(0.1, 4, float("nan")), "end must be a finite number, got nan"),
        (lambda: one_cycle(-1.0, 4), "peak must be positive, got -1.0"),
        (lambda: one_cycle(0.1, 4, pct_start=0.0), "0 < start < final < 1, got 0.0 and 0.85"),
        (lambda: one_cycle(0.1, 4, pct_start=0.9), "0 < start < final < 1, got 0.9 and 0.85"),
        (lambda: one_cycle(0.1, 4, pct_final=1.0), "0 < start < final < 1, got 0.3 and 1.0"),
        (lambda: one_cycle(0.1, 4, div=0.5), "div must be at least 1, got 0.5"),
        (lambda: one_cycle(0.1, 4, final_div=0.0), "final_div must be at least 1, got 0.0"),
        (lambda: make_schedule("Linear", 0.1, 4), "schedule must be one of linear, .*, got 'Linear'"),
        (
            lambda: make_schedule("one-cycle", 0.1, 4, 0.1),
            "end_learning_rate must be 0 with the .* one-cycle",
        ),
        (lambda: make_schedule("constant", 0.1, 4, 0.2), "end_learning_rate must be 0 with the .* constant"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()
