from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import kstest, norm

from jaxaudit.bound.gaussian import gaussian_delta, gaussian_epsilon
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.train import TrainingRun, TrainingShared
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.langevin import LangevinSpec, langevin_recipe, langevin_sensitivity
from jaxaudit.unlearn.projected_descent import largest_learning_rate
from tests.unlearn.test_projected_descent import CONSTANTS, LOSS, MU, QUADRATIC, quadratic_loss

RATE = 0.8
SIZES = (75, 25)


def bound(training_steps, unlearning_steps, constants=QUADRATIC, sizes=SIZES, rate=RATE):
    return langevin_sensitivity(
        constants,
        *sizes,
        learning_rate=rate,
        training_steps=training_steps,
        unlearning_steps=unlearning_steps,
    )


def quadratic_law(centre_of_all, centre_of_retain, steps, rate=RATE, sigma=1.0):
    """Mean and deviation of the last iterate, by recursion: the law is Gaussian."""
    mean, variance = 0.0, 0.0
    for centre, num_steps in zip((centre_of_all, centre_of_retain), steps):
        for _ in range(num_steps):
            mean = mean - rate * MU * (mean - centre)
            variance = (1 - rate * MU) ** 2 * variance + sigma**2
    return mean, variance**0.5


@pytest.mark.parametrize("steps", [(30, 0), (1, 1), (5, 3), (400, 20)])
@pytest.mark.parametrize(("retain", "forget"), [(-1.0, 1.0), (0.2, 0.7), (0.4, -1.0)])
def test_certificate_covers_the_exact_law_of_a_quadratic_and_is_attained(steps, retain, forget):
    centre = 0.75 * retain + 0.25 * forget
    mean, deviation = quadratic_law(centre, retain, steps)
    reference, same_deviation = quadratic_law(retain, retain, steps)
    assert deviation == same_deviation
    distance = bound(*steps)
    for sigma, delta in ((0.05, 1e-5), (0.5, 0.01)):
        exact = gaussian_epsilon(abs(mean - reference) / deviation, sigma, delta)
        certified = gaussian_epsilon(distance, sigma, delta)
        assert exact <= certified * (1 + 1e-9)
        if abs(retain - forget) == 2:  # the largest spread
            assert certified == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("training", "unlearning"), [(6, 0), (5, 2), (2, 6)])
