"""Bootstrap of functions of means where several models answered the same questions: those are resampled together.

`jaxaudit.metrics.bootstrap_interval` takes the questions of every table for others. An unlearned and a retrained model
answer the same ones, and what they have in common must cancel.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxaudit.errors import InputError
from jaxaudit.metrics import Interval
from jaxaudit.metrics.intervals import resampled_shares

NUM_RESAMPLES = 2000
Table = Float[np.ndarray, "models questions"]


def paired_interval(
    statistic: Callable[..., Any],
    tables: Sequence[Table],
    questions: Sequence[int] | None = None,
    *,
    confidence: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of a function of the tables' means, over questions and, if there are several, models.

    Parameters
    ----------
    statistic
        ``(mean of table 1, mean of table 2, ...) -> value``, for arrays of means at once.
    tables
        A row per model and a column per question. Rows of all tables belong together, as models of the same seed do.
    questions
        For each table, the number of its list of questions: tables of the same list are resampled in the same way.
        ``None``: every table has a list of its own.
    confidence, num_resamples, seed
        As for `jaxaudit.metrics.bootstrap_interval`.

    Raises
    ------
    InputError
        If tables have different numbers of rows, or of columns for the same questions.

    Examples
    --------
    >>> one = np.array([[0.0, 1.0, 1.0]])
    >>> found = paired_interval(lambda a, b: a - b, [one + 0.5, one], [0, 0])
    >>> round(found.low, 6), round(found.high, 6)
    (0.5, 0.5)
    """
    lists = list(range(len(tables))) if questions is None else list(questions)
    rows = len(tables[0])
    sizes = dict(zip(lists, (table.shape[1] for table in tables)))
    if any(table.shape != (rows, sizes[number]) for table, number in zip(tables, lists)):
        raise InputError(f"tables must agree in rows and questions, got {[table.shape for table in tables]}")
    rng = np.random.default_rng(seed)
    models = resampled_shares(rows, rows > 1, num_resamples, rng)
    weights = {number: resampled_shares(size, True, num_resamples, rng) for number, size in sizes.items()}
    means = [np.sum((models @ table) * weights[number], axis=1) for table, number in zip(tables, lists)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(*means), [tail, 1 - tail])
    estimate = float(statistic(*(table.mean() for table in tables)))
    return Interval(
        estimate, float(low), float(high), confidence, "both" if rows > 1 else "questions", "bootstrap"
    )
