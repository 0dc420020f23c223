"""Does an effect show, and does it survive once the floor of retraining is subtracted? Computed, not asserted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import Interval, deviation_of_means
from jaxaudit.study.outcome import Outcome
from jaxaudit.study.resampling import paired_interval

MIN_CLUSTERS = 4
"""Names of a factor, or pairs, below which a bootstrap says nothing."""


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
            if self.net.high < 0:
                return "shows, but less than retraining alone"
            return "shows" if self.net.low > 0 else "shows, but not beyond what retraining shows as well"
        if self.raw.high < 0:
            return "reversed"
        return "shows only beyond retraining" if self.net.low > 0 else "does not show"


def score_difference(first: Outcome, second: Outcome) -> Effect:
    """Deviation score of ``first`` minus that of ``second``, and the difference of their excesses over retraining.

    Models of the same seed are resampled together, and so are the edges and questions that two of them share: those of
    a method and of retraining, and those of both outcomes if they are about the same edges.

    Raises
    ------
    InputError
        If they do not have the same seeds.
    """
    if first.seeds != second.seeds:
        raise InputError(f"outcomes must have the same seeds, got {first.seeds} and {second.seeds}")

    def raw(*means: Any) -> Any:
        return deviation_of_means(means[0], means[1]) - deviation_of_means(means[2], means[3])

    def net(*means: Any) -> Any:
        return raw(means[0], means[1], means[4], means[5]) - raw(means[2], means[3], means[6], means[7])

    same, seeds = first.edges == second.edges, len(first.seeds)
    questions, edges = ((0, 1, 0, 1), (0, 0, 0, 0)) if same else ((0, 1, 2, 3), (0, 0, 1, 1))

    def twice(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return (*numbers[:2], *numbers[:2], *numbers[2:], *numbers[2:])

    return Effect(
        paired_interval(
            raw, (*first.tables[:2], *second.tables[:2]), questions, num_seeds=seeds, edges=edges
        ),
        paired_interval(
            net, (*first.tables, *second.tables), twice(questions), num_seeds=seeds, edges=twice(edges)
        ),
    )


def rank_correlation(
    x: ArrayLike,
    y: ArrayLike,
    *,
    factors: Sequence[Sequence[str]] = (),
    confidence: float = 0.95,
    num_resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Spearman's rank correlation, with a percentile bootstrap interval over the pairs, or over what they share.

    Pairs are taken for independent, unless factors are given. Edges of one graph are not quite: they share models,
    entities and questions, so the interval speaks about other edges of such a graph, not about other graphs. Resamples
    in which all ``x`` or all ``y`` are equal have no correlation, and are left out.

    Parameters
    ----------
    x, y
        One value per edge each; at least 4, not all equal.
    factors
        Each names, of every pair, what it shares with others, such as its graph, or its method. All pairs of one name
        are resampled as a whole; several factors are crossed, and resampled independently (Owen's pigeonhole
        bootstrap). At least 4 different names in each; with as few, intervals are too short.
    confidence
        In (0, 1).
    num_resamples, seed
        Of the bootstrap.

    Raises
    ------
    InputError
        If there are too few pairs or names, or a side does not vary.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap. Annals of Applied Statistics 1(2).

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
    for labels in factors:
        if len(labels) != len(first) or len(set(labels)) < MIN_CLUSTERS:
            raise InputError(
                f"factors must name one of at least {MIN_CLUSTERS} clusters for each of {len(first)} pairs, got "
                f"{list(labels)}"
            )
    rng = np.random.default_rng(seed)
    if not factors:
        draws = rng.integers(len(first), size=(num_resamples, len(first)))
        found = _spearman(first[draws], second[draws])
    else:
        counts = np.prod([_times_drawn(labels, num_resamples, rng) for labels in factors], axis=0)
        rows = (np.repeat(np.arange(len(first)), times) for times in counts)
        found = np.array([_spearman(first[own][None], second[own][None])[0] for own in rows])
    found = found[np.isfinite(found)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    estimate = float(_spearman(first[None], second[None])[0])
    return Interval(estimate, float(low), float(high), confidence, "pairs", "bootstrap")


def _times_drawn(
    labels: Sequence[str], num_resamples: int, rng: np.random.Generator
) -> Int[np.ndarray, "resamples pairs"]:
    """How often every pair is drawn if its names are drawn with replacement, as many as there are."""
    names, place = np.unique(list(labels), return_inverse=True)
    return rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=num_resamples)[:, place]


def rank_agreement(x: ArrayLike, y: ArrayLike, *, factors: Sequence[Sequence[str]] = ()) -> Interval:
    """`rank_correlation`; if a side does not vary, nothing goes with anything: 0, with an interval of no width.

    Parameters
    ----------
    x, y, factors
        As of `rank_correlation`.

    Examples
    --------
    >>> rank_agreement([1, 1, 1, 1], [1, 2, 3, 4]).estimate
    0.0
    """
    if np.size(x) and np.size(y) and 0 in (np.ptp(x), np.ptp(y)):
        return Interval(0.0, 0.0, 0.0, 0.95, "pairs", "bootstrap")
    return rank_correlation(x, y, factors=factors)


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
