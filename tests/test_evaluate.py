from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit import evaluate
from jaxaudit.data import Examples
from jaxaudit.evaluate import EvaluationRun, EvaluationShared, evaluation
from jaxaudit.runs import map_runs
from jaxaudit.scores import logit_score


def linear(params, x):
    return x @ params


def make_examples(shape, seed):
    rng = np.random.default_rng(seed)
    return Examples(
        jnp.asarray(rng.normal(size=(*shape, 3)), jnp.float32),
        jnp.asarray(rng.integers(0, 4, shape), jnp.int32),
        jnp.ones(shape),
    )


def test_every_run_is_scored_on_its_own_parameters_and_forget_set():
    pool, holdout = make_examples((19,), 0), make_examples((7,), 2)
    params = jnp.asarray(np.random.default_rng(3).normal(size=(2, 3, 4)), jnp.float32)
    forget = jnp.array([[9, 10, 13], [11, 12, 18]])
    result, _ = map_runs(
        evaluation(linear, "logit", num_retain=9),
        EvaluationRun(params, params + 0.5, forget),
        EvaluationShared(pool, holdout),
    )

    def share_right(run, examples, rows):
        return np.mean(np.asarray(linear(params[run], examples.x[rows]).argmax(-1) == examples.y[rows]))

    for run in range(2):
        scores = logit_score(linear(params[run], pool.x[9:]), pool.y[9:])
        np.testing.assert_allclose(result.scores[run], scores, rtol=1e-5)
        everything = np.arange(7)
        assert result.retain_accuracy[run] == pytest.approx(share_right(run, pool, np.arange(9)))
        assert result.forget_accuracy[run] == pytest.approx(share_right(run, pool, np.asarray(forget[run])))
        assert result.test_accuracy[run] == pytest.approx(share_right(run, holdout, everything))
        assert result.moved[run] == pytest.approx(0.5 * np.sqrt(12), rel=1e-5)


def test_many_records_are_read_in_pieces_with_the_same_result(monkeypatch):
    """Pieces of 4 do not divide 19 records, nor 7."""
    pool, holdout = make_examples((19,), 0), make_examples((7,), 2)
    params = jnp.asarray(np.random.default_rng(3).normal(size=(3, 4)), jnp.float32)
    run, shared = EvaluationRun(params, params, jnp.array([9, 10, 13])), EvaluationShared(pool, holdout)
    results = []
    for at_once in (4096, 4):
        monkeypatch.setattr(evaluate, "_RECORDS_AT_ONCE", at_once)
        evaluation.cache_clear()
        results.append(evaluation(linear, "logit", num_retain=9)(run, shared))
    evaluation.cache_clear()
    for whole, pieces in zip(*results, strict=True):
        np.testing.assert_allclose(pieces, whole, rtol=1e-6)


def test_padding_does_not_count_in_accuracies():
    examples = Examples(jnp.eye(3), jnp.array([0, 1, 0]), jnp.array([1.0, 1.0, 0.0]))
    run = EvaluationRun(jnp.eye(3), jnp.eye(3), jnp.array([1, 2]))
    result = evaluation(linear, "cross-entropy", 3)(run, EvaluationShared(examples, examples))
    assert (
        float(result.retain_accuracy) == float(result.forget_accuracy) == float(result.test_accuracy) == 1.0
    )
    assert float(result.moved) == 0.0


def bigram(params, x):
    """Logits of the next token, a table."""
    return params[x]


@pytest.mark.parametrize("at_once", [4, 512])
def test_text_is_scored_by_the_mean_over_tokens_and_only_where_asked(monkeypatch, at_once):
    """Against a loop over windows and tokens; batches of 4 do not divide 11 windows."""
    monkeypatch.setattr(evaluate, "_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 5, (11, 7))
    weights = np.array([1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1], np.float32)
    pool = Examples(jnp.asarray(tokens[:, :-1]), jnp.asarray(tokens[:, 1:]), jnp.asarray(weights))
    params = jnp.asarray(rng.normal(size=(5, 5)), jnp.float32)
    run = EvaluationRun(params, params, forget=jnp.array([5, 6, 7, 8]))
    evaluation.cache_clear()
    result = evaluation(bigram, "token-cross-entropy", 2, (3, 2))(run, EvaluationShared(pool, pool))
    evaluation.cache_clear()

    table = np.asarray(params, np.float64)
    log_p = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    mean_log_p = np.array([np.mean([log_p[a, b] for a, b in pairwise(row)]) for row in tokens])
    right = np.array([np.mean([table[a].argmax() == b for a, b in pairwise(row)]) for row in tokens])
    np.testing.assert_allclose(result.scores, mean_log_p[[2, 3, 5, 6, 8, 9]], rtol=1e-5)
    assert float(result.retain_accuracy) == pytest.approx(right[:2].mean())
    assert float(result.forget_accuracy) == pytest.approx(right[5:8].mean())
    assert float(result.test_accuracy) == pytest.approx(right[weights > 0].mean())
