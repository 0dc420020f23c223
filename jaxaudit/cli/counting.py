"""What ``jaxaudit bound`` does with guesses and overlaps: count and judge; there is no attack to fit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from jaxaudit.analysis import Claim, bound_notes
from jaxaudit.bound import BoundResult, epsilon_lower_bound
from jaxaudit.cli.judging import conclude, judge
from jaxaudit.errors import InputError
from jaxaudit.overlap import overlap
from jaxaudit.report.document import plain
from jaxaudit.scorefile import GuessFile, OverlapFile


class Counts(NamedTuple):
    """Overlaps of the audited runs, and what the file says about the design (``None``: nothing)."""

    overlaps: Int[np.ndarray, " runs"]
    failed: Bool[np.ndarray, " runs"]
    num_groups: int | None
    num_guesses: int | None


def count(evidence: GuessFile | OverlapFile) -> Counts:
    """Count right guesses, or take the overlaps as they are; a failed run counts 0.

    Examples
    --------
    >>> file = GuessFile([[1, -1], [1, -1]], [[1, -1], [-1, 1]], np.zeros(2, bool), np.arange(2))
    >>> count(file).overlaps
    array([2, 0])
    """
    if isinstance(evidence, OverlapFile):
        return Counts(evidence.overlaps, evidence.failed, evidence.num_groups, evidence.num_guesses)
    made = ~evidence.failed
    overlaps, num_guesses = np.zeros(len(made), np.int64), None
    if made.any():
        overlaps[made] = overlap(evidence.guesses[made], evidence.signs[made])
        num_guesses = int(np.count_nonzero(evidence.guesses[made][0]))
    return Counts(overlaps, evidence.failed, evidence.signs.shape[1], num_guesses)


def agreed(name: str, sources: Mapping[str, int | None]) -> int:
    """The one value that all sources that have one agree on.

    Examples
    --------
    >>> agreed("num_groups", {"the file": None, "the option": 6})
    6
    """
    given = {source: value for source, value in sources.items() if value is not None}
    if not given:
        raise InputError(f"{name} must be given: neither {' nor '.join(sources)} says it")
    if len(set(given.values())) > 1:
        listed = ", ".join(f"{value} in {source}" for source, value in given.items())
        raise InputError(f"{name} must be the same everywhere, got {listed}")
    return next(iter(given.values()))


def finish_count(
    bound: BoundResult,
    failed: Bool[np.ndarray, " runs"],
    claim: Claim | None,
    registered: bool,
    notes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print the bound and the verdict, and return the exit code."""
    verdict = None
    if claim is not None:
        verdict = judge(claim, {bound.method: _again(bound, delta=claim.delta)}, bound.significance)
    vacuous = f"Lemma C.1 says nothing at delta = {bound.delta:g}, whatever the overlaps"
    notes = (*count_notes(bound, failed), *([vacuous] if bound.vacuous else []), *notes)
    return conclude(_lines(bound), {"bound": plain(bound)}, verdict, registered, notes, as_json)


def count_notes(bound: BoundResult, failed: Bool[np.ndarray, " runs"]) -> tuple[str, ...]:
    """What a reader must know about a counting bound some of whose runs failed.

    A failed run counts 0 by rule, which says nothing about how well was guessed.
    """
    if failed.any():
        made = np.array(bound.overlaps)[~failed]
        chance = _again(bound, overlaps=made).below_chance_p_value if len(made) else 1.0
        bound = replace(bound, below_chance_p_value=chance)
    return bound_notes(bound)


def _again(bound: BoundResult, **changes: object) -> BoundResult:
    """The bound with some of its inputs changed."""
    names = (
        *("overlaps", "num_groups", "num_guesses", "delta"),
        *("significance", "method", "statistic", "threshold"),
    )
    return epsilon_lower_bound(**{name: getattr(bound, name) for name in names} | changes)


def _lines(bound: BoundResult) -> list[str]:
    return [
        f"epsilon is at least {bound.epsilon:.4g} at delta = {bound.delta:g}, "
        f"with {100 * (1 - bound.significance):g} % confidence ({bound.method} bound, {bound.statistic})",
        f"ceiling of this design: {bound.ceiling:.4g}",
        overlap_line(bound),
    ]


def overlap_line(bound: BoundResult) -> str:
    """What was counted, next to what chance gives.

    Examples
    --------
    >>> overlap_line(epsilon_lower_bound([3, 4], num_groups=6, num_guesses=4))
    'm = 6, r = 4, L = 2: mean overlap 3.5; chance gives a mean overlap of 2'
    """
    observed = f"{bound.statistic} overlap {bound.observed:g}"
    if bound.statistic == "tail":
        observed = f"{bound.observed:g} runs with an overlap of at least {bound.threshold}"
    return (
        f"m = {bound.num_groups}, r = {bound.num_guesses}, L = {bound.num_runs}: {observed}; "
        f"chance gives a mean overlap of {bound.num_guesses / 2:g}"
    )
