import math

import numpy as np
import pytest

from jaxaudit.analysis import SMALL_DELTA, Claim, analyse
from jaxaudit.attack import fit_batchwise, guess
from jaxaudit.bound import epsilon_lower_bound, evidence_lower_bound, log_evidence
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.overlap import overlap
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import enumerate_signs

GROUPS, CALIBRATION, AUDITED = 30, 40, 8


def make_scores(strength, seed=0, runs=CALIBRATION + AUDITED):
    rng = np.random.default_rng(seed)
    signs = rng.permuted(np.tile(np.repeat([1, -1], GROUPS // 2), (runs, 1)), axis=1)
    return signs, strength * signs + rng.normal(size=signs.shape)


def make_runs(strength=2.0, seed=0, failed=None):
    signs, scores = make_scores(strength, seed)
    return (
        CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:], failed=failed),
    )


def make_design(**changes):
    return AuditDesign(
        **{"num_groups": GROUPS, "num_calibration_runs": CALIBRATION, "num_audit_runs": AUDITED, **changes}
    )


def test_every_number_is_the_one_of_its_module():
    calibration, audited = make_runs()
    design = make_design(num_guesses=20, temperature=0.5, delta=1e-3)
    result = analyse(design, calibration, audited)
    ratios = fit_batchwise(calibration).log_ratios(audited.scores)
    overlaps = overlap(guess(ratios, 20).guesses, audited.signs)
    evidence = log_evidence(ratios, audited.signs, 0.5)
    counted = {"num_groups": GROUPS, "num_guesses": 20}
    np.testing.assert_array_equal(result.log_ratios, ratios)
    np.testing.assert_array_equal(result.overlaps, overlaps)
    np.testing.assert_array_equal(result.log_evidence, evidence)
    assert result.direct == epsilon_lower_bound(overlaps, delta=1e-3, **counted)
    assert result.direct_small_delta == epsilon_lower_bound(overlaps, delta=SMALL_DELTA, **counted)
    assert result.paper == epsilon_lower_bound(overlaps, method="theorem-4.2", **counted)
    assert result.soft == evidence_lower_bound(evidence, num_groups=GROUPS, delta=1e-3)
    assert result.epsilon == result.direct.epsilon > 0
    assert result.verdict is None


def test_audited_runs_do_not_influence_the_choices():
    calibration, audited = make_runs()
    _, others = make_runs(strength=0.0, seed=9)
    assert (
        analyse(make_design(), calibration, audited).selection
        == analyse(make_design(), calibration, others).selection
    )


@pytest.mark.parametrize("method", ["direct", "soft", "both"])
def test_verdict_uses_the_declared_method_at_its_level(method):
    calibration, audited = make_runs()
    design = make_design(method=method)
    bounds = analyse(design, calibration, audited)
    names = design.deciding
    level = 0.05 / len(names)
    assert design.level == level
    for name in ("direct", "soft"):
        assert getattr(bounds, name).significance == level
    below, above = (
        analyse(design, calibration, audited, Claim(bounds.epsilon + shift)).verdict
        for shift in (-1e-3, 1e-3)
    )
    assert below.falsified
    assert not above.falsified
    assert set(below.p_values) == set(names)
    assert sum(below.levels.values()) == pytest.approx(0.05)
    assert "falsified" in below.text
    assert "no certificate" in above.text


def test_a_claim_above_the_ceiling_could_not_fail():
    calibration, audited = make_runs()
    verdict = analyse(make_design(), calibration, audited, Claim(1e6)).verdict
    assert not verdict.falsified
    assert "could not fail" in verdict.text


def test_ceiling_of_a_verdict_is_at_the_delta_of_the_claim():
    calibration, audited = make_runs()
    design = make_design(num_guesses=10)
    for delta in (0.0, 0.05, 0.7):
        verdict = analyse(design, calibration, audited, Claim(1.0, delta)).verdict
        perfect = epsilon_lower_bound([10] * AUDITED, num_groups=GROUPS, num_guesses=10, delta=delta)
        assert verdict.ceiling == perfect.epsilon
    assert verdict.ceiling == 0.0  # 0.7 ** 8 is more than the level
    assert "could not fail" in verdict.text


def test_equal_scores_are_no_evidence():
    signs, _ = make_scores(0.0)
    scores = np.tile(np.random.default_rng(0).normal(size=GROUPS), (len(signs), 1)) / 3
    calibration = CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION])
    audited = AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:])
    result = analyse(make_design(num_guesses=20), calibration, audited, Claim(0.0))
    assert result.no_evidence
    bounds = (result.direct, result.direct_small_delta, result.paper, result.soft, result.soft_small_delta)
    assert [bound.epsilon for bound in bounds] == [0.0] * 5
    assert result.paper.epsilon_ldp == 0.0
    assert result.verdict.p_values == {"direct": 1.0}
    assert not result.verdict.falsified
    assert result.leakage.roc_auc == 0.5
    assert any("nothing can be learned" in note for note in result.notes)


