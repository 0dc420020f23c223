import numpy as np
import pytest

from jaxaudit.bound import log_evidence
from jaxaudit.design import AuditDesign
from jaxaudit.predictor import BatchwisePredictor, JointPredictor, make_predictor
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import enumerate_signs


def make_runs(kind, num_groups, num_runs, strength=1.0, seed=0):
    rng = np.random.default_rng(seed)
    candidates = enumerate_signs(num_groups)
    signs = candidates[np.arange(num_runs) % len(candidates)]
    scores = strength * signs[:, :, None] + rng.normal(size=(*signs.shape, 2))
    return kind(signs, scores)


def predictors(num_groups=4, num_runs=60):
    calibration = make_runs(CalibrationRuns, num_groups, num_runs)
    for predictor in ("batchwise", "joint"):
        design = AuditDesign(num_groups=num_groups, num_calibration_runs=num_runs, predictor=predictor)
        yield make_predictor(design, calibration), calibration


def test_both_find_planted_members():
    audited = make_runs(AuditedRuns, 4, 24, strength=2.0, seed=1)
    for predictor, calibration in predictors():
        reading = predictor.read(calibration, audited).reading
        guesses = predictor.guess(reading, 4).guesses
        assert (guesses == audited.signs).mean() > 0.9
        assert ((predictor.log_ratios(reading) > 0) == (audited.signs > 0)).mean() > 0.9
        assert predictor.log_evidence(reading, audited.signs, 0.5).mean() > 0.5
        assert predictor.cross_validated(calibration).shape[0] == calibration.num_runs


def test_joint_evidence_and_ratios_agree_with_batchwise_on_additive_likelihoods():
    """If log-likelihoods are sums over groups, both predictors know the same."""
    candidates = enumerate_signs(4)
    ratios = np.random.default_rng(0).normal(size=(5, 4))
    likelihoods = ratios @ (candidates.T == 1)
    joint = JointPredictor("pooled", 1e-10, candidates)
    signs = candidates[[0, 2, 3, 5, 1]]
    np.testing.assert_allclose(
        joint.log_evidence(likelihoods, signs, 0.7), log_evidence(ratios, signs, 0.7), rtol=1e-12
    )
    # The marginal ratio by hand, over the candidates that hold group 1 and those that do not.
    inside = candidates[:, 1] == 1
    expected = np.log(
        np.exp(likelihoods[:, inside]).mean(axis=1) / np.exp(likelihoods[:, ~inside]).mean(axis=1)
    )
    np.testing.assert_allclose(joint.log_ratios(likelihoods)[:, 1], expected, rtol=1e-12)


def test_candidates_of_the_predictor_are_those_of_the_fit():
    (_, _), (joint, _) = predictors()
    np.testing.assert_array_equal(joint.candidates, enumerate_signs(4))


def test_the_design_decides():
    (batchwise, _), (joint, _) = predictors()
    assert isinstance(batchwise, BatchwisePredictor)
    assert isinstance(joint, JointPredictor)


@pytest.mark.parametrize("failed", [0, 7])
def test_failed_runs_read_as_no_evidence(failed):
    audited = make_runs(AuditedRuns, 4, 12)
    scores = audited.scores.copy()
    scores[failed] = np.nan
    broken = AuditedRuns(audited.signs, scores, failed=np.arange(12) == failed)
    for predictor, calibration in predictors():
        reading = predictor.read(calibration, broken).reading
        assert np.isfinite(reading).all()
        assert (predictor.log_ratios(reading)[failed] == 0).all()


@pytest.mark.parametrize("num_groups", [2, 3, 7, 500, 4500])
def test_candidates_are_even_and_within_the_groups(num_groups):
    candidates = BatchwisePredictor("pooled", 1e-10).guess_candidates(num_groups)
    assert candidates[0] == 2
    assert candidates[-1] == num_groups - num_groups % 2
    assert all(r % 2 == 0 for r in candidates)
    assert len(candidates) <= 30
