"""The page of one half of Table 2: text table, Markdown, figure."""

import math
import textwrap
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from table2 import Experiment, Options, Row

_DOTS_PER_INCH = 120
_LEAST_SHOWN = 0.01
_DEFINITION = """
Definition H.1 of the paper speaks of *one* algorithm and two ways to call it: on the model that was trained on
everything, with a request to forget D_f; and on the model that was trained on the rest alone, with an empty
request. If the two outputs are (epsilon, delta)-indistinguishable, then whoever sees the result cannot tell
whether the forgotten records ever took part. That is what a person who asked to be forgotten cares about.

The audit plays exactly this game: a fair coin chooses one of the two calls, the auditor sees the published
weights and says which call it was. The share of right answers is bounded by the epsilon of the claim itself.

**Why nothing is halved here.** The audits of networks compare *two unlearned* models, which forgot different
records. The claim says only that each of them is close to the same retrained model, so that they are within
twice epsilon of each other, and the paper divides its bounds by 2. Here one side of the comparison *is* the
reference of the claim: there is no detour, and hence no factor 2 and no larger delta.

**What the columns are.** *certified*: what the noise was calibrated to promise. *true*: the exact epsilon, at
this delta, of the two Gaussians that the mechanism really produces on this data; more than this no auditor can
find, with any number of draws. *threshold*: what we found with the threshold that calibration draws chose.
*baseline*: the same scores cut at likelihood ratio 1, which takes the likelier model, as the paper's pairwise
auditor does. From the guesses of the baseline: *share*, the tight bound from the share of right guesses;
*direct*, our bound for m = 2, r = 2, which does not use that one side is the reference; *joint*, the paper's
bound for m = 2, r = 2. Every column holds at 95 % confidence by itself; choose beforehand which one counts.

**Certified minus true** is what the certificate gives away on this data: real unlearning, better than promised.
**True minus found** is the auditor's slack. Where the true epsilon is large, the number of draws is the limit:
errorless guesses on n draws per class show at most about log(n / 3.7). The column *draws* says how many draws
per class the true epsilon would take at least (bold where there were fewer; *few*: less than a hundredth of those
that were made).
"""


def text_table(title: str, rows: "Sequence[Row]") -> str:
    """The table for a terminal, the paper's values beside ours."""
    header = ["certified", "sigma", "true", "threshold", "baseline", "share", "direct", "joint"]
    paper = ["paper: sigma", "pairwise", "joint", "within 3 s.e."]
    cells = [
        [*_own(row), *((_sigma(row.printed.sigma), *_beside(row)) if row.printed else [""] * 4)]
        for row in rows
    ]
    if not any(row.printed for row in rows):
        paper, cells = [], [line[: len(header)] for line in cells]
    widths = [max(map(len, column)) for column in zip([*header, *paper], *cells)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells]
    head = "  ".join(cell.rjust(width) for cell, width in zip([*header, *paper], widths))
    notes = (
        "epsilon, each at 95 % confidence. true: exact for these Gaussians. threshold: ours, chosen on "
        "calibration draws; baseline: likelihood ratio 1; share, direct, joint: from the baseline's guesses. "
        "within 3 s.e.: the paper's two bounds, of the mean of repeated audits like the paper's."
    )
    return "\n".join([title, head, "-" * len(head), *lines, *textwrap.wrap(notes, len(head))])


def _own(row: "Row") -> list[str]:
    found = (row.limit, row.optimised, row.baseline, row.accuracy, row.direct, row.joint)
    return [f"{row.certified:g}", _sigma(row.sigma), *(f"{value:.3f}" for value in found)]


def _beside(row: "Row") -> tuple[str, str, str]:
    assert row.printed is not None
    return f"{row.printed.pairwise:g}", f"{row.printed.joint:g}", "yes" if _agrees(row) else "NO"


def _agrees(row: "Row") -> bool:
    pairwise, joint = _distances(row)
    return pairwise <= 3 and joint <= 3


def _distances(row: "Row") -> tuple[float, float]:
    assert row.printed is not None
    return row.pairwise_audits.distance(row.printed.pairwise), row.joint_audits.distance(row.printed.joint)


def _sigma(value: float) -> str:
    return f"{value:.4f}" if value < 100 else f"{value:.1f}"


def page(experiment: "Experiment", rows: "Sequence[Row]", options: "Options", figure_name: str) -> str:
    """The Markdown page."""
    parts = [
        f"# {experiment.title}",
        f"    python experiments/{experiment.script} --preset {options.preset}",
        _answer(rows),
        f"![certified and audited epsilon]({figure_name})",
        "Certified epsilon against what is true and what was found, both axes logarithmic. Points at 0 are "
        "left out. The dotted line is the most that this number of draws can show.",
        "## Certified, true, found",
        _results(rows),
    ]
    if any(row.printed for row in rows):
        parts += ["## Beside the paper", _comparison(rows)]
    parts += [
        "## Parameters",
        _table(["parameter", "value"], [[name, str(value)] for name, value in experiment.parameters.items()]),
        *experiment.notes,
        "## What is compared, and why nothing is halved",
        _DEFINITION.strip(),
    ]
    return "\n\n".join(parts) + "\n"


