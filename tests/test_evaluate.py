import jax
import jax.numpy as jnp
import numpy as np

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
    retain, groups, holdout = make_examples((9,), 0), make_examples((5, 2), 1), make_examples((7,), 2)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), groups)
    pool = jax.tree.map(lambda *parts: jnp.concatenate(parts), retain, flat)
    params = jnp.asarray(np.random.default_rng(3).normal(size=(2, 3, 4)), jnp.float32)
    forget = jnp.array([[9, 10, 13], [11, 12, 18]])
    result, _ = map_runs(
        evaluation(linear, "logit"),
        EvaluationRun(params, params + 0.5, forget),
        EvaluationShared(pool, groups, retain, holdout),
    )
    for run in range(2):
        np.testing.assert_allclose(
            result.scores[run], logit_score(linear(params[run], groups.x), groups.y), rtol=1e-5
        )
        rows = np.asarray(forget[run])
        right = np.asarray(linear(params[run], pool.x[rows]).argmax(-1) == pool.y[rows])
        np.testing.assert_allclose(result.forget_accuracy[run], right.mean(), rtol=1e-6)
        test_right = np.asarray(linear(params[run], holdout.x).argmax(-1) == holdout.y)
        np.testing.assert_allclose(result.test_accuracy[run], test_right.mean(), rtol=1e-6)
        np.testing.assert_allclose(result.moved[run], 0.5 * np.sqrt(12), rtol=1e-5)


def test_padding_does_not_count_in_accuracies():
    examples = Examples(jnp.eye(3), jnp.array([0, 1, 0]), jnp.array([1.0, 1.0, 0.0]))
    groups = jax.tree.map(lambda leaf: leaf[:, None], examples)
    shared = EvaluationShared(examples, groups, examples, examples)
    run = EvaluationRun(jnp.eye(3), jnp.eye(3), jnp.array([1, 2]))
    result = evaluation(linear, "cross-entropy")(run, shared)
    assert (
        float(result.retain_accuracy) == float(result.forget_accuracy) == float(result.test_accuracy) == 1.0
    )
    assert float(result.moved) == 0.0
