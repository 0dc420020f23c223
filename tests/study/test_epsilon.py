"""Epsilon of edges: known bounds for known scores, looks and their levels, and what stands beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.attack import guess
from jaxaudit.bound import epsilon_lower_bound
from jaxaudit.metrics import deviation_score
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import draw_run_signs
from jaxaudit.study import (
    Candidates,
    EdgeAudit,
    analyse_looks,
    ceiling_of,
    control_looks,
    edge_epsilon,
    look_plan,
    looks_of,
    matched_auc,
)
from jaxaudit.study.epsilon import edge_success


@pytest.fixture
def spec(spec):
    """More runs, and both predictors."""
    return replace(
        spec,
        num_calibration_runs=8,
        num_audit_runs=10,
        num_measured=4,
        predictors=("batchwise", "joint"),
    )


def scores_of(candidates, spec, make):
    """Calibration and audited runs with scores (runs, groups, size) made of their signs."""
    calibration, audited = draw_run_signs(spec.design(candidates.num_groups), seed=3)
    return CalibrationRuns(calibration, make(calibration)), AuditedRuns(audited, make(audited))


def test_perfect_scores_give_the_bound_of_perfect_guesses_at_the_share_of_a_look(candidates, spec):
    rng = np.random.default_rng(0)

    def make(signs):
        return signs[:, :, None] + rng.normal(scale=1e-3, size=(*signs.shape, 20))

    found = analyse_looks(candidates, spec, *scores_of(candidates, spec, make))
    expected = epsilon_lower_bound([2] * 10, num_groups=2, num_guesses=2, significance=0.05 / 6).epsilon
    # W(2) = 1 - exp(-eps) / 2 where that is below exp(eps) / 2, and ten runs are right with W(2) ** 10.
    assert expected == pytest.approx(-math.log(2 * (1 - (0.05 / 6) ** 0.1)))
    assert len(found) == 6
    for analysis in found.values():
        assert analysis.epsilon == pytest.approx(expected)
    assert look_plan(2, spec, 6).ceiling == pytest.approx(expected)
    assert [look.name for look in found] == [look.name for look in looks_of(candidates, spec)]
    assert next(iter(found)).name == "all"


def test_a_look_sees_its_questions_only(candidates, spec):
    rng = np.random.default_rng(0)

    def make(signs):
        scores = rng.normal(scale=1e-3, size=(*signs.shape, 20))
        scores[:, candidates.shared] += np.repeat(signs, candidates.shared.sum(axis=1), axis=1)
        return scores

    found = {
        look.name: one
        for look, one in analyse_looks(candidates, spec, *scores_of(candidates, spec, make)).items()
    }
    assert found["shared"].epsilon == found["all"].epsilon > 0
    assert found["exclusive"].epsilon == 0 == found["exclusive, joint"].epsilon
    assert found["shared, joint"].epsilon == found["shared"].epsilon


def test_an_audit_finds_what_is_left_and_nothing_else(candidates, spec, edge_fakes):
    audit = EdgeAudit(candidates, spec)
    rows = {row: edge_epsilon(audit, row) for row in spec.rows}
    ceiling = look_plan(2, spec, 6).ceiling
    assert rows["before"].epsilon == rows["npo"].epsilon == pytest.approx(ceiling)
    assert rows["retrained"].epsilon == rows["gradient_ascent"].epsilon == 0
    assert rows["retrained"].headline.no_evidence
    assert rows["before"].share == rows["npo"].share == pytest.approx(1)
    assert replace(rows["npo"], ceiling=2 * ceiling).share == pytest.approx(0.5)
    assert rows["before"].edge_success.tolist() == [1.0, 1.0]
    assert rows["retrained"].edge_success.tolist() == [0.5, 0.5]


def test_the_deviation_score_is_that_of_the_measured_runs(candidates, spec, edge_fakes):
    """The made-up models know all or nothing."""
    audit = EdgeAudit(candidates, spec)
    npo, ascent = edge_epsilon(audit, "npo"), edge_epsilon(audit, "gradient_ascent")
    assert (npo.forget, npo.retain, npo.num_measured) == (1.0, 1.0, 4)
    assert npo.deviation.score == deviation_score(1.0, 1.0) == npo.deviation.distance
    assert (npo.score.low, npo.score.estimate, npo.score.high) == pytest.approx((100.0, 100.0, 100.0))
    assert (npo.rate, npo.num_untouched) == (1e-3, 0)
    assert npo.learnt > 0.9 > 0.1 > npo.others
    assert (ascent.deviation.score, ascent.deviation.retrained_score) == (0.0, 0.0)
    document = npo.document()
    assert document["looks"]["all"]["overlaps"] == [2] * 10
    assert document["deviation"]["score"] == 100.0


def test_few_right_guesses_are_a_small_share_of_what_could_be_shown(micro, spec):
    """Of 20 edges two are guessed, always rightly: at the ceiling of two guesses, not of the design."""
    found = epsilon_lower_bound([2] * 10, num_groups=20, num_guesses=2, significance=0.05 / 3)
    plan = look_plan(20, spec, 3)
    assert found.saturated
    assert found.ceiling < 0.1 * plan.ceiling
    assert ceiling_of(Candidates(micro, ("0_1", "2_3")), spec) == look_plan(2, spec, 6).ceiling


def test_signs_that_were_drawn_anew_are_not_recognised(candidates, spec, edge_fakes, monkeypatch):
    audit = EdgeAudit(candidates, spec)
    assert {one.epsilon for one in control_looks(audit).values()} == {0.0}
    # It can fail: with the signs that the runs did have, the same looks see everything.
    true_signs = audit.signs[:8], audit.signs[8:]
    monkeypatch.setattr("jaxaudit.study.epsilon.draw_run_signs", lambda design, seed: true_signs)
    assert min(one.epsilon for one in control_looks(audit).values()) > 0


def test_shared_addresses_are_compared_with_exclusive_ones(candidates, spec):
    rng = np.random.default_rng(0)

    def make(signs):
        scores = rng.normal(size=(*signs.shape, 20))
        scores[:, ~candidates.shared] += 9 * np.repeat(signs, (~candidates.shared).sum(axis=1), axis=1)
        return scores

    found = matched_auc(candidates, spec, *scores_of(candidates, spec, make))
    assert found["exclusive"] == 1.0
    assert 0 < found["shared"] < 0.9


def test_edges_are_recognised_in_runs_that_did_not_fail():
    signs = np.array([[1, -1, -1], [1, -1, -1], [-1, 1, -1]])
    ratios = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 1.0]])
    failed = np.array([False, True, False])
    # One of three counts as learnt, one as not learnt; the middle one is not guessed.
    assert edge_success(ratios, signs, failed).tolist() == [1.0, 0.75, 0.75]
    assert edge_success(ratios, signs, np.ones(3, bool)).tolist() == [0.5] * 3
    known_nothing = edge_success(np.zeros((3, 4)), np.array([[1, -1, 1, -1]] * 3), np.zeros(3, bool))
    assert known_nothing.tolist() == [0.5] * 4
    random = np.random.default_rng(0).normal(size=(5, 4))
    own = np.array([[1, -1, 1, -1]] * 5)
    expected = (guess(random, 4).guesses == own).mean(axis=0)
    np.testing.assert_allclose(edge_success(random, own, np.zeros(5, bool)), expected)


def test_a_method_of_which_all_runs_failed_has_no_result(candidates, spec, edge_fakes, monkeypatch):
    unlearn = edge_fakes.unlearn

    def diverging(models, method, reading, rates, *args):
        after, norms = unlearn(models, method, reading, rates, *args)
        tuned = len(set(rates)) > 1
        return after, norms if tuned else [np.inf] * len(norms)

    monkeypatch.setattr("jaxaudit.study.edgemodels.EdgeModels.unlearn", diverging)
    one = edge_epsilon(EdgeAudit(candidates, spec), "npo")
    assert one.all_failed
    assert (one.epsilon, one.learnt, one.others) == (0.0, 0.0, 0.0)
    assert one.edge_success.tolist() == [0.5, 0.5]
    assert one.document()["failed_audited_runs"] == 10
