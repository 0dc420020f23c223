"""All CIFAR-100 tables and figures of the paper, one after the other, and a summary of what was expected of them.

    python experiments/all.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it; an interrupted call goes on where it was.
"""

import sys
from collections.abc import Sequence

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
from cifar100_page import Check, Page, check_section, markdown_table
from cifar100_presets import Preset

SCRIPTS = tuple(
    module.SCRIPT
    for module in (
        table1b_cifar100,
        table7_hessian_noise,
        table3_scores,
        table4_aggregation,
        table6_model_clipping,
        fig1a_uncertified_clipping,
        fig1b_pairwise,
        fig1c_rewind,
        table5_batch_size,
    )
)

_FAR = 10.0


def summarise(pages: Sequence[Page], preset: Preset) -> str:
    """What was expected of every page, and of all of them together."""
    parts = [
        "# CIFAR-100: what was expected, and what shows",
        f"Preset `{preset.name}`; every table and figure has a page of its own.",
        *_section("All together", [_certified_against_heuristics(pages)]),
    ]
    for page in pages:
        parts += _section(f"[{page.title}](../{page.name}/{preset.name}.md)", page.checks)
    return "\n\n".join(parts) + "\n"


def _section(title: str, checks: Sequence[Check]) -> list[str]:
    section = check_section(checks)
    return [f"## {title}", markdown_table(section.header, section.rows)]


def _certified_against_heuristics(pages: Sequence[Page]) -> Check:
    named = {page.name: page for page in pages}
    baselines = ("none", "retrain")
    heuristic = min(
        (cell for cell in named["table1b"].cells if cell.labels["method"] not in baselines),
        key=lambda cell: cell.direct.mean,
    )
    certified = max(
        (cell for cell in named["table6"].cells if cell.labels["when"] == "at the end"),
        key=lambda cell: cell.direct.mean,
    )
    return Check(
        f"every heuristic leaks at least {_FAR:g} times as much as any certified clipping",
        heuristic.direct.mean > _FAR * certified.direct.mean,
        f"least heuristic {heuristic.direct.mean:.2f} ({heuristic.labels['method']}, {heuristic.labels['split']}; "
        f"ceiling {heuristic.ceiling:.1f}), most of clipping {certified.direct.mean:.2f} (ceiling of its design, with "
        f"so few groups: {certified.ceiling:.2f})",
    )


if __name__ == "__main__":
    sys.exit(run(SCRIPTS, __doc__, summarise=summarise))
