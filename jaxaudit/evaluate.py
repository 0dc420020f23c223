"""What is read from one unlearned model before its parameters are dropped: scores, accuracies, how far it moved."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from jaxaudit.data import Examples
from jaxaudit.scores import SCORES, accuracy
from jaxaudit.train import LogitsFn, Params


class EvaluationRun(NamedTuple):
    """What differs between runs."""

    params: Params
    trained_params: Params
    forget: Int[Array, " forget"]
    """The run's own forget examples, as indices into the pool."""


class EvaluationShared(NamedTuple):
    """What all runs share."""

    pool: Examples
    """Retain examples, then the candidate groups."""
    holdout: Examples


class Evaluation(NamedTuple):
    """One run's results; a run axis in front when there are many."""

    scores: Float[Array, "*runs candidates"]
    """Of the examples of the candidate groups, one group after the other."""
    retain_accuracy: Float[Array, "*runs"]
    forget_accuracy: Float[Array, "*runs"]
    test_accuracy: Float[Array, "*runs"]
    moved: Float[Array, "*runs"]
    """Euclidean distance between trained and unlearned parameters."""


@lru_cache(maxsize=64)
def evaluation(
    logits_fn: LogitsFn, score: str, num_retain: int, scored: tuple[int, int] = (1, 1)
) -> Callable[[EvaluationRun, EvaluationShared], Evaluation]:
    """The evaluation of one run, as a pure function for `jaxaudit.runs.map_runs`.

    Of text, accuracies are shares of tokens.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> logits``.
    score
        Name of a score in `jaxaudit.scores.SCORES`.
    num_retain
        How many examples of the pool are retain examples.
    scored
        Examples of each candidate group, and how many of them, from the first on, are scored. The default scores all.

    Examples
    --------
    >>> pool = Examples(jnp.eye(3), jnp.array([0, 1, 2]), jnp.ones(3))
    >>> run = EvaluationRun(jnp.array(3.0), jnp.array(1.0), forget=jnp.array([2]))
    >>> result = evaluation(lambda params, x: x * params, "logit", 1)(run, EvaluationShared(pool, pool))
    >>> result.scores.round(3).tolist(), float(result.forget_accuracy), float(result.moved)
    ([2.307..., 2.307...], 1.0, 2.0)
    """
    group_size, num_scored = scored
    read = _reader(logits_fn, score)

    def evaluate(run: EvaluationRun, shared: EvaluationShared) -> Evaluation:
        pool, holdout = shared
        scores, right = read(run.params, pool)

        def accuracy_on(rows: Int[Array, " rows"] | slice) -> Float[Array, ""]:
            return _mean(right[rows], pool.weights[rows])

        return Evaluation(
            scores=scores[num_retain:].reshape(-1, group_size)[:, :num_scored].reshape(-1),
            retain_accuracy=accuracy_on(slice(num_retain)),
            forget_accuracy=accuracy_on(run.forget),
            test_accuracy=_mean(read(run.params, holdout)[1], holdout.weights),
            moved=optax.tree.norm(jax.tree.map(jnp.subtract, run.params, run.trained_params)),
        )

    return evaluate


_AT_ONCE = 512
"""Sequences whose logits are in memory together: a row of logits for every token of a long text is too much."""
_RECORDS_AT_ONCE = 4096
"""Other records that are in memory together, with all that a network makes of them."""

_Read = tuple[Float[Array, " examples"], Float[Array, " examples"]]


def _reader(logits_fn: LogitsFn, score: str) -> Callable[[Params, Examples], _Read]:
    """Of every example its score, and 1 if it is right; of a sequence the share of tokens that are."""
    chosen = SCORES[score]

    def read_some(params: Params, x: Array, y: Array) -> _Read:
        logits = logits_fn(params, x)
        right = accuracy(logits.reshape(len(y), -1, logits.shape[-1]), y.reshape(len(y), -1))
        return chosen.function(logits, y), right

    def read(params: Params, examples: Examples) -> _Read:
        x, y, _ = examples
        if not chosen.per_token:
            # One after the other and not in a loop, in which a convolution would be slow on CPU.
            starts = range(0, max(len(y), 1), _RECORDS_AT_ONCE)
            parts = [
                read_some(params, *(leaf[first : first + _RECORDS_AT_ONCE] for leaf in (x, y)))
                for first in starts
            ]
            return jax.tree.map(lambda *pieces: jnp.concatenate(pieces), *parts)
        batches = [_cut(leaf, min(_AT_ONCE, len(y))) for leaf in (x, y)]
        results = jax.lax.map(lambda batch: read_some(params, *batch), batches)
        scores, right = (leaf.reshape(-1)[: len(y)] for leaf in results)
        return scores, right

    return read


def _cut(leaf: Array, size: int) -> Array:
    """Batches of equal size; the last one is filled up with the last example."""
    filled = jnp.pad(leaf, [(0, -len(leaf) % size), *[(0, 0)] * (leaf.ndim - 1)], mode="edge")
    return filled.reshape(-1, size, *leaf.shape[1:])


def _mean(values: Float[Array, " examples"], weights: Float[Array, " examples"]) -> Float[Array, ""]:
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1)