def test_no_other_choice_of_shifts_does_better(training, unlearning):
    """The shifted divergence by numerical optimisation over all admissible shifts."""
    factor, step, total = 1 - RATE * MU, RATE * 0.25 * QUADRATIC.gradient_spread, training + unlearning

    def remaining(shifts):
        z, path = 0.0, []
        for t, shift in enumerate(shifts):
            z = factor * z + (step if t < training else 0.0) - shift
            path.append(z)
        return np.array(path)

    found = minimize(
        lambda shifts: shifts @ shifts,
        np.full(total, step / 2),
        constraints=[
            {"type": "ineq", "fun": lambda shifts: remaining(shifts)[:-1]},
            {"type": "eq", "fun": lambda shifts: remaining(shifts)[-1]},
        ],
        bounds=[(0, None)] * total,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    assert bound(training, unlearning) == pytest.approx(found.fun**0.5, rel=1e-4)


def grid_law(grid, radius, sigma, centres, steps):
    """Law of projected noisy descent of the quadratic on a fine grid; the ends hold what was projected."""
    law = np.zeros(len(grid))
    law[len(grid) // 2] = 1.0
    edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
    for centre, num_steps in zip(centres, steps):
        means = grid - RATE * MU * (grid - centre)
        kernel = np.diff(norm.cdf((edges[None] - means[:, None]) / sigma), axis=1)
        for _ in range(num_steps):
            law = law @ kernel
    return law


@pytest.mark.parametrize("steps", [(20, 1), (20, 3)])
def test_certificate_covers_projected_descent_where_the_diameter_decides(steps):
    """Unlearning and its reference in a small ball, each with its own stationary point far outside."""
    radius, sigma = 0.3, 0.4
    small = replace(QUADRATIC, radius=radius, gradient_spread=10 * MU, minimisers_inside=False)
    distance = bound(*steps, constants=small)
    assert distance < 0.5 * bound(*steps, constants=replace(small, radius=1e9))  # the diameter decides
    grid = np.linspace(-radius, radius, 801)
    forget = grid_law(grid, radius, sigma, (-5 + 0.25 * 10, -5), steps)
    reference = grid_law(grid, radius, sigma, (-5, -5), steps)
    for epsilon in (0.0, 0.1, 0.5):
        for p, q in ((forget, reference), (reference, forget)):
            delta = np.maximum(p - np.exp(epsilon) * q, 0).sum()
            assert delta <= gaussian_delta(distance, sigma, epsilon) * (1 + 1e-3)


def test_renyi_form_claims_more():
    """Mironov's conversion at the best order, of the Renyi divergence a D^2 / (2 sigma^2)."""
    distance, sigma, delta = bound(50, 5), 0.1, 1e-5

    def converted(log_order):
        order = 1 + np.exp(log_order)
        return order * distance**2 / (2 * sigma**2) + np.log(1 / delta) / (order - 1)

    renyi = minimize_scalar(converted, bounds=(-5, 10), method="bounded").fun
    exact = gaussian_epsilon(distance, sigma, delta)
    assert 0.7 * renyi < exact < renyi


def test_more_unlearning_and_less_to_forget_hide_better():
    unlearning = [bound(50, steps) for steps in range(12)]
    assert np.all(np.diff(unlearning) < 0)
    assert bound(50, 5, sizes=(99, 1)) < bound(50, 5, sizes=(90, 10)) < bound(50, 5)
    assert bound(5, 5) < bound(50, 5)
    assert bound(50, 10**6) == 0.0
    small = replace(QUADRATIC, radius=0.1)
    assert bound(50, 5, constants=small) < bound(50, 5)


def test_no_training_needs_no_noise():
    assert bound(0, 3) == 0.0


def test_perfect_conditioning_forgets_in_one_step():
    perfect = replace(QUADRATIC, smoothness=MU)
    assert bound(5, 1, constants=perfect, rate=1 / MU) == 0.0
    assert bound(5, 0, constants=perfect, rate=1 / MU) == pytest.approx(0.25 * 2)


def test_training_and_unlearning_follow_the_exact_law():
    spec = LangevinSpec(epsilon=2.0, training_steps=6, unlearning_steps=4)
    recipe = langevin_recipe(quadratic_loss, QUADRATIC, 3, 1, spec)
    pool = Examples(jnp.array([-1.0, -1.0, -1.0, 1.0]), jnp.zeros(4, jnp.int32), jnp.ones(4))
    num_runs, zero = 4000, jnp.zeros(())
    members = jnp.tile(jnp.arange(4), (num_runs, 1))
    keys = jax.random.split(jax.random.key(0), 2 * num_runs).reshape(2, num_runs)
    trained, _ = run_loops(recipe.training, TrainingRun(members, keys[0]), TrainingShared(pool, zero))
    runs = RunInput(keys[1], trained.params, members[:, 3:])
    last, _ = run_loops(stage_loop(recipe.method), runs, SharedInput(pool, jnp.arange(3), zero))
    rate = largest_learning_rate(QUADRATIC)
    distance = bound(6, 4, sizes=(3, 1), rate=rate)
    sigma = distance / _ratio(2.0, 1e-5)
    mean, deviation = quadratic_law(-0.5, -1.0, (6, 4), rate, sigma)
    assert kstest((np.asarray(last.params) - mean) / deviation, "norm").pvalue > 1e-3
    assert gaussian_epsilon(distance, sigma, 1e-5) == pytest.approx(recipe.certificate.epsilon)


def _ratio(epsilon, delta):
    """D / sigma at which the Gaussian mechanism has this epsilon and delta, by bisection."""
    low, high = 1e-3, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, 1.0, epsilon) < delta else (low, middle)
    return low


def test_noise_below_rounding_is_not_certified():
    """Many steps need nearly no noise, which single precision would round away."""
    recipe = langevin_recipe(LOSS, CONSTANTS, 11, 5, LangevinSpec(unlearning_steps=10_000))
    assert not recipe.certificate.certified
    assert "too small beside the rounding of single precision" in recipe.certificate.reason


def test_recipe_declares_its_noise_and_its_certificate():
    recipe = langevin_recipe(LOSS, CONSTANTS, 11, 5, LangevinSpec(0.5, 1e-6, 30, 20, batch_size=4))
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (0.5, 1e-6)
    assert (recipe.method.num_updates, recipe.training.num_steps) == (20 * 3, 30 * 4)
    assert not recipe.training.deterministic


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound(0, 0), "training_steps \\+ unlearning_steps must be at least 1, got 0"),
        (lambda: bound(-1, 2), "training_steps must be an integer of at least 0, got -1"),
        (lambda: bound(1, -2), "unlearning_steps must be an integer of at least 0, got -2"),
        (lambda: bound(1, 1, rate=1.5), "learning_rate must be in"),
        (lambda: langevin_recipe(LOSS, CONSTANTS, 11, 5, LangevinSpec(epsilon=-1.0)), "epsilon must not be"),
        (lambda: langevin_recipe(LOSS, CONSTANTS, 11, 5, LangevinSpec(delta=0.0)), "delta must be in"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
