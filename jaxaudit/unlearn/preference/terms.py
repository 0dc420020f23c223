"""The terms that losses on tokens are sums of: each is a weighted mean over tokens or over examples of one part.

Notation: s(x) is the sum of the log-probabilities of the answer's tokens, n(x) their number, s_ref the same under the
reference model. The weights depend on the data only, so a mean over a batch can be put together from its pieces.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import LossFn, Params
from jaxaudit.unlearn.preference.model import Scores, TokenModel, given_scores, log_probabilities

Average = Literal["token", "example"]
"""Mean over all tokens of a batch, or over examples of the mean over each one's tokens."""
Mask = Literal["answer", "real", "all"]
"""The answer's tokens; question and answer; everything, padding included."""
_FORWARD = 1 / 3
"""Cost of a forward pass, in gradients."""


class Context(NamedTuple):
    """What stays fixed while the parameters move."""

    reference: Params | None = None
    """``None``: what the terms need of it comes with the examples, or they need none."""
    direction: Float[Array, " features"] | None = None


class Term(NamedTuple):
    """``sum(values * weights) / sum(weights)`` over one part of the batch."""

    # One value and weight per example, or per token.
    values: Callable[[Params, Context, Examples], Array]
    weights: Callable[[Examples], Array]
    cost: float = 1.0
    """Gradient evaluations per example."""


def term_sum(term: Term, params: Params, context: Context, examples: Examples) -> Float[Array, ""]:
    """The numerator of a term."""
    return jnp.sum(term.values(params, context, examples) * term.weights(examples))


def term_weight(term: Term, examples: Examples) -> Float[Array, ""]:
    """The denominator of a term; 1 if nothing counts, so that the term is 0."""
    weight = jnp.sum(term.weights(examples))
    return jnp.where(weight > 0, weight, 1.0)


def term_mean(term: Term, params: Params, context: Context, examples: Examples) -> Float[Array, ""]:
    """A term's value on these examples; 0 if nothing counts."""
    return term_sum(term, params, context, examples) / term_weight(term, examples)


def answer_loss(model: TokenModel, average: Average = "token") -> LossFn:
    """Mean negative log-likelihood of the answers' tokens, in nats: ``- sum s / sum n``, or the mean of ``-s / n``.

    Parameters
    ----------
    model
        Only its log-probabilities and masks are used.
    average
        Over tokens (long answers count more) or over examples. An example without an answer never counts.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> loss = answer_loss(classifier_model(lambda params, x: x * params))
    >>> print(f"{loss(1.0, Examples(jnp.zeros((3, 2)), jnp.array([0, 1, 1]), jnp.ones(3))):.4f}")
    0.6931
    """
    return _answer_loss(model, average)


@lru_cache(maxsize=64)  # the same function for the same model, so that programs built on it are compiled once
def _answer_loss(model: TokenModel, average: Average) -> LossFn:
    return new_answer_loss(model, average)


def new_answer_loss(model: TokenModel, average: Average = "token") -> LossFn:
    """`answer_loss` for a model that is built while a program is traced, which no cache may keep."""
    term = likelihood(model, average)
    return lambda params, examples: term_mean(term, params, Context(), examples)


def likelihood(model: TokenModel, average: Average, *, sign: float = 1.0, alternative: bool = False) -> Term:
    """``sign`` times the negative log-likelihood of the answers, or of the alternative ones."""
    seen = _alternatives_fn(model) if alternative else _same

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, "examples tokens"]:
        return -sign * model.log_probs_fn(params, seen(examples))

    return Term(values, lambda examples: _token_weights(model, seen(examples), "answer", average))


def divergence(
    model: TokenModel,
    mask: Mask,
    average: Average,
    reference_fn: Callable[[Examples], Array] | None = None,
) -> Term:
    """``KL(reference || current)`` of the predicted distributions at every position of the mask, in nats.

    ``reference_fn`` gives the reference's logits; ``None``: the model does, at the parameters of the context.
    """
    if model.logits_fn is None:
        raise InputError("model must have a logits_fn for this loss, got None")
    logits_fn = model.logits_fn

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, "examples tokens"]:
        compared = logits_fn(context.reference, examples) if reference_fn is None else reference_fn(examples)
        reference, current = map(log_probabilities, (compared, logits_fn(params, examples)))
        return jnp.sum(jnp.exp(reference) * (reference - current), axis=-1)

    return Term(values, lambda examples: _token_weights(model, examples, mask, average), cost=1 + _FORWARD)


