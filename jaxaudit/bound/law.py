"""Laws of the overlap of one run: by chance, and the worst that a privacy claim allows.

A bound is a statement about the upper tail of one of these laws; several runs are combined in
`jaxaudit.bound.statistics`.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.bound.counts import log_null_pmf
from jaxaudit.checks import check_delta, check_epsilon


class OverlapLaw(NamedTuple):
    """Law of the overlap V = 0..r of one run, in logs (nats); every array has shape (r + 1,).

    The log of a probability is accurate relative to the probability itself, however small, in all fields.
    """

    log_pmf: Float[np.ndarray, " overlaps"]
    """log P[V = v]"""
    log_tail: Float[np.ndarray, " overlaps"]
    """log P[V >= v]"""
    log_complement: Float[np.ndarray, " overlaps"]
    """log P[V < v]"""
    log_smooth: Float[np.ndarray, " overlaps"]
    """`log_pmf` without the atom that a delta puts on V = r; its mass is 1 - delta."""


@lru_cache(maxsize=32, typed=True)
def null_law(num_groups: int, num_guesses: int) -> OverlapLaw:
    """Law P0 of the overlap when the guesses are independent of the signs (chance).

    Parameters
    ----------
    num_groups, num_guesses
        The design m, r: r even, 2 <= r <= m.

    Returns
    -------
    OverlapLaw
        Read-only arrays.

    Raises
    ------
    InputError
        If the two numbers are not a design.

    Examples
    --------
    >>> np.exp(null_law(6, 6).log_tail).round(3).tolist()
    [1.0, 0.95, 0.95, 0.5, 0.5, 0.05, 0.05]
    """
    log_pmf = log_null_pmf(num_groups, num_guesses)
    # Rounding could lift the sum of all probabilities above 1.
    log_tail = np.minimum(np.logaddexp.accumulate(log_pmf[::-1])[::-1], 0.0)
    # The law is symmetric, V -> r - V, so P[V < v] = P[V >= r + 1 - v].
    log_complement = np.append(-np.inf, log_tail[:0:-1])
    log_tail = np.where(log_complement < log_tail, _log_one_minus_exp(log_complement), log_tail)
    log_complement = np.append(-np.inf, log_tail[:0:-1])
    for array in (log_tail, log_complement):
        array.setflags(write=False)
    return OverlapLaw(log_pmf, log_tail, log_complement, log_pmf)


def worst_case_law(num_groups: int, num_guesses: int, epsilon: float, delta: float = 0.0) -> OverlapLaw:
    """The law W that dominates the overlap under an (epsilon, delta) claim: the direct bound.

    P[V >= v] <= W(v) = min{1, e^eps P0(V >= v) + delta, 1 - e^-eps (P0(V < v) - delta)} for every v, with the
    epsilon and delta of the claim itself, and one mechanism attains it for all v at once.

    Proof: the retain set is the same for every sign vector s, so the claim compares the auditor's output M(s)
    with its output M_r on *one* reference model, for which signs and guesses are independent. Averaged over
    s, P[(S, M(S)) in E] <= e^eps P[(S, M_r) in E] + delta for every event E, and the same with the sides
    exchanged. E = {V >= v} gives the first bound, its complement exchanged gives the second.

    W is the chance law re-weighted: with threshold t = (1 - delta) / (1 + e^eps), its best t (in upper tail
    probability) weighs e^eps, its worst delta weighs 0, the rest e^-eps, and an atom delta sits on V = r.

    Parameters
    ----------
    num_groups, num_guesses
        The design m, r: r even, 2 <= r <= m.
    epsilon, delta
        The claim: epsilon >= 0 in nats, delta in [0, 1).

    Returns
    -------
    OverlapLaw
        Upper tail W(v).

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> np.exp(worst_case_law(2, 2, epsilon=np.log(1.5)).log_pmf).round(3).tolist()
    [0.333, 0.0, 0.667]
    """
    null = null_law(num_groups, num_guesses)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    log_threshold = np.log1p(-delta) - np.logaddexp(0.0, epsilon)
    log_delta = np.log(delta) if delta > 0 else -np.inf
    log_smooth = _reweighted(null, epsilon, log_threshold, log_delta)
    log_pmf = np.append(log_smooth[:-1], np.logaddexp(log_smooth[-1], log_delta))
    # Each of the two bounds on a tail is used where it is the smaller one, so that nothing cancels.
    is_best = null.log_tail <= log_threshold
    log_raised = np.logaddexp(epsilon + null.log_tail, log_delta)
    log_lowered = np.append(-np.inf, _log_difference(null.log_complement[1:], log_delta)) - epsilon
    log_tail = np.where(is_best, log_raised, _log_one_minus_exp(log_lowered))
    log_complement = np.where(is_best, _log_one_minus_exp(np.minimum(log_raised, 0.0)), log_lowered)
    return OverlapLaw(log_pmf, log_tail, log_complement, log_smooth)


def odds_law(num_groups: int, num_guesses: int, epsilon_ldp: float) -> OverlapLaw:
    """The law that dominates the overlap of a guessing mechanism that is epsilon'-LDP in the signs.

    The posterior odds of {V >= v} are at most e^epsilon' times the prior odds:
    P[V >= v] <= sigmoid(epsilon' + logit P0(V >= v)). Tighter than Theorem 4.2 of the paper.

    Parameters
    ----------
    num_groups, num_guesses
        The design m, r: r even, 2 <= r <= m.
    epsilon_ldp
        The paper's epsilon' >= 0, which is twice the epsilon of the claim.

    Returns
    -------
    OverlapLaw
        Upper tail of the dominating law.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> np.exp(odds_law(2, 2, epsilon_ldp=np.log(3.0)).log_pmf).round(3).tolist()
    [0.25, 0.0, 0.75]
    """
    null = null_law(num_groups, num_guesses)
    raised = check_epsilon(epsilon_ldp, "epsilon_ldp") + null.log_tail
    log_total = np.logaddexp(raised, null.log_complement)
    # The difference of neighbouring tails: e P0(v) / (total(v) total(v + 1)), with total(r + 1) = 1.
    log_pmf = epsilon_ldp + null.log_pmf - log_total - np.append(log_total[1:], 0.0)
    log_odds = raised - null.log_complement
    return OverlapLaw(log_pmf, -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds), log_pmf)


def sample(law: OverlapLaw, rng: np.random.Generator, size: int | tuple[int, ...]) -> Int[np.ndarray, "..."]:
    """Independent overlaps drawn from a law.

    Parameters
    ----------
    law
        Law of the overlap of one run.
    rng
        Source of randomness.
    size
        Shape of the result.

    Returns
    -------
    numpy.ndarray
        Integers in 0..r.

    Examples
    --------
    >>> sample(null_law(6, 6), np.random.default_rng(0), 5).tolist()
    [4, 2, 0, 0, 4]
    """
    cumulative = np.append(np.exp(law.log_complement[1:]), 1.0)
    return np.searchsorted(cumulative, rng.random(size), side="right")


def _reweighted(null: OverlapLaw, epsilon: float, log_threshold: float, log_delta: float) -> np.ndarray:
    """Log pmf of W without its atom.

    Overlap v owns the chance quantiles P0(V > v) to P0(V >= v), counted from the best; only the overlaps that
    the threshold or delta cuts in two need a difference.
    """
    log_better = np.append(null.log_tail[1:], -np.inf)
    log_up_to = np.append(null.log_complement[1:], 0.0)
    raised = np.where(
        null.log_tail <= log_threshold, null.log_pmf, _log_difference(log_threshold, log_better)
    )
    lowered = np.where(
        log_better >= log_threshold, null.log_pmf, _log_difference(null.log_tail, log_threshold)
    )
    not_best = np.minimum(log_up_to, _log_one_minus_exp(log_threshold))
    lowered = np.where(null.log_complement >= log_delta, lowered, _log_difference(not_best, log_delta))
    return np.logaddexp(epsilon + raised, lowered - epsilon)


def _log_difference(a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """log(e^a - e^b) for finite a, and -inf where b >= a."""
    return a + _log_one_minus_exp(np.minimum(np.subtract(b, a), 0.0))


def _log_one_minus_exp(x: np.ndarray | float) -> np.ndarray:
    """log(1 - e^x) for x <= 0, accurate at both ends."""
    # -expm1 is exact near x = 0, log1p far from it; where one is used, the other may divide by zero.
    with np.errstate(divide="ignore"):
        return np.where(np.greater(x, -np.log(2.0)), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
