"""Counted right guesses as an anytime-valid bound: look after every run, stop whenever you like."""

from collections.abc import Sequence
from functools import lru_cache
from math import log, log1p, sqrt

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from jaxaudit.bound.anytime import AnytimeBound
from jaxaudit.bound.law import worst_case_law
from jaxaudit.checks import check_design, check_integer

NUM_RATES = 33
"""Size of the mixture of rates, and so the factors of the e-process in one run."""


class ConfidenceSequence(AnytimeBound):
    r"""Lower bound on epsilon from counted right guesses, valid after every run at once.

    For a rate :math:`\lambda > 0` and the worst-case law W of the overlap under the claim (the direct bound),
    :math:`g(v) = e^{\lambda v} / E_W[e^{\lambda W}]` increases in v, hence :math:`E[g(V)] \le 1` under the
    claim. The product of g over the runs, mixed over a fixed grid of rates, is a test supermartingale; the
    bound is the largest epsilon whose supermartingale has reached 1/zeta so far. For delta > 0 see
    `log_e_process`.

    Unlike for `epsilon_lower_bound` the number of runs need not be declared. The price is a smaller bound at
    any given number of runs, most of all in the first ten.

    Parameters
    ----------
    num_groups
        Candidate forget groups m, at least 2.
    num_guesses
        Guesses per run r: even, 2 <= r <= m.
    delta
        The delta of the claim, in [0, 1).
    significance
        The level zeta in (0, 1): probability that the bound *ever* exceeds the true epsilon.

    Raises
    ------
    InputError
        If an argument is out of range, naming it and its value.

    Examples
    --------
    >>> sequence = ConfidenceSequence(num_groups=6, num_guesses=6)
    >>> [round(sequence.add(overlap), 2) for overlap in (6, 4, 6, 6, 2)]
    [0.0, 0.0, 0.25, 1.0, 1.0]
    >>> sequence.num_runs, sequence.epsilon == sequence.trajectory[-1]
    (5, True)
    """

    def __init__(
        self, *, num_groups: int, num_guesses: int, delta: float = 0.0, significance: float = 0.05
    ) -> None:
        super().__init__(delta, significance)
        self.num_groups, self.num_guesses = check_design(num_groups, num_guesses)

    def add(self, overlap: int) -> float:
        """Count one more run and return the bound after it.

        Runs are added in the order in which they were made and none may be left out; a run that failed counts
        overlap 0.

        Parameters
        ----------
        overlap
            Number of right guesses V of the run, an integer in 0..r.
        """
        return self._append(check_integer("overlap", overlap, low=0, high=self.num_guesses))

    @property
    def overlaps(self) -> tuple[int, ...]:
        """The overlaps so far, in order."""
        return tuple(map(int, self._runs))

    def _log_process(self, runs: Sequence[float], epsilon: float) -> Float[np.ndarray, " runs"]:
        return log_e_process(
            np.array(runs, dtype=np.int64),
            epsilon,
            num_groups=self.num_groups,
            num_guesses=self.num_guesses,
            delta=self.delta,
        )


def log_e_process(
    overlaps: Int[np.ndarray, "*audits runs"],
    epsilon: float,
    *,
    num_groups: int,
    num_guesses: int,
    delta: float = 0.0,
) -> Float[np.ndarray, "*audits runs"]:
    r"""Log of the e-process of the claim (epsilon, delta) after 1, 2, ... runs.

    It is :math:`\log \sum_k w_k \prod_l g_k(V_l)` with :math:`g_k(v) = \min\{e^{\lambda_k v} / A_k,
    c/\delta\} / (1 + c)`, where :math:`A_k` is the expectation of :math:`e^{\lambda_k v}` over the worst-case
    law without its atom delta on v = r, and c = sqrt(delta). The atom adds at most c to the expectation of g;
    without the cap it would outweigh every rate that is worth using. g falls as epsilon grows, because A
    grows, so that whoever rejects an epsilon rejects all smaller ones. For delta = 0 nothing is capped.

    Parameters
    ----------
    overlaps
        Overlaps V, integers in 0..r, runs in their order along the last axis.
    epsilon, num_groups, num_guesses, delta
        Claim and design.

    Examples
    --------
    >>> log_e_process(np.array([6, 0]), 0.0, num_groups=6, num_guesses=6).round(2).tolist()
    [2.21, -0.92]
    """
    rates, log_weights = _rate_mixture(num_guesses)
    law = worst_case_law(num_groups, num_guesses, epsilon, delta)
    log_sums = logsumexp(law.log_smooth + rates[:, None] * np.arange(num_guesses + 1), axis=1)
    log_factors = np.multiply.outer(overlaps, rates) - log_sums
    if delta > 0:
        atom = sqrt(delta)
        log_factors = np.minimum(log_factors, log(atom / delta)) - log1p(atom)
    return logsumexp(np.cumsum(log_factors, axis=-2) + log_weights, axis=-1)


@lru_cache(maxsize=32)
def _rate_mixture(num_guesses: int) -> tuple[Float[np.ndarray, " rates"], Float[np.ndarray, " rates"]]:
    """The rates and their log weights: half-Cauchy in units of 1 / (standard deviation of V by chance).

    That deviation is close to sqrt(r)/2. After t runs the rate that decides is about sqrt(2 log(1/zeta)/t) of
    these units when the evidence is weak, and more when it is strong. Heavy tails on both sides leave no
    design without its rate, and most weight is where few runs of moderate evidence need it, which can least
    afford to pay for a mixture.
    """
    scaled = np.geomspace(0.02, 200, NUM_RATES)
    weights = scaled / (1 + scaled**2)
    return scaled * 2 / np.sqrt(num_guesses), np.log(weights / weights.sum())
