"""Membership scores: one number per example from a model's outputs, higher = more likely a member.

Pure functions of one model's logits, batched over any leading axes. Nothing passes through probabilities,
which round to 0 or 1 where the scores still differ; half-precision logits are scored in float32.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxaudit.errors import InputError

AnyArray = Array | np.ndarray


def logit_score(
    logits: Float[AnyArray, "*batch classes"], labels: Int[AnyArray, "*batch"]
) -> Float[Array, "*batch"]:
    """The paper's logit score ``phi(p_y) = log(p_y / (1 - p_y))`` (section 5), from the logits z alone.

    ``phi = z_y - logsumexp of the other logits``. The largest other logit is subtracted from all first, so
    that large logits cost no precision and a large margin stays finite.

    Parameters
    ----------
    logits
        ``(..., classes)``, at least 2 classes.
    labels
        ``(...)``, in 0 to classes - 1; a label outside that range scores NaN.

    Returns
    -------
    float array
        ``(...)``, in nats, unbounded; positive if the label is more likely than not.

    Raises
    ------
    InputError
        If there is one class only: its probability is 1 whatever the model.

    Examples
    --------
    >>> logit_score(jnp.array([[100.0, 0.0], [-1e4, 0.0]]), jnp.array([0, 0])).tolist()
    [100.0, -10000.0]
    """
    classes = logits.shape[-1]
    if classes < 2:
        raise InputError(f"logits must have at least 2 classes on the last axis, got shape {logits.shape}")
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    own = labels[..., None] == jnp.arange(classes)
    # The shift cancels in the result, and so it carries no gradient.
    shift = jax.lax.stop_gradient(jnp.max(jnp.where(own, -jnp.inf, logits), axis=-1, keepdims=True))
    logits = logits - shift
    in_range = jnp.where(labels < 0, classes, labels)[..., None]
    label_logit = jnp.take_along_axis(logits, in_range, axis=-1, mode="fill")[..., 0]
    return label_logit - jax.nn.logsumexp(jnp.where(own, -jnp.inf, logits), axis=-1)


def cross_entropy_score(
    logits: Float[AnyArray, "*batch classes"], labels: Int[AnyArray, "*batch"]
) -> Float[Array, "*batch"]:
    """Minus the cross-entropy: the log-probability of the label.

    Computed as the log-sigmoid of `logit_score`, which keeps its relative precision when the probability is
    close to 1. Shapes, labels and errors as there.

    Returns
    -------
    float array
        ``(...)``, in nats, at most 0.

    Examples
    --------
    >>> cross_entropy_score(jnp.array([30.0, 0.0]), jnp.array(0)).item()
    -9.357...e-14
    """
    return jax.nn.log_sigmoid(logit_score(logits, labels))


def token_cross_entropy_score(
    logits: Float[AnyArray, "*batch tokens classes"],
    labels: Int[AnyArray, "*batch tokens"],
    weights: Float[AnyArray, "*batch tokens"] | None = None,
) -> Float[Array, "*batch"]:
    """Minus the mean per-token cross-entropy of a sequence.

    Parameters
    ----------
    logits
        ``(..., tokens, classes)``, at least 2 classes.
    labels
        ``(..., tokens)``; out of range is allowed where the weight is 0 (padding is often -1 or -100).
    weights
        ``(..., tokens)`` of 0 and 1: 0 leaves a token out. Default: all 1. A sequence without a token scores
        0.

    Returns
    -------
    float array
        ``(...)``, in nats per token, at most 0.

    Examples
    --------
    >>> logits, labels = jnp.zeros((3, 4)), jnp.array([1, 2, -100])
    >>> token_cross_entropy_score(logits, labels, jnp.array([1.0, 1.0, 0.0])).item()  # -log(4)
    -1.386...
    """
    weights = jnp.ones(labels.shape) if weights is None else weights
    # A label out of range would score NaN, and NaN times a zero weight would still reach the gradient.
    labels = jnp.where(weights > 0, labels, 0)
    return _mean_over_last_axis(cross_entropy_score(logits, labels), weights)


def accuracy(
    logits: Float[AnyArray, "*batch examples classes"],
    labels: Int[AnyArray, "*batch examples"],
    weights: Float[AnyArray, "*batch examples"] | None = None,
) -> Float[Array, "*batch"]:
    """Share of examples whose largest logit is the label's, over the last axis of ``labels``.

    Parameters
    ----------
    logits
        ``(..., examples, classes)``; of equal largest logits the first counts.
    labels
        ``(..., examples)``.
    weights
        ``(..., examples)`` of 0 and 1: 0 leaves an example out. Default: all 1. No example at all gives 0.

    Returns
    -------
    float array
        ``(...)``, in [0, 1].

    Examples
    --------
    >>> accuracy(jnp.array([[2.0, 1.0], [2.0, 1.0]]), jnp.array([0, 1])).item()
    0.5
    """
    weights = jnp.ones(labels.shape) if weights is None else weights
    return _mean_over_last_axis((logits.argmax(axis=-1) == labels).astype(jnp.float32), weights)


class Score(NamedTuple):
    """A score function of (logits, labels) and its definition, as reports print it."""

    function: Callable[..., Float[Array, "*batch"]]
    definition: str
    per_token: bool = False
    """Whether it needs a label per token rather than one per record."""


SCORES = {
    "logit": Score(logit_score, "label's logit minus the log-sum-exp of the other logits"),
    "cross-entropy": Score(cross_entropy_score, "minus the cross-entropy of the label, in nats"),
    "token-cross-entropy": Score(
        token_cross_entropy_score,
        "minus the mean cross-entropy per token that is not padding, in nats",
        per_token=True,
    ),
}
"""Every score by its name in specs and reports."""


def _mean_over_last_axis(
    values: Float[Array, "*batch items"], weights: Float[AnyArray, "*#batch items"]
) -> Float[Array, "*batch"]:
    """Mean over items of weight 1; 0 if there is none. Items of weight 0 may be NaN."""
    total = jnp.where(weights > 0, values, 0.0).sum(axis=-1)
    return total / jnp.maximum(weights.sum(axis=-1), 1)
