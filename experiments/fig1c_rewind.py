"""Figure 1c of the paper: rewind-to-delete over the certified epsilon, uniform and adversarial split.

    python experiments/fig1c_rewind.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it. Paper (no numbers printed): small bounds that
grow with epsilon, uniform above adversarial.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cifar100 import Script, main
from cifar100_cells import Cell, Spread, looks, measure
from cifar100_checks import pairs_check
from cifar100_jobs import SPLITS, JobKey, Lab, Split, joint_key
from cifar100_methods import rewind_sigmas
from cifar100_page import COLORS, Check, Page, Section, line
from cifar100_presets import Preset

from jaxaudit.unlearn.rewind import RewindSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def keys(preset: Preset) -> list[JobKey]:
    """One audit per split and seed."""
    return [joint_key(preset, "rewind", split, seed) for seed in preset.rewind_seeds for split in SPLITS]


def build(lab: Lab) -> Page:
    """Audit, and read the look at every amount of noise."""
    preset = lab.preset
    cells = {split: _cells(lab, split) for split in SPLITS}
    rows = [
        [
            f"{cell.labels['certified_epsilon']:g}",
            Spread(cell.labels["sigma"]).text(),
            split,
            cell.theorem.text(),
            cell.direct.text(),
            cell.accuracies_text,
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
            f"Full-batch training of {preset.rewind.num_steps} steps, {preset.rewind.num_rewound} of them rewound, on "
            f"{len(preset.rewind_seeds)} seeds. "
            f"{_constants(cells)} They are estimates at the starting point, not bounds, so epsilon is nominal.",
            "The noise is that of the settings alone, the same for all "
            "runs, and every run draws its own; the paper's code caches one draw per sign vector and counts it up to "
            "500 times, so that its bounds are not valid at 95 %. Rewinding is done once per run, and noise is added "
            "little by little, from the largest epsilon to the smallest.",
        ),
    )


def _constants(cells: dict[str, list[Cell]]) -> str:
    """L and G of every split, in words."""
    found = (
        f"{split}: L = {Spread(own[0].labels['L']).text()}, G = {Spread(own[0].labels['G']).text()}"
        for split, own in cells.items()
    )
    return f"Constants: {'; '.join(found)}, at x0, over at most 1,000 retained images."


def _cells(lab: Lab, split: Split) -> list[Cell]:
    """By rising epsilon; looks come with rising noise."""
    preset = lab.preset
    keys = [joint_key(preset, "rewind", split, seed) for seed in preset.rewind_seeds]
    results = [looks(lab.audit(key), "rewind") for key in keys]
    specs = [lab.rewind[key] for key in keys]
    sigmas = list(zip(*(_sigmas(lab, spec) for spec in specs), strict=True))
    cells = []
    for place, (epsilon, sigma) in enumerate(zip(reversed(preset.rewind_epsilons), sigmas, strict=True)):
        labels = {
            "split": split,
            "certified_epsilon": epsilon,
            "sigma": sigma,
            "L": tuple(spec.smoothness for spec in specs),
            "G": tuple(spec.gradient_bound for spec in specs),
        }
        cells.append(measure([own[place] for own in results], labels))
    return cells[::-1]


def _sigmas(lab: Lab, spec: RewindSpec) -> tuple[float, ...]:
    preset = replace(lab.preset, rewind=spec)
    num_retain = len(lab.images.train_labels) - preset.num_candidates
    return rewind_sigmas(preset, num_retain, preset.num_candidates // 2)


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
        pairs_check(
            "the bound grows with epsilon: at the largest it is above that at the smallest",
            ends,
            reason="the noise is so large at every epsilon that nothing is left to see",
        ),
        pairs_check(
            "uniform is above adversarial at most epsilons",
            splits,
            share=0.5,
            reason="the split changes the classes of the retained images, and with them L, G and the noise",
        ),
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
