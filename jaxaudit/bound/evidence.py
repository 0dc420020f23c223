"""Soft evidence: a bound on epsilon from how sure the attacker was, valid at any time.

One run gives an evidence e (`jaxaudit.bound.likelihood`): the likelihood that the attacker's scores give to
the true sign vector, relative to its average over all balanced sign vectors. For a model that forgot
everything E[e] = 1, so under an (epsilon, delta) claim E[e] is at most about e^epsilon, and what the runs
show above that is evidence against the claim.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from jaxtyping import Float

from jaxaudit.bound.anytime import AnytimeBound
from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.checks import check_choice, check_delta, check_epsilon, check_groups
from jaxaudit.design import EvidenceForm
from jaxaudit.errors import InputError

# Fractions of the wealth that are bet against a claim: small for weak but steady evidence, 1 is the product.
_BETS = {"product": np.ones(1), "betting": np.geomspace(0.01, 1, 20)}
# Evidence is capped where delta times the cap reaches this fraction of e^epsilon.
_CAP_FRACTION = 0.1
# Room for rounding in evidence that is all but perfect.
_MARGIN = 1e-9


@dataclass(frozen=True)
class EvidenceResult:
    """Lower bound on epsilon from soft evidence; made by `evidence_lower_bound`."""

    epsilon: float
    """The bound, in nats: with probability 1 - significance the true epsilon is at least this."""
    ceiling: float
    """What perfect evidence (e = M' in every run) would have given."""
    saturated: bool
    """The evidence is perfect, so that epsilon equals the ceiling: a larger design might show more."""
    form: EvidenceForm
    log_evidence: tuple[float, ...]
    """Log evidence of each run, in nats; -inf for a run that failed."""
    trajectory: tuple[float, ...]
    """The bound after 1, 2, ... runs, all valid at once; it never decreases."""
    num_groups: int
    num_runs: int
    delta: float
    significance: float

    def log_p_value(self, epsilon: float, delta: float) -> float:
        """Log of the anytime-valid p-value of the claim (epsilon, delta); at most log zeta is a rejection.

        Examples
        --------
        >>> result = evidence_lower_bound([9.0, 8.0, 7.0], num_groups=20)
        >>> round(math.exp(result.log_p_value(result.epsilon, 0.0)), 6)
        0.05
        """
        wealth = log_wealth(
            np.array(self.log_evidence),
            check_epsilon(epsilon),
            check_delta(delta),
            self.num_groups,
            self.form,
        )
        return min(0.0, -float(wealth.max()))


class EvidenceSequence(AnytimeBound):
    """Soft evidence of runs that come one by one: look after every run, stop at any time, the level holds.

    For a claim (epsilon, delta) the factor of a run is min(e, c) / (e^epsilon + delta c) with the cap
    c = min(0.1 e^epsilon / delta, M'); for delta = 0 that is e / e^epsilon. Its expectation under the claim
    is at most 1, hence the product over runs is a test supermartingale, and the claim is rejected once it
    reaches 1/zeta (Ville's inequality). The factor does not increase in epsilon, so the bound is the largest
    rejected epsilon.

    Parameters
    ----------
    num_groups
        Number of candidate groups m, at least 2.
    delta
        The delta of the claim, in [0, 1). Soft evidence never rejects a delta of 1/11 or more.
    significance
        Level zeta in (0, 1): probability that the bound *ever* exceeds the true epsilon.
    form
        ``product``: the product of the factors; the limit for many runs is the mean of log e.
        ``betting``: the products of 1 - b + b factor, averaged over 20 fixed b from 0.01 to 1 in geometric
        progression; the limit is log E[e]. Better at small m or epsilon or with uneven evidence, and a run
        that failed costs little. For delta = 0 it is at most log(20) / runs below the product.

    Raises
    ------
    InputError
        If an argument is out of range, naming it and its value.

    Examples
    --------
    >>> sequence = EvidenceSequence(num_groups=20)
    >>> [round(sequence.add(log_e), 3) for log_e in (9.0, 8.0, 7.0, float("-inf"))]
    [6.004, 7.002, 7.002, 7.002]
    """

    def __init__(
        self,
        *,
        num_groups: int,
        delta: float = 0.0,
        significance: float = 0.05,
        form: EvidenceForm = "product",
    ) -> None:
        super().__init__(delta, significance)
        self.num_groups = check_groups(num_groups)
        check_choice("form", form, get_args(EvidenceForm))
        self.form = form

    def add(self, log_evidence: float) -> float:
        """Count one more run and return the bound after it.

        Runs are added in the order in which they were made and none may be left out; a run that failed counts
        as -inf (evidence 0).

        Parameters
        ----------
        log_evidence
            Log evidence of the run, in nats, at most log M'.
        """
        log_most = log_num_sign_vectors(self.num_groups)
        if not log_evidence <= log_most * (1 + _MARGIN):  # NaN fails too
            raise InputError(
                f"log_evidence must be at most log C(m, floor(m/2)) = {log_most:.6g} for num_groups = "
                f"{self.num_groups}, got {log_evidence} in run {self.num_runs}"
            )
        return self._append(float(log_evidence))

    @property
    def log_evidence(self) -> tuple[float, ...]:
        """Log evidence of the runs so far, in order."""
        return tuple(self._runs)

    def result(self) -> EvidenceResult:
        """The bound after the runs so far, at least one, with everything it was computed from."""
        if not self._runs:
            raise InputError("log_evidence must have at least one run, got none")
        log_most = log_num_sign_vectors(self.num_groups)
        return EvidenceResult(
            epsilon=self.epsilon,
            ceiling=self._largest_rejected([log_most] * self.num_runs),
            saturated=min(self._runs) >= log_most * (1 - _MARGIN),
            form=self.form,
            log_evidence=self.log_evidence,
            trajectory=self.trajectory,
            num_groups=self.num_groups,
            num_runs=self.num_runs,
            delta=self.delta,
            significance=self.significance,
        )

    def _log_process(self, runs: Sequence[float], epsilon: float) -> Float[np.ndarray, " runs"]:
        return log_wealth(np.array(runs), epsilon, self.delta, self.num_groups, self.form)


def evidence_lower_bound(
    log_evidence: Float[np.ndarray, " runs"],
    *,
    num_groups: int,
    delta: float = 0.0,
    significance: float = 0.05,
    form: EvidenceForm = "product",
) -> EvidenceResult:
    """Lower bound on epsilon from the log evidence of independent runs.

    For delta = 0 and the product it is the largest, over the first l = 1..L runs, of
    mean log e - log(1/zeta) / l. The conditions are those of the direct bound: no run is dropped because of
    its outcome, and temperature, form and order of the runs are fixed beforehand. See `EvidenceSequence`.

    Parameters
    ----------
    log_evidence
        ``(runs,)``: from `log_evidence` or `joint_log_evidence`, in the order of the runs; -inf for a failed
        run.
    num_groups, delta, significance, form
        As in `EvidenceSequence`.

    Returns
    -------
    EvidenceResult
        `epsilon` is 0.0 where there is no evidence.

    Raises
    ------
    InputError
        No runs, NaN, evidence above log M', or an argument out of range.

    Examples
    --------
    >>> result = evidence_lower_bound([9.0, 8.0, 7.0], num_groups=20)
    >>> round(result.epsilon, 3)  # (9 + 8) / 2 - log(20) / 2
    7.002
    >>> round(result.ceiling, 3)  # log C(20, 10) - log(20) / 3
    11.128
    """
    values = np.asarray(log_evidence, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"log_evidence must be one number per run, got shape {values.shape}")
    sequence = EvidenceSequence(num_groups=num_groups, delta=delta, significance=significance, form=form)
    for value in values:
        sequence.add(value)
    return sequence.result()


def log_wealth(
    log_evidence: Float[np.ndarray, "*audits runs"],
    epsilon: float,
    delta: float,
    num_groups: int,
    form: EvidenceForm,
) -> Float[np.ndarray, "*audits runs"]:
    """Log of the test supermartingale of the claim (epsilon, delta), after 1, 2, ... runs of each audit.

    Arguments are those of `EvidenceSequence` and are not checked; leading axes are independent audits.

    Examples
    --------
    >>> log_wealth(np.array([9.0, 8.0]), 7.0, 0.0, 20, "product").tolist()
    [2.0, 3.0]
    """
    log_delta = math.log(delta) if delta > 0 else -math.inf
    log_cap = min(math.log(_CAP_FRACTION) + epsilon - log_delta, log_num_sign_vectors(num_groups))
    log_factors = np.minimum(log_evidence, log_cap) - np.logaddexp(epsilon, log_delta + log_cap)
    bets = np.expand_dims(_BETS[form], tuple(range(1, 1 + log_factors.ndim)))
    with np.errstate(divide="ignore"):  # a bet of 1 keeps nothing
        log_steps = np.logaddexp(np.log1p(-bets), np.log(bets) + log_factors)
    return np.logaddexp.reduce(np.cumsum(log_steps, axis=-1), axis=0) - math.log(len(bets))
