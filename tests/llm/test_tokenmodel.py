import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import Adapted, LoraSpec, decoder, lora_model, token_model
from jaxaudit.train import cross_entropy_loss
from jaxaudit.unlearn.base import Batch, Trained
from jaxaudit.unlearn.preference import Questions, answer_loss, causal_model, dpo, kl, npo, rmu
from tests.llm.reference import random_adapters, random_params, reference_logits, small_spec
from tests.llm.toy import toy_examples

SPEC, LORA = small_spec(), LoraSpec(rank=2)
PARAMS, ADAPTERS = random_params(SPEC), random_adapters(SPEC, LORA)
EXAMPLES, START = toy_examples()


def test_log_probabilities_are_those_of_the_reference():
    model = token_model(decoder(SPEC), START)
    found, masks = model.log_probs_fn(PARAMS, EXAMPLES), model.masks_fn(EXAMPLES)
    tokens = EXAMPLES.x.truth
    for row, (ids, real, answer) in enumerate(zip(*tokens.__class__(tokens.ids, tokens.real, tokens.answer))):
        text = ids[real > 0]
        expected = jax.nn.log_softmax(reference_logits(SPEC, PARAMS, text))[
            np.arange(len(text) - 1), text[1:]
        ]
        count = int(answer.sum())
        np.testing.assert_allclose(found[row, masks.answer[row] > 0], expected[-count:], atol=1e-5)
        assert masks.answer[row].sum() == count
    assert np.isfinite(found).all()


def test_answers_window_equals_the_whole_row():
    """The same losses and gradients as from a model that predicts every token."""
    window, whole = token_model(decoder(SPEC), START), causal_model(decoder(SPEC).logits_fn)
    for average in ("token", "example"):
        one, other = (
            jax.value_and_grad(answer_loss(model, average))(PARAMS, EXAMPLES) for model in (window, whole)
        )
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
        for a, b in zip(jax.tree.leaves(one[1]), jax.tree.leaves(other[1])):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_shapes_are_the_windows():
    model = token_model(decoder(SPEC), START, features_layer=1)
    columns = EXAMPLES.x.truth.ids.shape[1] - START
    count = len(EXAMPLES.y)
    assert model.log_probs_fn(PARAMS, EXAMPLES).shape == (count, columns)
    assert model.logits_fn(PARAMS, EXAMPLES).shape == (count, columns, 11)
    assert model.features_fn(PARAMS, EXAMPLES).shape == (count, columns, 12)
    assert [mask.shape for mask in model.masks_fn(EXAMPLES)] == [(count, columns)] * 2
    other = model.alternatives_fn(EXAMPLES)
    assert model.log_probs_fn(PARAMS, other).shape == (count, other.x.ids.shape[1] - START)
    assert token_model(decoder(SPEC), START).features_fn is None


def test_adapters_on_a_shared_base():
    whole, own = token_model(decoder(SPEC, LORA), START), lora_model(decoder(SPEC, LORA), PARAMS, START)
    np.testing.assert_array_equal(
        own.log_probs_fn(ADAPTERS, EXAMPLES), whole.log_probs_fn(Adapted(PARAMS, ADAPTERS), EXAMPLES)
    )
    gradient = jax.jit(jax.grad(answer_loss(own)))(ADAPTERS, EXAMPLES)
    assert jax.tree.structure(gradient) == jax.tree.structure(ADAPTERS)
    assert own.features_fn is None
    featured = lora_model(decoder(SPEC, LORA), PARAMS, START, features_layer=0)
    assert featured.features_fn(ADAPTERS, EXAMPLES).shape[-1] == 12


def test_gradient_equals_finite_differences():
    loss = jax.jit(answer_loss(lora_model(decoder(SPEC, LORA), PARAMS, START)))
    direction = random_adapters(SPEC, LORA, seed=7)
    _, slope = jax.jvp(lambda adapters: loss(adapters, EXAMPLES), (ADAPTERS,), (direction,))

    def at(step):
        return float(loss(jax.tree.map(lambda a, b: a + step * b, ADAPTERS, direction), EXAMPLES))

    assert float(slope) == pytest.approx((at(1e-2) - at(-1e-2)) / 2e-2, rel=2e-2)


@pytest.mark.parametrize("method", [kl, dpo, npo, rmu])
def test_losses_on_tokens_take_it(method):
    """One update of each on adapters lowers nothing to NaN, and moves them."""
    model = lora_model(decoder(SPEC, LORA), PARAMS, START, features_layer=1)
    extra = {"num_features": 12, "steering": 2.0, "retain_weight": 1.0} if method is rmu else {}
    unlearner = method(model, optimizer=optax.sgd(0.1), num_updates=1, **extra)
    state = unlearner.init(jax.random.key(0), Trained(ADAPTERS, ADAPTERS))
    after, info = jax.jit(unlearner.update)(jax.random.key(1), state, Batch(EXAMPLES, EXAMPLES))
    moved = optax.tree.norm(jax.tree.map(jnp.subtract, after.params, ADAPTERS))
    assert np.isfinite(info["loss"])
    assert 0 < float(moved) < np.inf


def test_same_model_gives_the_same_functions():
    assert token_model(decoder(SPEC), START) is token_model(decoder(SPEC), START)


def test_a_token_loss_agrees_with_the_classifier_loss():
    """All tokens scored, no padding: the package's cross-entropy of sequences."""
    tokens = EXAMPLES.x.truth
    full = tokens._replace(answer=jnp.ones(tokens.ids.shape), real=jnp.ones(tokens.ids.shape))
    examples = EXAMPLES._replace(x=full)
    shifted = examples._replace(y=full.ids[:, 1:])
    model = decoder(SPEC)
    expected = cross_entropy_loss(lambda params, x: model.logits_fn(params, x)[:, :-1])(PARAMS, shifted)
    np.testing.assert_allclose(answer_loss(token_model(model))(PARAMS, examples), expected, rtol=1e-5)


def test_bad_arguments():
    model = decoder(SPEC)
    with pytest.raises(InputError, match="prompt_length must be an integer of at least 1, got 0"):
        token_model(model, 0)
    with pytest.raises(InputError, match="features_layer must be an integer between 0 and 2, got 3"):
        token_model(model, 1, 3)
    with pytest.raises(InputError, match="model must be a decoder with a lora spec, got None"):
        lora_model(model, PARAMS)
    columns = EXAMPLES.x.truth.ids.shape[1]
    with pytest.raises(InputError, match=f"prompt_length must be below the number of columns = {columns}"):
        token_model(model, columns).log_probs_fn(PARAMS, EXAMPLES)
    single = EXAMPLES._replace(x=EXAMPLES.x.truth)
    assert not isinstance(single.x, Questions)
    with pytest.raises(InputError, match=r"examples.x must be Questions"):
        token_model(model).alternatives_fn(single)