def test_failed_audited_runs_count_against_the_auditor():
    signs, scores = make_scores(2.0)
    scores[CALIBRATION + 1] = np.nan
    calibration = CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION])
    failed = np.arange(AUDITED) == 1
    audited = AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:], failed=failed)
    result = analyse(make_design(), calibration, audited)
    whole = analyse(make_design(), *make_runs())
    assert result.overlaps[1] == 0
    assert result.log_evidence[1] == -math.inf
    assert len(result.overlaps) == AUDITED
    assert 0 < result.epsilon < whole.epsilon
    assert math.isfinite(result.soft.epsilon)
    assert result.failed_audited == (1_000_001,)
    assert any("1000001" in note for note in result.notes)


def test_failed_calibration_runs_are_left_out_and_named():
    signs, scores = make_scores(2.0)
    scores[[0, 5]] = np.inf
    failed = np.isin(np.arange(CALIBRATION), [0, 5])
    calibration = CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION], failed=failed)
    audited = AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:])
    result = analyse(make_design(), calibration, audited)
    assert result.failed_calibration == (0, 5)
    assert result.epsilon > 1


def test_direction_of_the_scores_is_found_by_the_fit():
    signs, scores = make_scores(2.0)
    turned = analyse(
        make_design(),
        CalibrationRuns(signs[:CALIBRATION], -scores[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], -scores[CALIBRATION:]),
    )
    assert turned.epsilon == pytest.approx(analyse(make_design(), *make_runs()).epsilon)


def test_worse_than_chance_is_said():
    """Calibration and audited runs that disagree about the direction."""
    signs, scores = make_scores(2.0)
    result = analyse(
        make_design(),
        CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], -scores[CALIBRATION:]),
    )
    assert result.epsilon == 0.0
    assert any("worse than chance" in note for note in result.notes)


def ignorant_runs(seed, groups=GROUPS):
    """Scores that know nothing, with ties, and runs that fail because of their sign vector."""
    rng = np.random.default_rng(seed)
    signs = rng.permuted(np.tile(np.repeat([1, -1], groups // 2), (CALIBRATION + AUDITED, 1)), axis=1)
    if groups == 4:  # the joint predictor needs every sign vector in calibration
        signs[:CALIBRATION] = enumerate_signs(groups)[np.arange(CALIBRATION) % 6]
    scores = rng.integers(0, 4, signs.shape).astype(float)
    failed = (signs[:, 0] == 1) & (rng.random(len(signs)) < 0.2)
    failed[:CALIBRATION] &= groups > 4
    parts = slice(None, CALIBRATION), slice(CALIBRATION, None)
    return [
        kind(signs[part], scores[part], failed=failed[part])
        for kind, part in zip((CalibrationRuns, AuditedRuns), parts)
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "soft"},
        {"method": "both"},
        {"method": "soft", "evidence_form": "betting"},
        {"statistic": "median"},
        {"statistic": "tail"},
        {"predictor": "joint", "num_groups": 4},
    ],
    ids=str,
)
def test_false_alarms_stay_at_the_level(changes):
    """Scores that know nothing: epsilon above 0 in at most 20 % of audits, choices on calibration included."""
    design = make_design(significance=0.2, **changes)
    alarms = 0
    for seed in range(100):
        result = analyse(design, *ignorant_runs(seed, design.num_groups), Claim(0.0))
        assert result.verdict.falsified == (result.epsilon > 0)
        alarms += result.epsilon > 0
    assert alarms <= 33  # 99.9 % point of Binomial(100, 0.2)


def test_a_run_under_two_names_is_found():
    """Copies of runs would count the same evidence again."""
    signs, scores = make_scores(0.0)
    calibration = CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION])
    for rows in ([0] * AUDITED, [*range(CALIBRATION, CALIBRATION + AUDITED - 1), CALIBRATION]):
        audited = AuditedRuns(signs[rows], scores[rows])
        with pytest.raises(InputError, match=r"must be a run of its own, got the signs and scores of"):
            analyse(make_design(), calibration, audited)


def test_equal_runs_of_a_small_design_are_no_mistake():
    """A deterministic method gives equal scores for equal sign vectors, and there are only 6 of them."""
    signs = np.array([[1, 1, -1, -1], [-1, -1, 1, 1]] * 24)
    design = make_design(num_groups=4)
    result = analyse(
        design,
        CalibrationRuns(signs[:CALIBRATION], 1.0 * signs[:CALIBRATION]),
        AuditedRuns(signs[40:], 1.0 * signs[40:]),
    )
    assert result.epsilon > 0


