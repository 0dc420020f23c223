"""The evidence of one run against enumeration, mpmath and a log-space recursion."""

import itertools
import math
import time

import mpmath as mp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.bound.likelihood import direction_p_value, joint_log_evidence, log_evidence
from jaxaudit.errors import InputError


def all_signs(num_groups):
    """Every balanced sign vector, (M', m)."""
    members = itertools.combinations(range(num_groups), num_groups // 2)
    return np.array([[1 if j in chosen else -1 for j in range(num_groups)] for chosen in members])


def random_signs(rng, num_runs, num_groups):
    row = np.where(np.arange(num_groups) < num_groups // 2, 1, -1)
    return rng.permuted(np.tile(row, (num_runs, 1)), axis=1)


def mpmath_log_evidence(log_ratios, signs, temperature):
    """The definition, with the elementary symmetric polynomial by its textbook recursion in 60 digits."""
    with mp.workdps(60):
        scaled = [mp.mpf(float(x)) * mp.mpf(temperature) for x in log_ratios]
        half = len(scaled) // 2
        polynomial = [mp.mpf(1)] + [mp.mpf(0)] * half
        for x in scaled:
            weight = mp.exp(x)
            for k in range(half, 0, -1):
                polynomial[k] += weight * polynomial[k - 1]
        total = sum(x for x, s in zip(scaled, signs, strict=True) if s == 1)
        return float(total - mp.log(polynomial[half] / mp.binomial(len(scaled), half)))


@pytest.mark.parametrize("num_groups", range(2, 10))
@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0, 30.0])
def test_equals_enumeration(num_groups, scale):
    signs = all_signs(num_groups)
    log_ratios = scale * np.random.default_rng(num_groups).normal(size=num_groups)
    scores = 0.7 * (signs == 1) @ log_ratios
    expected = scores - np.log(np.mean(np.exp(scores)))
    actual = log_evidence(np.tile(log_ratios, (len(signs), 1)), signs, temperature=0.7)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)
    # A model that forgot has scores that are independent of the signs: E[e] = 1 exactly.
    assert np.exp(actual).mean() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("num_groups", [200, 201])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 1e3, 1e6])
def test_equals_mpmath_on_wild_ratios(num_groups, scale):
    rng = np.random.default_rng(1)
    signs = random_signs(rng, 1, num_groups)[0]
    log_ratios = scale * rng.standard_t(2, num_groups) + np.where(signs == 1, scale, 0)
    actual = log_evidence(log_ratios, signs, temperature=0.5)
    assert actual == pytest.approx(mpmath_log_evidence(log_ratios, signs, 0.5), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "log_ratios",
    [
        [1e6, 1e6, 1e6, 1e6, 0, -1e6],  # more sure members than there are
        [1e6, 0, 0, 0, 0, -1e6],  # ties at the edge
        [1e6, 1e6, 1e6, -1e6, -1e6, -1e6],  # all certain
        [1e6, 1e6 + 0.5, 1e6 - 0.25, 1e6, 1e6, 1e6],  # a large common offset
        [-1e6, 1e6, 1e6, 1e6, 1e6],
        [5.0, 5.0, 5.0, 5.0, 5.0],
    ],
)
def test_equals_mpmath_on_degenerate_ratios(log_ratios):
    for signs in all_signs(len(log_ratios)):
        expected = mpmath_log_evidence(log_ratios, signs, 1.0)
        assert log_evidence(np.array(log_ratios), signs) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_equals_log_space_recursion_and_is_fast_at_4500_groups():
    rng = np.random.default_rng(2)
    signs = random_signs(rng, 10, 4500)
    log_ratios = rng.normal(size=signs.shape) + 0.7 * signs
    start = time.perf_counter()
    actual = log_evidence(log_ratios, signs)
    assert time.perf_counter() - start < 1
    log_polynomial = np.append(0.0, np.full(2250, -np.inf))
    for x in log_ratios[0]:
        log_polynomial[1:] = np.logaddexp(log_polynomial[1:], log_polynomial[:-1] + x)
    expected = log_ratios[0][signs[0] == 1].sum() - log_polynomial[-1] + log_num_sign_vectors(4500)
    assert actual[0] == pytest.approx(expected, rel=1e-13)


def test_constant_shift_changes_nothing_and_evidence_is_at_most_all_sign_vectors():
    rng = np.random.default_rng(3)
    signs = random_signs(rng, 50, 31)
    log_ratios = 20 * rng.normal(size=signs.shape) + 20 * signs
    evidence = log_evidence(log_ratios, signs)
    np.testing.assert_allclose(log_evidence(log_ratios + 1024.0, signs), evidence, rtol=1e-9, atol=1e-9)
    assert (evidence <= log_num_sign_vectors(31)).all()
    perfect = log_evidence(1e6 * signs, signs)
    np.testing.assert_allclose(perfect, log_num_sign_vectors(31), rtol=1e-14)
    assert (log_evidence(-1e6 * signs, signs) < -1e7).all()


