"""One number of a table: the paper's value, Theorem 4.2 on our scores and the direct bound, over several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxaudit.analysis import analyse
from jaxaudit.design import AuditDesign, Statistic
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.scored import ScoredRuns

Score = Literal["logit", "loss"]
PaperValue = float | None
"""``None``: the paper prints none."""


class Spread(NamedTuple):
    """A number over the seeds, in their order; empty if it could not be measured."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def text(self, digits: int = 2) -> str:
        """Mean, and in brackets the smallest and the largest, if they differ.

        Examples
        --------
        >>> Spread((1.0, 2.0)).text(), Spread((1.0,)).text(), Spread(()).text()
        ('1.50 [1.00, 2.00]', '1.00', 'failed')
        """
        if not self.values:
            return "failed"
        low, mean, high = (f"{value:.{digits}f}" for value in (self.low, self.mean, self.high))
        return mean if low == high else f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class Cell:
    """One look at the audited runs."""

    labels: dict[str, Any]
    """What tells it from other cells of its table."""
    printed: PaperValue
    """The paper's value, at its own scale."""
    theorem: Spread
    """Theorem 4.2 of the paper, on our runs."""
    direct: Spread
    ceiling: float
    """Largest direct bound that the design could have shown."""
    accuracies: tuple[Spread, Spread, Spread]
    """On retained, forgotten and test images; of the seeds where not all audited runs failed."""
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Plain JSON types; one value per seed."""
        return {
            **self.labels,
            "paper": self.printed,
            "theorem_4_2": list(self.theorem.values),
            "direct": list(self.direct.values),
            "ceiling": self.ceiling,
            "accuracies": [list(one.values) for one in self.accuracies],
            "notes": list(self.notes),
        }

    @property
    def printed_text(self) -> str:
        """The paper's value, or nothing."""
        return "" if self.printed is None else f"{self.printed:g}"

    @property
    def accuracies_text(self) -> str:
        """Retained, forgotten, test."""
        return accuracies_text([one.mean for one in self.accuracies if one.values])


def accuracies_text(values: Sequence[float] | None) -> str:
    """Accuracies on retained, forgotten and test images; nothing for ``None``.

    Examples
    --------
    >>> accuracies_text([0.9, 0.5, 0.25]), accuracies_text([]), accuracies_text(None)
    ('0.90 / 0.50 / 0.25', 'failed', '')
    """
    if values is None:
        return ""
    return " / ".join(f"{value:.2f}" for value in values) or "failed"


def measure(
    results: Sequence[MethodResult],
    labels: dict[str, Any],
    printed: PaperValue = None,
    *,
    num_guesses: int | None = None,
    statistic: Statistic = "mean",
    score: Score = "logit",
) -> Cell:
    """The bounds of one method, from one result per seed, at a number of guesses, statistic and score.

    Parameters
    ----------
    results
        As audited; nothing is trained.
    labels, printed
        See `Cell`.
    num_guesses
        The paper's r; ``None``: that of the audit.
    statistic, score
        Each choice is another look at the same runs.
    """
    analyses = []
    for result in results:
        design = _design(result, num_guesses, statistic)
        runs = (scored_as(result.calibration, score), scored_as(result.audited, score))
        analyses.append(analyse(design, *runs))
    notes = {note for one in (*results, *analyses) for note in one.notes}
    worked = [result.accuracies for result in results if result.accuracies is not None]
    retain, forget, test = (Spread(tuple(one[part] for one in worked)) for part in range(3))
    return Cell(
        labels,
        printed,
        theorem=Spread(tuple(one.paper.epsilon for one in analyses)),
        direct=Spread(tuple(one.direct.epsilon for one in analyses)),
        ceiling=max(one.direct.ceiling for one in analyses),
        accuracies=(retain, forget, test),
        notes=tuple(sorted(notes)),
    )


def _design(result: MethodResult, num_guesses: int | None, statistic: Statistic) -> AuditDesign:
    design = result.analysis.design
    return replace(design, num_guesses=num_guesses or design.num_guesses, statistic=statistic)


def scored_as(runs: ScoredRuns, score: Score) -> ScoredRuns:
    """The same runs with the loss in the place of the logit score: -log(1 + exp(-logit)) is the log-probability."""
    if score == "logit":
        return runs
    return replace(runs, scores=-np.logaddexp(0.0, -runs.scores))


def looks(report: AuditReport, method: str) -> list[MethodResult]:
    """The results of a method in the order of its updates; the last is its end."""
    return [result for result in report.methods if result.family == method]
