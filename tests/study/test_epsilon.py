"""Epsilon of edges: known bounds for known scores, looks and their levels, and what stands beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.bound import epsilon_lower_bound
from jaxaudit.metrics import deviation_score
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import draw_run_signs
from jaxaudit.study import (
    Candidates,
    EdgeAudit,
    EdgeAuditSpec,
    analyse_looks,
    edge_epsilon,
    look_plan,
    looks_of,
)


@pytest.fixture
def candidates(micro):
    """Two of four edges; of either an address is retained."""
    return Candidates(micro, ("0_1", "2_3"))


@pytest.fixture
def spec(micro_spec):
    study = replace(micro_spec, lora=None)
    return EdgeAuditSpec(
        study,
        ("gradient_ascent", "npo"),
        num_calibration_runs=8,
        num_audit_runs=10,
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
    assert rows["before"].edge_success.tolist() == [1.0, 1.0]
    assert rows["retrained"].edge_success.tolist() == [0.5, 0.5]


def test_the_deviation_score_is_that_of_the_measured_runs(candidates, spec, edge_fakes):
    """The made-up models know all or nothing."""
    audit = EdgeAudit(candidates, spec)
    npo, ascent = edge_epsilon(audit, "npo"), edge_epsilon(audit, "gradient_ascent")
    assert (npo.forget, npo.retain, npo.num_measured) == (1.0, 1.0, 2)
    assert npo.deviation.score == deviation_score(1.0, 1.0) == npo.deviation.distance
    assert (ascent.deviation.score, ascent.deviation.retrained_score) == (0.0, 0.0)
    document = npo.document()
    assert document["looks"]["all"]["overlaps"] == [2] * 10
    assert document["deviation"]["score"] == 100.0
