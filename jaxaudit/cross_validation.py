"""The attack on runs that it was not fitted on, without spending audited runs: cross-validation.

The number of guesses, the threshold and the temperature are chosen on these numbers, so that the audited runs
stay untouched until everything is fixed.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxaudit.attack import fit_batchwise, fit_joint, joint_candidates
from jaxaudit.design import AuditDesign, Variance
from jaxaudit.errors import InputError
from jaxaudit.scored import CalibrationRuns


def cross_validated_log_ratios(
    calibration: CalibrationRuns,
    *,
    variance: Variance = "pooled",
    variance_floor: float = AuditDesign.variance_floor,
    num_folds: int = 10,
) -> Float[np.ndarray, "runs groups"]:
    """Log-ratios of every calibration run under the batchwise attack fitted without it.

    They behave like those of audited runs, so that the number of guesses and the temperature can be chosen on
    them. Complementary pairs (runs 2i and 2i + 1) stay in one fold. A fold whose removal would leave some
    group without members or non-members is left out pair by pair or, if need be, run by run.

    Parameters
    ----------
    calibration, variance, variance_floor
        As in `fit_batchwise`.
    num_folds
        Number of folds, at least 2; at most one per pair is used.

    Returns
    -------
    float64 array
        ``(runs, groups)``, in nats; 0 for failed runs.

    Raises
    ------
    InputError
        If a group has a single member or a single non-member run, which therefore cannot be left out.

    Examples
    --------
    >>> signs = [[1, -1], [-1, 1], [1, -1], [-1, 1]]
    >>> runs = CalibrationRuns(signs=signs, scores=[[4, 0], [0, 4], [5, 1], [1, 5]])
    >>> (cross_validated_log_ratios(runs, variance_floor=1.0) > 0).tolist()
    [[True, False], [False, True], [True, False], [False, True]]
    """
    pair = np.arange(calibration.num_runs) // 2
    folds = _folds(pair, calibration.failed, num_folds)
    ratios = np.zeros(calibration.signs.shape)
    for fold in (part for whole in folds for part in _parts_that_can_be_left_out(calibration, whole)):
        attack = fit_batchwise(_without(calibration, fold), variance=variance, variance_floor=variance_floor)
        ratios[fold] = attack.log_ratios(calibration.scores[fold])
    return ratios


def cross_validated_log_likelihoods(
    calibration: CalibrationRuns,
    *,
    variance: Variance = "pooled",
    variance_floor: float = AuditDesign.variance_floor,
    num_folds: int = 10,
) -> Float[np.ndarray, "runs candidates"]:
    """Log-likelihoods of every calibration run under the joint attack fitted without it.

    Each fold leaves out one run, or an equal share of the runs, of every candidate that has enough of them.
    Parameters are those of `cross_validated_log_ratios`; candidates are in the order of `fit_joint`.

    Returns
    -------
    float64 array
        ``(runs, candidates)``, in nats; 0 for failed runs.

    Raises
    ------
    InputError
        If a sign vector has a single run, which therefore cannot be left out.

    Examples
    --------
    >>> signs = [[1, -1], [-1, 1], [1, -1], [-1, 1]]
    >>> runs = CalibrationRuns(signs=signs, scores=[[4, 0], [0, 4], [5, 1], [1, 5]])
    >>> cross_validated_log_likelihoods(runs, variance_floor=1.0).argmax(axis=1).tolist()
    [1, 0, 1, 0]
    """
    candidates, labels = joint_candidates(calibration)
    counts = np.bincount(labels)
    if counts.min() < 2:
        raise InputError(
            "cross-validation needs two calibration runs that did not fail for every sign vector, "
            f"got one for {candidates[np.argmin(counts)].tolist()}"
        )
    # The first run of each candidate has rank 0, the second rank 1, and so on.
    order = np.argsort(labels, kind="stable")
    rank = np.zeros(calibration.num_runs, int)
    rank[np.flatnonzero(~calibration.failed)[order]] = np.concatenate([np.arange(n) for n in counts])
    likelihoods = np.zeros((calibration.num_runs, len(candidates)))
    for fold in _folds(rank, calibration.failed, num_folds):
        attack = fit_joint(_without(calibration, fold), variance=variance, variance_floor=variance_floor)
        likelihoods[fold] = attack.log_likelihoods(calibration.scores[fold])
    return likelihoods


def _folds(
    unit: Int[np.ndarray, " runs"], failed: Bool[np.ndarray, " runs"], num_folds: int
) -> list[Int[np.ndarray, " fold"]]:
    """Runs that did not fail, dealt to folds by unit; runs of one unit stay together."""
    if num_folds < 2:
        raise InputError(f"num_folds must be at least 2, got {num_folds}")
    fold_of_run = unit % min(num_folds, int(unit.max()) + 1)
    folds = [np.flatnonzero((fold_of_run == fold) & ~failed) for fold in np.unique(fold_of_run)]
    return [fold for fold in folds if len(fold)]


def _parts_that_can_be_left_out(
    calibration: CalibrationRuns, fold: Int[np.ndarray, " fold"]
) -> list[Int[np.ndarray, " part"]]:
    """The fold whole, else in pairs, else in single runs: the first whose removal leaves both classes."""
    by_pair = np.split(fold, np.flatnonzero(np.diff(fold // 2)) + 1)
    for parts in ([fold], by_pair, np.split(fold, len(fold))):
        if all(_has_both_classes(_without(calibration, part)) for part in parts):
            return parts
    raise InputError(
        "cross-validation needs two member and two non-member calibration runs that did not fail for every "
        f"group; one of the runs {calibration.run_ids[fold].tolist()} cannot be left out"
    )


def _has_both_classes(calibration: CalibrationRuns) -> bool:
    members = calibration.signs[~calibration.failed] == 1
    return bool((members.any(axis=0) & (~members).any(axis=0)).all())


def _without(calibration: CalibrationRuns, left_out: Int[np.ndarray, " fold"]) -> CalibrationRuns:
    """The calibration runs with some marked as failed, which is how a fit leaves runs out."""
    failed = calibration.failed.copy()
    failed[left_out] = True
    return replace(calibration, failed=failed)
