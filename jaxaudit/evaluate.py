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
    logits_fn: LogitsFn, score: str, num_retain: int
) -> Callable[[EvaluationRun, EvaluationShared], Evaluation]:
    """The evaluation of one run, as a pure function for `jaxaudit.runs.map_runs`.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> logits``.
    score
        Name of a score in `jaxaudit.scores.SCORES`.
    num_retain
        How many examples of the pool are retain examples.

    Examples
    --------
    >>> pool = Examples(jnp.eye(3), jnp.array([0, 1, 2]), jnp.ones(3))
    >>> run = EvaluationRun(jnp.array(3.0), jnp.array(1.0), forget=jnp.array([2]))
    >>> result = evaluation(lambda params, x: x * params, "logit", 1)(run, EvaluationShared(pool, pool))
    >>> result.scores.round(3).tolist(), float(result.forget_accuracy), float(result.moved)
    ([2.307..., 2.307...], 1.0, 2.0)
    """
    score_fn = SCORES[score].function

    def evaluate(run: EvaluationRun, shared: EvaluationShared) -> Evaluation:
        pool, holdout = shared
        logits = logits_fn(run.params, pool.x)

        def accuracy_on(rows: Int[Array, " rows"] | slice) -> Float[Array, ""]:
            return accuracy(logits[rows], pool.y[rows], pool.weights[rows])

        return Evaluation(
            scores=score_fn(logits[num_retain:], pool.y[num_retain:]),
            retain_accuracy=accuracy_on(slice(num_retain)),
            forget_accuracy=accuracy_on(run.forget),
            test_accuracy=accuracy(logits_fn(run.params, holdout.x), holdout.y, holdout.weights),
            moved=optax.tree.norm(jax.tree.map(jnp.subtract, run.params, run.trained_params)),
        )

    return evaluate
