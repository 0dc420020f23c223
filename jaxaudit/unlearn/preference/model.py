"""What the losses on tokens need to know about a model, whatever its architecture; and how examples hold their tokens.

A language model and a classifier meet the same contract: a classifier's label is an answer of one token.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import LogitsFn, Params


class Tokens(NamedTuple):
    """Token sequences of equal length, padded; ``examples.x`` of a language model without alternatives."""

    ids: Int[Array, "examples tokens"]
    answer: Float[Array, "examples tokens"]
    """1 at the tokens of the answer, end of sequence included; 0 elsewhere."""
    real: Float[Array, "examples tokens"]
    """1 at every token of question and answer, 0 at padding."""


class Scores(NamedTuple):
    """Log-probabilities of whole answers under a model that does not move, in nats."""

    truth: Float[Array, " examples"]
    alternative: Float[Array, " examples"]


class Questions(NamedTuple):
    """The same questions with their true answers and with others, for instance refusals; then this is ``examples.x``.

    Both parts are padded to a length of their own.
    """

    truth: Tokens
    alternative: Tokens
    reference: Scores | None = None
    """What the reference model makes of both, for losses with ``reference="given"``."""


class Masks(NamedTuple):
    """Which of the predicted tokens are part of the answer, and which are not padding: arrays of 0 and 1."""

    answer: Float[Array, "examples tokens"]
    real: Float[Array, "examples tokens"]


class TokenModel(NamedTuple):
    """Functions of parameters and `Examples`, all on the same T predicted tokens per example.

    Only the first two are always needed; every loss says which others it uses.
    """

    log_probs_fn: Callable[[Params, Examples], Float[Array, "examples tokens"]]
    """Natural logarithm of the probability of every token, given those before it; finite also at padding."""
    masks_fn: Callable[[Examples], Masks]
    logits_fn: Callable[[Params, Examples], Float[Array, "examples tokens vocabulary"]] | None = None
    """Logits that predict every token."""
    alternatives_fn: Callable[[Examples], Examples] | None = None
    """The same questions, with the answers that are to be given instead."""
    features_fn: Callable[[Params, Examples], Float[Array, "examples tokens features"]] | None = None
    """Activations of an inner layer."""


SequenceFn = Callable[[Params, Tokens], Float[Array, "examples tokens outputs"]]


@lru_cache(
    maxsize=64
)  # the same functions for the same model, so that programs built on them are compiled once
def causal_model(logits_fn: SequenceFn, features_fn: SequenceFn | None = None) -> TokenModel:
    """A decoder, for examples whose ``x`` is `Tokens` or `Questions`; it predicts every token but the first.

    Parameters
    ----------
    logits_fn
        ``(params, Tokens) -> (examples, tokens, vocabulary)``; position t predicts token t + 1.
    features_fn
        ``(params, Tokens) -> (examples, tokens, features)``: an inner layer, where a loss needs it.

    Examples
    --------
    >>> model = causal_model(lambda params, tokens: jnp.zeros((*tokens.ids.shape, 4)))
    >>> tokens = Tokens(jnp.array([[1, 2, 3]]), jnp.array([[0.0, 0.0, 1.0]]), jnp.ones((1, 3)))
    >>> examples = Examples(tokens, jnp.zeros(1, int), jnp.ones(1))
    >>> model.log_probs_fn(None, examples).round(3).tolist(), model.masks_fn(examples).answer.tolist()
    ([[-1.386..., -1.386...]], [[0.0, 1.0]])
    """

    def logits_of(params: Params, examples: Examples) -> Float[Array, "examples tokens vocabulary"]:
        return logits_fn(params, truth(examples))[:, :-1]

    def log_probs_of(params: Params, examples: Examples) -> Float[Array, "examples tokens"]:
        return pick_log_probs(logits_of(params, examples), truth(examples).ids[:, 1:])

    def masks_of(examples: Examples) -> Masks:
        tokens = truth(examples)
        return Masks(tokens.answer[:, 1:], tokens.real[:, 1:])

    def features_of(params: Params, examples: Examples) -> Float[Array, "examples tokens features"]:
        assert features_fn is not None
        return features_fn(params, truth(examples))[:, 1:]

    features = None if features_fn is None else features_of
    return TokenModel(log_probs_of, masks_of, logits_of, alternatives, features)


@lru_cache(maxsize=64)
def classifier_model(
    logits_fn: LogitsFn, alternatives_fn: Callable[[Examples], Examples] | None = None
) -> TokenModel:
    """A classifier: one token per example, its label; no padding but examples of weight 0.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> (examples, classes)``.
    alternatives_fn
        The same records with other labels, where a loss needs them.

    Examples
    --------
    >>> model = classifier_model(lambda params, x: x)
    >>> model.log_probs_fn(None, Examples(jnp.zeros((1, 2)), jnp.array([1]), jnp.ones(1))).round(3).tolist()
    [[-0.693...]]
    """

    def logits_of(params: Params, examples: Examples) -> Float[Array, "examples 1 classes"]:
        return logits_fn(params, examples.x)[:, None]

    def log_probs_of(params: Params, examples: Examples) -> Float[Array, "examples 1"]:
        return pick_log_probs(logits_of(params, examples), examples.y[:, None])

    def masks_of(examples: Examples) -> Masks:
        return Masks(*[jnp.ones((len(examples.y), 1))] * 2)

    return TokenModel(log_probs_of, masks_of, logits_of, alternatives_fn)


def truth(examples: Examples) -> Tokens:
    """The tokens with the true answers.

    Examples
    --------
    >>> truth(Examples(Questions("true", "other"), None, None))
    'true'
    """
    return examples.x.truth if isinstance(examples.x, Questions) else examples.x


def alternatives(examples: Examples) -> Examples:
    """The same questions with the other answers.

    Raises
    ------
    InputError
        If there are none.

    Examples
    --------
    >>> alternatives(Examples(Questions("true", "other"), None, None)).x
    'other'
    """
    if not isinstance(examples.x, Questions):
        raise InputError("examples.x must be Questions for a loss on alternative answers, got Tokens")
    return examples._replace(x=examples.x.alternative)


def given_scores(examples: Examples) -> Scores:
    """What the reference model makes of the answers, where that was computed beforehand.

    Raises
    ------
    InputError
        If it was not.

    Examples
    --------
    >>> given_scores(Examples(Questions("true", "other", "scores"), None, None))
    'scores'
    """
    found = examples.x.reference if isinstance(examples.x, Questions) else None
    if found is None:
        raise InputError("examples.x must be Questions with reference scores for reference='given', got none")
    return found


def log_probabilities(
    logits: Float[Array, "*batch vocabulary"],
) -> Float[Array, "*batch vocabulary"]:
    """Log-softmax, in single precision at least.

    Examples
    --------
    >>> log_probabilities(jnp.zeros(2, jnp.bfloat16)).round(3).tolist()
    [-0.693..., -0.693...]
    """
    return jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))


def pick_log_probs(
    logits: Float[Array, "examples tokens vocabulary"], ids: Int[Array, "examples tokens"]
) -> Float[Array, "examples tokens"]:
    """Log-probability of every token ``ids``, in nats.

    Examples
    --------
    >>> pick_log_probs(jnp.zeros((1, 1, 2)), jnp.zeros((1, 1), int)).round(3).tolist()
    [[-0.693...]]
    """
    return jnp.take_along_axis(log_probabilities(logits), ids[..., None], axis=-1)[..., 0]
