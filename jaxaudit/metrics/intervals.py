"""Confidence intervals of means over questions and seeds, and of scores made of such means.

Values stand in tables with a row per seed (a trained and unlearned model) and a column per question. Answers of one
model, and answers to one question, are not independent: taking every cell for an observation of its own would make
intervals far too short. So whole rows and whole columns are resampled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import stats

from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.errors import InputError

Over = Literal["questions", "seeds", "both"]
"""What another study would draw anew: the questions for these models, models for these questions, or both."""
Table = Float[np.ndarray, "seeds questions"]


@dataclass(frozen=True)
class Interval:
    """An estimate with a two-sided confidence interval."""

    estimate: float
    low: float
    high: float
    confidence: float
    over: Over | Literal["pairs"]
    """``pairs``: of numbers that stand for whole models, as in a rank correlation."""
    method: Literal["bootstrap", "t"]


def t_interval(
    values: ArrayLike, *, over: Literal["questions", "seeds"], confidence: float = 0.95
) -> Interval:
    """Student's t interval of the mean: over the means of the questions, or over those of the seeds.

    Parameters
    ----------
    values
        ``(seeds, questions)``, or ``(questions,)`` for one model.
    over
        The axis whose means are taken for independent observations; at least 2 are needed.
    confidence
        In (0, 1).

    Raises
    ------
    InputError
        If fewer than 2 observations are left, or a value is not finite.

    Examples
    --------
    >>> interval = t_interval([0.0, 0.5, 1.0], over="questions")
    >>> f"{interval.estimate:.2f} ({interval.low:.2f}, {interval.high:.2f})"
    '0.50 (-0.74, 1.74)'
    """
    check_choice("over", over, ["questions", "seeds"])
    means = _table("values", values).mean(axis=0 if over == "questions" else 1)
    _check_count(over, len(means))
    half = stats.t.ppf((1 + _confidence(confidence)) / 2, len(means) - 1) * stats.sem(means)
    mean = float(means.mean())
    return Interval(mean, mean - float(half), mean + float(half), confidence, over, "t")


def bootstrap_interval(
    *tables: ArrayLike,
    statistic: Callable[..., Float[np.ndarray, " resamples"]] = lambda mean: mean,
    over: Over,
    confidence: float = 0.95,
    num_resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of a function of the means of one or several tables.

    Seeds are resampled together in all tables, since they are the same models; the questions of every table by
    themselves. With ``over="both"`` rows and columns are drawn independently: never too short in the long run, and
    somewhat too long where single cells are noisy (Owen, 2007).

    Parameters
    ----------
    tables
        ``(seeds, questions)`` each, or ``(questions,)`` for one model; the same number of seeds in all.
    statistic
        ``(mean of table 1, mean of table 2, ...) -> value``, for arrays of means at once; default: the mean itself.
        For instance `jaxaudit.metrics.deviation_of_means` for a forget and a retain table.
    over
        What is resampled: ``questions``, ``seeds`` or ``both``; at least 2 of each are needed.
    confidence
        In (0, 1).
    num_resamples
        At least 1.
    seed
        Of NumPy's generator: the same seed gives the same interval.

    Raises
    ------
    InputError
        If there is no table, tables disagree on the number of seeds, or fewer than 2 of what is resampled are left.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap. Annals of Applied Statistics 1(2).

    Examples
    --------
    >>> interval = bootstrap_interval([[0.2, 0.4], [0.6, 0.8]], over="seeds", confidence=0.5)
    >>> f"{interval.estimate:.1f} ({interval.low:.1f}, {interval.high:.1f})"
    '0.5 (0.3, 0.7)'
    """
    arrays = _tables(tables, over)
    check_integer("num_resamples", num_resamples, low=1)
    tail = (1 - _confidence(confidence)) / 2
    means = _resampled_means(arrays, over, num_resamples, np.random.default_rng(seed))
    low, high = np.quantile(statistic(*means), [tail, 1 - tail])
    estimate = statistic(*(array.mean(keepdims=True)[0] for array in arrays))
    return Interval(float(estimate[0]), float(low), float(high), confidence, over, "bootstrap")


def _resampled_means(
    arrays: Sequence[Table], over: Over, num_resamples: int, rng: np.random.Generator
) -> list[Float[np.ndarray, " resamples"]]:
    seeds = resampled_shares(len(arrays[0]), over != "questions", num_resamples, rng)
    means = []
    for array in arrays:
        questions = resampled_shares(array.shape[1], over != "seeds", num_resamples, rng)
        means.append(np.sum((seeds @ array) * questions, axis=1))
    return means


def resampled_shares(
    size: int, resampled: bool, num_resamples: int, rng: np.random.Generator
) -> Float[np.ndarray, "resamples size"]:
    """How much of each bootstrap resample every item makes up; equal parts if it is not ``resampled``.

    Examples
    --------
    >>> resampled_shares(2, False, 1, np.random.default_rng(0))
    array([[0.5, 0.5]])
    """
    if not resampled:
        return np.full((num_resamples, size), 1 / size)
    return rng.multinomial(size, np.full(size, 1 / size), num_resamples) / size


def _tables(tables: tuple[ArrayLike, ...], over: Over) -> list[Table]:
    check_choice("over", over, get_args(Over))
    arrays = [_table(f"table {number}", table) for number, table in enumerate(tables, start=1)]
    if len({len(array) for array in arrays}) != 1:
        raise InputError(
            f"tables must have the same number of seeds, at least one table, "
            f"got {[len(array) for array in arrays]}"
        )
    if over != "questions":
        _check_count("seeds", len(arrays[0]))
    if over != "seeds":
        _check_count("questions", min(array.shape[1] for array in arrays))
    return arrays


def _table(name: str, values: ArrayLike) -> Table:
    array = np.asarray(values, dtype=float)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must be (seeds, questions), at least one of each, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def _check_count(what: str, count: int) -> None:
    if count < 2:
        raise InputError(f"{what} must be at least 2 for an interval over {what}, got {count}")


def _confidence(value: float) -> float:
    if not 0 < check_real("confidence", value) < 1:
        raise InputError(f"confidence must be in (0, 1), got {value}")
    return value
