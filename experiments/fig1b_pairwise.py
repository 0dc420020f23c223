"""Figure 1b of the paper: the joint auditor against the pairwise one, uncertified model clipping, uniform split.

    python experiments/fig1b_pairwise.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it; it reads the runs of Figure 1a. Paper (no numbers printed): the pairwise
auditor does well where bounds are small and saturates otherwise; with 10 runs it gives 0.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cifar100 import Script, main
from cifar100_cells import Cell, Spread, looks
from cifar100_checks import pairs_check
from cifar100_jobs import JobKey, Lab, joint_key
from cifar100_page import COLORS, Check, Page, Section, line
from cifar100_presets import Preset
from fig1a_uncertified_clipping import over_steps

from jaxaudit.bound.pairwise import PairwiseResult, pairwise_epsilon
from jaxaudit.report import MethodResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def keys(preset: Preset) -> list[JobKey]:
    """The uniform audits of Figure 1a, and the same with two groups."""
    return [
        joint_key(preset, kind, "uniform", seed)
        for seed in preset.seeds
        for kind in ("uncertified", "pairwise")
    ]


def pairwise(result: MethodResult) -> PairwiseResult:
    """Equation (3) from the guesses of an audit with two groups: which of the two was forgotten?"""
    first, guess = result.audited.signs[:, 0] == 1, result.analysis.guesses[:, 0] == 1
    right = ~result.audited.failed
    return pairwise_epsilon(
        true_positives=int((first & guess & right).sum()),
        false_negatives=int((first & ~(guess & right)).sum()),
        false_positives=int((~first & (guess | ~right)).sum()),
        true_negatives=int((~first & ~guess & right).sum()),
        compare="unlearned",
    )


def build(lab: Lab) -> Page:
    """Audit, and put the two auditors side by side."""
    preset = lab.preset
    joint, pair = over_steps(lab, "uniform"), over_steps(lab, "uniform", "pairwise")
    results = [
        looks(lab.audit(joint_key(preset, "pairwise", "uniform", seed)), "uncertified")
        for seed in preset.seeds
    ]
    found = [[pairwise(own[place]) for own in results] for place in range(len(pair))]
    equation_3 = [Spread(tuple(one.epsilon for one in row)) for row in found]
    ceiling = max(one.ceiling for row in found for one in row)
    joint = [_labelled(cell, auditor="joint") for cell in joint]
    pair = [
        _labelled(cell, auditor="two groups", equation_3=three.values, equation_3_ceiling=ceiling)
        for cell, three in zip(pair, equation_3, strict=True)
    ]
    rows = [
        [str(a.labels["t"]), a.theorem.text(), a.direct.text(), three.text(), b.direct.text()]
        for a, b, three in zip(joint, pair, equation_3)
    ]
    m, num_runs = preset.joint_groups, preset.figure_audit_runs
    header = ("noisy steps t", f"joint m = {m}, Theorem 4.2", f"joint m = {m}, direct")
    header += ("pairwise, equation (3)", "two groups, direct")
    return Page(
        name="fig1b",
        title="Figure 1b: joint against pairwise auditor",
        script="fig1b_pairwise.py",
        sections=(
            Section(f"Lower bounds on epsilon after t steps, uniform split, L = {num_runs}", header, rows),
        ),
        cells=(*joint, *pair),
        checks=_checks(joint, equation_3, ceiling),
        draw=lambda panels: _draw(panels, joint[:-1], pair[:-1], equation_3[:-1], ceiling),
        notes=(
            "The pairwise auditor has two candidates, each of half of the records, and is told which two models to "
            f"expect; equation (3) is halved, because both are unlearned. Its ceiling with {num_runs} runs is "
            f"{ceiling:.2f}; it is calibrated with {preset.pairwise_calibrations} runs for each of its 2 sign vectors. "
            f"That of the joint auditor with {m} groups is {joint[0].ceiling:.2f} (direct).",
        ),
    )


def _labelled(cell: Cell, **labels: Any) -> Cell:
    return replace(cell, labels={**cell.labels, **labels})


def _checks(joint: Sequence[Cell], equation_3: Sequence[Spread], ceiling: float) -> tuple[Check, ...]:
    pairs = {f"t = {a.labels['t']}": (a.direct.mean, three.mean) for a, three in zip(joint, equation_3)}
    right = {"true_positives": 5, "true_negatives": 5, "false_negatives": 0, "false_positives": 0}
    ten = pairwise_epsilon(**right, compare="unlearned")
    return (
        Check(
            "by design: the pairwise auditor saturates, its ceiling is below that of the joint one",
            ceiling < joint[0].ceiling,
            f"{ceiling:.2f} against {joint[0].ceiling:.2f}",
        ),
        pairs_check(
            "the joint auditor (direct) finds more at most steps",
            pairs,
            share=0.5,
            reason="each of two groups is three times as large as each of six, and is told apart more easily",
        ),
        Check(
            "by design: with 10 runs the pairwise auditor gives 0 even without an error",
            ten.ceiling == 0,
            f"errorless guesses of 10 runs: {ten.epsilon:.2f}",
        ),
    )


def _draw(
    panels: "Sequence[Axes]",
    joint: Sequence[Cell],
    pair: Sequence[Cell],
    equation_3: Sequence[Spread],
    ceiling: float,
) -> None:
    axes, steps = panels[0], [cell.labels["t"] for cell in joint]
    line(axes, steps, joint, "joint, direct", COLORS[0])
    line(axes, steps, joint, "joint, Theorem 4.2", COLORS[0], "--", of="theorem")
    line(axes, steps, pair, "two groups, direct", COLORS[2])
    axes.plot(steps, [one.mean for one in equation_3], "--s", color=COLORS[1], label="pairwise, equation (3)")
    axes.axhline(ceiling, color=COLORS[1], linestyle=":", label="ceiling of the pairwise auditor")
    axes.set(xscale="log", xlabel="noisy steps t", ylabel="lower bound on epsilon")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
