"""Figure 1c of the paper: rewind-to-delete over the certified epsilon, uniform and adversarial split.

    python experiments/fig1c_rewind.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it. Paper (no numbers printed): small bounds that
grow with epsilon, uniform above adversarial.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cifar100 import Script, main
from cifar100_cells import Cell, looks, measure
from cifar100_checks import pairs_check
from cifar100_jobs import SPLITS, JobKey, Lab, joint_key, rewind_sigmas
from cifar100_page import COLORS, Check, Page, Section, line
from cifar100_presets import Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def keys(preset: Preset) -> list[JobKey]:
    """One audit per split and seed."""
    return [joint_key(preset, "rewind", split, seed) for seed in preset.seeds for split in SPLITS]


def build(lab: Lab) -> Page:
    """Audit, and read the look at every amount of noise."""
    preset = lab.preset
    num_forget = preset.num_candidates // 2
    num_retain = len(lab.images.train_labels) - preset.num_candidates
    sigmas = rewind_sigmas(preset, num_retain, num_forget)
    cells = {split: _cells(lab, split, sigmas) for split in SPLITS}
    rows = [
        [
            f"{cell.labels['certified_epsilon']:g}",
            f"{cell.labels['sigma']:.3g}",
            split,
            cell.theorem.text(),
            cell.direct.text(),
            cell.accuracy_text,
        ]
        for split, own in cells.items()
        for cell in own
    ]
    header = ("nominal epsilon", "sigma", "split", "Theorem 4.2", "direct", "ours: R/F/T")
    caption = (
        f"Lower bounds on epsilon, m = r = {preset.joint_groups}, L = {preset.figure_audit_runs}, ceiling "
        f"{cells['uniform'][0].ceiling:.2f}"
    )
    return Page(
        name="fig1c",
        title="Figure 1c: rewind-to-delete",
        script="fig1c_rewind.py",
        sections=(Section(caption, header, rows),),
        cells=tuple(cell for own in cells.values() for cell in own),
        checks=_checks(cells),
        draw=lambda panels: _draw(panels, cells),
        notes=(
            f"Full-batch training of {preset.rewind.num_steps} steps, {preset.rewind.num_rewound} of them rewound. L "
            "and G are estimates, so epsilon is nominal. The noise is that of the settings alone, the same for all "
            "runs, and every run draws its own; the paper's code caches one draw per sign vector and counts it up to "
            "500 times, so that its bounds are not valid at 95 %. Rewinding is done once per run, and noise is added "
            "little by little, from the largest epsilon to the smallest.",
        ),
    )


def _cells(lab: Lab, split: str, sigmas: Sequence[float]) -> list[Cell]:
    """By rising epsilon; looks come with rising noise."""
    preset = lab.preset
    results = [
        looks(lab.audit(joint_key(preset, "rewind", split, seed)), "rewind")  # type: ignore[arg-type]
        for seed in preset.seeds
    ]
    cells = []
    for place, (epsilon, sigma) in enumerate(zip(reversed(preset.rewind_epsilons), sigmas)):
        labels = {"split": split, "certified_epsilon": epsilon, "sigma": sigma}
        cells.append(measure([own[place] for own in results], labels))
    return cells[::-1]


def _checks(cells: dict[str, list[Cell]]) -> tuple[Check, ...]:
    everything = [cell for own in cells.values() for cell in own]
    excess = max(everything, key=lambda cell: cell.direct.mean - cell.labels["certified_epsilon"])
    ends = {split: (own[-1].direct.mean, own[0].direct.mean) for split, own in cells.items()}
    splits = {
        f"epsilon = {one.labels['certified_epsilon']:g}": (one.direct.mean, other.direct.mean)
        for one, other in zip(*cells.values())
    }
    return (
        Check(
            "no bound is above the nominal epsilon",
            excess.direct.mean <= excess.labels["certified_epsilon"],
            f"nearest: {excess.direct.text()} at {excess.labels['certified_epsilon']:g}",
        ),
        pairs_check("the bound at the largest epsilon is at least that at the smallest", ends),
        pairs_check("uniform is above adversarial at most epsilons", splits, share=0.5),
    )


def _draw(panels: "Sequence[Axes]", cells: dict[str, list[Cell]]) -> None:
    axes = panels[0]
    for (split, own), color in zip(cells.items(), COLORS):
        epsilons = [cell.labels["certified_epsilon"] for cell in own]
        line(axes, epsilons, own, f"{split}, direct", color)
        line(axes, epsilons, own, f"{split}, Theorem 4.2", color, "--", of="theorem")
    axes.axhline(cells["uniform"][0].ceiling, color="#999999", linestyle=":", label="ceiling (direct)")
    axes.set(xscale="log", xlabel="nominal epsilon", ylabel="lower bound on epsilon")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
