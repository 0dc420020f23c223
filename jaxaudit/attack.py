"""The attack: Gaussians fitted to calibration scores turn audited scores into guesses (Algorithms 2 and 3).

Float64 NumPy. The Gaussian model decides how good the guesses are, never whether the bound is valid.

How the variance of a score is estimated (`jaxaudit.design.Variance`); a *class* is "member" or "non-member"
for the batchwise attack and one balanced sign vector for the joint attack:

``pooled``
    One within-class variance per point, shared by its classes: sum of squared deviations from the class means
    over (runs - classes). The best choice when few runs calibrate.
``per-point``
    One variance per point and class, denominator (runs of the class - 1). A class with a single run has no
    variance of its own and borrows the pooled one.
``global``
    One within-class variance per class, over all points.

A variance that is unknown (no class has two runs) or below the floor is raised to the floor, and that is
counted.
"""

from dataclasses import dataclass
from math import comb
from typing import NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from jaxaudit.design import AuditDesign, Variance
from jaxaudit.errors import InputError
from jaxaudit.scored import CalibrationRuns, check_signs

# Scores too large for float64 are caught as an error at the end (`_evidence`); no warning on the way.
_quiet = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class BatchwiseAttack:
    """Fitted Gaussians of Algorithm 2: per example one for runs that had it and one for the others."""

    mean_in: Float[np.ndarray, "groups examples"]
    mean_out: Float[np.ndarray, "groups examples"]
    var_in: Float[np.ndarray, "groups examples"]
    var_out: Float[np.ndarray, "groups examples"]
    weights: Float[np.ndarray, "groups examples"]
    """0 marks padding, which is never evidence."""
    floor_hits: int
    """Number of fitted variances that were raised to the floor."""

    @_quiet
    def log_ratios(
        self,
        scores: Float[np.ndarray, "runs groups examples"],
        failed: Bool[np.ndarray, " runs"] | None = None,
    ) -> Float[np.ndarray, "runs groups"]:
        """Log-likelihood ratio of membership, Algorithm 2's ``Lambda_j``.

        It is the sum over the group's examples of ``log N(s; mean_in, var_in) - log N(s; mean_out,
        var_out)``.

        Parameters
        ----------
        scores
            ``(runs, groups, examples)``, higher = more likely a member.
        failed
            ``(runs,)``: runs without evidence, their ratios are 0. So are those of every run with a score
            that is not finite (padding aside).

        Returns
        -------
        float64 array
            ``(runs, groups)``, in nats; positive = more likely a member.
        """
        scores, usable = _clean(scores, self.weights, failed)
        z_in = (scores - self.mean_in) / np.sqrt(self.var_in)
        z_out = (scores - self.mean_out) / np.sqrt(self.var_out)
        terms = 0.5 * ((z_out - z_in) * (z_out + z_in) + np.log(self.var_out) - np.log(self.var_in))
        return _evidence((terms * self.weights).sum(axis=2), usable)


@dataclass(frozen=True)
class JointAttack:
    """Fitted Gaussians of Algorithm 3: per example one for every balanced sign vector."""

    candidates: Int8[np.ndarray, "candidates groups"]
    """Every balanced sign vector, in lexicographic order (-1 before +1)."""
    mean: Float[np.ndarray, "candidates groups examples"]
    var: Float[np.ndarray, "candidates groups examples"]
    weights: Float[np.ndarray, "groups examples"]
    floor_hits: int
    """Number of fitted variances that were raised to the floor."""

    @_quiet
    def log_likelihoods(
        self,
        scores: Float[np.ndarray, "runs groups examples"],
        failed: Bool[np.ndarray, " runs"] | None = None,
    ) -> Float[np.ndarray, "runs candidates"]:
        """Log-likelihood of the scores under each candidate, Algorithm 3's ``Lambda(S~)``.

        It is the sum over all examples of ``log N(s; mean, var)``. Parameters are those of
        `BatchwiseAttack.log_ratios`; the result is ``(runs, candidates)``, in nats, 0 where there is no
        evidence.
        """
        scores, usable = _clean(scores, self.weights, failed)
        # Candidate by candidate: all at once would need candidates times the memory of the scores.
        columns = [
            (-0.5 * ((scores - mean) ** 2 / var + np.log(2 * np.pi * var)) * self.weights).sum(axis=(1, 2))
            for mean, var in zip(self.mean, self.var)
        ]
        return _evidence(np.stack(columns, axis=1), usable)


