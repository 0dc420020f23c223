"""The audit of a pair of Gaussians (Appendix H.1 of the paper), with and without the best threshold.

The auditor fits a Gaussian to calibration draws of each of the two models and scores other draws by their
log-likelihood ratio. Nothing is halved: one of the two models *is* the reference of the claim.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxaudit.bound.pairwise import (
    AccuracyResult,
    PairwiseResult,
    accuracy_epsilon,
    optimised_pairwise_epsilon,
    pairwise_epsilon,
)
from jaxaudit.checks import check_delta, check_integer, check_positive, check_significance
from jaxaudit.convex.mechanisms import GaussianPair
from jaxaudit.errors import InputError

# One column per draw: sums over a few parameters are then sums of long rows.
Draws = Float[np.ndarray, "parameters draws"]


@dataclass(frozen=True)
class PairAudit:
    """What one audit of a Gaussian pair found; every bound is on the epsilon of the claim itself."""

    sigma: float
    """Standard deviation of the noise."""
    limit: float
    """True epsilon of the two Gaussians at this delta: no audit can show more."""
    optimised: PairwiseResult
    """Equation (3) at the threshold that calibration draws chose; its `baseline` is likelihood ratio 1."""
    printed: float
    """The paper's joint bound as its numbers were made (`joint_epsilon`), on the baseline's guesses."""
    direct: float
    """The direct bound for m = 2, r = 2 (`direct_epsilon`), on the same guesses."""
    accuracy: AccuracyResult
    """The tight form of it where one side is the reference, on the same guesses."""


def audit_gaussian_pair(
    rng: np.random.Generator,
    pair: GaussianPair,
    sigma: float,
    *,
    delta: float,
    significance: float = 0.05,
    num_calibration: int = 100_000,
    num_draws: int = 200_000,
) -> PairAudit:
    """Draw from both models and bound epsilon in every way.

    Parameters
    ----------
    rng
        Source of all randomness.
    pair
        Means and sensitivity.
    sigma
        Standard deviation of the noise, positive.
    delta
        The delta of the claim and of every bound, in (0, 1).
    significance
        Level zeta in (0, 1) of each bound by itself: choose which one counts beforehand.
    num_calibration
        Calibration draws per model, at least parameters + 2: the Gaussians are fitted to them, and they
        choose the threshold.
    num_draws
        Evaluation draws (the paper's 2L), each of a model that a fair coin chose; at least 100.

    Returns
    -------
    PairAudit

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> pair = GaussianPair(np.array([0.2]), np.zeros(1), sensitivity=0.2)
    >>> audit = audit_gaussian_pair(np.random.default_rng(0), pair, pair.sigma(2.0, 0.01), delta=0.01)
    >>> audit.optimised.baseline < audit.optimised.epsilon < audit.limit + 1e-9
    True
    """
    _check(sigma, delta, significance, num_calibration, num_draws, len(pair.reference))
    calibration = _draw_both(rng, pair, sigma, (num_calibration, num_calibration))
    auditor = _log_ratio(*calibration)
    evaluation = auditor.scores(*_draw_both(rng, pair, sigma, _toss(rng, num_draws)))
    right = _count(*evaluation).num_right
    return PairAudit(
        sigma=sigma,
        limit=pair.limit(sigma, delta),
        optimised=optimised_pairwise_epsilon(
            *auditor.scores(*calibration), *evaluation, delta=delta, significance=significance
        ),
        printed=joint_epsilon(right, num_draws, delta=delta, significance=significance),
        direct=direct_epsilon(right, num_draws, delta=delta, significance=significance),
        accuracy=accuracy_epsilon(right, num_draws, delta=delta, significance=significance),
    )


def repeat_baseline(
    rng: np.random.Generator,
    pair: GaussianPair,
    sigma: float,
    *,
    delta: float,
    num_repeats: int,
    significance: float = 0.05,
    num_calibration: int = 500,
    num_draws: int = 200_000,
) -> Float[np.ndarray, "repeats 2"]:
    """The paper's two bounds from independent audits, to learn how much one audit varies.

    Calibration is repeated too: with 500 draws it moves the threshold, and so the bound, by more than the
    evaluation draws do.

    Parameters
    ----------
    num_repeats
        At least 2.
    rng, pair, sigma, delta, significance, num_calibration, num_draws
        As in `audit_gaussian_pair`.

    Returns
    -------
    One row per audit: pairwise bound at likelihood ratio 1, and `joint_epsilon`.

    Examples
    --------
    >>> pair = GaussianPair(np.array([0.2]), np.zeros(1), sensitivity=0.2)
    >>> options = {"delta": 0.01, "num_repeats": 5, "num_draws": 2_000}
    >>> repeat_baseline(np.random.default_rng(0), pair, pair.sigma(2.0, 0.01), **options).shape
    (5, 2)
    """
    _check(sigma, delta, significance, num_calibration, num_draws, len(pair.reference))
    check_integer("num_repeats", num_repeats, low=2)

    def once(stream: np.random.Generator) -> tuple[float, float]:
        auditor = _log_ratio(*_draw_both(stream, pair, sigma, (num_calibration, num_calibration)))
        counts = _count(*auditor.scores(*_draw_both(stream, pair, sigma, _toss(stream, num_draws))))
        pairwise = pairwise_epsilon(**counts._asdict(), delta=delta, significance=significance).epsilon
        return pairwise, joint_epsilon(counts.num_right, num_draws, delta=delta, significance=significance)

    return np.array([once(stream) for stream in rng.spawn(num_repeats)])


def joint_epsilon(num_right: int, num_draws: int, *, delta: float, significance: float = 0.05) -> float:
    """The paper's joint bound for m = r = 2, as its Table 2 was made; kept to reproduce that column.

    A run is right (overlap 2) or wrong (0), so that Theorem 4.2 reads p log p + (1-p) log(1-p) + log((e^eps +
    delta / 2) / (e^eps + 1)) = log(zeta) / L for the share p of right guesses. Lemma C.1 has delta in the
    place of delta / 2; the printed numbers leave its factor K = 2 out. Not halved.

    Parameters
    ----------
    num_right, num_draws
        Right guesses and all guesses, the L of the theorem.
    delta
        In [0, 1); at 0 this is Theorem 4.2 itself.
    significance
        Level zeta in (0, 1).

    Returns
    -------
    Epsilon, 0.0 if there is no evidence.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> round(joint_epsilon(200_000, 200_000, delta=0.01), 4)
    11.1039
    """
    num_draws = check_integer("num_draws", num_draws, low=1)
    num_right = check_integer("num_right", num_right, low=0, high=num_draws)
    delta, significance = check_delta(delta), check_significance(significance)
    share = num_right / num_draws
    if share <= 0.5:
        return 0.0
    entropy = -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)
    log_ratio = math.log(significance) / num_draws - entropy
    argument = (math.exp(log_ratio) - delta / 2) / -math.expm1(log_ratio)
    return math.log(max(argument, 1.0))


def direct_epsilon(num_right: int, num_draws: int, *, delta: float, significance: float = 0.05) -> float:
    """`jaxaudit.bound.epsilon_lower_bound` for m = r = 2, in closed form.

    The number of right runs is at most Binomial(L, W) with W = min{e^eps / 2 + delta, 1 - e^-eps (1/2 -
    delta)}, so W is compared with the Clopper-Pearson lower limit of P[right].

    Parameters
    ----------
    num_right, num_draws, delta, significance
        As in `joint_epsilon`.

    Returns
    -------
    Epsilon, 0.0 if there is no evidence.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> round(direct_epsilon(9_000, 10_000, delta=0.0), 3)
    1.56
    """
    error = accuracy_epsilon(num_right, num_draws, delta=delta, significance=significance).error_upper
    raised, lowered = 2 * (1 - error - delta), (0.5 - delta) / error
    return math.log(max(raised, lowered, 1.0))


class _Counts(NamedTuple):
    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int

    @property
    def num_right(self) -> int:
        return self.true_positives + self.true_negatives


class _Auditor(NamedTuple):
    """Log-likelihood ratio of two fitted Gaussians, y.(A y + b) + c with y counted from ``centre``."""

    centre: Float[np.ndarray, " parameters"]
    quadratic: Float[np.ndarray, "parameters parameters"]
    linear: Float[np.ndarray, " parameters"]
    constant: float

    def scores(self, unlearned: Draws, reference: Draws) -> tuple[np.ndarray, np.ndarray]:
        """Scores of draws of the two models; higher = more like unlearned."""
        return self.score(unlearned), self.score(reference)

    def score(self, draws: Draws) -> Float[np.ndarray, " draws"]:
        """Log-likelihood ratio of each draw."""
        y = draws - self.centre[:, None]
        return ((self.quadratic @ y + self.linear[:, None]) * y).sum(axis=0) + self.constant


def _check(
    sigma: float, delta: float, significance: float, num_calibration: int, num_draws: int, dimension: int
) -> None:
    check_positive(sigma=sigma)
    check_significance(significance)
    if not check_delta(delta) > 0:
        raise InputError(f"delta must be positive, got {delta}: no Gaussian noise gives delta = 0")
    check_integer("num_calibration", num_calibration, low=dimension + 2)
    check_integer("num_draws", num_draws, low=100)


def _draw_both(
    rng: np.random.Generator, pair: GaussianPair, sigma: float, sizes: tuple[int, int]
) -> tuple[Draws, Draws]:
    """So many draws of the unlearned and of the reference model."""
    unlearned, reference = (
        mean[:, None] + sigma * rng.standard_normal((len(mean), size))
        for mean, size in zip((pair.unlearned, pair.reference), sizes)
    )
    return unlearned, reference


def _toss(rng: np.random.Generator, num_draws: int) -> tuple[int, int]:
    """How many of the draws a fair coin gives to each model."""
    heads = int(rng.binomial(num_draws, 0.5))
    return heads, num_draws - heads


def _log_ratio(unlearned: Draws, reference: Draws) -> _Auditor:
    """The auditor that fits a Gaussian, with a covariance of its own, to the draws of each model."""
    centre = (unlearned.mean(axis=1) + reference.mean(axis=1)) / 2
    quadratic, linear, constant = np.zeros((centre.size, centre.size)), np.zeros(centre.size), 0.0
    for sign, draws in ((1.0, unlearned), (-1.0, reference)):
        covariance = np.atleast_2d(np.cov(draws))
        precision = np.linalg.inv(covariance)
        shift = draws.mean(axis=1) - centre
        pull = precision @ shift
        quadratic -= sign * precision / 2
        linear += sign * pull
        constant -= sign * (shift @ pull + np.linalg.slogdet(covariance)[1]) / 2
    return _Auditor(centre, quadratic, linear, constant)


def _count(positive: np.ndarray, negative: np.ndarray) -> _Counts:
    hits, alarms = int((positive >= 0).sum()), int((negative >= 0).sum())
    return _Counts(hits, len(positive) - hits, alarms, len(negative) - alarms)
