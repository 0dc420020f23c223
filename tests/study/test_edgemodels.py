"""Models of an audit of edges, really trained: every run has a model of its own, and scores are log-likelihoods."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.llm import Adapted, adapter_norm
from jaxaudit.study import Candidates, EdgeAudit, EdgeAuditSpec
from jaxaudit.study.unlearning import UnlearningRun, unlearn_on

METHOD = "gradient_ascent"  # the quickest to compile


@pytest.fixture(scope="module")
def audit(micro, micro_spec):
    spec = EdgeAuditSpec(
        replace(micro_spec, rates=(1e-2,)),
        (METHOD,),
        num_calibration_runs=4,
        num_audit_runs=2,
        num_measured=1,
    )
    return EdgeAudit(Candidates(micro, ("0_1", "2_3")), spec)


@pytest.fixture(scope="module")
def trained(audit):
    """Models of two runs with other sign vectors, and of retraining."""
    runs = tuple(int(np.flatnonzero(audit.signs[:, 0] == sign)[0]) for sign in (1, -1))
    return runs, audit._fine_tuned(runs)


@pytest.fixture(scope="module")
def forgotten(audit, trained):
    runs, whole = trained
    keys = audit._keys(1, f"method {METHOD}", audit.spec.num_runs)[np.array(runs)]
    reading = audit._runs.take(runs)
    params, norms = audit._models.unlearn(METHOD, reading, [1e-2, 1e-2], keys, whole, METHOD)
    return params, norms, keys, reading


def test_a_model_of_its_own_forgets_as_a_shared_one_does(audit, trained, forgotten):
    """The loop for shared models, given the second run's, does the same to that run."""
    (_, whole), (params, norms, keys, reading) = trained, forgotten
    run = lambda leaf: leaf[1]  # noqa: E731
    alone = UnlearningRun(keys[1:], reading.retain[None], reading.forget[1:], np.array([1e-2], np.float32))
    expected = unlearn_on(audit.questions, audit._models.settings, METHOD, alone, jax.tree.map(run, whole))
    for one, other in zip(
        jax.tree.leaves(jax.tree.map(run, params.adapters)), jax.tree.leaves(expected.params.adapters)
    ):
        np.testing.assert_allclose(one, other[0], rtol=1e-3, atol=1e-6)
    assert norms[1] == pytest.approx(expected.norms[0], rel=1e-3)
    lora = audit.spec.study.lora
    assert norms[1] == pytest.approx(float(adapter_norm(jax.tree.map(run, params.adapters), lora)))
    assert norms[0] != norms[1]


def test_runs_learn_what_their_signs_say(audit, trained):
    """Other sign vectors, other models; equal ones, equal bits."""
    runs, whole = trained
    leaves = jax.tree.leaves(whole)
    assert any(not np.array_equal(leaf[0], leaf[1]) for leaf in leaves)
    members = audit._runs.members[[runs[0]] * 2]
    again = audit._models.train(members, audit._keys(5, "training", 2), "again")
    for leaf, found in zip(leaves, jax.tree.leaves(again)):
        np.testing.assert_array_equal(found[0], leaf[0])
        np.testing.assert_array_equal(found[1], leaf[0])


def test_a_score_is_the_log_likelihood_of_the_answer(audit, forgotten):
    """Of which the measured probability is the geometric mean over tokens."""
    scores, rows = audit._models.score(forgotten[0]), audit.candidates.rows
    assert scores.shape == (2, 2, 20)
    found = audit._models.measure(forgotten[0], 1, with_texts=False)["probability"]
    num_tokens = np.asarray(audit.questions.tokens.tokens.answer)[rows].sum(axis=-1)
    np.testing.assert_allclose(np.exp(scores[1] / num_tokens), found[rows], rtol=1e-4)


def test_untouched_adapters_leave_the_scores(audit, trained, forgotten):
    params = forgotten[0]
    idle = Adapted(params.base, jax.tree.map(np.zeros_like, params.adapters))
    np.testing.assert_allclose(audit._models.score(idle), audit._models.score(trained[1]), rtol=1e-5)
