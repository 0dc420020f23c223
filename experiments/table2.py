"""What the scripts of Table 2 share: options, the audit of every row, and the page that shows it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import table2_page
from command_line import carry_out

from jaxaudit.bound.pairwise import log10_draws_needed
from jaxaudit.checks import check_integer
from jaxaudit.convex import GaussianPair, audit_gaussian_pair, joint_epsilon, repeat_baseline
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.provenance import provenance

HERE = Path(__file__).parent
DELTA = 0.01
"""Delta of every certificate and of every bound (in the paper's own numbers too)."""
SIGNIFICANCE = 0.05
NUM_DRAWS, SMOKE_DRAWS = 200_000, 4_000
"""Evaluation draws of an audit, the paper's 2L; ours has as many calibration draws."""
PAPER_CALIBRATION = 500
"""Calibration draws per model in the paper's own runs (its text: Gamma = 50)."""
NUM_REPEATS = 20
"""Independent repetitions of the paper's audit, for its standard error."""


@dataclass(frozen=True)
class Options:
    """Options of the scripts of Table 2."""

    preset: Literal["paper", "text", "smoke"] = "paper"
    """Parameters that the paper's numbers were made with, those that its text prints, or a test of seconds."""
    out: Path | None = None
    """Folder for JSON, page and figure. Default: experiments/results/table2; for smoke nothing is written."""
    seed: int = 0
    """Seed of the auditor's draws, at least 0."""
    quiet: bool = False
    """Show no progress."""


class Printed(NamedTuple):
    """One row of the paper's table."""

    sigma: float
    pairwise: float
    joint: float


class Varying(NamedTuple):
    """A bound over independent audits."""

    mean: float
    standard_error: float
    """Standard deviation of one audit."""

    def distance(self, printed: float) -> float:
        """Of a printed value from the mean, in standard errors; what rounding to 4 digits can do is free."""
        excess = max(abs(printed - self.mean) - 5e-5, 0.0)
        return excess / max(self.standard_error, 1e-12)


@dataclass(frozen=True)
class Row:
    """One certified epsilon: what is true, what was found, what the paper printed."""

    certified: float
    sigma: float
    limit: float
    optimised: float
    baseline: float
    accuracy: float
    direct: float
    joint: float
    joint_at_delta_0: float
    ceiling: float
    log10_draws_needed: float
    pairwise_audits: Varying
    joint_audits: Varying
    printed: Printed | None


@dataclass(frozen=True)
class Experiment:
    """One table: the pair of models, the rows, and what the page says about them."""

    name: str
    """Start of the file names."""
    title: str
    script: str
    pair: GaussianPair
    certified: tuple[float, ...]
    table: Literal["2a", "2b"] | None
    """Which printed table to compare with."""
    parameters: dict[str, Any]
    """Parameters of the problem, and constants."""
    notes: tuple[str, ...]
    """Paragraphs and tables (Markdown) about parameters and slips."""
    details: dict[str, Any]
    """For the JSON file only."""


def printed_rows(table: str) -> dict[float, Printed]:
    """The paper's table by certified epsilon."""
    document = json.loads((HERE / "paper_table2.json").read_text())
    return {row[0]: Printed(*row[1:]) for row in document[table]}


def run_rows(experiment: Experiment, options: Options, reporter: Reporter) -> list[Row]:
    """Audit every row, each with random numbers of its own."""
    check_integer("seed", options.seed, low=0)
    smoke = options.preset == "smoke"
    num_draws, num_repeats = (SMOKE_DRAWS, 3) if smoke else (NUM_DRAWS, NUM_REPEATS)
    # So few draws show less than the paper's: no comparison.
    printed = printed_rows(experiment.table) if experiment.table and not smoke else {}
    streams = np.random.default_rng(options.seed).spawn(len(experiment.certified))
    rows = []
    with reporter.task(experiment.name, len(streams)) as advance:
        for certified, stream in zip(experiment.certified, streams):
            rows.append(
                _row(experiment.pair, certified, stream, num_draws, num_repeats, printed.get(certified))
            )
            advance(1)
    return rows


def _row(
    pair: GaussianPair,
    certified: float,
    stream: np.random.Generator,
    num_draws: int,
    num_repeats: int,
    printed: Printed | None,
) -> Row:
    sigma = pair.sigma(certified, DELTA)
    once, again = stream.spawn(2)
    common = {"delta": DELTA, "significance": SIGNIFICANCE, "num_draws": num_draws}
    audit = audit_gaussian_pair(once, pair, sigma, num_calibration=num_draws // 2, **common)
    repeated = repeat_baseline(
        again, pair, sigma, num_repeats=num_repeats, num_calibration=PAPER_CALIBRATION, **common
    )
    means, errors = repeated.mean(axis=0).tolist(), repeated.std(axis=0, ddof=1).tolist()
    return Row(
        certified=certified,
        sigma=sigma,
        limit=audit.limit,
        optimised=audit.optimised.epsilon,
        baseline=audit.optimised.baseline or 0.0,
        accuracy=audit.accuracy.epsilon,
        direct=audit.direct,
        joint=audit.printed,
        joint_at_delta_0=joint_epsilon(
            audit.accuracy.num_right, num_draws, delta=0.0, significance=SIGNIFICANCE
        ),
        ceiling=audit.optimised.ceiling,
        log10_draws_needed=log10_draws_needed(audit.limit, delta=DELTA, significance=SIGNIFICANCE),
        pairwise_audits=Varying(means[0], errors[0]),
        joint_audits=Varying(means[1], errors[1]),
        printed=printed,
    )


def main(build: Callable[[Options], Experiment], description: str, argv: Sequence[str] | None = None) -> int:
    """Carry out one script; returns the exit code, 2 for bad input."""

    def show(options: Options) -> None:
        experiment = build(options)
        rows = run_rows(experiment, options, default_reporter(options.quiet))
        written = save(experiment, rows, options)
        print(table2_page.text_table(experiment.title, rows))
        for path in written:
            print(f"written: {path}")

    return carry_out(Options, description, argv, show)


def save(experiment: Experiment, rows: list[Row], options: Options) -> list[Path]:
    """Write JSON, Markdown page and figure; a smoke test writes only where it is told to."""
    if options.out is None and options.preset == "smoke":
        return []
    folder = options.out or HERE / "results" / "table2"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{experiment.name}_{options.preset}"
    document = {
        "title": experiment.title,
        "preset": options.preset,
        "seed": options.seed,
        "delta": DELTA,
        "significance": SIGNIFICANCE,
        "parameters": experiment.parameters,
        "rows": [_named(row) for row in rows],
        "details": experiment.details,
        "provenance": provenance(),
    }
    contents = {
        f"{stem}.json": json.dumps(document, indent=1, allow_nan=False).encode() + b"\n",
        f"{stem}.md": table2_page.page(experiment, rows, options, f"{stem}.png").encode(),
        f"{stem}.png": table2_page.figure(rows, experiment.title),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def _named(row: Row) -> dict[str, Any]:
    """The row for JSON: named tuples as objects."""
    tuples = {name: value._asdict() for name, value in vars(row).items() if isinstance(value, tuple)}
    return {**asdict(row), **tuples}