def _answer(rows: "Sequence[Row]") -> str:
    question = "**How much of the gap is real unlearning, and how much the auditor's slack?**"
    real = [row for row in rows if row.limit > 0]
    kept = _range([row.limit / row.certified for row in real])
    lines = [
        f"Certified minus true is real unlearning: the true epsilon is {kept} of the certified one"
        + ("." if len(real) == len(rows) else f", and 0 at certified {_listed(rows, real)}.")
    ]
    enough = [row for row in real if row.optimised > 0 and row.limit <= row.ceiling]
    if enough:
        ours, baseline = (
            _range([value(row) / row.limit for row in enough])
            for value in (lambda row: row.optimised, lambda row: row.baseline)
        )
        lines.append(
            "True minus found is slack. Where the draws suffice and anything is found (certified "
            f"{enough[0].certified:g} to {enough[-1].certified:g}), the threshold from calibration finds "
            f"{ours} of the true epsilon, and likelihood ratio 1 finds {baseline}."
        )
    if any(row.limit > row.ceiling for row in rows):
        first = next(row for row in rows if row.limit > row.ceiling)
        lines.append(
            f"From certified {first.certified:g} on, the true epsilon is more than the number of draws can "
            f"show ({first.ceiling:.2f}), whatever the auditor does."
        )
    return question + "\n\n" + "\n".join(f"* {line}" for line in lines)


def _range(shares: "Sequence[float]") -> str:
    texts = [f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}" for share in shares]
    low, high = texts[shares.index(min(shares))], texts[shares.index(max(shares))]
    return f"{low} %" if low == high else f"{low} to {high} %"


def _listed(rows: "Sequence[Row]", real: "Sequence[Row]") -> str:
    return ", ".join(f"{row.certified:g}" for row in rows if row not in real)


def _results(rows: "Sequence[Row]") -> str:
    header = ["certified", "sigma", "true", "threshold", "baseline", "share", "direct", "joint", "draws"]
    body = []
    for row in rows:
        body.append([*_own(row), _draws(row)])
    return _table(header, body)


def _draws(row: "Row") -> str:
    """Draws per class that the true epsilon takes, where that is near or above the number there was."""
    if row.limit < row.ceiling - math.log(100):
        return "few"
    exponent = row.log10_draws_needed
    needed = f"{math.ceil(10**exponent):,}" if exponent < 6 else f"10^{exponent:.1f}"
    return f"**{needed}**" if row.limit > row.ceiling else needed


def _comparison(rows: "Sequence[Row]") -> str:
    header = ["certified", "sigma", "paper", "pairwise", "paper", "s.e. off", "joint", "paper", "s.e. off"]
    body = []
    for row in rows:
        if row.printed is None:
            continue
        cells = [f"{row.certified:g}", _sigma(row.sigma), f"{row.printed.sigma:.4f}"]
        printed = (row.printed.pairwise, row.printed.joint)
        for audits, value, off in zip((row.pairwise_audits, row.joint_audits), printed, _distances(row)):
            cells += [f"{audits.mean:.4f} ± {audits.standard_error:.4f}", f"{value:g}", _off(off)]
        body.append(cells)
    text = (
        "Mean and standard error (standard deviation of one audit, calibration included) over independent "
        "repetitions of the paper's two audits; the paper's value; its distance from the mean in standard "
        "errors, rounding to the printed digits allowed for. Up to 3 counts as agreement. Most of the "
        "variation comes from calibration: 500 draws per model leave the threshold uncertain."
    )
    return f"{text}\n\n{_table(header, body)}"


def _off(distance: float) -> str:
    return f"{distance:.1f}" if distance <= 3 else f"**{'>100' if distance > 100 else f'{distance:.1f}'}**"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


markdown_table = _table


def figure(rows: "Sequence[Row]", title: str) -> bytes:
    """Certified against audited epsilon, log-log, as PNG."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(7.5, 5), layout="constrained")
    axes = canvas.subplots()
    certified = [row.certified for row in rows]
    axes.plot(certified, certified, color="#666666", linestyle="--", label="certified")
    series: list[tuple[str, str, str, Callable[[Row], float | None]]] = [
        ("true epsilon of the two Gaussians", "#009E73", "-s", lambda row: row.limit),
        ("found: threshold from calibration", "#0072B2", "-o", lambda row: row.optimised),
        ("found: likelihood ratio 1 (baseline)", "#D55E00", "-^", lambda row: row.baseline),
        ("found: joint, m = r = 2 (paper's bound)", "#CC79A7", "-v", lambda row: row.joint),
        ("paper, pairwise", "black", "x", lambda row: row.printed and row.printed.pairwise),
        ("paper, joint", "black", "+", lambda row: row.printed and row.printed.joint),
    ]
    for label, color, style, value in series:
        values = [value(row) or math.nan for row in rows]
        if not all(map(math.isnan, values)):
            axes.plot(certified, values, style, color=color, label=label, markersize=6, zorder=3)
    axes.axhline(rows[0].ceiling, color="#999999", linestyle=":", label="most that the draws can show")
    axes.set(xscale="log", yscale="log", xlabel="certified epsilon", ylabel="epsilon", title=title)
    axes.set_ylim(bottom=_LEAST_SHOWN)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(color="#dddddd")
    axes.legend(frameon=False, fontsize=8)
    file = BytesIO()
    canvas.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()
