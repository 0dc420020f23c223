"""The pairwise audit: which of two models is this? Equation (3) of the paper.

A guesser that takes the retrained model for the unlearned one with probability FP and misses the unlearned
one with probability FN contradicts every (epsilon, delta) claim with 1 - FN > e^epsilon FP + delta, and with
the two exchanged. Two unlearned models, of data sets that differ in the forgotten records, are each within
(epsilon, delta) of the same retrained one, and so within (2 epsilon, (1 + e^epsilon) delta) of each other
(Lemma 4.1 and Appendix A.3 of the paper).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import beta

from jaxaudit.checks import check_choice, check_delta, check_epsilon, check_integer, check_significance
from jaxaudit.errors import InputError

Compare = Literal["reference", "unlearned"]
# Stands for "no room left": a bound from it is far below 0, and 0 would have no logarithm.
_NO_ROOM = 1e-100


@dataclass(frozen=True)
class PairwiseResult:
    """Lower bound on epsilon from right and wrong guesses between two models."""

    epsilon: float
    """The bound on the epsilon of the claim, in nats."""
    epsilon_ldp: float | None
    """Epsilon' = 2 epsilon between two unlearned models, at delta' = (1 + e^epsilon) delta; None if one of
    the two is the reference."""
    false_positive_upper: float
    """Upper confidence limit of P[guess positive | negative], at level 1 - significance / 2."""
    false_negative_upper: float
    """Upper confidence limit of P[guess negative | positive], at level 1 - significance / 2."""
    ceiling: float
    """What as many guesses without an error would have given."""
    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int
    delta: float
    significance: float
    compare: Compare
    threshold: float | None = None
    """Scores of at least this were guessed positive; None if the guesses were made elsewhere."""
    baseline: float | None = None
    """For comparison: the bound at threshold 0, on the same scores. The larger of the two is not a bound at
    this significance."""


def pairwise_epsilon(
    *,
    true_positives: int,
    false_negatives: int,
    false_positives: int,
    true_negatives: int,
    delta: float = 0.0,
    significance: float = 0.05,
    compare: Compare = "reference",
) -> PairwiseResult:
    """Lower bound on epsilon from a pairwise audit, equation (3) of the paper.

    epsilon = max(log((1 - delta - FP) / FN), log((1 - delta - FN) / FP), 0) with FP and FN the
    Clopper-Pearson upper limits of the two error rates, each at level 1 - significance / 2 (union bound).
    Between two unlearned models that bounds epsilon' = 2 epsilon, with delta' = (1 + e^epsilon) delta in the
    place of delta, and epsilon is the largest that satisfies it.

    Parameters
    ----------
    true_positives, false_negatives
        Guesses on draws of the positive class (unlearned), right and wrong; at least two draws.
    false_positives, true_negatives
        Guesses on draws of the negative class (retrained, or unlearned from other data), wrong and right; at
        least two draws.
    delta
        The delta of the claim, in [0, 1).
    significance
        Level zeta in (0, 1).
    compare
        What the negative class is: ``reference``, the retrained model, or ``unlearned``, another unlearned
        model with the same retain set.

    Returns
    -------
    PairwiseResult
        `epsilon` is finite, and 0.0 where there is no evidence: the argument of a logarithm that is not
        positive counts as no evidence.

    Raises
    ------
    InputError
        A class with fewer than two draws, a negative or fractional count, delta or significance out of range,
        or an unknown `compare`.

    Examples
    --------
    >>> result = pairwise_epsilon(
    ...     true_positives=100_000, false_negatives=0, false_positives=0, true_negatives=100_000, delta=0.01
    ... )
    >>> round(result.epsilon, 4)
    10.1975
    """
    counts = {
        "true_positives": true_positives,
        "false_negatives": false_negatives,
        "false_positives": false_positives,
        "true_negatives": true_negatives,
    }
    counts = {name: check_integer(name, count, low=0) for name, count in counts.items()}
    delta, significance = check_delta(delta), check_significance(significance)
    check_choice("compare", compare, get_args(Compare))
    positives = counts["true_positives"] + counts["false_negatives"]
    negatives = counts["false_positives"] + counts["true_negatives"]
    if min(positives, negatives) < 2:
        raise InputError(
            "true_positives + false_negatives and false_positives + true_negatives must be at least 2 draws "
            f"each, got {positives} and {negatives}"
        )
    errors = np.array([[false_positives, false_negatives], [0, 0]])
    upper = _upper_limit(errors, np.array([negatives, positives]), significance)
    epsilon, ceiling = np.maximum(_equation_3(upper[:, 0], upper[:, 1], delta, compare), 0.0)
    return PairwiseResult(
        epsilon=float(epsilon),
        epsilon_ldp=2 * float(epsilon) if compare == "unlearned" else None,
        false_positive_upper=float(upper[0, 0]),
        false_negative_upper=float(upper[0, 1]),
        ceiling=float(ceiling),
        delta=delta,
        significance=significance,
        compare=compare,
        **counts,
    )


def optimised_pairwise_epsilon(
    calibration_positive: Float[np.ndarray, " calibration_positives"],
    calibration_negative: Float[np.ndarray, " calibration_negatives"],
    evaluation_positive: Float[np.ndarray, " positives"],
    evaluation_negative: Float[np.ndarray, " negatives"],
    *,
    delta: float = 0.0,
    significance: float = 0.05,
    compare: Compare = "reference",
) -> PairwiseResult:
    """Pairwise audit at the threshold that gives the largest bound on the calibration scores.

    A threshold at likelihood ratio 1 makes the fewest errors and is a poor place for all but the smallest
    epsilon. Where the likelihood ratio equals e^epsilon, log((TPR - delta) / FPR) is exactly epsilon for a
    mechanism that just meets (epsilon, delta). Every cut between two calibration scores is tried, in both
    directions of equation (3).

    Parameters
    ----------
    calibration_positive, calibration_negative
        Scores of draws of the unlearned and of the retrained model that choose the threshold; higher = more
        like unlearned; at least two of each. Finite.
    evaluation_positive, evaluation_negative
        Scores of other draws, which give the bound.
    delta, significance, compare
        As in `pairwise_epsilon`; for ``unlearned`` the negative class is the other unlearned model.

    Returns
    -------
    PairwiseResult
        With the `threshold`, and with the bound at threshold 0 as `baseline`, which is likelihood ratio 1 if
        scores are log-likelihood ratios.

    Raises
    ------
    InputError
        Scores that are not finite, fewer than two of a class, delta or significance out of range, or an
        unknown `compare`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal([[1.0], [0.0], [1.0], [0.0]], 0.4, (4, 5000))
    >>> result = optimised_pairwise_epsilon(*(draws - 0.5) / 0.4**2)
    >>> result.epsilon > result.baseline
    True
    """
    delta, significance = check_delta(delta), check_significance(significance)
    check_choice("compare", compare, get_args(Compare))
    threshold = _best_threshold(
        _checked_scores("calibration_positive", calibration_positive),
        _checked_scores("calibration_negative", calibration_negative),
        delta,
        significance,
        compare,
    )
    positive = _checked_scores("evaluation_positive", evaluation_positive)
    negative = _checked_scores("evaluation_negative", evaluation_negative)

    def at(cut: float) -> PairwiseResult:
        hits, alarms = int((positive >= cut).sum()), int((negative >= cut).sum())
        return pairwise_epsilon(
            true_positives=hits,
            false_negatives=len(positive) - hits,
            false_positives=alarms,
            true_negatives=len(negative) - alarms,
            delta=delta,
            significance=significance,
            compare=compare,
        )

    return replace(at(threshold), threshold=threshold, baseline=at(0.0).epsilon)


@dataclass(frozen=True)
class AccuracyResult:
    """Lower bound on epsilon from the share of right guesses between a model and its reference."""

    epsilon: float
    """The bound on the epsilon of the claim, in nats; 0.0 is no evidence."""
    ceiling: float
    """What as many right guesses without an error would have given."""
    error_upper: float
    """Upper confidence limit of P[wrong guess], at level 1 - significance."""
    num_right: int
    num_draws: int
    delta: float
    significance: float


def accuracy_epsilon(
    num_right: int, num_draws: int, *, delta: float = 0.0, significance: float = 0.05
) -> AccuracyResult:
    """Lower bound on epsilon from guesses which of two models a fair coin chose; one is the reference.

    Under (epsilon, delta) a guess is right with probability at most (e^epsilon + delta) / (1 + e^epsilon).
    This is the design m = 2, r = 2 of `epsilon_lower_bound` where one side of the pair *is* the reference
    model, and tighter than it: there both sides are only known to be close to a third model.

    Parameters
    ----------
    num_right, num_draws
        Right guesses, 0 to `num_draws`, and all guesses, at least 1; the model of each draw was chosen by an
        independent fair coin.
    delta
        The delta of the claim, in [0, 1).
    significance
        Level zeta in (0, 1).

    Returns
    -------
    AccuracyResult
        epsilon = log((1 - q - delta) / q) with q the Clopper-Pearson upper limit of wrong guesses.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> round(accuracy_epsilon(9_000, 10_000).epsilon, 3)
    2.142
    """
    num_draws = check_integer("num_draws", num_draws, low=1)
    num_right = check_integer("num_right", num_right, low=0, high=num_draws)
    delta, significance = check_delta(delta), check_significance(significance)

    def at(right: int) -> tuple[float, float]:
        wrong = float(_upper_limit(np.array(num_draws - right), num_draws, 2 * significance))
        return max(math.log(max(1 - wrong - delta, _NO_ROOM) / wrong), 0.0), wrong

    epsilon, error = at(num_right)
    return AccuracyResult(epsilon, at(num_draws)[0], error, num_right, num_draws, delta, significance)


def log10_draws_needed(epsilon: float, *, delta: float = 0.0, significance: float = 0.05) -> float:
    """Base-10 logarithm of the draws per class without which equation (3) cannot reach epsilon.

    Errorless guesses on n draws per class give log((1 - delta - q)/q) with q = 1 - (significance/2)^(1/n);
    this solves it for n, which grows like e^epsilon.

    Parameters
    ----------
    epsilon
        At least 0, in nats; thousands are no problem.
    delta, significance
        As in `pairwise_epsilon`.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> round(10 ** log10_draws_needed(10.1975, delta=0.01), -3)
    100000.0
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    significance = check_significance(significance)
    log_error = math.log1p(-delta) - float(np.logaddexp(0.0, epsilon))
    # -log(1 - q) is q once q is tiny.
    log_rate = log_error if log_error < -40 else math.log(-math.log1p(-math.exp(log_error)))
    return (math.log(-math.log(significance / 2)) - log_rate) / math.log(10)