def fit_batchwise(
    calibration: CalibrationRuns,
    *,
    variance: Variance = "pooled",
    variance_floor: float = AuditDesign.variance_floor,
) -> BatchwiseAttack:
    """Fit the batchwise inclusion/exclusion predictor: the calibration phase of Algorithm 2.

    Parameters
    ----------
    calibration
        Calibration runs; failed ones are left out.
    variance
        How variances are estimated, see the module.
    variance_floor
        Smallest variance used, in squared units of the score; positive.

    Raises
    ------
    InputError
        If some group is a member in none, or in all, of the runs that did not fail.

    Examples
    --------
    >>> signs = [[1, -1], [-1, 1], [1, -1], [-1, 1]]
    >>> runs = CalibrationRuns(signs=signs, scores=[[3, 0], [0, 3], [5, 1], [1, 5]])
    >>> attack = fit_batchwise(runs)
    >>> attack.mean_in.ravel(), attack.mean_out.ravel(), attack.var_in.ravel()
    (array([4., 4.]), array([0.5, 0.5]), array([1.25, 1.25]))
    >>> attack.log_ratios([[[4.0], [0.5]]])
    array([[ 4.9, -4.9]])
    """
    kept = ~calibration.failed
    members = calibration.signs[kept] == 1
    for word, present in (("member", members.any(axis=0)), ("non-member", (~members).any(axis=0))):
        if not present.all():
            raise InputError(
                f"calibration signs must give every group a {word} run that did not fail, "
                f"got none for group {int(np.argmin(present))}"
            )
    group_of_point = np.nonzero(calibration.weights)[0]
    classes = [members[:, group_of_point], ~members[:, group_of_point]]
    mean, var, floor_hits = _fit_gaussians(calibration, classes, variance, variance_floor)
    return BatchwiseAttack(mean[0], mean[1], var[0], var[1], calibration.weights, floor_hits)


def fit_joint(
    calibration: CalibrationRuns,
    *,
    variance: Variance = "pooled",
    variance_floor: float = AuditDesign.variance_floor,
) -> JointAttack:
    """Fit the joint sign-vector predictor: the calibration phase of Algorithm 3.

    Parameters are those of `fit_batchwise`.

    Raises
    ------
    InputError
        If some balanced sign vector occurs in no calibration run that did not fail.

    Examples
    --------
    >>> signs = [[1, -1], [-1, 1], [1, -1], [-1, 1]]
    >>> runs = CalibrationRuns(signs=signs, scores=[[3, 0], [0, 3], [5, 0], [0, 5]])
    >>> attack = fit_joint(runs, variance_floor=1.0)
    >>> attack.candidates.tolist(), attack.mean[:, :, 0].tolist(), attack.floor_hits
    ([[-1, 1], [1, -1]], [[0.0, 4.0], [4.0, 0.0]], 0)
    >>> guess_joint(attack.log_likelihoods([[[2.0], [1.0]]]), attack.candidates).guesses
    array([[ 1, -1]], dtype=int8)
    """
    candidates, labels = joint_candidates(calibration)
    classes = [(labels == candidate)[:, None] for candidate in range(len(candidates))]
    mean, var, floor_hits = _fit_gaussians(calibration, classes, variance, variance_floor)
    return JointAttack(candidates, mean, var, calibration.weights, floor_hits)


class Guesses(NamedTuple):
    """What the auditor commits to: the paper's ``S^`` of every run."""

    guesses: Int8[np.ndarray, "runs groups"]
    """+1 = guessed a member, -1 = guessed a non-member, 0 = no guess."""
    tied: Bool[np.ndarray, " runs"]
    """Whether equal evidence on both sides of a cut had to be told apart by index."""


