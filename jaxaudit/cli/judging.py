"""How ``jaxaudit bound`` ends without a report: the verdict on the claim, what is printed, the exit code."""

import math
from collections.abc import Mapping
from typing import Any

from jaxaudit.analysis import Claim, Verdict
from jaxaudit.bound import BoundResult, EvidenceResult
from jaxaudit.cli.common import FALSIFIED, OK, show
from jaxaudit.design import SCHEMA_VERSION
from jaxaudit.report.document import plain
from jaxaudit.report.table import wrapped


def judge(claim: Claim, deciding: Mapping[str, BoundResult | EvidenceResult], level: float) -> Verdict:
    """The verdict of bounds at the claim's delta, each tested at the level.

    Examples
    --------
    >>> from jaxaudit.bound import evidence_lower_bound
    >>> soft = evidence_lower_bound([9.0, 8.0, 7.0], num_groups=20)
    >>> judge(Claim(soft.epsilon - 0.1), {"soft": soft}, level=0.05).falsified
    True
    """
    p_values = {
        name: math.exp(bound.log_p_value(claim.epsilon, claim.delta)) for name, bound in deciding.items()
    }
    return Verdict(
        claim=claim,
        falsified=any(p_value <= level for p_value in p_values.values()),
        p_values=p_values,
        levels=dict.fromkeys(deciding, level),
        ceiling=max(bound.ceiling for bound in deciding.values()),
    )


def conclude(
    lines: list[str],
    document: dict[str, Any],
    verdict: Verdict | None,
    registered: bool,
    notes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print bounds, verdict and notes, and return the exit code."""
    document = {
        "kind": "jaxaudit bound",
        "schema_version": SCHEMA_VERSION,
        **document,
        "verdict": None if verdict is None else plain(verdict) | {"text": verdict.text},
        "registered": registered,
        "notes": list(notes),
    }
    sentences = [*lines, *([] if verdict is None else [_sentence(verdict)])]
    sentences += [f"note: {note}" for note in notes]
    show("\n".join(map(wrapped, sentences)), document, as_json)
    return FALSIFIED if verdict is not None and verdict.falsified else OK


def _sentence(verdict: Verdict) -> str:
    p_values = ", ".join(
        f"{name}: p-value {p_value:.3g}, level {verdict.levels[name]:g}"
        for name, p_value in verdict.p_values.items()
    )
    return f"{verdict.text} ({p_values})"
