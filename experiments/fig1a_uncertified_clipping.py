"""Figure 1a of the paper: the uncertified variant of model clipping, step by step.

    python experiments/fig1a_uncertified_clipping.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH]

Cost: `--dry-run` says it. Paper (no numbers printed): the bound decays
over the first two epochs, uniform above adversarial.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cifar100 import Script, main
from cifar100_cells import Cell, looks, measure
from cifar100_checks import pairs_check, shape_check
from cifar100_jobs import SPLITS, JobKey, Lab, Split, joint_key
from cifar100_page import COLORS, Page, Section, line
from cifar100_presets import Preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def keys(preset: Preset) -> list[JobKey]:
    """One audit per split and seed."""
    return [joint_key(preset, "uncertified", split, seed) for seed in preset.seeds for split in SPLITS]


def over_steps(
    lab: Lab, split: Split, kind: Literal["uncertified", "pairwise"] = "uncertified"
) -> list[Cell]:
    """A cell per recorded step, and one at the end."""
    preset = lab.preset
    keys = [joint_key(preset, kind, split, seed) for seed in preset.seeds]
    results = [looks(lab.audit(key), "uncertified") for key in keys]
    return [
        measure([own[place] for own in results], {"split": split, "t": one.recorded_at or "end"})
        for place, one in enumerate(results[0])
    ]


def build(lab: Lab) -> Page:
    """Audit, and read every look."""
    preset = lab.preset
    cells = {split: over_steps(lab, split) for split in SPLITS}
    rows = [
        [str(cell.labels["t"]), split, cell.theorem.text(), cell.direct.text(), cell.accuracies_text]
        for split, own in cells.items()
        for cell in own
    ]
    header = ("noisy steps t", "split", "Theorem 4.2", "direct", "ours: R/F/T")
    on_the_way = {split: own[:-1] for split, own in cells.items()}
    ceiling = cells["uniform"][0].ceiling
    caption = (
        f"Lower bounds on epsilon after t steps, m = r = {preset.joint_groups}, L = {preset.figure_audit_runs}, "
        f"ceiling {ceiling:.2f}"
    )
    return Page(
        name="fig1a",
        title="Figure 1a: the uncertified variant of model clipping",
        script="fig1a_uncertified_clipping.py",
        sections=(Section(caption, header, rows),),
        cells=tuple(cell for own in cells.values() for cell in own),
        checks=(
            shape_check(
                "the bound decays with t",
                on_the_way,
                "falls",
                "the noise of so few steps is small against the weights, and each bound is of a few runs",
            ),
            pairs_check(
                "uniform is above adversarial at most steps",
                {
                    f"t = {one.labels['t']}": (one.direct.mean, other.direct.mean)
                    for one, other in zip(*on_the_way.values())
                },
                share=0.5,
                reason="under the adversarial split the groups differ in their classes, which scores tell apart",
            ),
        ),
        draw=lambda panels: _draw(panels, on_the_way),
        notes=(
            f"Noise of deviation {preset.uncertified.sigma:g} in every weight per step (paper: 0.0001, in a network of "
            "273,828 weights, whose noise is as long as that of a small network at a larger deviation). "
            "*end*: after the noisy steps and the fine-tuning that follows. All looks of a seed are at the same runs. "
            "The paper's code adds the same noise vector at every step of a run, which drives the model away t times "
            "as far as one step, instead of the square root of t: a decay as fast as in its figure is not to be "
            "expected.",
        ),
    )


def _draw(panels: "Sequence[Axes]", cells: dict[str, list[Cell]]) -> None:
    axes = panels[0]
    for (split, own), color in zip(cells.items(), COLORS):
        steps = [cell.labels["t"] for cell in own]
        line(axes, steps, own, f"{split}, direct", color)
        line(axes, steps, own, f"{split}, Theorem 4.2", color, "--", of="theorem")
    axes.axhline(cells["uniform"][0].ceiling, color="#999999", linestyle=":", label="ceiling (direct)")
    axes.set(xscale="log", xlabel="noisy steps t", ylabel="lower bound on epsilon")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
