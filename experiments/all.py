"""All CIFAR-100 tables and figures of the paper, one after the other, and a summary of what was expected of them.

    python experiments/all.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it; an interrupted call goes on where it was.
"""

import sys
from collections.abc import Mapping, Sequence

import fig1a_uncertified_clipping
import fig1b_pairwise
import fig1c_rewind
import table1b_cifar100
import table3_scores
import table4_aggregation
import table5_batch_size
import table6_model_clipping
import table7_hessian_noise
from cifar100 import run
from cifar100_cells import Cell
from cifar100_jobs import Lab
from cifar100_page import Check, Page, check_section, markdown_table

SCRIPTS = tuple(
    module.SCRIPT
    for module in (
        table1b_cifar100,
        table7_hessian_noise,
        table3_scores,
        table4_aggregation,
        table5_batch_size,
        table6_model_clipping,
        fig1a_uncertified_clipping,
        fig1b_pairwise,
        fig1c_rewind,
    )
)

_FAR = 10.0
Cells = Sequence[Cell]


def summarise(pages: Sequence[Page], lab: Lab, stem: str) -> str:
    """What was expected of every page, and of all of them together."""
    minutes = sum(lab.seconds.values()) / 60
    parts = [
        f"# {lab.data_name}: what was expected, and what shows",
        f"Preset `{lab.preset.name}`; every table and figure has a page of its own. The {len(lab.seconds)} audits "
        f"behind them took {minutes:.0f} minutes of wall time. Bounds are means over the seeds.",
        *_section("All together", together({page.name: page.cells for page in pages})),
    ]
    for page in pages:
        parts += _section(f"[{page.title}](../{page.name}/{stem}.md)", page.checks)
    return "\n\n".join(parts) + "\n"


def _section(title: str, checks: Sequence[Check]) -> list[str]:
    section = check_section(checks)
    return [f"## {title}", markdown_table(section.header, section.rows)]


def together(cells: Mapping[str, Cells]) -> tuple[Check, ...]:
    """What compares pages, from their cells by the name of the page."""
    clipping = [cell for cell in cells["table6"] if cell.labels["when"] == "at the end"]
    certified = _most([cell for cell in clipping if table6_model_clipping.is_certified(cell)])
    control = _least([cell for cell in clipping if not table6_model_clipping.is_certified(cell)])
    heuristic = _least(
        [cell for cell in cells["table1b"] if cell.labels["method"] not in ("none", "retrain")]
    )
    rewind = _most(cells["fig1c"])
    return (
        Check(
            "without a certificate far more leaks than with one, in the same design: fine-tuning and no unlearning "
            f"show at least {_FAR:g} times as much as any certified clipping (Table 6)",
            control.direct.mean > _FAR * certified.direct.mean,
            f"least {_described(control)}, most of clipping {_described(certified)}",
        ),
        Check(
            "every heuristic of Table 1b shows a larger share of its ceiling than any certified clipping",
            _share(heuristic) > _share(certified),
            f"least {_described(heuristic)}, most of clipping {_described(certified)}",
        ),
        Check(
            "rewind-to-delete shows more than certified clipping (Figure 1c, Table 6)",
            rewind.direct.mean > certified.direct.mean,
            f"most {_described(rewind)} at nominal epsilon {rewind.labels['certified_epsilon']:g}, most of clipping "
            f"{_described(certified)}",
            "its noise is so large at every epsilon that nothing is left to see",
        ),
    )


def _share(cell: Cell) -> float:
    return cell.direct.mean / cell.ceiling


def _most(cells: Cells) -> Cell:
    return max(cells, key=lambda cell: cell.direct.mean)


def _least(cells: Cells) -> Cell:
    return min(cells, key=lambda cell: cell.direct.mean)


def _described(cell: Cell) -> str:
    name = cell.labels.get("method", "rewind-to-delete")
    share = f"{_share(cell):.0%} of the ceiling {cell.ceiling:.2f}"
    return f"{cell.direct.mean:.2f} ({name}, {cell.labels['split']}; {share})"


if __name__ == "__main__":
    sys.exit(run(SCRIPTS, __doc__, summarise=summarise))
