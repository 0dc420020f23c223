"""Table 7 of the paper: Hessian-based unlearning with more and more noise at the end, uniform split.

    python experiments/table7_hessian_noise.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: that of Table 1b, whose runs it reads. Paper: 142.5, 28.5 and 0.20 at sigma 0.001, 0.005 and 0.01, while the
test accuracy falls from 0.51 to 0.19.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import cifar100_paper
import numpy as np
from cifar100 import Script, main
from cifar100_cells import Cell, accuracies_text, looks, measure
from cifar100_checks import shape_check
from cifar100_jobs import JobKey, Lab, heuristic_key
from cifar100_page import COLORS, Check, Page, Section, line
from cifar100_presets import MAIN_RECORDS, Preset

from jaxaudit.report import MethodResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SLACK = 0.01
_MEASURES = {
    "diverged": "diverged (1: yes)",
    "residual": "residual",
    "largest_eigenvalue": "largest eigenvalue",
    "converging_scale": "converging scale",
}
"""What the method measures, and what a reader sees."""


def keys(preset: Preset) -> list[JobKey]:
    """The uniform audits of Table 1b."""
    return [heuristic_key(preset, "uniform", seed) for seed in preset.seeds]


def build(lab: Lab) -> Page:
    """Read the looks at every amount of noise."""
    preset = lab.preset
    printed = {sigma: values for sigma, *values in cifar100_paper.table("7")}
    results = [looks(lab.audit(key), "hessian") for key in keys(preset)]
    cells = [
        measure([own[index] for own in results], {"sigma": sigma}, printed.get(sigma, (None,))[0])
        for index, sigma in enumerate(preset.hessian_sigmas)
    ]
    rows = [_row(cell, printed.get(cell.labels["sigma"])) for cell in cells]
    header = ("sigma", "paper", "Theorem 4.2", "direct", "ceiling", "paper: R/F/T", "ours: R/F/T")
    m, r = preset.num_groups(preset.group_sizes[0]), preset.guesses(MAIN_RECORDS, preset.group_sizes[0])
    return Page(
        name="table7",
        title="Table 7: Hessian-based unlearning, noise at the end",
        script="table7_hessian_noise.py",
        sections=(
            Section(f"Lower bounds on epsilon, uniform split, m = {m}, r = {r}", header, rows),
            _measured(preset, [own[-1] for own in results]),
        ),
        cells=tuple(cells),
        checks=(*_checks(cells), _converged(preset, [own[-1] for own in results])),
        draw=lambda panels: _draw(panels, cells),
        num_panels=2,
        notes=(
            "One Newton step per run; the noise is added little by little, and every amount is looked at: independent "
            "Gaussian noises add up in squares, so each look has exactly the noise of its row. The rows of one seed "
            "share their runs. Our network is smaller than the paper's, so it takes more noise per parameter.",
            "The gradient of the step is that of the retained images, as in the paper's code; its equation (15) prints "
            "that of the forgotten ones. Damping is added to the Hessian alone.",
        ),
    )


def _measured(preset: Preset, results: Sequence[MethodResult]) -> Section:
    """What LiSSA did: a run whose recursion diverged takes no step at all, which scores do not tell."""
    rows = [
        [str(seed), *(_range(result.measured.get(name)) for name in _MEASURES)]
        for seed, result in zip(preset.seeds, results, strict=True)
    ]
    caption = f"LiSSA in all runs, scale {preset.hessian.scale:g}, depth {preset.hessian.depth}: mean [range]"
    return Section(caption, ("seed", *_MEASURES.values()), rows)


def _range(found: Mapping[str, float] | None) -> str:
    if found is None:
        return ""
    if "mean" not in found:
        return "not finite"
    return f"{found['mean']:.3g} [{found['min']:.3g}, {found['max']:.3g}]"


def _converged(preset: Preset, results: Sequence[MethodResult]) -> Check:
    diverged = [result.measured["diverged"].get("max", 1.0) for result in results]
    scales = [
        one["max"] for result in results if "max" in (one := result.measured.get("converging_scale", {}))
    ]
    found = f"diverged: {max(diverged):g}" + (
        f"; largest converging scale {max(scales):.3g}" if scales else ""
    )
    return Check(
        f"no run's LiSSA diverged at scale {preset.hessian.scale:g}, and none needs a larger scale",
        max(diverged) == 0 and max(scales, default=0.0) <= preset.hessian.scale,
        found,
        "the scale is too small for the curvature of some runs",
    )


def _row(cell: Cell, theirs: Sequence[float] | None) -> list[str]:
    return [
        f"{cell.labels['sigma']:g}",
        cell.printed_text,
        cell.theorem.text(),
        cell.direct.text(),
        f"{cell.ceiling:.1f}",
        accuracies_text(None if theirs is None else theirs[1:]),
        cell.accuracies_text,
    ]


def _checks(cells: Sequence[Cell]) -> tuple[Check, ...]:
    tests = [cell.accuracies[2].mean for cell in cells if cell.accuracies[2].values]
    falls = (
        all(b <= a + _SLACK for a, b in pairwise(tests)) and tests[-1] < tests[0] if len(tests) > 1 else None
    )
    return (
        shape_check(
            "more noise, lower bound",
            {"sigma rising": cells},
            "falls",
            "noise far below the size of the weights",
        ),
        Check(
            f"more noise, lower test accuracy (up to {_SLACK:g} between neighbours)",
            falls,
            ", ".join(f"{test:.2f}" for test in tests),
        ),
    )


def _draw(panels: "Sequence[Axes]", cells: Sequence[Cell]) -> None:
    sigmas = [cell.labels["sigma"] for cell in cells]
    line(panels[0], sigmas, cells, "direct", COLORS[0])
    line(panels[0], sigmas, cells, "Theorem 4.2", COLORS[1], "--", of="theorem")
    panels[0].set(ylabel="lower bound on epsilon")
    for index, (name, color) in enumerate(zip(("retained", "forgotten", "test"), COLORS)):
        means = [cell.accuracies[index].mean if cell.accuracies[index].values else np.nan for cell in cells]
        panels[1].plot(sigmas, means, "-o", color=color, label=name)
    panels[1].set(ylabel="accuracy", ylim=(0, 1))
    for axes in panels:
        axes.set(xscale="log", xlabel="sigma, noise on every parameter")
        axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
