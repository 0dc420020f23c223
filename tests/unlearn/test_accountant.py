"""The accountant against mpmath, numerical integration, and the divergence of real Markov chains."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from jaxaudit.bound.gaussian import gaussian_delta, gaussian_epsilon
from jaxaudit.errors import InputError
from jaxaudit.unlearn.accountant import (
    ModelClipping,
    _steps_at_least,
    epsilon_after,
    log_delta_after,
    noisy_steps,
)


def with_ratio(ratio, **settings):
    return ModelClipping(radius=ratio / 2, sigma=1.0, **settings)


def exact_log_deltas(epsilon, ratio, num_steps):
    """The recursion as it is printed, with enough digits that nothing cancels; up to exp(-1e9), where they run out."""
    with mp.workdps(35):
        epsilon, ratio, delta = mp.mpf(epsilon), mp.mpf(ratio), mp.mpf(1)
        for _ in range(num_steps):
            level = mp.log(1 + (mp.exp(epsilon) - 1) / delta)
            upper, lower = (
                mp.erfc(z / mp.sqrt(2)) / 2 for z in (level / ratio - ratio / 2, level / ratio + ratio / 2)
            )
            delta *= upper - mp.exp(level) * lower
            yield float(mp.log(delta))
            if mp.log(delta) < -1e9:
                return


def count_with_normal_tails(epsilon, ratio, delta, *, subtract=True, second_term=True):
    """Steps by the recursion in SciPy's log of the normal distribution; optionally with the reference code's errors."""
    log_delta, step = 0.0, 0
    while log_delta > math.log(delta):
        log_excess = epsilon + (math.log(-math.expm1(-epsilon)) if subtract else 0.0)
        level = np.logaddexp(0.0, log_excess - log_delta)
        upper, lower = log_ndtr(-(level / ratio - ratio / 2)), level + log_ndtr(-(level / ratio + ratio / 2))
        log_delta += upper + (math.log1p(-math.exp(lower - upper)) if second_term else 0.0)
        step += 1
    return step


@pytest.mark.parametrize(
    ("epsilon", "ratio", "num_steps"),
    [
        (1e-6, 0.01, 3),
        (1e-3, 2.0, 40),
        (0.5, 0.5, 5),
        (1.0, 4.0, 60),
        (5.0, 1.0, 4),
        (10.0, 10.0, 200),
        (1e3, 40.0, 20),
        (1e5, 450.0, 50),
        (1e6, 1400.0, 30),
    ],
)
def test_recursion_against_mpmath(epsilon, ratio, num_steps):
    exact = list(exact_log_deltas(epsilon, ratio, num_steps))
    got = [log_delta_after(step + 1, epsilon, with_ratio(ratio)) for step in range(len(exact))]
    np.testing.assert_allclose(got, exact, rtol=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "radius", "sigma", "expected"),
    [(1.0, 0.2, 0.1, 40), (10.0, 0.1, 0.02, 48_004), (1e5, 0.225, 0.001, 4013)],
)
def test_numbers_of_steps_of_table_6(epsilon, radius, sigma, expected):
    assert noisy_steps(epsilon, 1e-5, ModelClipping(radius, sigma)).num_steps == expected
    assert count_with_normal_tails(epsilon, 2 * radius / sigma, 1e-5) == expected


def test_what_the_reference_code_counts():
    """The docstring says where the paper's 4041 and the reference code's 34 come from."""
    assert count_with_normal_tails(1.0, 4.0, 1e-5, subtract=False) == 34
    assert count_with_normal_tails(1e5, 450.0, 1e-5, second_term=False) == 4041
    assert count_with_normal_tails(1e5, 450.0, 1e-5, subtract=False) == 4013


def test_steps_beyond_the_budget_are_counted_but_not_reachable():
    steps = noisy_steps(10.0, 1e-5, ModelClipping(0.1, 0.02), budget=15_800)
    assert (steps.num_steps, steps.at_least, steps.reachable) == (48_004, 48_004, False)
    assert steps.summary == "not reachable in the budget of 15,800 steps: 48,004 are needed"
    assert noisy_steps(10.0, 1e-5, ModelClipping(0.1, 0.02), budget=48_004).reachable


def test_astronomical_numbers_of_steps_are_named_at_once():
    steps = noisy_steps(1e5, 1e-5, ModelClipping(5.0, 1e-4), budget=3170)
    assert (steps.num_steps, steps.at_least, steps.reachable) == (None, 10**15, False)
    assert "at least 1,000,000,000,000,000 are needed" in steps.summary


@pytest.mark.parametrize("delta", [0.9, 0.3, 1e-5, 1e-300])
@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 1.0), (1.0, 4.0), (3.0, 6.0), (10.0, 8.0)])
def test_the_lower_bound_on_the_steps_is_one(epsilon, ratio, delta):
    clipping = with_ratio(ratio)
    exact = noisy_steps(epsilon, delta, clipping).num_steps
    assert 0 <= _steps_at_least(epsilon, math.log(delta), clipping) <= exact


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.3, 0.7), (1.0, 2.0), (4.0, 3.0)])
def test_one_step_is_the_hockey_stick_divergence_of_two_gaussians(epsilon, ratio):
    integral, _ = quad(
        lambda z: max(norm.pdf(z - ratio) - math.exp(epsilon) * norm.pdf(z), 0.0),
        epsilon / ratio + ratio / 2,
        ratio + 12,
        epsabs=1e-13,
    )
    delta = math.exp(log_delta_after(1, epsilon, with_ratio(ratio)))
    assert delta == pytest.approx(integral, rel=1e-8)
    assert delta == pytest.approx(gaussian_delta(ratio, 1.0, epsilon), rel=1e-12)


def chain_deltas(step_fn, radius, sigma, epsilon, num_steps):
    """Exact divergences of two runs of a one-dimensional chain that start far apart on both sides, on a fine grid."""
    edges = np.linspace(-radius - 8 * sigma, radius + 8 * sigma, 1501)
    grid = (edges[1:] + edges[:-1]) / 2
    means = np.clip(step_fn(grid), -radius, radius)
    kernel = np.diff(norm.cdf((edges[None] - means[:, None]) / sigma), axis=1)
    start = np.clip(step_fn(np.array([-1e6, 1e6])), -radius, radius)
    left, right = np.diff(norm.cdf((edges[None] - start[:, None]) / sigma), axis=1)
    for _ in range(num_steps):
        yield np.maximum(left - math.exp(epsilon) * right, 0).sum()
        left, right = left @ kernel, right @ kernel


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 3.0])
@pytest.mark.parametrize(
    "step_fn",
    [lambda x: 0.999 * x, lambda x: 50 * x, lambda x: 0.5 * x, np.sin],
    ids=["id", "push", "half", "sin"],
)
def test_real_chains_forget_at_least_as_fast(step_fn, ratio, epsilon):
    """Whatever the gradient step does, also if it is far from contracting or decays the weights."""
    bounds = [math.exp(log_delta_after(step, epsilon, with_ratio(ratio))) for step in range(1, 7)]
    exact = list(chain_deltas(step_fn, ratio / 2, 1.0, epsilon, 6))
    assert all(delta <= bound + 1e-9 for delta, bound in zip(exact, bounds))
    if step_fn(1e6) >= 1e5:
        assert exact[0] == pytest.approx(bounds[0], abs=1e-4)  # the first step is tight


def test_a_step_that_pushes_outwards_is_nearly_the_worst_case():
    """So no smaller ratio would do, whatever the weight decay inside the step: 50 x is 100 x after a decay by half."""
    (*_, second) = chain_deltas(lambda x: 50 * x, 1.5, 1.0, 0.2, 2)
    assert second > 0.8 * math.exp(log_delta_after(2, 0.2, with_ratio(3.0)))


def test_starting_noise_replaces_the_first_delta():
    clipping = ModelClipping(radius=1.0, sigma=1.0, initial_radius=2.0, initial_sigma=1.5)
    start = gaussian_delta(4.0, 1.5, 1.0)
    assert log_delta_after(0, 1.0, clipping) == pytest.approx(math.log(start), rel=1e-12)
    level = math.log(1 + math.expm1(1.0) / start)
    expected = math.log(start) + math.log(gaussian_delta(2.0, 1.0, level))
    assert log_delta_after(1, 1.0, clipping) == pytest.approx(expected, rel=1e-12)
    enough = ModelClipping(radius=1.0, sigma=1.0, initial_radius=1.0, initial_sigma=100.0)
    assert noisy_steps(1.0, 1e-5, enough).num_steps == 0


@pytest.mark.parametrize("num_steps", [1, 2, 40, 500])
@pytest.mark.parametrize("ratio", [0.5, 4.0, 12.0, 450.0])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-200])
def test_epsilon_is_the_inverse(num_steps, ratio, delta):
    clipping = with_ratio(ratio)
    epsilon = epsilon_after(num_steps, delta, clipping)
    if epsilon == 0:
        assert log_delta_after(num_steps, 1e-12, clipping) <= math.log(delta)
        return
    above, below = (log_delta_after(num_steps, epsilon * (1 + sign * 1e-8), clipping) for sign in (1, -1))
    assert above <= math.log(delta) <= below


def test_epsilon_of_one_step_is_that_of_the_gaussian_mechanism():
    expected = gaussian_epsilon(4.0, 1.0, 1e-5)
    assert epsilon_after(1, 1e-5, with_ratio(4.0)) == pytest.approx(expected, rel=1e-9)
    initial = with_ratio(4.0, initial_radius=1.0, initial_sigma=0.5)
    assert epsilon_after(0, 1e-5, initial) == pytest.approx(expected, rel=1e-9)
    assert epsilon_after(0, 1e-5, with_ratio(4.0)) is None


@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("ratio", [1e-6, 1.0, 1e5])
def test_extremes_stay_finite(epsilon, ratio):
    clipping = with_ratio(ratio)
    assert -math.inf < log_delta_after(1000, epsilon, clipping) <= 0
    assert noisy_steps(epsilon, 1e-300, clipping).at_least >= 1
    assert 0 <= epsilon_after(20, 1e-300, clipping) < math.inf


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("radius", 0.0),
        ("radius", -1.0),
        ("sigma", 0.0),
        ("sigma", math.nan),
        ("initial_radius", 0.0),
        ("initial_sigma", -0.1),
        ("radius", 1e60),
    ],
)
def test_bad_constants(name, value):
    with pytest.raises(InputError, match=name):
        ModelClipping(**{"radius": 1.0, "sigma": 1.0, name: value})


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1e-5), "epsilon"),
        ((-1.0, 1e-5), "epsilon"),
        ((math.inf, 1e-5), "epsilon"),
        ((1.0, 0.0), "delta"),
        ((1.0, 1.0), "delta"),
    ],
)
def test_bad_claims(arguments, name):
    with pytest.raises(InputError, match=name):
        noisy_steps(*arguments, with_ratio(1.0))


def test_bad_numbers_of_steps():
    with pytest.raises(InputError, match="num_steps"):
        log_delta_after(-1, 1.0, with_ratio(1.0))
    with pytest.raises(InputError, match="num_steps"):
        epsilon_after(1.5, 1e-5, with_ratio(1.0))
    with pytest.raises(InputError, match="budget"):
        noisy_steps(1.0, 1e-5, with_ratio(1.0), budget=-1)