def guess(log_ratios: Float[np.ndarray, "runs groups"], num_guesses: int) -> Guesses:
    """Guess +1 for the r/2 groups with the largest log-ratios and -1 for the r/2 smallest (Algorithm 2).

    Parameters
    ----------
    log_ratios
        ``(runs, groups)``, finite; positive = more likely a member.
    num_guesses
        The paper's r: even, 2 <= r <= groups.

    Returns
    -------
    Guesses
        Of equal log-ratios, the lower index counts as the larger; runs where that mattered are marked.

    Examples
    --------
    >>> guess([[0.5, -3.0, 2.0, 0.5]], num_guesses=2)
    Guesses(guesses=array([[ 0, -1,  1,  0]], dtype=int8), tied=array([False]))
    """
    ratios = _matrix("log_ratios", log_ratios)
    groups = ratios.shape[1]
    if num_guesses % 2 or not 2 <= num_guesses <= groups:
        raise InputError(
            f"num_guesses must be even and between 2 and num_groups = {groups}, got {num_guesses}"
        )
    half = int(num_guesses) // 2
    order = np.argsort(-ratios, axis=1, kind="stable")
    guesses = np.zeros(ratios.shape, np.int8)
    np.put_along_axis(guesses, order[:, :half], 1, axis=1)
    np.put_along_axis(guesses, order[:, groups - half :], -1, axis=1)
    falling = np.take_along_axis(ratios, order, axis=1)
    cuts = [half, groups - half]
    tied = np.any([falling[:, cut - 1] == falling[:, cut] for cut in cuts], axis=0)
    return Guesses(guesses, tied)


def guess_joint(
    log_likelihoods: Float[np.ndarray, "runs candidates"], candidates: Int8[np.ndarray, "candidates groups"]
) -> Guesses:
    """Guess the sign vector with the largest log-likelihood (Algorithm 3); r = m, which must be even.

    Parameters
    ----------
    log_likelihoods
        ``(runs, candidates)``, finite.
    candidates
        ``(candidates, groups)``, balanced sign vectors. Of equally likely ones the first is guessed, and the
        run marked.

    Examples
    --------
    >>> guess_joint([[-3.0, -1.0]], [[-1, 1], [1, -1]])
    Guesses(guesses=array([[ 1, -1]], dtype=int8), tied=array([False]))
    """
    likelihoods, candidates = (
        _matrix("log_likelihoods", log_likelihoods),
        check_signs(candidates, "candidates"),
    )
    if candidates.shape[1] % 2:
        raise InputError(f"the joint predictor needs an even number of groups, got {candidates.shape[1]}")
    if likelihoods.shape[1] != len(candidates):
        raise InputError(
            f"log_likelihoods must have a column for each of {len(candidates)} candidates, "
            f"got {likelihoods.shape[1]}"
        )
    best = likelihoods.max(axis=1, keepdims=True)
    return Guesses(candidates[likelihoods.argmax(axis=1)], (likelihoods == best).sum(axis=1) > 1)


