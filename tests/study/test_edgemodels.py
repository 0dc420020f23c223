"""Models of an audit of edges, really trained: every run has a model of its own, and scores are log-likelihoods."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.llm import LoraSpec, adapter_norm, decoder, merge
from jaxaudit.study import Candidates, EdgeAudit, EdgeAuditSpec
from jaxaudit.study.edgemodels import run_keys
from jaxaudit.study.unlearning import UnlearningRun, unlearn_on

METHOD = "gradient_ascent"  # the quickest to compile


@pytest.fixture(scope="module")
def audit(micro, micro_spec):
    tuning = replace(micro_spec.fine_tuning, clip_norm=None)
    lora = LoraSpec(rank=1, dropout=0.0, targets=("q",))  # little to compile
    study = replace(micro_spec, fine_tuning=tuning, lora=lora, rates=(1e-2,), seeds=(1,))
    spec = EdgeAuditSpec(study, (METHOD,), num_calibration_runs=4, num_audit_runs=2, num_measured=1)
    return EdgeAudit(Candidates(micro, ("0_1", "2_3")), spec)


@pytest.fixture(scope="module")
def trained(audit):
    """Models of two runs with other sign vectors, and of retraining."""
    runs = tuple(int(np.flatnonzero(audit.signs[:, 0] == sign)[0]) for sign in (1, -1))
    return runs, audit.fine_tuned(runs)


@pytest.fixture(scope="module")
def forgotten(audit, trained):
    runs, whole = trained
    keys = run_keys(1, f"method {METHOD}", audit.spec.num_runs)[np.array(runs)]
    reading = audit._runs.take(runs)
    params, norms = audit._fine_tuned.models.unlearn(METHOD, reading, [1e-2, 1e-2], keys, whole, METHOD)
    return params, norms, keys, reading


def test_a_model_of_its_own_forgets_as_a_shared_one_does(audit, trained, forgotten):
    """The loop for shared models, given the second run's, does the same to that run."""
    (_, whole), (params, norms, keys, reading) = trained, forgotten
    run = lambda leaf: leaf[1]  # noqa: E731
    alone = UnlearningRun(keys[1:], reading.retain[None], reading.forget[1:], np.array([1e-2], np.float32))
    expected = unlearn_on(
        audit.questions, audit._fine_tuned.models.settings, METHOD, alone, jax.tree.map(run, whole)
    )
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
    again = audit._fine_tuned.models.train(members, run_keys(5, "training", 2), "again")
    for leaf, found in zip(leaves, jax.tree.leaves(again)):
        np.testing.assert_array_equal(found[0], leaf[0])
        np.testing.assert_array_equal(found[1], leaf[0])


def test_a_score_is_the_log_likelihood_of_the_answer(audit, trained, forgotten):
    """Before unlearning and after, where the merged model is asked; written out from its logits."""
    rows, logits = audit.candidates.rows, jax.jit(decoder(audit.questions.model.spec).logits_fn)
    tokens = jax.tree.map(lambda leaf: leaf[rows.reshape(-1)], audit.questions.tokens.tokens)
    base, adapters = (jax.tree.map(lambda leaf: leaf[1], part) for part in forgotten[0])
    after = merge(base, adapters, audit.spec.study.lora)
    for found, params in ((trained[1], base), (forgotten[0], after)):
        log_probs = jax.nn.log_softmax(logits(params, tokens)[:, :-1])
        picked = np.take_along_axis(np.asarray(log_probs), np.asarray(tokens.ids)[:, 1:, None], axis=2)[
            ..., 0
        ]
        expected = (picked * np.asarray(tokens.answer)[:, 1:]).sum(axis=1).reshape(rows.shape)
        scores = audit._fine_tuned.models.score(found)
        assert scores.shape == (2, 2, 20)
        np.testing.assert_allclose(scores[1], expected, rtol=1e-4)
