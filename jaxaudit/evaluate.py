"""What is read from one unlearned model before its parameters are dropped: scores, accuracies, how far it moved."""

from collections.abc import Callable
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
    groups: Examples
    retain: Examples
    holdout: Examples


class Evaluation(NamedTuple):
    """One run's results; a run axis in front when there are many."""

    scores: Float[Array, "*runs groups examples"]
    retain_accuracy: Float[Array, "*runs"]
    forget_accuracy: Float[Array, "*runs"]
    test_accuracy: Float[Array, "*runs"]
    moved: Float[Array, "*runs"]
    """Euclidean distance between trained and unlearned parameters."""


def evaluation(logits_fn: LogitsFn, score: str) -> Callable[[EvaluationRun, EvaluationShared], Evaluation]:
    """The evaluation of one run, as a pure function for `jaxaudit.runs.map_runs`.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> logits``.
    score
        Name of a score in `jaxaudit.scores.SCORES`.

    Examples
    --------
    >>> one = Examples(jnp.eye(2), jnp.array([0, 1]), jnp.ones(2))
    >>> groups = jax.tree.map(lambda leaf: leaf[:, None], one)
    >>> evaluate = evaluation(lambda params, x: x * params, "logit")
    >>> run = EvaluationRun(jnp.array(3.0), jnp.array(1.0), jnp.array([1]))
    >>> result = evaluate(run, EvaluationShared(one, groups, one, one))
    >>> result.scores.tolist(), float(result.forget_accuracy), float(result.moved)
    ([[3.0], [3.0]], 1.0, 2.0)
    """
    score_fn = SCORES[score].function

    def evaluate(run: EvaluationRun, shared: EvaluationShared) -> Evaluation:
        def accuracy_on(examples: Examples) -> Float[Array, ""]:
            return accuracy(logits_fn(run.params, examples.x), examples.y, examples.weights)

        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), shared.groups)
        difference = jax.tree.map(jnp.subtract, run.params, run.trained_params)
        return Evaluation(
            scores=score_fn(logits_fn(run.params, flat.x), flat.y).reshape(shared.groups.y.shape),
            retain_accuracy=accuracy_on(shared.retain),
            forget_accuracy=accuracy_on(jax.tree.map(lambda leaf: leaf[run.forget], shared.pool)),
            test_accuracy=accuracy_on(shared.holdout),
            moved=optax.tree.norm(difference),
        )

    return evaluate
