"""Cross-validation against a plain loop that refits on subsets of runs."""

import itertools

import numpy as np
import pytest

from jaxaudit.attack import fit_batchwise, fit_joint
from jaxaudit.cross_validation import cross_validated_log_likelihoods, cross_validated_log_ratios
from jaxaudit.errors import InputError
from jaxaudit.scored import CalibrationRuns

ALL_OF_FOUR = np.array([s for s in itertools.product((-1, 1), repeat=4) if sum(s) == 0])


def paired_runs(seed: int, num_runs: int) -> CalibrationRuns:
    rng = np.random.default_rng(seed)
    first = ALL_OF_FOUR[rng.integers(6, size=-(-num_runs // 2))]
    signs = np.stack([first, -first], axis=1).reshape(-1, 4)[:num_runs]
    return CalibrationRuns(signs=signs, scores=rng.normal(size=(num_runs, 4, 2)) + signs[:, :, None])


def subset(runs: CalibrationRuns, rows) -> CalibrationRuns:
    return CalibrationRuns(signs=runs.signs[rows], scores=runs.scores[rows])


@pytest.mark.parametrize("variance", ["pooled", "per-point", "global"])
@pytest.mark.parametrize(("num_runs", "num_folds"), [(12, 2), (12, 6), (13, 3), (20, 10), (9, 50)])
def test_every_run_is_scored_by_a_fit_without_its_fold(variance, num_runs, num_folds):
    runs = paired_runs(0, num_runs)
    ratios = cross_validated_log_ratios(runs, variance=variance, num_folds=num_folds)
    num_pairs = -(-num_runs // 2)
    for run in range(num_runs):
        fold = [i for i in range(num_runs) if (i // 2 - run // 2) % min(num_folds, num_pairs) == 0]
        rest = [i for i in range(num_runs) if i not in fold]
        expected = fit_batchwise(subset(runs, rest), variance=variance).log_ratios(runs.scores[[run]])
        np.testing.assert_allclose(ratios[run], expected[0], rtol=1e-9)


def test_a_runs_own_scores_do_not_reach_its_fit():
    runs = paired_runs(1, 12)
    scores = runs.scores.copy()
    scores[3] += 100.0
    changed = CalibrationRuns(signs=runs.signs, scores=scores)
    before, after = cross_validated_log_ratios(runs), cross_validated_log_ratios(changed)
    # run 2 is the partner of run 3: neither of them is in the fit that scores the other
    np.testing.assert_array_equal(before[2], after[2])
    assert (before[np.arange(12) // 2 != 1] != after[np.arange(12) // 2 != 1]).all()


@pytest.mark.parametrize("score_of_failed_run", [np.nan, 100.0])
def test_failed_runs_are_neither_used_nor_scored(score_of_failed_run):
    runs = paired_runs(2, 14)
    failed = np.arange(14) == 5
    scores = np.where(failed[:, None, None], score_of_failed_run, runs.scores)
    flagged = CalibrationRuns(signs=runs.signs, scores=scores, failed=failed)
    ratios = cross_validated_log_ratios(flagged)
    np.testing.assert_array_equal(ratios[5], 0.0)
    for run in (4, 6):
        rest = [i for i in range(14) if i // 2 != run // 2 and i != 5]
        expected = fit_batchwise(subset(runs, rest)).log_ratios(runs.scores[[run]])
        np.testing.assert_allclose(ratios[run], expected[0], rtol=1e-9)


def test_a_fold_that_holds_all_members_of_a_group_is_split():
    # Runs 0 and 1 (one pair) hold both member runs of group 0, so that each has to be left out alone.
    signs = [[1, -1, 1, -1], [1, -1, -1, 1], [-1, 1, 1, -1], [-1, 1, -1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1]]
    rng = np.random.default_rng(3)
    runs = CalibrationRuns(signs=signs, scores=rng.normal(size=(6, 4, 2)))
    ratios = cross_validated_log_ratios(runs)
    parts = [[0], [1], [2, 3], [4, 5]]
    for part in parts:
        rest = [i for i in range(6) if i not in part]
        expected = fit_batchwise(subset(runs, rest)).log_ratios(runs.scores[part])
        np.testing.assert_allclose(ratios[part], expected, rtol=1e-9)


def test_a_fold_of_several_pairs_is_split_into_pairs_first():
    # Fold 0 of 2 is pairs 0 and 2, which hold every member run of group 0.
    signs = [[1, -1], [-1, 1], [-1, 1], [-1, 1], [1, -1], [-1, 1], [-1, 1], [-1, 1]]
    rng = np.random.default_rng(4)
    runs = CalibrationRuns(signs=signs, scores=rng.normal(size=(8, 2, 2)))
    ratios = cross_validated_log_ratios(runs, num_folds=2)
    for part in ([0, 1], [4, 5], [2, 3, 6, 7]):
        rest = [i for i in range(8) if i not in part]
        expected = fit_batchwise(subset(runs, rest)).log_ratios(runs.scores[part])
        np.testing.assert_allclose(ratios[part], expected, rtol=1e-9)


def test_a_single_member_run_cannot_be_left_out():
    signs = [[1, -1], [-1, 1], [-1, 1], [-1, 1]]
    runs = CalibrationRuns(signs=signs, scores=np.ones((4, 2)), run_ids=[7, 8, 9, 10])
    with pytest.raises(InputError, match=r"two member and two non-member .* \[7, 8\] cannot be left out"):
        cross_validated_log_ratios(runs)


@pytest.mark.parametrize("cross_validated", [cross_validated_log_ratios, cross_validated_log_likelihoods])
def test_one_fold_is_no_cross_validation(cross_validated):
    runs = CalibrationRuns(signs=np.repeat(ALL_OF_FOUR, 2, axis=0), scores=np.ones((12, 4)))
    with pytest.raises(InputError, match="num_folds must be at least 2, got 1"):
        cross_validated(runs, num_folds=1)


def test_cross_validated_scores_behave_like_new_ones():
    """Without signal they do not lean towards the truth, unlike those of the fit on all runs."""
    rng = np.random.default_rng(5)
    signs = paired_runs(6, 200).signs
    runs = CalibrationRuns(signs=signs, scores=rng.normal(size=(200, 4, 25)))
    advantage = (cross_validated_log_ratios(runs) * signs).mean(axis=1)
    optimistic = (fit_batchwise(runs).log_ratios(runs.scores) * signs).mean(axis=1)
    standard_error = advantage.std() / np.sqrt(200)
    assert abs(advantage.mean()) < 4 * standard_error < optimistic.mean()


@pytest.mark.parametrize("variance", ["pooled", "per-point", "global"])
@pytest.mark.parametrize("num_folds", [2, 3, 10])
def test_joint_cross_validation_is_a_loop_over_ranks(variance, num_folds):
    rng = np.random.default_rng(7)
    labels = rng.permutation(np.arange(21) % 6)
    signs = ALL_OF_FOUR[labels]
    runs = CalibrationRuns(signs=signs, scores=rng.normal(size=(21, 4, 2)) + signs[:, :, None])
    likelihoods = cross_validated_log_likelihoods(runs, variance=variance, num_folds=num_folds)
    ranks = [int((labels[:i] == labels[i]).sum()) for i in range(21)]
    folds = min(num_folds, 4)
    for run in range(21):
        rest = [i for i in range(21) if (ranks[i] - ranks[run]) % folds]
        expected = fit_joint(subset(runs, rest), variance=variance).log_likelihoods(runs.scores[[run]])
        np.testing.assert_allclose(likelihoods[run], expected[0], rtol=1e-9)


@pytest.mark.parametrize("score_of_failed_run", [np.nan, 100.0])
def test_joint_cross_validation_gives_failed_runs_no_evidence(score_of_failed_run):
    rng = np.random.default_rng(8)
    scores, failed = rng.normal(size=(18, 4, 2)), np.arange(18) == 4
    scores[4] = score_of_failed_run
    runs = CalibrationRuns(signs=np.tile(ALL_OF_FOUR, (3, 1)), scores=scores, failed=failed)
    likelihoods = cross_validated_log_likelihoods(runs)
    np.testing.assert_array_equal(likelihoods[4], 0.0)
    assert (np.delete(likelihoods, 4, axis=0) != 0).all()


def test_a_candidate_with_a_single_run_is_named():
    signs = np.concatenate([ALL_OF_FOUR, np.delete(ALL_OF_FOUR, 1, axis=0)])
    with pytest.raises(InputError, match=r"every sign vector, got one for \[-1, 1, -1, 1\]"):
        cross_validated_log_likelihoods(CalibrationRuns(signs=signs, scores=np.ones((11, 4))))
