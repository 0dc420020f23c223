"""Bootstrap of functions of means where several models answered the same questions: those are resampled together.

`jaxaudit.metrics.bootstrap_interval` takes the questions of every table for others, and every row for a model of its
own. Here an unlearned and a retrained model answer the same questions, so that what they have in common must cancel;
and all models of one seed have the fine-tuned model in common, all models that forget one edge its questions. So seeds,
edges and questions are resampled as crossed factors (Owen's pigeonhole bootstrap), whole levels at a time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError
from jaxaudit.metrics import Interval
from jaxaudit.metrics.intervals import Over, resampled_shares

NUM_RESAMPLES = 2000
Table = Float[np.ndarray, "models questions"]


def paired_interval(
    statistic: Callable[..., Any],
    tables: Sequence[Table],
    questions: Sequence[int] | None = None,
    *,
    num_seeds: int,
    edges: Sequence[int] | None = None,
    confidence: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of a function of the tables' means over questions, and over seeds and edges if several.

    With three seeds and three edges such an interval is too short: it covers less often than it says, as every
    bootstrap of so few levels does.

    Parameters
    ----------
    statistic
        ``(mean of table 1, mean of table 2, ...) -> value``, for arrays of means at once.
    tables
        A row per model: all edges of the first seed, then of the second, and so on. A column per question.
    questions
        For each table, the number of its list of questions: tables of the same list are resampled in the same way.
        ``None``: every table has a list of its own.
    num_seeds
        Of all tables, which have the same seeds; at least 1.
    edges
        For each table, the number of its list of edges, in the same way. ``None``: all tables have the same edges.
    confidence, num_resamples, seed
        As for `jaxaudit.metrics.bootstrap_interval`.

    Raises
    ------
    InputError
        If rows are not whole seeds, or tables of one list differ in size.

    References
    ----------
    Owen (2007), The pigeonhole bootstrap. Annals of Applied Statistics 1(2).

    Examples
    --------
    >>> one = np.array([[0.0, 1.0, 1.0]])
    >>> found = paired_interval(lambda a, b: a - b, [one + 0.5, one], [0, 0], num_seeds=1)
    >>> round(found.low, 6), round(found.high, 6)
    (0.5, 0.5)
    """
    check_integer("num_seeds", num_seeds, low=1)
    lists = list(range(len(tables))) if questions is None else list(questions)
    groups = [0] * len(tables) if edges is None else list(edges)
    columns, rows = _sizes(tables, lists, 1), _sizes(tables, groups, 0)
    if any(size % num_seeds for size in rows.values()):
        raise InputError(f"num_seeds must divide the numbers of rows {list(rows.values())}, got {num_seeds}")
    rng = np.random.default_rng(seed)
    seeds = resampled_shares(num_seeds, num_seeds > 1, num_resamples, rng)
    models = {
        number: _crossed(seeds, resampled_shares(size // num_seeds, size > num_seeds, num_resamples, rng))
        for number, size in rows.items()
    }
    weights = {number: resampled_shares(size, True, num_resamples, rng) for number, size in columns.items()}
    means = [
        np.sum((models[group] @ table) * weights[number], axis=1)
        for table, number, group in zip(tables, lists, groups)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(*means), [tail, 1 - tail])
    estimate = float(statistic(*(table.mean() for table in tables)))
    over: Over = "both" if max(rows.values()) > 1 else "questions"
    return Interval(estimate, float(low), float(high), confidence, over, "bootstrap")


def _sizes(tables: Sequence[Table], numbers: Sequence[int], axis: int) -> dict[int, int]:
    sizes = dict(zip(numbers, (table.shape[axis] for table in tables)))
    if any(table.shape[axis] != sizes[number] for table, number in zip(tables, numbers)):
        raise InputError(f"tables must agree in rows and questions, got {[table.shape for table in tables]}")
    return sizes


def _crossed(
    seeds: Float[np.ndarray, "resamples seeds"], edges: Float[np.ndarray, "resamples edges"]
) -> Float[np.ndarray, "resamples models"]:
    """Share of every pair of seed and edge, seed by seed."""
    return (seeds[:, :, None] * edges[:, None, :]).reshape(len(seeds), -1)
