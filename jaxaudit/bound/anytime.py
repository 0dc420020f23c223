"""What the anytime-valid bounds share: look after every run, stop whenever you like, the level still holds.

A fixed-L bound may be read once, after the declared number of runs. Here every claimed epsilon is tested by
an e-process: a non-negative process that under the claim has expectation at most 1 whenever it is stopped, so
that the probability that it ever reaches 1/zeta is at most zeta (Ville's inequality).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import log

import numpy as np
from jaxtyping import Float

from jaxaudit.bound.search import largest_rejected
from jaxaudit.checks import check_delta, check_epsilon, check_significance


class AnytimeBound(ABC):
    """Lower bound on epsilon that is valid after every run at once.

    It is the largest epsilon whose e-process has reached 1/zeta after some run. Subclasses say what a run
    shows (`add`) and what the e-process is.

    Parameters
    ----------
    delta
        The delta of the claim, in [0, 1).
    significance
        The level zeta in (0, 1): probability that the bound *ever* exceeds the true epsilon.
    """

    def __init__(self, delta: float, significance: float) -> None:
        self.delta = check_delta(delta)
        self.significance = check_significance(significance)
        self._runs: list[float] = []
        self._trajectory: list[float] = []

    @property
    def epsilon(self) -> float:
        """The bound after the runs so far; 0.0 before the first run. It never decreases."""
        return self._trajectory[-1] if self._trajectory else 0.0

    @property
    def trajectory(self) -> tuple[float, ...]:
        """The bound after 1, 2, ... runs."""
        return tuple(self._trajectory)

    @property
    def num_runs(self) -> int:
        """Number of runs so far."""
        return len(self._runs)

    def log_p_value(self, epsilon: float) -> float:
        """Log of the anytime-valid p-value of a claim: at most log zeta once the bound has reached it.

        It is minus the largest value, so far, of the logarithm of the claim's e-process.
        """
        log_process = self._log_process(self._runs, check_epsilon(epsilon))
        return float(np.min(-log_process, initial=0.0))

    @abstractmethod
    def _log_process(self, runs: Sequence[float], epsilon: float) -> Float[np.ndarray, " runs"]:
        """Log of the e-process of the claim after each of the runs; it falls as epsilon grows."""

    def _append(self, run: float) -> float:
        self._runs.append(run)
        self._trajectory.append(self._largest_rejected(self._runs, self.epsilon))
        return self.epsilon

    def _largest_rejected(self, runs: Sequence[float], least: float = 0.0) -> float:
        """Largest epsilon that is rejected after the last of the runs, or `least` if that is larger."""
        return largest_rejected(
            lambda epsilon: float(self._log_process(runs, epsilon)[-1]) + log(self.significance), least
        )
