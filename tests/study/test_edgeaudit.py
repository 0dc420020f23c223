"""Runs of an audit of edges: on made-up models, what is asked for, kept and gone on with."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.study import Candidates, EdgeAudit, EdgeAuditSpec

METHODS = ("gradient_ascent", "npo")


@pytest.fixture
def candidates(micro):
    return Candidates(micro, ("0_1", "2_3"))


@pytest.fixture
def spec(micro_spec):
    """Five runs in chunks of two."""
    study = replace(micro_spec, lora=None)
    return EdgeAuditSpec(
        study, METHODS, num_calibration_runs=4, num_audit_runs=3, num_measured=2, predictors=("batchwise",)
    )


def test_scores_know_what_a_run_learnt(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    before, forgot = audit.scored("before"), audit.scored("gradient_ascent")
    assert before.scores.shape == (7, 2, 20)
    learnt = audit.signs == 1
    assert before.scores[learnt].min() > 0.5 > before.scores[~learnt].max()
    assert forgot.scores.max() == 0
    assert not before.failed.any()
    calibration, audited = audit.runs("before")
    assert (calibration.num_runs, audited.num_runs) == (4, 3)
    assert audited.run_ids.tolist() == [4, 5, 6]
    assert (audited.signs == audit.signs[4:]).all()


def test_retraining_is_one_model_without_candidates(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    scores = audit.scored("retrained").scores
    assert len(scores) == 7
    assert (scores == scores[:1]).all()
    (found,) = audit.measured("retrained")
    assert found["recall"][candidates.rows].max() == 0
    assert found["recall"][candidates.retained_rows].min() == 1
    assert edge_fakes.trained == 1


def test_measured_runs_are_audited_ones(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    assert audit.measured_runs == (4, 5)
    for run, found in zip(audit.measured_runs, audit.measured("npo")):
        own = audit.forgotten(run)
        assert own.sum() == 20
        assert found["recall"][own].min() == 1


def test_a_killed_audit_goes_on(candidates, spec, edge_fakes, tmp_path, monkeypatch):
    first = EdgeAudit(candidates, spec, store=tmp_path)
    keep, kept = EdgeAudit._keep, []

    def stop(self, *args):
        if len(kept) == 4:
            raise KeyboardInterrupt
        kept.append(args)
        return keep(self, *args)

    monkeypatch.setattr(EdgeAudit, "_keep", stop)
    with pytest.raises(KeyboardInterrupt):
        first.ensure(spec.rows)
    monkeypatch.setattr(EdgeAudit, "_keep", keep)
    trained, unlearned = edge_fakes.trained, len(edge_fakes.unlearned)
    second = EdgeAudit(candidates, spec, store=tmp_path)
    second.ensure(spec.rows)
    # Of 4 chunks, the first was trained and half unlearned; retraining and tuning are there.
    assert edge_fakes.trained - trained == 3 - (trained - 3)
    assert len(edge_fakes.unlearned) < unlearned + 8
    trained = edge_fakes.trained
    third = EdgeAudit(candidates, spec, store=tmp_path)
    whole = EdgeAudit(candidates, spec)
    for row in spec.rows:
        np.testing.assert_array_equal(third.scored(row).scores, whole.scored(row).scores)
    assert set(third.seconds()) == {"fine-tuning", *spec.rows}
    assert edge_fakes.trained - trained == 6  # the whole one's only


def test_more_measured_runs_are_made_later(candidates, spec, edge_fakes, tmp_path):
    EdgeAudit(candidates, replace(spec, num_measured=1), store=tmp_path).ensure(spec.rows)
    trained = edge_fakes.trained
    found = EdgeAudit(candidates, replace(spec, num_measured=3), store=tmp_path).measured("npo")
    assert len(found) == 3
    assert edge_fakes.trained == trained


def test_another_seed_is_another_audit(candidates, spec, edge_fakes, tmp_path):
    other = replace(spec, study=replace(spec.study, seeds=(2,)))
    first, second = (EdgeAudit(candidates, one, store=tmp_path) for one in (spec, other))
    assert first.store.folder != second.store.folder
    assert not np.array_equal(first._runs.members, second._runs.members)


def test_rates_are_those_that_forget_most_and_retain(candidates, spec, edge_fakes):
    """The made-up ascent retains everything at every rate, and forgets everything."""
    audit = EdgeAudit(candidates, spec)
    choices = audit.rates()
    assert {method: choice.rate for method, choice in choices.items()} == dict.fromkeys(METHODS, 1e-3)
    (first, second) = choices["gradient_ascent"].tried
    assert (first.forget, first.retain, first.allowed) == (0.0, 1.0, True)
    assert (first.rate, second.rate) == (1e-3, 1e-2)
    assert choices["npo"].tried[0].forget == 1.0
    assert edge_fakes.unlearned == [("gradient_ascent", (1e-3, 1e-2)), ("npo", (1e-3, 1e-2))]


def test_the_strong_rule_forgets_as_much_as_retraining(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, replace(spec, rules=("strong",)))
    choices = audit.rates()
    assert set(choices) == {"gradient_ascent (strong)", "npo (strong)"}
    ascent, npo = choices.values()
    assert (ascent.rate, ascent.threshold, ascent.met) == (1e-3, 0.0, True)
    assert (npo.rate, npo.met) == (1e-3, False)  # it forgets nothing at any rate
    both = EdgeAudit(candidates, replace(spec, rules=("utility", "strong")))
    unlearned = len(edge_fakes.unlearned)
    both.ensure(["npo", "npo (strong)"])
    same = [both.scored(row).scores for row in ("npo", "npo (strong)")]
    np.testing.assert_array_equal(*same)
    assert len(edge_fakes.unlearned) == unlearned + 1 + 4  # rates of one, and one set of runs


def test_a_run_that_is_not_finite_has_failed(candidates, spec, edge_fakes, monkeypatch):
    unlearn = edge_fakes.unlearn

    def diverging(models, method, reading, *args):
        after, norms = unlearn(models, method, reading, *args)
        return after, [np.inf, *norms[1:]]

    monkeypatch.setattr("jaxaudit.study.edgemodels.EdgeModels.unlearn", diverging)
    assert EdgeAudit(candidates, spec).scored("npo").failed.tolist() == [True, False] * 3 + [True]


def test_every_run_has_noise_of_its_own(candidates, spec):
    audit = EdgeAudit(candidates, spec)
    keys = [audit._keys(1, purpose, 7) for purpose in ("training", "method npo")]
    data = np.concatenate([np.asarray(jax.random.key_data(one)) for one in keys])
    assert len({tuple(row) for row in data.tolist()}) == 14


def test_an_unknown_row_is_named(candidates, spec, edge_fakes):
    with pytest.raises(InputError, match="row must be one of before, retrained"):
        EdgeAudit(candidates, spec).scored("kl")
