"""Does an effect show, and does it survive once the floor of retraining is subtracted? Computed, not asserted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import Interval, deviation_of_means
from jaxaudit.study.outcome import Outcome
from jaxaudit.study.resampling import paired_interval


@dataclass(frozen=True)
class Effect:
    """A difference, as the paper measures it and with the retrained models' own difference taken off."""

    raw: Interval
    net: Interval

    @property
    def verdict(self) -> str:
        """What the two intervals say about an effect that is expected to be positive.

        Examples
        --------
        >>> one = lambda low, high: Interval((low + high) / 2, low, high, 0.95, "both", "bootstrap")
        >>> Effect(one(1, 3), one(-1, 2)).verdict
        'shows, but not beyond what retraining shows as well'
        """
        if self.raw.low > 0:
            return "shows" if self.net.low > 0 else "shows, but not beyond what retraining shows as well"
        if self.raw.high < 0:
            return "reversed"
        return "shows only beyond retraining" if self.net.low > 0 else "does not show"


def score_difference(first: Outcome, second: Outcome) -> Effect:
    """Deviation score of ``first`` minus that of ``second``, and the difference of their excesses over retraining.

    Models of the same seed are resampled together, and so are the questions that a method and retraining share.

    Raises
    ------
    InputError
        If they do not have the same number of models.
    """
    if len(first.forget) != len(second.forget):
        raise InputError(
            f"outcomes must have equally many models, got {len(first.forget)} and {len(second.forget)}"
        )

    def raw(*means: Any) -> Any:
        return deviation_of_means(means[0], means[1]) - deviation_of_means(means[2], means[3])

    def net(*means: Any) -> Any:
        return raw(means[0], means[1], means[4], means[5]) - raw(means[2], means[3], means[6], means[7])

    return Effect(
        paired_interval(raw, (*first.tables[:2], *second.tables[:2])),
        paired_interval(net, (*first.tables, *second.tables), (0, 1, 0, 1, 2, 3, 2, 3)),
    )


def rank_correlation(
    x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95, num_resamples: int = 2000, seed: int = 0
) -> Interval:
    """Spearman's rank correlation, with a percentile bootstrap interval over the pairs.

    Resamples in which all ``x`` or all ``y`` are equal have no correlation, and are left out.

    Parameters
    ----------
    x, y
        One value per edge each; at least 4, not all equal.
    confidence
        In (0, 1).
    num_resamples, seed
        Of the bootstrap.

    Raises
    ------
    InputError
        If there are too few pairs, or a side does not vary.

    Examples
    --------
    >>> found = rank_correlation([1, 2, 3, 4, 5], [1, 2, 4, 8, 16])
    >>> round(found.estimate, 6), round(found.low, 6)
    (1.0, 1.0)
    """
    first, second = np.asarray(x, float), np.asarray(y, float)
    if first.shape != second.shape or first.ndim != 1 or len(first) < 4:
        raise InputError(f"x and y must be at least 4 numbers each, got shapes {first.shape}, {second.shape}")
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        raise InputError("x and y must vary for a rank correlation, got equal values")
    rows = np.random.default_rng(seed).integers(len(first), size=(num_resamples, len(first)))
    found = _spearman(first[rows], second[rows])
    found = found[np.isfinite(found)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    estimate = float(_spearman(first[None], second[None])[0])
    return Interval(estimate, float(low), float(high), confidence, "questions", "bootstrap")


def _spearman(
    x: Float[np.ndarray, "samples pairs"], y: Float[np.ndarray, "samples pairs"]
) -> Float[np.ndarray, " samples"]:
    """Of every row; NaN where a side does not vary."""
    first, second = (stats.rankdata(side, axis=1) - (side.shape[1] + 1) / 2 for side in (x, y))
    norms = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.divide((first * second).sum(axis=1), norms, out=np.full(len(x), np.nan), where=norms > 0)


def monotone(values: Sequence[float]) -> bool:
    """Whether every value is at least the one before it.

    Examples
    --------
    >>> monotone([1.0, 1.0, 2.0]), monotone([2.0, 1.0])
    (True, False)
    """
    return all(after >= before for before, after in pairwise(values))
