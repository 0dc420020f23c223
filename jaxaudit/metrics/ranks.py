"""Where the tokens of true answers stand in a model's predictions: probability, mean reciprocal rank, top-hit ratio.

Pure functions of one model's outputs. Logits are teacher-forced by default: the logits that predict a token were made
from the true tokens before it. For free-running metrics, hand over the logits of a greedy generation instead, one row
per step, with the answers moved to the front (`answers_first`) and the steps that were taken (``generated``).
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxaudit.checks import check_integer

AnyArray = Array | np.ndarray


def answer_probability(
    log_probs: Float[AnyArray, "*batch tokens"],
    answer: Float[AnyArray, "*batch tokens"],
    *,
    per_token: bool = True,
) -> Float[Array, "*batch"]:
    """Probability of each answer, ``exp(s / n)`` per token or ``exp(s)`` as a whole.

    Parameters
    ----------
    log_probs
        Natural logarithm of the probability of every token.
    answer
        1 at the n tokens of the answer, 0 elsewhere; what stands there, even NaN, never counts.
    per_token
        Whether to take the geometric mean over tokens, so that long answers compare with short ones.

    Returns
    -------
    Numbers in [0, 1]; an answer without tokens has 0.

    Examples
    --------
    >>> log_probs = jnp.log(jnp.array([[0.9, 0.5, 0.125]]))
    >>> answer_probability(log_probs, jnp.array([[0.0, 1.0, 1.0]])).tolist()
    [0.25]
    """
    length = jnp.sum(answer, axis=-1)
    total = jnp.sum(jnp.where(answer > 0, log_probs, 0.0), axis=-1)
    exponent = total / jnp.maximum(length, 1) if per_token else total
    return jnp.where(length > 0, jnp.exp(exponent), 0.0)


def token_ranks(
    logits: Float[AnyArray, "*batch tokens vocabulary"], ids: Int[AnyArray, "*batch tokens"]
) -> Int[Array, "*batch tokens"]:
    """Rank of every token among the vocabulary, 1 for the largest logit; equal logits count against the token.

    So a model that knows nothing and gives all tokens the same logit has the worst rank, not the best; so has one that
    diverged and gives NaN.

    Parameters
    ----------
    logits
        That predict the token at the same place.
    ids
        The true tokens.

    Examples
    --------
    >>> token_ranks(jnp.array([[3.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), jnp.array([1, 0])).tolist()
    [2, 3]
    """
    own = jnp.take_along_axis(logits, ids[..., None], axis=-1)
    return jnp.sum(~(logits < own), axis=-1)  # NaN is not less than anything


def mean_reciprocal_rank(
    ranks: Int[AnyArray, "*batch tokens"],
    answer: Float[AnyArray, "*batch tokens"],
    generated: Float[AnyArray, "*batch tokens"] | None = None,
) -> Float[Array, "*batch"]:
    """``1 / n`` times the sum of ``1 / rank`` over the n tokens of each answer (equation 1 of Qiu et al.).

    Parameters
    ----------
    ranks
        Of every token, from `token_ranks`.
    answer
        1 at the tokens of the answer, 0 elsewhere.
    generated
        For free-running generation: 1 at steps that were taken. A token past the end is not found. Default: all 1.

    Returns
    -------
    Numbers in [0, 1], higher if more is remembered; an answer without tokens has 0.

    References
    ----------
    Qiu et al. (2025), How Data Inter-connectivity Shapes LLMs Unlearning, Appendix D.

    Examples
    --------
    >>> mean_reciprocal_rank(jnp.array([[1, 2, 7]]), jnp.array([[1.0, 1.0, 0.0]])).tolist()
    [0.75]
    """
    return _mean(1.0 / jnp.asarray(ranks), answer, generated)


def top_hit_ratio(
    ranks: Int[AnyArray, "*batch tokens"],
    answer: Float[AnyArray, "*batch tokens"],
    top: int,
    generated: Float[AnyArray, "*batch tokens"] | None = None,
) -> Float[Array, "*batch"]:
    """Share of each answer's tokens of rank ``top`` or better (equation 2 of Qiu et al., their m).

    Parameters
    ----------
    ranks, answer, generated
        As for `mean_reciprocal_rank`.
    top
        At least 1; see `scaled_top`.

    Returns
    -------
    Numbers in [0, 1]; an answer without tokens has 0.

    Raises
    ------
    InputError
        If ``top`` is not an integer of at least 1.

    Examples
    --------
    >>> top_hit_ratio(jnp.array([[1, 2, 7]]), jnp.ones((1, 3)), top=2).round(3).tolist()
    [0.667...]
    """
    check_integer("top", top, low=1)
    return _mean(jnp.where(jnp.asarray(ranks) <= top, 1.0, 0.0), answer, generated)


def scaled_top(vocabulary: int, top: int = 100, of: int = 32000) -> int:
    """The same share of a vocabulary as the paper's 100 is of the 32,000 tokens of Llama 2; at least 1.

    The top 100 of a few hundred tokens says nothing.

    Parameters
    ----------
    vocabulary
        Number of tokens of the model.
    top, of
        The share to match.

    Examples
    --------
    >>> scaled_top(32000), scaled_top(49152), scaled_top(215)
    (100, 154, 1)
    """
    check_integer("vocabulary", vocabulary, low=1)
    check_integer("of", of, low=1)
    check_integer("top", top, low=1, high=of)
    return math.ceil(top * vocabulary / of)


def answers_first(
    ids: Int[AnyArray, "*batch tokens"], answer: Float[AnyArray, "*batch tokens"]
) -> tuple[Int[Array, "*batch tokens"], Float[Array, "*batch tokens"]]:
    """Move every answer to the front of its row, as a generation is laid out.

    Returns
    -------
    Tokens (0 after the answer) and mask.

    Examples
    --------
    >>> ids, mask = answers_first(jnp.array([[5, 6, 7, 8]]), jnp.array([[0.0, 1.0, 1.0, 0.0]]))
    >>> ids.tolist(), mask.tolist()
    ([[6, 7, 0, 0]], [[1.0, 1.0, 0.0, 0.0]])
    """
    order = jnp.argsort(answer <= 0, axis=-1, stable=True)
    mask = jnp.take_along_axis(jnp.asarray(answer), order, axis=-1)
    moved = jnp.take_along_axis(jnp.asarray(ids), order, axis=-1)
    return jnp.where(mask > 0, moved, 0), mask


def _mean(
    values: Float[Array, "*batch tokens"],
    answer: Float[AnyArray, "*batch tokens"],
    generated: Float[AnyArray, "*batch tokens"] | None,
) -> Float[Array, "*batch"]:
    found = answer if generated is None else answer * generated
    return jnp.sum(jnp.where(found > 0, values, 0.0), axis=-1) / jnp.maximum(jnp.sum(answer, axis=-1), 1)