def preference(model: TokenModel, beta: float, scale: float) -> Term:
    """``-scale log sigmoid(beta [(s - s_ref)(alternative) - (s - s_ref)(truth)])`` per example."""
    alternatives_fn = _alternatives_fn(model)

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, " examples"]:
        before = reference_scores(model, context, examples)
        truth = answer_log_prob(model, params, examples) - before.truth
        other = answer_log_prob(model, params, alternatives_fn(examples)) - before.alternative
        return -scale * jax.nn.log_sigmoid(beta * (other - truth))

    return Term(values, lambda examples: _answered(model, examples), cost=2 * (1 + _FORWARD))


def negative_preference(model: TokenModel, beta: float) -> Term:
    """``-(2 / beta) log sigmoid(-beta (s - s_ref))`` per example."""

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, " examples"]:
        before = reference_scores(model, context, examples, with_alternative=False)
        ratio = answer_log_prob(model, params, examples) - before.truth
        return -2 / beta * jax.nn.log_sigmoid(-beta * ratio)

    return Term(values, lambda examples: _answered(model, examples), cost=1 + _FORWARD)


def simple_negative_preference(model: TokenModel, beta: float, margin: float) -> Term:
    """``-(2 / beta) log sigmoid(-beta s / n - margin)`` per example."""

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, " examples"]:
        length = jnp.maximum(jnp.sum(model.masks_fn(examples).answer, axis=1), 1.0)
        mean = answer_log_prob(model, params, examples) / length
        return -2 / beta * jax.nn.log_sigmoid(-beta * mean - margin)

    return Term(values, lambda examples: _answered(model, examples))


def misdirection(model: TokenModel, length: float, mask: Mask, average: Average) -> Term:
    """Squared Euclidean distance of the features from ``length`` times the fixed direction, at every position."""
    features_fn = _features_fn(model)

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, "examples tokens"]:
        assert context.direction is not None
        return jnp.sum((features_fn(params, examples) - length * context.direction) ** 2, axis=-1)

    return Term(values, lambda examples: _token_weights(model, examples, mask, average))


def feature_distance(model: TokenModel, mask: Mask, average: Average) -> Term:
    """Squared Euclidean distance of the features from the reference's, at every position."""
    features_fn = _features_fn(model)

    def values(params: Params, context: Context, examples: Examples) -> Float[Array, "examples tokens"]:
        moved = features_fn(params, examples) - features_fn(context.reference, examples)
        return jnp.sum(moved**2, axis=-1)

    return Term(values, lambda examples: _token_weights(model, examples, mask, average), cost=1 + _FORWARD)


def answer_log_prob(model: TokenModel, params: Params, examples: Examples) -> Float[Array, " examples"]:
    """s(x): log-probability of each whole answer, in nats; 0 for an answer without tokens."""
    return jnp.sum(model.log_probs_fn(params, examples) * model.masks_fn(examples).answer, axis=1)


def reference_scores(
    model: TokenModel, context: Context, examples: Examples, *, with_alternative: bool = True
) -> Scores:
    """s_ref of the answers: by the reference of the context, or as the examples bring it along.

    ``with_alternative=False`` spares the other answers where they have to be computed; then both are the true ones'.
    """
    if context.reference is None:
        return given_scores(examples)
    true = answer_log_prob(model, context.reference, examples)
    if not with_alternative:
        return Scores(true, true)
    return Scores(true, answer_log_prob(model, context.reference, _alternatives_fn(model)(examples)))


def _answered(model: TokenModel, examples: Examples) -> Float[Array, " examples"]:
    """1 for an example that counts and has an answer."""
    return examples.weights * jnp.max(model.masks_fn(examples).answer, axis=1)


def _token_weights(
    model: TokenModel, examples: Examples, mask: Mask, average: Average
) -> Float[Array, "examples tokens"]:
    masks = model.masks_fn(examples)
    weights = jnp.ones_like(masks.real) if mask == "all" else getattr(masks, mask)
    if average == "example":
        weights = weights / jnp.maximum(jnp.sum(weights, axis=1, keepdims=True), 1.0)
    return weights * examples.weights[:, None]


def _same(examples: Examples) -> Examples:
    return examples


def _alternatives_fn(model: TokenModel) -> Callable[[Examples], Examples]:
    if model.alternatives_fn is None:
        raise InputError("model must have an alternatives_fn for this loss, got None")
    return model.alternatives_fn


def _features_fn(model: TokenModel) -> Callable[[Params, Examples], Float[Array, "examples tokens features"]]:
    if model.features_fn is None:
        raise InputError("model must have a features_fn for this loss, got None")
    return model.features_fn
