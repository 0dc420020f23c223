"""The table of results: its cells, for every format, and its plain-text form for a terminal."""

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxaudit.analysis import Verdict
    from jaxaudit.report.results import AuditReport, MethodResult

_METHOD_WIDTH = 18
_FAILED = " #"
_TERMINAL_WIDTH = 106  # of the table
_LOOKS = (
    " After n updates: an iterate on the way, of the same runs; each bound is valid alone, the best of several is "
    "not."
)


def number(value: float) -> str:
    """An epsilon or a distance with about three digits.

    Examples
    --------
    >>> number(0.0), number(0.4567), number(36.08), number(1234.5)
    ('0', '0.46', '36.1', '1234')
    """
    if value == 0:
        return "0"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def short(value: float) -> str:
    """A number as short as possible.

    Examples
    --------
    >>> short(1e-5), short(0.0), short(0.01)
    ('1e-5', '0', '0.01')
    """
    return f"{value:g}".replace("e-0", "e-")


def verdict_word(verdict: "Verdict | None") -> str:
    """The verdict in two or three words.

    Examples
    --------
    >>> verdict_word(None)
    'no claim'
    """
    if verdict is None:
        return "no claim"
    if verdict.falsified:
        return "FALSIFIED"
    return "above ceiling" if verdict.claim.epsilon >= verdict.ceiling else "not falsified"


def header_rows(report: "AuditReport") -> tuple[list[str], list[str]]:
    """Titles of the columns, and what each of them is measured in."""
    analysis = report.methods[0].analysis
    deltas = f"d={short(analysis.direct.delta)} | {short(analysis.direct_small_delta.delta)}"
    decides = {"direct": ("*", ""), "soft": ("", "*"), "both": ("*", "*")}[report.design.method]
    titles = ["method", f"eps direct{decides[0]}", f"eps soft{decides[1]}", "Thm 4.2", "ceiling", "overlap"]
    units = ["", deltas, deltas, "eps, d=0", "of eps*", "mean/r"]
    return [*titles, "accuracy in %", "verdict"], [*units, "retain/forg./test", ""]


def row(method: "MethodResult") -> list[str]:
    """The cells of one method, in the order of `header_rows`."""
    analysis = method.analysis
    overlap = f"{analysis.overlaps.mean():.1f}/{analysis.selection.num_guesses}"
    # Guesses without evidence are arbitrary, and so is what they hit.
    ceiling, overlap = ("-", "-") if analysis.no_evidence else (number(analysis.ceiling), overlap)
    return [
        method.title,
        f"{number(analysis.direct.epsilon)} | {number(analysis.direct_small_delta.epsilon)}",
        f"{number(analysis.soft.epsilon)} | {number(analysis.soft_small_delta.epsilon)}",
        number(analysis.paper.epsilon),
        ceiling,
        overlap + (_FAILED if analysis.failed_audited else ""),
        accuracies(method),
        verdict_word(analysis.verdict),
    ]


def accuracies(method: "MethodResult") -> str:
    """The three accuracies in percent, or a dash."""
    return "-" if method.accuracies is None else "/".join(f"{100 * value:.1f}" for value in method.accuracies)


def certified_words(method: "MethodResult") -> str:
    """The certificate in a few words."""
    certificate = method.certificate
    if certificate is None:
        return "-"
    if certificate.epsilon is None:
        return "no"
    return f"({short(certificate.epsilon)}, {short(certificate.delta)})"


def confidence(report: "AuditReport") -> str:
    """The confidence of each bound, in words."""
    return f"{100 * (1 - report.design.significance):g} %"


def failures(method: "MethodResult") -> list[str]:
    """How many audited runs failed, in one sentence, if any did."""
    num_failed = len(method.analysis.failed_audited)
    if not num_failed:
        return []
    return [f"{num_failed} of {method.audited.num_runs} audited runs failed and count as no evidence"]


def footnote(report: "AuditReport") -> str:
    """What the marks in the table mean."""
    failed = any(method.analysis.failed_audited for method in report.methods)
    return (
        f"eps: lower bound on the true epsilon at confidence {confidence(report)}, d: its delta. "
        "* decides the verdict; the other columns are informational."
        + (f" {_FAILED.strip()} some audited runs failed and count as overlap 0." if failed else "")
        + (_LOOKS if any(method.recorded_at is not None for method in report.methods) else "")
    )


def report_table(report: "AuditReport") -> str:
    """The results as plain text: one row per method, then what must be noted."""
    lines = _grid([*header_rows(report)], [row(method) for method in report.methods])
    lines.append(wrapped(footnote(report), indent=""))
    for method in report.methods:
        lines += [wrapped(f"{method.title}: {note}") for note in method.notes]
    return "\n".join(lines)


def wrapped(text: str, indent: str = "  ") -> str:
    """One paragraph at the width of the table; lines after the first are indented.

    Examples
    --------
    >>> print(wrapped("note: " + 20 * "every word stays whole; "))
    note: every word stays whole; every word stays whole; every word stays whole; every word stays whole;
      every word stays whole; ...
    """
    return textwrap.fill(
        text, _TERMINAL_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _grid(header: list[list[str]], rows: list[list[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in header + rows) for column in range(len(rows[0]))]
    widths[0] = min(widths[0], _METHOD_WIDTH)
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    body = [line for cells in rows for line in _lines(cells, widths)]
    return [*(line for cells in header for line in _lines(cells, widths)), rule, *body, rule]


def _lines(cells: list[str], widths: list[int]) -> list[str]:
    first, *continued = textwrap.wrap(cells[0], widths[0]) or [""]
    cells = [first.ljust(widths[0]), *(cell.ljust(width) for cell, width in zip(cells[1:], widths[1:]))]
    return ["  ".join(cells).rstrip(), *(f"  {line}" for line in continued)]