def _best_threshold(
    positive: Float[np.ndarray, " positives"],
    negative: Float[np.ndarray, " negatives"],
    delta: float,
    significance: float,
    compare: Compare,
) -> float:
    """The cut with the largest equation (3); the lowest one, if several have it."""
    scores = np.unique(np.concatenate([positive, negative]))
    # Halved before they are added, so that the largest floats do not overflow.
    cuts = np.append(scores[0], scores[:-1] / 2 + scores[1:] / 2)
    misses = np.searchsorted(np.sort(positive), cuts)
    alarms = len(negative) - np.searchsorted(np.sort(negative), cuts)

    def bounds(alarms: np.ndarray, misses: np.ndarray) -> Float[np.ndarray, " cuts"]:
        return _equation_3(
            _upper_limit(alarms, len(negative), significance),
            _upper_limit(misses, len(positive), significance),
            delta,
            compare,
        )

    # Limits are slow, and cuts are ordered: between two of them, no cut has fewer misses than the first and
    # fewer alarms than the last. Only stretches that could hold the largest bound are looked at in full.
    edges = np.unique(np.append(np.arange(0, len(cuts), math.isqrt(len(cuts))), len(cuts) - 1))
    first, last = edges[:-1], edges[1:]
    best = bounds(alarms[edges], misses[edges]).max()
    hopeful = bounds(alarms[last], misses[first]) >= best
    inside = np.repeat(hopeful, last - first)
    index = np.append(np.flatnonzero(inside), edges[-1])
    return float(cuts[index[np.argmax(bounds(alarms[index], misses[index]))]])


