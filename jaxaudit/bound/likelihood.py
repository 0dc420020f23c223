"""The evidence of one run: how much better the attacker's scores explain the true signs than all others.

It keeps how sure the attacker was, and needs no number of guesses. `jaxaudit.bound.evidence` turns the
evidence of several runs into a bound.
"""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit, log_expit, log_softmax, logsumexp

from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.checks import check_real
from jaxaudit.errors import InputError
from jaxaudit.scored import check_signs

# Sums of log-ratios up to this size are far from overflow.
_LARGEST = 1e300
# Temperatures of the test of the direction, in units of one over the typical size of the log-ratios.
_DIRECTION_TEMPERATURES = np.geomspace(0.01, 100, 9)


def log_evidence(
    log_ratios: Float[np.ndarray, "*runs groups"],
    signs: Int[np.ndarray, "*runs groups"],
    temperature: float = 1.0,
) -> Float[np.ndarray, " runs"] | float:
    """Log evidence of each run from the attacker's log-likelihood ratios of the groups (batchwise predictor).

    log e = t sum_{S_j = +1} Lambda_j - log[ e_k(exp(t Lambda)) / C(m, k) ], with k = floor(m/2) and e_k the
    elementary symmetric polynomial: its ratio is the average of the first term's exponential over all
    balanced S. Exact up to rounding: with y_j = t Lambda_j + a, any a, it is log M' plus the log probability
    of S under independent signs P[S_j = +1] = sigmoid(y_j), given that k of them are +1.

    Parameters
    ----------
    log_ratios
        Lambda: ``(runs, groups)``, or ``(groups,)`` for one run, in nats, finite, positive where the group
        looks like a member. A constant added to a run changes nothing.
    signs
        The true sign vectors S, same shape, in {-1, +1}, balanced: floor(m/2) entries +1.
    temperature
        The exponent t > 0, fixed before the audited runs are seen.

    Returns
    -------
    ``(runs,)``, or a float for one run: nats, at most log M' = log C(m, floor(m/2)).

    Raises
    ------
    InputError
        A log-ratio is not finite (naming run and group), signs are not balanced, shapes differ, or the
        temperature is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> round(log_evidence(np.array([2.0, 0.0]), np.array([1, -1])), 4)  # log of e^2 / ((e^2 + 1) / 2)
    0.5662
    """
    scaled = _scaled("log_ratios", np.atleast_2d(log_ratios), "group", temperature)
    signs = check_signs(np.atleast_2d(signs))
    if scaled.shape != signs.shape:
        raise InputError(
            f"log_ratios must have the shape of signs, {signs.shape}, got {np.shape(log_ratios)}"
        )
    num_groups = signs.shape[1]
    log_odds = _centred(scaled, num_groups // 2)
    log_joint = log_expit(signs * log_odds).sum(axis=1)
    log_most = log_num_sign_vectors(num_groups)
    result = np.minimum(
        log_most + log_joint - np.log(_count_probability(log_odds, num_groups // 2)), log_most
    )
    return result if np.ndim(log_ratios) == 2 else float(result[0])


def joint_log_evidence(
    log_likelihoods: Float[np.ndarray, "runs candidates"],
    true_candidate: Int[np.ndarray, " runs"],
    temperature: float = 1.0,
) -> Float[np.ndarray, " runs"]:
    """Log evidence of each run from the log-likelihoods of all balanced sign vectors (joint predictor).

    log e = t loglik[true] - log mean_k exp(t loglik[k]).

    Parameters
    ----------
    log_likelihoods
        ``(runs, candidates)``, nats, finite; the candidates are all M' balanced sign vectors.
    true_candidate
        ``(runs,)``: index of the run's sign vector among the candidates.
    temperature
        The exponent t > 0, fixed before the audited runs are seen.

    Returns
    -------
    ``(runs,)``: nats, at most log M'.

    Raises
    ------
    InputError
        A log-likelihood is not finite (naming run and candidate), an index is out of range, temperature <= 0.

    Examples
    --------
    >>> import numpy as np
    >>> joint_log_evidence(np.array([[2.0, 0.0]]), np.array([0])).round(4).tolist()
    [0.5662]
    """
    scaled = _scaled("log_likelihoods", log_likelihoods, "candidate", temperature)
    num_runs, num_candidates = scaled.shape
    true = np.asarray(true_candidate)
    if true.shape != (num_runs,) or true.dtype.kind not in "iu":
        raise InputError(
            f"true_candidate must be {num_runs} integers, got {true.dtype} of shape {true.shape}"
        )
    if not ((true >= 0) & (true < num_candidates)).all():
        raise InputError(f"true_candidate must be between 0 and {num_candidates - 1}, got {true.tolist()}")
    return log_softmax(scaled, axis=1)[np.arange(num_runs), true] + math.log(num_candidates)


def direction_p_value(
    log_ratios: Float[np.ndarray, "*runs groups"], signs: Int[np.ndarray, "*runs groups"]
) -> float:
    """p-value of "the log-ratios point the right way, or know nothing"; tiny if they point the wrong way.

    It is one over the evidence of the negated log-ratios, multiplied over the runs and averaged over fixed
    temperatures (Markov's inequality). That evidence has expectation 1 if signs and log-ratios are
    independent. It has at most 1 if the probability of a sign vector, given the log-ratios, does not decrease
    in the sum of the log-ratios of its members: a decreasing and a non-decreasing function of that sum are
    negatively correlated.

    Parameters
    ----------
    log_ratios
        ``(runs, groups)``, or ``(groups,)`` for one run, finite, of any scale.
    signs
        The true sign vectors S, same shape, in {-1, +1}, balanced.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        As in `log_evidence`.

    Examples
    --------
    >>> import numpy as np
    >>> signs = np.array([[1, 1, -1, -1]] * 10)
    >>> direction_p_value(2.0 * signs, signs), direction_p_value(-2.0 * signs, signs) < 1e-6
    (1.0, True)
    """
    reversed_ratios = -_scaled("log_ratios", np.atleast_2d(log_ratios), "group", 1.0)
    # The scale is a function of the log-ratios alone, so that it may be treated as fixed.
    size = np.abs(reversed_ratios - np.median(reversed_ratios, axis=1, keepdims=True)).mean()
    unit_ratios = reversed_ratios / (size or 1.0)
    log_products = [
        np.sum(log_evidence(unit_ratios, np.atleast_2d(signs), temperature))
        for temperature in _DIRECTION_TEMPERATURES
    ]
    log_average = logsumexp(log_products) - math.log(len(log_products))
    return math.exp(-max(log_average, 0.0))


def _scaled(
    name: str, values: Float[np.ndarray, "runs columns"], column: str, temperature: float
) -> np.ndarray:
    """temperature * values in float64, after checking both."""
    if not check_real("temperature", temperature) > 0:
        raise InputError(f"temperature must be positive, got {temperature}")
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (runs, {column}s), got {array.shape}")
    bad = ~(np.abs(array) <= _LARGEST / max(1.0, temperature))
    if bad.any():
        run, index = np.argwhere(bad)[0]
        raise InputError(
            f"{name} must be finite (temperature times it at most {_LARGEST:g}), got {array[run, index]} "
            f"in run {run}, {column} {index}"
        )
    return temperature * array


def _centred(scaled: Float[np.ndarray, "runs groups"], num_members: int) -> Float[np.ndarray, "runs groups"]:
    """Each run shifted by a constant such that num_members signs are expected to be +1.

    Any shift is exact; this one makes the count that is conditioned on the likeliest one.
    """
    num_groups = scaled.shape[1]
    edge = np.sort(scaled, axis=1)[:, num_groups - num_members - 1 : num_groups - num_members + 1]
    # Half-way between the last member and the first non-member the remaining shift is at most log m.
    # Differences of neighbours are exact, so that a large common offset costs nothing.
    log_odds = scaled - edge.mean(axis=1, keepdims=True)
    high = np.full((len(scaled), 1), math.log(num_groups))
    low = -high
    for _ in range(40):
        shift = (low + high) / 2
        too_many = expit(log_odds + shift).sum(axis=1, keepdims=True) > num_members
        low, high = np.where(too_many, low, shift), np.where(too_many, shift, high)
    return log_odds + low


def _count_probability(log_odds: Float[np.ndarray, "runs groups"], count: int) -> Float[np.ndarray, " runs"]:
    """P[exactly `count` of independent signs are +1], by multiplying their generating polynomials in pairs.

    `count` is the mean: it has probability at least about 1/sqrt(m), so the FFT's absolute error is harmless.
    """
    num_runs, num_groups = log_odds.shape
    padding = (1 << (num_groups - 1).bit_length()) - num_groups
    polynomials = np.stack([expit(-log_odds), expit(log_odds)], axis=-1)
    one = np.broadcast_to([1.0, 0.0], (num_runs, padding, 2))
    polynomials = np.concatenate([polynomials, one], axis=1)
    while polynomials.shape[1] > 1:
        length = 2 * polynomials.shape[2] - 1
        size = next_fast_len(length, real=True)
        spectra = rfft(polynomials, size)
        polynomials = irfft(spectra[:, ::2] * spectra[:, 1::2], size)[..., :length]
    return polynomials[:, 0, count]
