import numpy as np
import pytest

from jaxaudit.attack import guess
from jaxaudit.bound import epsilon_lower_bound, log_evidence
from jaxaudit.cross_validation import cross_validated_log_ratios
from jaxaudit.design import AuditDesign
from jaxaudit.overlap import overlap
from jaxaudit.predictor import make_predictor
from jaxaudit.scored import CalibrationRuns
from jaxaudit.selection import select


def make_calibration(strengths, num_runs=40, seed=0):
    """Groups that differ in how much they leak."""
    rng = np.random.default_rng(seed)
    num_groups = len(strengths)
    half = rng.permuted(np.tile(np.repeat([1, -1], num_groups // 2), (num_runs // 2, 1)), axis=1)
    signs = np.stack([half, -half], axis=1).reshape(num_runs, num_groups)
    return CalibrationRuns(signs, np.asarray(strengths) * signs + rng.normal(size=signs.shape))


MIXED = make_calibration([3.0] * 20 + [0.0] * 40)


def choose(calibration, **changes):
    design = AuditDesign(
        num_groups=calibration.num_groups, num_calibration_runs=calibration.num_runs, **changes
    )
    return select(design, calibration, make_predictor(design, calibration))


def test_guesses_follow_the_groups_that_leak():
    """20 of 60 groups leak, so about 20 guesses are right and the rest would be coin flips."""
    selection = choose(MIXED)
    assert 12 <= selection.num_guesses <= 32
    assert selection.num_guesses in selection.candidate_guesses
    best = int(np.argmax(selection.predicted_epsilon))
    assert selection.candidate_guesses[best] == selection.num_guesses
    assert selection.predicted_epsilon[best] > selection.predicted_epsilon[-1]


def test_prediction_is_the_bound_of_audited_runs_with_the_cross_validated_mean():
    selection = choose(MIXED, num_guesses=20, temperature=None, num_audit_runs=5)
    assert selection.num_guesses == 20
    assert selection.candidate_guesses == ()
    full = choose(MIXED, num_audit_runs=5)
    ratios = cross_validated_log_ratios(MIXED)
    for r, predicted in zip(full.candidate_guesses, full.predicted_epsilon):
        total = int(np.floor(5 * overlap(guess(ratios, r).guesses, MIXED.signs).mean() + 1e-9))
        repeated = (total + np.arange(5)) // 5
        bound = epsilon_lower_bound(repeated, num_groups=60, num_guesses=r)
        assert predicted == pytest.approx(bound.epsilon, abs=1e-6)


def test_temperature_has_the_largest_cross_validated_evidence():
    selection = choose(MIXED)
    ratios = cross_validated_log_ratios(MIXED)
    for temperature, mean in zip(selection.candidate_temperatures, selection.mean_log_evidence):
        assert log_evidence(ratios, MIXED.signs, temperature).mean() == pytest.approx(mean, rel=1e-12)
    assert (
        selection.temperature == selection.candidate_temperatures[int(np.argmax(selection.mean_log_evidence))]
    )


def test_declared_values_are_kept_and_nothing_is_computed():
    selection = choose(MIXED, num_guesses=8, temperature=0.5)
    assert (selection.num_guesses, selection.temperature, selection.threshold) == (8, 0.5, None)
    assert selection.candidate_temperatures == selection.mean_log_evidence == ()


def test_threshold_of_the_tail_is_chosen_where_it_pays():
    selection = choose(MIXED, statistic="tail")
    overlaps = overlap(guess(cross_validated_log_ratios(MIXED), selection.num_guesses).guesses, MIXED.signs)
    assert overlaps.min() <= selection.threshold <= overlaps.max()
    assert choose(MIXED, statistic="tail", threshold=3).threshold == 3


def test_no_leak_predicts_nothing_much():
    selection = choose(make_calibration([0.0] * 60))
    assert max(selection.predicted_epsilon) < 0.5


def test_where_nothing_is_predicted_the_largest_ceiling_is_taken():
    constant = CalibrationRuns(MIXED.signs, np.zeros(MIXED.signs.shape))
    selection = choose(constant)
    assert max(selection.predicted_epsilon) == 0.0
    assert selection.num_guesses == 60


def test_joint_predictor_always_guesses_every_group():
    calibration = make_calibration([2.0] * 4, num_runs=60)
    selection = choose(calibration, predictor="joint")
    assert selection.num_guesses == 4
    assert selection.candidate_guesses == (4,)


def test_a_declared_threshold_needs_that_many_guesses():
    selection = choose(MIXED, statistic="tail", threshold=15)
    assert min(selection.candidate_guesses) >= 15
    assert selection.threshold == 15
