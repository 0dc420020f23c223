"""Runs of an audit of edges: on made-up models, what is asked for, kept and gone on with."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import AdamWSpec
from jaxaudit.study import Candidates, EdgeAudit
from jaxaudit.study.edgemodels import run_keys
from jaxaudit.unlearn.preference import PRESETS


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
    assert edge_fakes.trained == ["reference"]


def test_measured_runs_are_audited_ones(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    assert audit.measured_runs == (4, 5)
    for run, found in zip(audit.measured_runs, audit.measured("npo")):
        own = audit.forgotten(run)
        assert own.sum() == 20
        assert found["recall"][own].min() == 1


@pytest.mark.parametrize("chunk", [1, 3])
def test_a_killed_audit_goes_on_with_as_many_runs_at_a_time_as_one_likes(
    candidates, spec, edge_fakes, tmp_path, monkeypatch, chunk
):
    keep, kept = EdgeAudit._keep, []

    def stop(self, *args):
        if len(kept) == 4:
            raise KeyboardInterrupt
        kept.append(args)
        return keep(self, *args)

    monkeypatch.setattr(EdgeAudit, "_keep", stop)
    with pytest.raises(KeyboardInterrupt):
        EdgeAudit(candidates, spec, store=tmp_path).ensure(spec.rows)
    monkeypatch.setattr(EdgeAudit, "_keep", keep)
    other = replace(spec, study=replace(spec.study, chunk=chunk))
    second = EdgeAudit(candidates, other, store=tmp_path)
    second.ensure(spec.rows)
    # Every model was trained once, in whatever company.
    assert sorted(edge_fakes.trained) == sorted(
        ["reference", "tuning", *(f"run-{run + 1}" for run in range(7))]
    )
    third, whole = EdgeAudit(candidates, other, store=tmp_path), EdgeAudit(candidates, spec)
    trained = len(edge_fakes.trained)
    for row in spec.rows:
        np.testing.assert_array_equal(third.scored(row).scores, whole.scored(row).scores)
        np.testing.assert_array_equal(third.scored(row).norms, whole.scored(row).norms)
    assert len(edge_fakes.trained) - trained == 9  # the whole one's only


def test_seconds_count_everything_once(candidates, spec, edge_fakes, tmp_path):
    """Of two rules that choose the same rate, one took the time; to read seconds no weights are loaded."""
    both = replace(spec, rules=("utility", "strong"))
    EdgeAudit(candidates, both, store=tmp_path).ensure(both.rows)
    audit = EdgeAudit(candidates, both, store=tmp_path)
    seconds = audit.seconds()
    assert list(seconds) == ["fine-tuning", "choosing rates", *both.rows]
    assert seconds["npo (strong)"] == 0 == seconds["gradient_ascent (strong)"]
    assert min(seconds[name] for name in ("fine-tuning", "choosing rates", *spec.rows)) > 0
    assert not [name for name in audit.store._memory if name.startswith("fine-tuned")]


def test_to_see_what_is_there_nothing_is_made(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    assert not audit._is_made("npo/rate-0.001", "npo", 0)
    assert edge_fakes.trained == []


def test_more_measured_runs_are_made_later(candidates, spec, edge_fakes, tmp_path):
    EdgeAudit(candidates, replace(spec, num_measured=1), store=tmp_path).ensure(spec.rows)
    trained = len(edge_fakes.trained)
    found = EdgeAudit(candidates, replace(spec, num_measured=3), store=tmp_path).measured("npo")
    assert len(found) == 3
    assert len(edge_fakes.trained) == trained


@pytest.mark.parametrize(
    ("of_study", "of_spec", "is_other"),
    [
        ({"seeds": (2,)}, {}, True),
        ({"tuning_seed": 9}, {}, True),
        ({"epochs": 2}, {}, True),
        ({"fine_tuning": AdamWSpec(epochs=2, learning_rate=1e-2)}, {}, True),
        ({"reading": "pistol_code"}, {"methods": ("gradient_ascent",)}, True),
        ({}, {"num_calibration_runs": 5}, True),
        ({}, {"num_audit_runs": 4}, False),
        ({"chunk": 3, "rates": (1e-4,), "min_utility": 0.5}, {}, False),
        ({}, {"num_measured": 1, "methods": ("npo",), "rules": ("strong",), "significance": 0.1}, False),
    ],
)
def test_what_a_run_depends_on_is_in_the_place_of_its_results(
    candidates, spec, tmp_path, of_study, of_spec, is_other
):
    changed = replace(spec, study=replace(spec.study, **of_study), **of_spec)
    first, second = (EdgeAudit(candidates, one, store=tmp_path).store.folder for one in (spec, changed))
    assert (first != second) == is_other


def test_other_candidates_and_another_meaning_of_a_reading_have_other_places(
    micro, candidates, spec, tmp_path, monkeypatch
):
    def folder(own):
        return EdgeAudit(own, spec, store=tmp_path).store.folder

    known = {folder(candidates), folder(Candidates(micro, ("0_1", "3_4")))}
    presets = {name: replace(one, weight_decay=0.5) for name, one in PRESETS.items()}
    monkeypatch.setattr("jaxaudit.study.edgeaudit.PRESETS", presets)
    assert len(known | {folder(candidates)}) == 3


def test_a_run_that_is_not_finite_has_failed(candidates, spec, edge_fakes, monkeypatch):
    unlearn = edge_fakes.unlearn

    def diverging(models, method, reading, *args):
        after, norms = unlearn(models, method, reading, *args)
        return after, [np.inf, *norms[1:]]

    monkeypatch.setattr("jaxaudit.study.edgemodels.EdgeModels.unlearn", diverging)
    assert EdgeAudit(candidates, spec).scored("npo").failed.tolist() == [True, False] * 3 + [True]


def test_every_run_has_noise_of_its_own(candidates, spec):
    audit = EdgeAudit(candidates, spec)
    keys = [run_keys(audit.seed, purpose, 7) for purpose in ("training", "method npo")]
    data = np.concatenate([np.asarray(jax.random.key_data(one)) for one in keys])
    assert len({tuple(row) for row in data.tolist()}) == 14
    assert (run_keys(audit.seed, "training", 3) == keys[0][:3]).all()


@pytest.mark.parametrize("row", ["before", "npo"])
def test_every_run_is_made_with_its_own_noise(candidates, spec, edge_fakes, row):
    audit = EdgeAudit(candidates, spec)
    noise = audit.scored(row).scores - (audit.signs == 1)[:, :, None]
    assert np.abs(noise).max() < 0.5
    assert len({one.tobytes() for one in noise}) == 7
    other = audit.scored("npo" if row == "before" else "before").scores
    assert (other != audit.scored(row).scores).all()


def test_an_unknown_row_is_named(candidates, spec, edge_fakes):
    with pytest.raises(InputError, match="row must be one of before, retrained"):
        EdgeAudit(candidates, spec).scored("kl")