def test_soft_evidence_adds_runs_in_the_order_of_their_ids():
    """Sorting rows by their outcome must not help."""
    calibration, audited = make_runs(0.3)
    result = analyse(make_design(), calibration, audited)
    best_first = np.argsort(-result.log_evidence)
    parts = {name: getattr(audited, name)[best_first] for name in ("signs", "scores", "run_ids", "failed")}
    sorted_rows = analyse(make_design(), calibration, AuditedRuns(**parts))
    assert sorted_rows.soft == result.soft
    np.testing.assert_array_equal(sorted_rows.log_evidence, result.log_evidence[best_first])


def test_failed_runs_are_not_mistaken_for_a_wrong_direction():
    signs, scores = make_scores(3.0)
    failed = np.arange(AUDITED) < 5
    result = analyse(
        make_design(),
        CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:], failed=failed),
    )
    assert result.direct.below_chance  # counted as 0 right guesses
    assert not any("worse than chance" in note for note in result.notes)


@pytest.mark.parametrize("predictor", ["batchwise", "joint"])
@pytest.mark.parametrize("survivors", [0, 1, 2])
def test_a_method_whose_runs_fail_gets_a_report_and_no_evidence(predictor, survivors):
    signs = np.array([[1, 1, -1, -1], [-1, -1, 1, 1]] * 24)
    failed = np.arange(len(signs)) >= survivors
    scores = np.where(failed[:, None], np.nan, 1.0 * signs)
    result = analyse(
        make_design(num_groups=4, predictor=predictor),
        CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION], failed=failed[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:], failed=failed[CALIBRATION:]),
        Claim(0.0),
    )
    assert result.no_evidence
    assert result.epsilon == result.soft.epsilon == result.paper.epsilon == 0.0
    assert not result.verdict.falsified
    assert len(result.failed_audited) == AUDITED
    assert any("too many calibration runs failed" in note for note in result.notes)
    assert not any("worse than chance" in note for note in result.notes)


def test_saturation_is_said_in_the_words_of_the_statistic():
    calibration, audited = make_runs(20.0)
    wanted = {
        "mean": "every guess was right",
        "median": "at least half",
        "tail": "every run reached the threshold",
    }
    for statistic, words in wanted.items():
        notes = analyse(make_design(statistic=statistic), calibration, audited).notes
        assert any(words in note for note in notes), statistic


def test_a_design_that_can_show_nothing_says_so():
    signs = np.array([[1, -1], [-1, 1]] * 24)
    design = AuditDesign(num_groups=2, num_calibration_runs=40, num_audit_runs=2)
    scores = signs + np.linspace(0, 0.1, len(signs))[:, None]
    notes = analyse(
        design, CalibrationRuns(signs[:40], scores[:40]), AuditedRuns(signs[40:42], scores[40:42])
    ).notes
    assert any("cannot show any epsilon above 0" in note for note in notes)


def test_calibration_and_audited_runs_cannot_be_swapped():
    calibration, audited = make_runs()
    with pytest.raises(InputError, match="calibration must be CalibrationRuns, got AuditedRuns"):
        analyse(make_design(), audited, calibration)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_groups": 32}, "design.num_groups must be that of the scores, 30, got 32"),
        ({"num_calibration_runs": 41}, "design.num_calibration_runs must be that of the scores, 40, got 41"),
        ({"num_audit_runs": 7}, "design.num_audit_runs must be that of the scores, 8, got 7"),
    ],
)
def test_design_and_scores_must_agree(change, message):
    with pytest.raises(InputError, match=message):
        analyse(make_design(**change), *make_runs())


@pytest.mark.parametrize("statistic", ["mean", "median", "tail"])
@pytest.mark.parametrize("form", ["product", "betting"])
def test_every_declared_statistic_and_form_is_used(statistic, form):
    result = analyse(make_design(statistic=statistic, evidence_form=form, method="both"), *make_runs())
    assert result.direct.statistic == statistic
    assert result.soft.form == form
    assert result.direct.epsilon > 0
    assert result.soft.epsilon > 0


@pytest.mark.parametrize(
    ("statistic", "of_the_paper"), [("mean", "mean"), ("median", "median"), ("tail", "mean")]
)
def test_the_papers_bound_is_that_of_the_same_statistic(statistic, of_the_paper):
    """The paper has no theorem about the tail."""
    result = analyse(make_design(num_guesses=20, statistic=statistic), *make_runs(strength=1.0))
    own = {"num_groups": GROUPS, "num_guesses": 20, "method": "theorem-4.2"}
    bounds = {
        name: epsilon_lower_bound(result.overlaps, statistic=name, **own) for name in ("mean", "median")
    }
    assert bounds["mean"].epsilon != bounds["median"].epsilon > 0
    assert result.paper == bounds[of_the_paper]
