"""Tables 3 to 5 of the paper, analysed again without training: the same overlaps, the direct bound.

    python experiments/reanalysis.py [--preset paper|smoke] [--out DIR] [--quiet]

Cost: about a minute on 2 slow CPU cores. The paper does not print overlaps; they are recovered by inverting
Theorem 4.2. Paper -> direct: ascent, uniform split, r = 2000: 90.11 -> 182.7; IDA with q = 1, adversarial split,
r = 1000: 0.41 -> 1.41.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import reanalysis_page
from command_line import carry_out

from jaxaudit.bound import epsilon_lower_bound
from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.provenance import provenance

HERE = Path(__file__).parent
PRINTED = HERE / "paper_tables_3_to_5.json"
NUM_RUNS = 10
SIGNIFICANCE = 0.05
DELTA = 1e-5
"""The delta at which the direct bound is shown beside its value at delta = 0."""


@dataclass(frozen=True)
class Options:
    """Options of the script."""

    preset: Literal["paper", "smoke"] = "paper"
    """Every printed cell, or (a test) those with at most 450 groups."""
    out: Path | None = None
    """Folder for JSON, page and figure. Default: experiments/results/reanalysis; for smoke nothing is written."""
    quiet: bool = False
    """Show no progress."""


@dataclass(frozen=True)
class Cell:
    """One printed number of the paper."""

    table: str
    method: str
    split: str
    score: str
    statistic: Literal["mean", "median"]
    num_groups: int
    num_guesses: int
    printed: float
    """Half the LDP epsilon of Theorem 4.2, which is the epsilon of a claim."""
    resolution: float
    """Step between numbers that the table can print."""

    @property
    def series(self) -> tuple[str, ...]:
        """What the cells of one curve over r have in common."""
        return self.table, self.method, self.split, self.score, self.statistic, str(self.num_groups)


@dataclass(frozen=True)
class Row:
    """One cell and what its overlaps support; every epsilon is that of a claim, at 95 % confidence."""

    cell: Cell
    overlap: float
    """Mean or (rounded up) median of the overlaps; the smallest that the printed number allows."""
    num_overlaps: int
    """How many overlaps the printed number allows; more than one where it is 0."""
    theorem: float
    """Theorem 4.2 at this overlap, to compare with the printed number."""
    theorem_at_delta: float
    """Lemma C.1 at `DELTA`."""
    direct: float
    """The direct bound; where 0 was printed, at the largest overlap that would have printed 0."""
    direct_at_delta: float
    """The direct bound at `DELTA`."""
    direct_all_looks: float
    """The direct bound at a significance that is divided by the number of cells of the curve."""
    num_looks: int
    """The number of cells of the curve."""


def printed_cells() -> list[Cell]:
    """Every cell of Tables 3, 4 and 5 that has a number."""
    document = json.loads(PRINTED.read_text())
    return [Cell(**dict(zip(document["columns"], values, strict=True))) for values in document["cells"]]


@cache
def bound(
    method: Literal["direct", "theorem-4.2"],
    statistic: Literal["mean", "median"],
    design: tuple[int, int],
    total: int,
    delta: float = 0.0,
    significance: float = SIGNIFICANCE,
) -> float:
    """The bound for 10 runs whose overlaps sum to ``total`` (mean), or are all ``total / 10`` (median)."""
    each, rest = divmod(total, NUM_RUNS)
    return epsilon_lower_bound(
        [each + 1] * rest + [each] * (NUM_RUNS - rest),
        num_groups=design[0],
        num_guesses=design[1],
        delta=delta,
        significance=significance,
        method=method,
        statistic=statistic,
    ).epsilon


def recover(cell: Cell) -> tuple[int, int]:
    """The smallest sum of ten overlaps that prints the cell, and how many there are.

    Theorem 4.2 depends on ten overlaps through their sum (mean) or through the median, rounded up, only, and
    increases with it, so that it can be inverted. A median is taken for ten equal overlaps: steps of 10.

    Raises
    ------
    InputError
        No overlaps print this number.
    """
    step = 1 if cell.statistic == "mean" else NUM_RUNS
    half, design = cell.resolution / 2, (cell.num_groups, cell.num_guesses)
    most = NUM_RUNS * cell.num_guesses // step

    def theorem(index: int) -> float:
        return bound("theorem-4.2", cell.statistic, design, step * index)

    first = _first(most, lambda index: theorem(index) >= cell.printed - half)
    after = _first(most, lambda index: theorem(index) > cell.printed + half)
    if after <= first:
        raise InputError(f"no overlaps print {cell.printed} at m = {design[0]}, r = {design[1]}")
    return step * first, after - first


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """The first of 0..most where a monotone condition holds, most + 1 if nowhere."""
    low, high = 0, most + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def analyse(cell: Cell, num_looks: int) -> Row:
    """The bounds of one cell, at the overlaps that its number reveals."""
    total, number = recover(cell)
    step = 1 if cell.statistic == "mean" else NUM_RUNS
    # Nothing is known of a cell that prints 0 but that its overlaps are no larger than this.
    known = total if cell.printed > 0 else total + step * (number - 1)
    at = (cell.statistic, (cell.num_groups, cell.num_guesses), known)
    return Row(
        cell=cell,
        overlap=known / NUM_RUNS,
        num_overlaps=number,
        theorem=bound("theorem-4.2", *at),
        theorem_at_delta=bound("theorem-4.2", *at, delta=DELTA),
        direct=bound("direct", *at),
        direct_at_delta=bound("direct", *at, delta=DELTA),
        direct_all_looks=bound("direct", *at, significance=SIGNIFICANCE / num_looks),
        num_looks=num_looks,
    )


def run(cells: Sequence[Cell], reporter: Reporter) -> list[Row]:
    """All cells; those that several tables print are computed once."""
    looks = Counter(cell.series for cell in cells)
    rows = []
    with reporter.task("cells", len(cells)) as advance:
        for cell in cells:
            rows.append(analyse(cell, looks[cell.series]))
            advance(1)
    return rows


def save(rows: list[Row], options: Options) -> list[Path]:
    """Write JSON, Markdown page and figure; a smoke test writes only where it is told to."""
    if options.out is None and options.preset == "smoke":
        return []
    folder = options.out or HERE / "results" / "reanalysis"
    folder.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {
        "title": reanalysis_page.TITLE,
        "preset": options.preset,
        "num_runs": NUM_RUNS,
        "significance": SIGNIFICANCE,
        "delta": DELTA,
        "rows": [asdict(row) for row in rows],
        "provenance": provenance(),
    }
    contents = {
        "reanalysis.json": json.dumps(document, indent=1, allow_nan=False).encode() + b"\n",
        "reanalysis.md": reanalysis_page.page(rows, options.preset, DELTA).encode(),
        "reanalysis.png": reanalysis_page.figure(rows),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the script; returns the exit code, 2 for bad input."""
    return carry_out(Options, __doc__, argv, _show)


def _show(options: Options) -> None:
    cells = [cell for cell in printed_cells() if options.preset == "paper" or cell.num_groups <= 450]
    rows = run(cells, default_reporter(options.quiet))
    written = save(rows, options)
    print(reanalysis_page.text(rows))
    for path in written:
        print(f"written: {path}")


if __name__ == "__main__":
    sys.exit(main())
