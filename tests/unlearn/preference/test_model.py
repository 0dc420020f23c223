import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models import mlp
from jaxaudit.unlearn.preference import causal_model, classifier_model
from tests.unlearn.preference import toy

EXAMPLES = toy.make_examples(0, 4)


def test_a_decoder_predicts_every_token_from_those_before_it():
    tokens, log_probs = EXAMPLES.x.truth, toy.MODEL.log_probs_fn(toy.NOW, EXAMPLES)
    logits, features = toy.MODEL.logits_fn(toy.NOW, EXAMPLES), toy.MODEL.features_fn(toy.NOW, EXAMPLES)
    masks = toy.MODEL.masks_fn(EXAMPLES)
    for row, place, answer, real in toy.positions(tokens):
        expected = toy.distribution(toy.NOW, tokens, row, place)
        at = (row, place - 1)
        assert log_probs[at] == pytest.approx(expected[int(tokens.ids[row, place])], abs=1e-5)
        own = logits[at] - jnp.log(jnp.exp(logits[at]).sum())
        np.testing.assert_allclose(own, expected, atol=1e-5)
        np.testing.assert_allclose(features[at], toy.features(toy.NOW, tokens, row, place), atol=1e-5)
        assert (masks.answer[at], masks.real[at]) == (answer, real)


def test_alternatives_and_plain_tokens_are_read_alike():
    other = toy.MODEL.alternatives_fn(EXAMPLES)
    plain = EXAMPLES._replace(x=EXAMPLES.x.alternative)
    np.testing.assert_array_equal(
        toy.MODEL.log_probs_fn(toy.NOW, other), toy.MODEL.log_probs_fn(toy.NOW, plain)
    )
    with pytest.raises(InputError, match=r"examples.x must be Questions for a loss on alternative answers"):
        toy.MODEL.alternatives_fn(plain)


def test_half_precision_logits_are_normalised_in_single_precision():
    half = causal_model(lambda params, tokens: toy.logits_fn(params, tokens).astype(jnp.bfloat16))
    assert half.log_probs_fn(toy.NOW, EXAMPLES).dtype == jnp.float32


def test_a_classifier_has_answers_of_one_token():
    network = mlp((3,), 4, hidden=(5,))
    params = network.init_fn(jax.random.key(0))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    examples = Examples(x, jnp.arange(6) % 4, jnp.ones(6))
    model = classifier_model(network.logits_fn)
    probabilities = np.asarray(jax.nn.softmax(network.logits_fn(params, x)))
    expected = np.log(probabilities[np.arange(6), np.arange(6) % 4])
    np.testing.assert_allclose(model.log_probs_fn(params, examples)[:, 0], expected, rtol=1e-5)
    assert model.logits_fn(params, examples).shape == (6, 1, 4)
    assert model.masks_fn(examples).answer.shape == (6, 1)


def test_the_same_functions_give_the_same_model():
    assert causal_model(toy.logits_fn, toy.features_fn) is toy.MODEL
