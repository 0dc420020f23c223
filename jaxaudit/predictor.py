"""The two predictors behind one interface, so that nothing downstream asks which of them a design uses.

A predictor turns scores into a *reading*, one row per run: log-ratios per group (batchwise, Algorithm 2) or
log-likelihoods per candidate sign vector (joint, Algorithm 3). Guesses and soft evidence come from the reading.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int, Int8
from scipy.special import logsumexp

from jaxaudit.attack import Guesses, fit_batchwise, fit_joint, guess, guess_joint, joint_candidates
from jaxaudit.bound import joint_log_evidence, log_evidence
from jaxaudit.cross_validation import cross_validated_log_likelihoods, cross_validated_log_ratios
from jaxaudit.design import AuditDesign, Variance
from jaxaudit.scored import CalibrationRuns, ScoredRuns

Reading = Float[np.ndarray, "runs columns"]
Signs = Int[np.ndarray, "runs groups"]

_MAX_GUESS_CANDIDATES = 30


class Fitted(NamedTuple):
    """A reading of runs by an attack fitted on other runs."""

    reading: Reading
    floor_hits: int


class Predictor(Protocol):
    """What the analysis needs of an attack."""

    def guess_candidates(self, num_groups: int) -> tuple[int, ...]:
        """Numbers of guesses to choose from, increasing."""

    def cross_validated(self, calibration: CalibrationRuns) -> Reading:
        """Reading of every calibration run by an attack fitted without it."""

    def read(self, calibration: CalibrationRuns, runs: ScoredRuns) -> Fitted:
        """Reading of other runs by the attack fitted on all calibration runs."""

    def guess(self, reading: Reading, num_guesses: int) -> Guesses:
        """Guesses of every run."""

    def log_evidence(self, reading: Reading, signs: Signs, temperature: float) -> Float[np.ndarray, " runs"]:
        """Soft evidence of every run, in nats."""

    def log_ratios(self, reading: Reading) -> Float[np.ndarray, "runs groups"]:
        """Log-likelihood ratio of each group."""


@dataclass(frozen=True)
class BatchwisePredictor:
    """Each group is judged by itself; a reading is the log-ratios."""

    variance: Variance
    variance_floor: float

    def guess_candidates(self, num_groups: int) -> tuple[int, ...]:
        """Even numbers from 2 to the number of groups, closely spaced where they are small.

        Examples
        --------
        >>> BatchwisePredictor("pooled", 1e-10).guess_candidates(13)
        (2, 4, 6, 8, 10, 12)
        """
        largest = num_groups - num_groups % 2
        spaced = np.geomspace(2, largest, _MAX_GUESS_CANDIDATES)
        return tuple(sorted({int(2 * round(value / 2)) for value in spaced}))

    def cross_validated(self, calibration: CalibrationRuns) -> Reading:
        """See `Predictor`."""
        return cross_validated_log_ratios(
            calibration, variance=self.variance, variance_floor=self.variance_floor
        )

    def read(self, calibration: CalibrationRuns, runs: ScoredRuns) -> Fitted:
        """See `Predictor`."""
        attack = fit_batchwise(calibration, variance=self.variance, variance_floor=self.variance_floor)
        return Fitted(attack.log_ratios(runs.scores, runs.failed), attack.floor_hits)

    def guess(self, reading: Reading, num_guesses: int) -> Guesses:
        """See `Predictor`."""
        return guess(reading, num_guesses)

    def log_evidence(self, reading: Reading, signs: Signs, temperature: float) -> Float[np.ndarray, " runs"]:
        """See `Predictor`."""
        return np.asarray(log_evidence(reading, signs, temperature))

    def log_ratios(self, reading: Reading) -> Float[np.ndarray, "runs groups"]:
        """See `Predictor`."""
        return reading


@dataclass(frozen=True)
class JointPredictor:
    """All groups are judged together; a reading is the log-likelihood of every balanced sign vector."""

    variance: Variance
    variance_floor: float
    candidates: Int8[np.ndarray, "candidates groups"]

    def guess_candidates(self, num_groups: int) -> tuple[int, ...]:
        """All groups: a sign vector has no gaps."""
        return (num_groups,)

    def cross_validated(self, calibration: CalibrationRuns) -> Reading:
        """See `Predictor`."""
        return cross_validated_log_likelihoods(
            calibration, variance=self.variance, variance_floor=self.variance_floor
        )

    def read(self, calibration: CalibrationRuns, runs: ScoredRuns) -> Fitted:
        """See `Predictor`."""
        attack = fit_joint(calibration, variance=self.variance, variance_floor=self.variance_floor)
        return Fitted(attack.log_likelihoods(runs.scores, runs.failed), attack.floor_hits)

    def guess(self, reading: Reading, num_guesses: int) -> Guesses:
        """See `Predictor`."""
        return guess_joint(reading, self.candidates)

    def log_evidence(self, reading: Reading, signs: Signs, temperature: float) -> Float[np.ndarray, " runs"]:
        """See `Predictor`."""
        true_candidate = (signs[:, None, :] == self.candidates).all(axis=2).argmax(axis=1)
        return np.asarray(joint_log_evidence(reading, true_candidate, temperature))

    def log_ratios(self, reading: Reading) -> Float[np.ndarray, "runs groups"]:
        """Marginal log-ratio of each group: candidates that hold it against those that do not, all equally likely."""
        inside = self.candidates == 1
        columns = [
            logsumexp(reading, axis=1, b=inside[:, group] / inside[:, group].sum())
            - logsumexp(reading, axis=1, b=~inside[:, group] / (~inside[:, group]).sum())
            for group in range(inside.shape[1])
        ]
        return np.stack(columns, axis=1)


def make_predictor(design: AuditDesign, calibration: CalibrationRuns) -> Predictor:
    """The predictor that a design declares.

    Examples
    --------
    >>> runs = CalibrationRuns(signs=[[1, -1], [-1, 1], [1, -1], [-1, 1]], scores=[[3, 0], [0, 3], [5, 1], [1, 5]])
    >>> predictor = make_predictor(AuditDesign(num_groups=2, num_calibration_runs=4, predictor="joint"), runs)
    >>> predictor.read(calibration=runs, runs=runs).reading.shape
    (4, 2)
    """
    if design.predictor == "batchwise":
        return BatchwisePredictor(design.variance, design.variance_floor)
    return JointPredictor(design.variance, design.variance_floor, joint_candidates(calibration)[0])