def joint_candidates(
    calibration: CalibrationRuns,
) -> tuple[Int8[np.ndarray, "candidates groups"], Int[np.ndarray, " kept"]]:
    """Every balanced sign vector in lexicographic order, and the index of that of each run that did not fail.

    Raises
    ------
    InputError
        If some balanced sign vector occurs in no run that did not fail.

    Examples
    --------
    >>> runs = CalibrationRuns(signs=[[1, -1], [-1, 1], [1, -1]], scores=[[3, 0], [0, 3], [5, 0]])
    >>> joint_candidates(runs)[1]
    array([1, 0, 1])
    """
    candidates, labels = np.unique(calibration.signs[~calibration.failed], axis=0, return_inverse=True)
    groups = calibration.num_groups
    wanted = comb(groups, groups // 2)
    if len(candidates) < wanted:
        raise InputError(
            f"calibration signs must contain each of the {wanted} balanced sign vectors of {groups} groups "
            f"in a run that did not fail, got {len(candidates)}: {wanted - len(candidates)} are missing"
        )
    return candidates, labels.reshape(-1)


@_quiet
def _fit_gaussians(
    calibration: CalibrationRuns,
    classes: list[Bool[np.ndarray, " kept #points"]],
    variance: Variance,
    floor: float,
) -> tuple[Float[np.ndarray, "classes groups examples"], Float[np.ndarray, "classes groups examples"], int]:
    """Mean and variance of every class at every example, and the number of variances raised to the floor.

    Points are the examples that are not padding; a class is the mask of the runs that did not fail and belong
    to it.
    """
    if variance not in get_args(Variance):
        raise InputError(f"variance must be one of {', '.join(get_args(Variance))}, got {variance!r}")
    if not floor > 0:
        raise InputError(f"variance_floor must be positive, got {floor}")
    real = calibration.weights > 0
    points = calibration.scores[~calibration.failed][:, real]
    # Deviations from one run: equal scores have exactly equal means and so give exactly no evidence.
    origin = points[0]
    runs, means, squares = (np.stack(part) for part in zip(*(_moments(points - origin, c) for c in classes)))
    variances = _variances(squares, runs - 1, variance)
    mean, var = np.zeros((len(classes), *real.shape)), np.ones((len(classes), *real.shape))
    mean[:, real] = origin + means
    var[:, real] = np.maximum(variances, floor)
    return mean, var, int((variances < floor).sum())


class _Moments(NamedTuple):
    runs: Int[np.ndarray, " points"]
    mean: Float[np.ndarray, " points"]
    squares: Float[np.ndarray, " points"]
    """Sum of squared deviations from the mean."""


def _moments(points: Float[np.ndarray, "kept points"], mask: Bool[np.ndarray, " kept #points"]) -> _Moments:
    """Moments of each point over the runs of one class."""
    if mask.shape[1] == 1:  # the same runs at every point: take them out instead of masking the rest
        points, mask = points[mask[:, 0]], np.ones((int(mask.sum()), points.shape[1]), bool)
    runs = mask.sum(axis=0)
    mean = points.sum(axis=0, where=mask) / runs
    return _Moments(runs, mean, ((points - mean) ** 2).sum(axis=0, where=mask))


def _variances(
    squares: Float[np.ndarray, "classes points"],
    freedom: Int[np.ndarray, "classes points"],
    variance: Variance,
) -> Float[np.ndarray, "#classes #points"]:
    """The distinct variances to fit, 0 where no class has two runs; see the module."""
    if variance == "global":
        squares, freedom = squares.sum(axis=1, keepdims=True), freedom.sum(axis=1, keepdims=True)
    pooled = squares.sum(axis=0, keepdims=True) / np.maximum(freedom.sum(axis=0, keepdims=True), 1)
    if variance == "pooled":
        return pooled
    return np.where(freedom > 0, squares / np.maximum(freedom, 1), pooled)


def _clean(
    scores: Float[np.ndarray, "runs groups examples"],
    weights: Float[np.ndarray, "groups examples"],
    failed: Bool[np.ndarray, " runs"] | None,
) -> tuple[Float[np.ndarray, "runs groups examples"], Bool[np.ndarray, " runs"]]:
    """Scores that are finite everywhere, and the runs whose scores may be used."""
    scores, real = np.asarray(scores, np.float64), weights > 0
    if scores.shape[1:] != weights.shape:
        raise InputError(
            f"scores must have shape (runs, {weights.shape[0]}, {weights.shape[1]}), got {scores.shape}"
        )
    usable = np.isfinite(scores[:, real]).all(axis=1)
    usable &= True if failed is None else ~np.asarray(failed, bool)
    return np.where(usable[:, None, None] & real, scores, 0.0), usable


def _evidence(
    values: Float[np.ndarray, "runs items"], usable: Bool[np.ndarray, " runs"]
) -> Float[np.ndarray, "runs items"]:
    """The values of usable runs, 0 elsewhere; an error if float64 was too small for them."""
    values = np.where(usable[:, None], values, 0.0)
    if not np.isfinite(values).all():
        raise InputError("scores must be small enough for float64, but their log-likelihoods overflow")
    return values


def _matrix(name: str, values: Float[np.ndarray, "runs items"]) -> Float[np.ndarray, "runs items"]:
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise InputError(f"{name} must have two axes, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array
