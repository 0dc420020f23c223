"""Scores against mpmath, float64 NumPy and their analytic gradients."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxaudit import scores as sc
from jaxaudit.errors import InputError

mpmath.mp.dps = 60


def exact_logit(logits, label) -> mpmath.mpf:
    others = [mpmath.exp(mpmath.mpf(float(z))) for j, z in enumerate(logits) if j != label]
    return mpmath.mpf(float(logits[label])) - mpmath.log(mpmath.fsum(others))


def exact_cross_entropy(logits, label) -> mpmath.mpf:
    # log1p needs the digits that exp(-margin) sits below 1 by.
    with mpmath.workdps(12_000 if abs(exact_logit(logits, label)) > 100 else 120):
        return -mpmath.log1p(mpmath.exp(-exact_logit(logits, label)))


MARGINS = [-1e4, -100.0, -30.0, -1.0, 0.0, 0.3, 1.0, 30.0, 80.0, 100.0, 1e4]


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("offset", [0.0, -3.0, 1e4])
def test_logit_score_in_float32_is_exact_at_any_margin(margin, offset):
    logits = jnp.array([offset, offset + margin, offset - 2.0, offset - 1.0], jnp.float32)
    exact = float(exact_logit(np.asarray(logits), 1))
    score = sc.logit_score(logits, jnp.array(1))
    assert score.dtype == jnp.float32
    np.testing.assert_allclose(float(score), exact, rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("margin", [30.0, 100.0, 1e4])
def test_two_class_margins_are_reproduced_to_the_bit(margin):
    assert sc.logit_score(jnp.array([margin, 0.0]), jnp.array(0)).item() == margin
    assert sc.logit_score(jnp.array([margin, 0.0]), jnp.array(1)).item() == -margin


@pytest.mark.parametrize("margin", [m for m in MARGINS if m <= 80])
def test_cross_entropy_score_keeps_relative_precision(margin):
    logits = jnp.array([0.0, margin, -2.0], jnp.float32)
    exact = float(exact_cross_entropy(np.asarray(logits), 1))
    np.testing.assert_allclose(sc.cross_entropy_score(logits, jnp.array(1)).item(), exact, rtol=2e-5)


def test_batched_scores_agree_with_float64_numpy():
    rng = np.random.default_rng(0)
    logits, labels = (
        rng.normal(scale=20, size=(3, 4, 5, 10)).astype(np.float32),
        rng.integers(10, size=(3, 4, 5)),
    )
    z = logits.astype(np.float64)
    own = np.take_along_axis(z, labels[..., None], -1)[..., 0]
    others = np.where(labels[..., None] == np.arange(10), -np.inf, z)
    logit = own - np.logaddexp.reduce(others, axis=-1)
    log_probability = own - np.logaddexp.reduce(z, axis=-1)
    scored = sc.logit_score(jnp.asarray(logits), jnp.asarray(labels))
    np.testing.assert_allclose(scored, logit, rtol=1e-5, atol=1e-5)
    scored = sc.cross_entropy_score(jnp.asarray(logits), jnp.asarray(labels))
    np.testing.assert_allclose(scored, log_probability, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("score", [sc.logit_score, sc.cross_entropy_score])
@pytest.mark.parametrize("margin", MARGINS)
def test_gradients_are_finite_and_analytic(score, margin):
    logits = jnp.array([0.0, margin, -1.0], jnp.float32)
    gradient = jax.grad(score)(logits, jnp.array(1))
    others = np.exp(np.array([0.0, -np.inf, -1.0]))
    expected = np.array([0.0, 1.0, 0.0]) - others / others.sum()
    if score is sc.cross_entropy_score:
        # 1 / (1 + e^score), the probability of the other labels
        expected *= np.exp(-np.logaddexp(0.0, float(exact_logit(np.asarray(logits), 1))))
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-37)


def test_half_precision_logits_are_scored_in_float32():
    logits = jnp.array([3.0, 1.0, 2.0], jnp.bfloat16)
    score = sc.logit_score(logits, jnp.array(0))
    assert score.dtype == jnp.float32
    np.testing.assert_allclose(score.item(), 3 - np.logaddexp(1, 2), rtol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (3, 1)])
def test_a_single_class_is_an_error(shape):
    with pytest.raises(InputError, match="logits must have at least 2 classes"):
        sc.logit_score(jnp.zeros(shape), jnp.zeros(shape[:-1], int))


@pytest.mark.parametrize("label", [-1, 3, -100])
def test_a_label_out_of_range_scores_nan(label):
    assert np.isnan(sc.logit_score(jnp.zeros(3), jnp.array(label)))


def test_scores_are_the_same_under_jit_and_vmap():
    logits, labels = jax.random.normal(jax.random.key(0), (4, 6, 3)), jnp.arange(24).reshape(4, 6) % 3
    for score in (sc.logit_score, sc.cross_entropy_score):
        plain = score(logits, labels)
        np.testing.assert_allclose(jax.jit(score)(logits, labels), plain, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(jax.vmap(score)(logits, labels), plain, rtol=1e-6, atol=1e-6)


def test_token_score_is_the_mean_over_real_tokens():
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(2, 5, 7)), rng.integers(7, size=(2, 5))
    weights = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]])
    log_probabilities = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    own = np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    padded = np.where(weights > 0, labels, -100)
    score = sc.token_cross_entropy_score(
        jnp.asarray(logits, jnp.float32), jnp.asarray(padded), jnp.asarray(weights)
    )
    np.testing.assert_allclose(score, [own[0, :3].mean(), own[1, [0, 2, 3]].mean()], rtol=1e-5)
    unweighted = sc.token_cross_entropy_score(jnp.asarray(logits, jnp.float32), jnp.asarray(labels))
    np.testing.assert_allclose(unweighted, own.mean(axis=1), rtol=1e-5)


def test_padding_neither_scores_nor_poisons_the_gradient():
    logits, labels = jnp.array([[2.0, 0.0], [0.0, 0.0]]), jnp.array([0, -100])
    weights = jnp.array([1.0, 0.0])
    gradient = jax.grad(lambda z: sc.token_cross_entropy_score(z, labels, weights))(logits)
    probability = 1 / (1 + np.exp(2.0))
    np.testing.assert_allclose(gradient, [[probability, -probability], [0, 0]], rtol=1e-5)
    broken = logits.at[1].set(jnp.nan)
    np.testing.assert_allclose(
        sc.token_cross_entropy_score(broken, labels, weights), -np.log1p(np.exp(-2.0)), rtol=1e-5
    )
    assert sc.token_cross_entropy_score(logits, labels, jnp.zeros(2)).item() == 0.0


def test_accuracy_counts_real_examples_of_every_model():
    logits = jnp.array([[[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]], [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
    labels = jnp.array([[0, 1, 1], [0, 1, 0]])
    np.testing.assert_allclose(sc.accuracy(logits, labels), [2 / 3, 1 / 3], rtol=1e-6)
    weights = jnp.array([[1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(sc.accuracy(logits, labels, weights), [1.0, 1.0])
    assert sc.accuracy(logits[0], labels[0], jnp.zeros(3)).item() == 0.0


def test_registry_orients_every_score_towards_members():
    # A model that is surer of the label must score higher, whatever the score is called.
    weak, strong = jnp.array([[[1.0, 0.0]]]), jnp.array([[[5.0, 0.0]]])
    labels = jnp.array([[0]])
    assert set(sc.SCORES) == {"logit", "cross-entropy", "token-cross-entropy"}
    for score in sc.SCORES.values():
        assert (score.function(strong, labels) > score.function(weak, labels)).all()
        assert score.definition