def _upper_limit(
    errors: Int[np.ndarray, "*shape"], trials: Int[np.ndarray, "*#shape"] | int, significance: float
) -> Float[np.ndarray, "*shape"]:
    """Clopper-Pearson upper limit of an error rate at level 1 - significance / 2."""
    right = np.maximum(trials - errors, 1)
    return np.where(errors < trials, beta.isf(significance / 2, errors + 1, right), 1.0)


def _equation_3(
    false_positive: Float[np.ndarray, " cuts"],
    false_negative: Float[np.ndarray, " cuts"],
    delta: float,
    compare: Compare,
) -> Float[np.ndarray, " cuts"]:
    """The largest epsilon that contradicts the error rates, in the better of the two directions."""

    def one_direction(error: np.ndarray, other: np.ndarray) -> np.ndarray:
        room = np.maximum(1 - delta - other, _NO_ROOM)
        if compare == "reference":
            return np.log(room / error)
        # The positive root of error x^2 + delta x = room, which is error e^2eps = 1 - (1 + e^eps) delta - other.
        return np.log(room / error) / 2 - np.arcsinh(delta / (2 * np.sqrt(room * error)))

    return np.maximum(
        one_direction(false_negative, false_positive), one_direction(false_positive, false_negative)
    )


def _checked_scores(name: str, scores: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise InputError(f"{name} must be at least 2 scores in one dimension, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = int(np.argmin(np.isfinite(array)))
        raise InputError(f"{name} must be finite, got {array[where]} at draw {where}")
    return array
