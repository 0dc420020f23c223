"""Every term against loops over tokens in float64, and its gradient against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.unlearn.preference import terms
from jaxaudit.unlearn.preference.model import TokenModel
from jaxaudit.unlearn.preference.terms import Context, answer_loss, term_mean
from tests.unlearn.preference import toy

EXAMPLES = toy.make_examples(0, 6, num_padding=2)
REFERENCE, DIRECTION = toy.make_params(7), jnp.array([0.6, 0.0, 0.8])
CONTEXT = Context(REFERENCE, DIRECTION)
ROWS = toy.counted(EXAMPLES)


def mean_over_tokens(lists, average):
    """Of lists of values per example."""
    if average == "token":
        return np.mean([value for values in lists for value in values])
    return np.mean([np.mean(values) for values in lists])


def answers(params, tokens):
    lists = toy.answer_log_probs(params, tokens)
    return [lists[row] for row in ROWS]


def log_ratios(tokens):
    return np.array(
        [sum(now) - sum(old) for now, old in zip(answers(toy.NOW, tokens), answers(REFERENCE, tokens))]
    )


def at_positions(value, mask):
    """``value(row, place)`` at every position of the mask, per example."""
    lists = {row: [] for row in ROWS}
    for row, place, answer, real in toy.positions(EXAMPLES.x.truth):
        if row in lists and {"answer": answer, "real": real, "all": True}[mask]:
            lists[row].append(value(row, place))
    return list(lists.values())


def divergence_at(row, place):
    old, now = (toy.distribution(p, EXAMPLES.x.truth, row, place) for p in (REFERENCE, toy.NOW))
    return np.sum(np.exp(old) * (old - now))


def misdirection_at(row, place):
    return np.sum((toy.features(toy.NOW, EXAMPLES.x.truth, row, place) - 2 * np.asarray(DIRECTION)) ** 2)


def distance_at(row, place):
    now, old = (toy.features(p, EXAMPLES.x.truth, row, place) for p in (toy.NOW, REFERENCE))
    return np.sum((now - old) ** 2)


def sigmoid_loss(margin):
    return np.log1p(np.exp(-margin))


def mean_log_prob():
    return np.array([np.mean(values) for values in answers(toy.NOW, EXAMPLES.x.truth)])


TRUTH, OTHER, MODEL = EXAMPLES.x.truth, EXAMPLES.x.alternative, toy.MODEL
CASES = {
    **{
        f"likelihood {average}": (
            terms.likelihood(MODEL, average),
            lambda average=average: -mean_over_tokens(answers(toy.NOW, TRUTH), average),
        )
        for average in ("token", "example")
    },
    "ascent": (
        terms.likelihood(MODEL, "token", sign=-1.0),
        lambda: mean_over_tokens(answers(toy.NOW, TRUTH), "token"),
    ),
    "alternative": (
        terms.likelihood(MODEL, "token", alternative=True),
        lambda: -mean_over_tokens(answers(toy.NOW, OTHER), "token"),
    ),
    **{
        f"divergence {mask} {average}": (
            terms.divergence(MODEL, mask, average),
            lambda mask=mask, average=average: mean_over_tokens(at_positions(divergence_at, mask), average),
        )
        for mask in ("answer", "real", "all")
        for average in ("token", "example")
    },
    "dpo": (
        terms.preference(MODEL, 0.3, 1.5),
        lambda: 1.5 * sigmoid_loss(0.3 * (log_ratios(OTHER) - log_ratios(TRUTH))).mean(),
    ),
    "npo": (
        terms.negative_preference(MODEL, 0.3),
        lambda: 2 / 0.3 * sigmoid_loss(-0.3 * log_ratios(TRUTH)).mean(),
    ),
    "simnpo": (
        terms.simple_negative_preference(MODEL, 2.5, 0.1),
        lambda: 2 / 2.5 * sigmoid_loss(-2.5 * mean_log_prob() - 0.1).mean(),
    ),
    "misdirection": (
        terms.misdirection(MODEL, 2.0, "real", "token"),
        lambda: mean_over_tokens(at_positions(misdirection_at, "real"), "token"),
    ),
    "feature distance": (
        terms.feature_distance(MODEL, "answer", "example"),
        lambda: mean_over_tokens(at_positions(distance_at, "answer"), "example"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_equal_loops_over_tokens(name):
    term, expected = CASES[name]
    assert term_mean(term, toy.NOW, CONTEXT, EXAMPLES) == pytest.approx(expected(), rel=2e-5)


@pytest.mark.parametrize("name", ["dpo", "npo", "simnpo", "divergence real token", "misdirection"])
def test_gradients_equal_finite_differences(name):
    with jax.enable_x64(True):
        to_double = lambda leaf: jnp.asarray(leaf, float) if leaf.dtype == jnp.float32 else leaf  # noqa: E731
        params, context, examples = jax.tree.map(to_double, (toy.NOW, CONTEXT, EXAMPLES))
        step = jax.tree.map(
            lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=float)).reshape(leaf.shape), params
        )

        @jax.jit
        def along(t):
            moved = jax.tree.map(lambda leaf, direction: leaf + t * direction, params, step)
            return term_mean(CASES[name][0], moved, context, examples)

        numeric = (along(1e-4) - along(-1e-4)) / 2e-4
        assert jax.grad(along)(0.0) == pytest.approx(float(numeric), rel=1e-6)


def test_values_at_the_start():
    at_start = Context(toy.NOW, DIRECTION)
    expected = {"dpo": 1.5 * np.log(2), "npo": 2 / 0.3 * np.log(2), "divergence real token": 0.0}
    for name, value in expected.items():
        assert term_mean(CASES[name][0], toy.NOW, at_start, EXAMPLES) == pytest.approx(value, abs=1e-6)


def gradient(term, context=CONTEXT):
    return jax.grad(lambda params: term_mean(term, params, context, EXAMPLES))(toy.NOW)


def assert_close(one, other, rtol):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other)):
        np.testing.assert_allclose(left, right, rtol=rtol, atol=1e-6)


def test_npo_becomes_ascent_as_beta_goes_to_zero():
    def summed_log_prob(params):
        return jnp.mean(terms.answer_log_prob(MODEL, params, EXAMPLES)[jnp.array(ROWS)])

    assert_close(gradient(terms.negative_preference(MODEL, 1e-5)), jax.grad(summed_log_prob)(toy.NOW), 1e-3)


def test_npo_weighs_the_gradients_of_ascent():
    """``2 p^b / (p^b + p_ref^b)`` per example."""
    beta = 0.7
    now, old = (np.exp([sum(a) for a in answers(p, TRUTH)]) for p in (toy.NOW, REFERENCE))
    weights = jnp.asarray(2 * now**beta / (now**beta + old**beta), jnp.float32)

    def weighted(params):
        return jnp.mean(weights * terms.answer_log_prob(MODEL, params, EXAMPLES)[jnp.array(ROWS)])

    assert_close(gradient(terms.negative_preference(MODEL, beta)), jax.grad(weighted)(toy.NOW), 1e-4)


def test_an_answerless_example_never_counts():
    truth = TRUTH._replace(answer=TRUTH.answer.at[0].set(0.0))
    emptied = EXAMPLES._replace(x=EXAMPLES.x._replace(truth=truth))
    left_out = EXAMPLES._replace(weights=EXAMPLES.weights.at[0].set(0.0))
    for name in ("likelihood token", "likelihood example", "npo", "simnpo", "dpo"):
        one, other = (term_mean(CASES[name][0], toy.NOW, CONTEXT, e) for e in (emptied, left_out))
        assert one == pytest.approx(float(other), rel=1e-6), name


def test_a_batch_of_padding_is_zero():
    nothing = EXAMPLES._replace(weights=jnp.zeros(6))
    for term, _ in CASES.values():
        assert term_mean(term, toy.NOW, CONTEXT, nothing) == 0


def test_the_answer_loss_is_one_function_per_model():
    assert answer_loss(MODEL) is answer_loss(MODEL)
    expected = CASES["likelihood example"][1]()
    assert answer_loss(MODEL, "example")(toy.NOW, EXAMPLES) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (lambda model: terms.divergence(model, "real", "token"), "a logits_fn"),
        (lambda model: terms.preference(model, 0.1, 1.0), "an alternatives_fn"),
        (lambda model: terms.likelihood(model, "token", alternative=True), "an alternatives_fn"),
        (lambda model: terms.misdirection(model, 1.0, "real", "token"), "a features_fn"),
    ],
)
def test_missing_functions_are_named(make, missing):
    with pytest.raises(ValueError, match=f"model must have {missing} for this loss, got None"):
        make(TokenModel(MODEL.log_probs_fn, MODEL.masks_fn))
