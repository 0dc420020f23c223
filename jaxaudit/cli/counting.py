"""What ``jaxaudit bound`` does with guesses and overlaps: count and judge; there is no attack to fit."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from jaxaudit.analysis import Claim, Verdict, bound_notes
from jaxaudit.bound import BoundResult, epsilon_lower_bound
from jaxaudit.cli.common import FALSIFIED, OK, show, wrapped
from jaxaudit.design import SCHEMA_VERSION
from jaxaudit.errors import InputError
from jaxaudit.overlap import overlap
from jaxaudit.report.document import plain
from jaxaudit.scorefile import GuessFile, OverlapFile


class Counts(NamedTuple):
    """Overlaps of the audited runs, and what the file says about the design (``None``: nothing)."""

    overlaps: Int[np.ndarray, " runs"]
    num_groups: int | None
    num_guesses: int | None
    notes: tuple[str, ...]


def count(evidence: GuessFile | OverlapFile) -> Counts:
    """Count right guesses, or take the overlaps as they are; a failed run counts 0."""
    failed = evidence.run_ids[evidence.failed]
    notes = (f"failed runs, counted as overlap 0: {', '.join(map(str, failed))}",) if len(failed) else ()
    if isinstance(evidence, OverlapFile):
        return Counts(evidence.overlaps, evidence.num_groups, evidence.num_guesses, notes)
    made = ~evidence.failed
    overlaps, num_guesses = np.zeros(len(made), np.int64), None
    if made.any():
        overlaps[made] = overlap(evidence.guesses[made], evidence.signs[made])
        num_guesses = int(np.count_nonzero(evidence.guesses[made][0]))
    return Counts(overlaps, evidence.signs.shape[1], num_guesses, notes)


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
    bound: BoundResult, claim: Claim | None, registered: bool, notes: tuple[str, ...], as_json: bool
) -> int:
    """Print the bound and the verdict, and return the exit code."""
    verdict = None if claim is None else _verdict(bound, claim)
    vacuous = f"Lemma C.1 says nothing at delta = {bound.delta:g}, whatever the overlaps"
    notes = (*bound_notes(bound), *([vacuous] if bound.vacuous else []), *notes)
    lines = [*_lines(bound), *([] if verdict is None else [_verdict_line(verdict)])]
    document = {
        "kind": "jaxaudit bound",
        "schema_version": SCHEMA_VERSION,
        "bound": plain(bound),
        "verdict": None if verdict is None else plain(verdict) | {"text": verdict.text},
        "registered": registered,
        "notes": list(notes),
    }
    lines += [f"note: {note}" for note in notes]
    show("\n".join(map(wrapped, lines)), document, as_json)
    return FALSIFIED if verdict is not None and verdict.falsified else OK


def _verdict(bound: BoundResult, claim: Claim) -> Verdict:
    """The claim, tested at its own delta."""
    at_claim = epsilon_lower_bound(
        bound.overlaps,
        num_groups=bound.num_groups,
        num_guesses=bound.num_guesses,
        delta=claim.delta,
        significance=bound.significance,
        method=bound.method,
        statistic=bound.statistic,
        threshold=bound.threshold,
    )
    p_value = math.exp(at_claim.log_p_value(claim.epsilon, claim.delta))
    return Verdict(
        claim=claim,
        falsified=p_value <= bound.significance,
        p_values={bound.method: p_value},
        levels={bound.method: bound.significance},
        ceiling=at_claim.ceiling,
    )


def _verdict_line(verdict: Verdict) -> str:
    ((method, p_value),) = verdict.p_values.items()
    return f"{verdict.text} (p-value {p_value:.3g}, level {verdict.levels[method]:g})"


def _lines(bound: BoundResult) -> list[str]:
    observed = f"{bound.statistic} overlap {bound.observed:g}"
    if bound.statistic == "tail":
        observed = f"{bound.observed:g} runs with an overlap of at least {bound.threshold}"
    return [
        f"epsilon is at least {bound.epsilon:.4g} at delta = {bound.delta:g}, "
        f"with {100 * (1 - bound.significance):g} % confidence ({bound.method} bound, {bound.statistic})",
        f"ceiling of this design: {bound.ceiling:.4g}",
        f"m = {bound.num_groups}, r = {bound.num_guesses}, L = {bound.num_runs}: {observed}; "
        f"chance gives a mean overlap of {bound.num_guesses / 2:g}",
    ]