def test_joint_evidence_is_batchwise_evidence_when_likelihoods_factorise():
    rng = np.random.default_rng(4)
    candidates = all_signs(6)
    log_ratios, true = 3 * rng.normal(size=(7, 6)), rng.integers(len(candidates), size=7)
    log_likelihoods = log_ratios @ (candidates == 1).T + rng.normal(size=(7, 1))
    actual = joint_log_evidence(log_likelihoods, true, temperature=0.6)
    np.testing.assert_allclose(actual, log_evidence(log_ratios, candidates[true], 0.6), rtol=1e-12)
    assert joint_log_evidence(np.array([[1e6, -1e6]]), np.array([1])) == pytest.approx(-2e6)


# The direction


def direction_evidence(log_ratios, signs):
    """Average over the temperatures of the product over runs, from the definition by enumeration."""
    candidates = all_signs(signs.shape[1])
    deviations = np.abs(log_ratios - np.median(log_ratios, axis=1, keepdims=True))
    scaled = -log_ratios / deviations.mean()
    log_products = []
    for temperature in np.logspace(-2, 2, 9):
        scores = temperature * scaled @ (candidates == 1).T
        right = temperature * (scaled * (signs == 1)).sum(axis=1)
        log_products.append((right - logsumexp(scores, axis=1) + np.log(len(candidates))).sum())
    return np.exp(log_products).mean()


@pytest.mark.parametrize("num_groups", [2, 5, 6])
def test_direction_p_value_equals_its_definition_and_is_exactly_valid(num_groups):
    """Over all sign vectors of two runs whose log-ratios know nothing."""
    candidates = all_signs(num_groups)
    log_ratios = 3 * np.random.default_rng(5).normal(size=(2, num_groups)) + 100.0
    pairs = [np.stack(pair) for pair in itertools.product(candidates, repeat=2)]
    p_values = np.array([direction_p_value(log_ratios, pair) for pair in pairs])
    evidence = np.array([direction_evidence(log_ratios, pair) for pair in pairs])
    np.testing.assert_allclose(p_values, np.minimum(1, 1 / evidence), rtol=1e-9)
    assert evidence.mean() == pytest.approx(1, rel=1e-9)
    for level in p_values:
        assert (p_values <= level).mean() <= level


def test_direction_of_real_ratios_is_seen_at_any_scale():
    rng = np.random.default_rng(6)
    signs = random_signs(rng, 10, 100)
    right = signs + rng.normal(size=signs.shape)
    for scale in (1e-310, 1e-6, 1.0, 1e200):
        assert direction_p_value(scale * right, signs) == 1.0
        assert direction_p_value(-scale * right, signs) < 1e-20
    sparse = 0.1 * rng.normal(size=signs.shape)
    sparse[:, :5] = -20 * signs[:, :5]
    assert direction_p_value(sparse, signs) < 1e-6
    assert direction_p_value(-sparse, signs) == 1.0
    assert direction_p_value(np.zeros(100), signs[0]) == pytest.approx(1)


@pytest.mark.parametrize("draw", ["normal", "standard_cauchy"])
def test_direction_of_noise_keeps_the_level(draw):
    rng = np.random.default_rng(7)
    p_values = np.array(
        [direction_p_value(getattr(rng, draw)(size=(3, 8)), random_signs(rng, 3, 8)) for _ in range(500)]
    )
    for level in (0.2, 0.05, 0.01):
        assert binom.sf((p_values <= level).sum() - 1, 500, level) > 0.001
    assert np.median(p_values) > 0.5


SIGNS = np.array([[1, -1], [-1, 1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: log_evidence(np.array([[0, 1], [0, np.nan]]), SIGNS),
            "log_ratios must be finite .* got nan in run 1, group 1",
        ),
        (
            lambda: log_evidence(np.array([np.inf, 0]), SIGNS[0]),
            "log_ratios must be finite .* got inf in run 0, group 0",
        ),
        (lambda: log_evidence(np.zeros(2), np.array([1, 1])), "signs must have exactly 1 of 2 entries"),
        (
            lambda: log_evidence(np.zeros((2, 3)), SIGNS),
            r"log_ratios must have the shape of signs, \(2, 2\), got \(2, 3\)",
        ),
        (
            lambda: log_evidence(np.zeros((1, 2, 2)), SIGNS),
            r"log_ratios must have shape \(runs, groups\), got \(1, 2, 2\)",
        ),
        (
            lambda: log_evidence(np.zeros(2), SIGNS[0], temperature=0.0),
            "temperature must be positive, got 0.0",
        ),
        (
            lambda: log_evidence(np.zeros(2), SIGNS[0], math.nan),
            "temperature must be a finite number, got nan",
        ),
        (lambda: direction_p_value(np.array([0, np.nan]), SIGNS[0]), "log_ratios must be finite .* got nan"),
        (
            lambda: direction_p_value(np.zeros((2, 3)), SIGNS),
            r"log_ratios must have the shape of signs, \(2, 2\), got \(2, 3\)",
        ),
        (
            lambda: joint_log_evidence(np.array([[0, -np.inf]]), np.array([0])),
            "got -inf in run 0, candidate 1",
        ),
        (
            lambda: joint_log_evidence(np.zeros((1, 2)), np.array([2])),
            r"true_candidate must be between 0 and 1, got \[2\]",
        ),
        (
            lambda: joint_log_evidence(np.zeros((1, 2)), np.array([0.0])),
            "true_candidate must be 1 integers, got float64",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
