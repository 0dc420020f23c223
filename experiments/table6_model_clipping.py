"""Table 6 of the paper: certified model clipping, after the first noisy step and at the end of unlearning.

    python experiments/table6_model_clipping.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it. Paper: 0 in every cell, at certified epsilon 1,
10 and 100,000.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cifar100_paper
import numpy as np
from cifar100 import Script, main
from cifar100_cells import Cell, looks, measure
from cifar100_jobs import SPLITS, JobKey, Lab, joint_key
from cifar100_page import COLORS, Check, Page, Section
from cifar100_presets import Preset

from jaxaudit.report import MethodResult
from jaxaudit.unlearn.clipping import ClippingSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOTHING = 0.1
"""Mean bounds below it count as "about 0"."""
_TIMES = ("after step 1", "at the end")
CONTROLS = {"none": "no unlearning", "retain-finetune": "retain fine-tuning alone"}
"""What the same design finds where nothing is certified, by method."""


def keys(preset: Preset) -> list[JobKey]:
    """One audit per split and seed."""
    return [joint_key(preset, "clipping", split, seed) for seed in preset.seeds for split in SPLITS]


def build(lab: Lab) -> Page:
    """Audit, and fill the table."""
    preset, cells, rows = lab.preset, [], []
    printed = {row[2]: row[3:] for row in cifar100_paper.table("6")}
    for split in SPLITS:
        reports = [lab.audit(joint_key(preset, "clipping", split, seed)) for seed in preset.seeds]
        for number, spec in enumerate(preset.clipping, 1):
            results = [looks(report, f"clipping-{number}") for report in reports]
            theirs = printed.get(spec.epsilon, (None,) * 3)
            pair = [
                measure([own[place] for own in results], _labels(spec, split, time), value)
                for place, time, value in zip((0, -1), _TIMES, theirs[1:])
            ]
            cells += pair
            rows.append(_row(spec, split, pair, results[0][-1], theirs))
        for method in CONTROLS:
            results = [looks(report, method) for report in reports]
            labels = {"method": method, "split": split, "when": _TIMES[-1]}
            cells.append(measure([own[-1] for own in results], labels))
            rows.append(_control_row(cells[-1]))
    return Page(
        name="table6",
        title="Table 6: model clipping with a certificate",
        script="table6_model_clipping.py",
        sections=(_section(preset, rows),),
        cells=tuple(cells),
        checks=_checks(preset, cells),
        draw=lambda panels: _draw(panels, preset, cells),
        notes=_notes(preset),
    )


def _notes(preset: Preset) -> tuple[str, ...]:
    return (
        "*Certified* says whether the noisy steps that fit the budget reach the epsilon of the row, at delta 1e-5; "
        "otherwise all of the budget is spent on noisy steps and nothing is certified. Rows are matched with the "
        "paper's by their epsilon; where sigma differs, it was changed so that the certificate fits "
        f"{preset.clipping[0].max_noisy_updates:,} steps.",
        f"The joint predictor is calibrated with {preset.joint_calibrations} runs for each of the 20 sign vectors. One "
        "model is trained per sign vector; every calibrating and every audited run unlearns it with noise of its own, "
        "so that the runs are independent.",
        "The two rows without a certificate are controls, in the same design and with the same models. They add no "
        "noise, so that runs with the same sign vector end at the same model; an auditor who has calibrated on every "
        "sign vector recognises each of them. Retain fine-tuning takes as many epochs as clipping.",
    )


def _labels(spec: ClippingSpec, split: str, time: str) -> dict[str, object]:
    return {
        "method": "clipping",
        "radius": spec.radius,
        "sigma": spec.sigma,
        "certified_epsilon": spec.epsilon,
        "split": split,
        "when": time,
    }


def _section(preset: Preset, rows: list[list[str]]) -> Section:
    header = ("C2", "sigma", "epsilon", "noisy steps (paper)", "certified", "split")
    header += tuple(f"{name}, {time}" for time in _TIMES for name in ("paper", "Theorem 4.2", "direct"))
    caption = f"Lower bounds on epsilon, m = r = {preset.joint_groups}, L = {preset.certified_audit_runs}"
    return Section(caption, (*header, "ceiling", "ours: R/F/T at the end"), rows)


def _row(
    spec: ClippingSpec, split: str, pair: Sequence[Cell], result: MethodResult, theirs: Sequence[float | None]
) -> list[str]:
    steps, certificate = spec.steps, result.certificate
    assert certificate is not None
    needed = f"{steps.num_steps:,}" if steps.num_steps is not None else f"at least {steps.at_least:,}"
    paper_steps = "N/A" if theirs[0] is None else f"{theirs[0]:g}"
    return [
        f"{spec.radius:g}",
        f"{spec.sigma:g}",
        f"{spec.epsilon:g}",
        f"{needed} ({paper_steps})",
        "yes" if certificate.certified else f"no: budget of {steps.budget:,}",
        split,
        *(text for cell in pair for text in (cell.printed_text, cell.theorem.text(), cell.direct.text())),
        f"{pair[0].ceiling:.2f}",
        pair[1].accuracies_text,
    ]


def _control_row(cell: Cell) -> list[str]:
    first = [CONTROLS[cell.labels["method"]], "", "", "", "no", cell.labels["split"], "", "", "", ""]
    return [*first, cell.theorem.text(), cell.direct.text(), f"{cell.ceiling:.2f}", cell.accuracies_text]


def is_certified(cell: Cell) -> bool:
    """Whether it is about clipping, and not a control."""
    return cell.labels["method"] == "clipping"


def _checks(preset: Preset, cells: Sequence[Cell]) -> tuple[Check, ...]:
    start, end = _TIMES
    controls = [cell for cell in cells if not is_certified(cell)]
    least = min(controls, key=lambda cell: cell.direct.mean)
    return (
        _nothing(
            cells,
            start,
            "one noisy step certifies nothing; where C2 and sigma are of one size, the projected model still shows",
        ),
        _nothing(cells, end, "fine-tuning starts where the noise has left something of the trained model"),
        Check(
            "the design sees a leak where there is one: both controls are above half of the ceiling",
            least.direct.mean > least.ceiling / 2,
            f"least {least.direct.text()} ({CONTROLS[least.labels['method']]}, {least.labels['split']}), ceiling "
            f"{least.ceiling:.2f}",
            "too few calibration runs, or fine-tuning that forgets",
        ),
    )


def _nothing(cells: Sequence[Cell], time: str, reason: str) -> Check:
    own = [cell for cell in cells if is_certified(cell) and cell.labels["when"] == time]
    largest = max(own, key=lambda cell: cell.direct.mean)
    return Check(
        f"clipping is about 0 {time}: every mean bound is below {_NOTHING:g}",
        largest.direct.mean < _NOTHING,
        f"largest {largest.direct.text()} (C2 = {largest.labels['radius']:g}, {largest.labels['split']}), ceiling "
        f"{largest.ceiling:.2f}",
        reason,
    )


def _draw(panels: "Sequence[Axes]", preset: Preset, cells: Sequence[Cell]) -> None:
    axes = panels[0]
    names = [f"{spec.radius:g}, {spec.sigma:g}\nepsilon {spec.epsilon:g}" for spec in preset.clipping]
    groups = [(split, time) for split in SPLITS for time in _TIMES]
    for index, ((split, time), color) in enumerate(zip(groups, COLORS)):
        own = [c for c in cells if is_certified(c) and (c.labels["split"], c.labels["when"]) == (split, time)]
        places = [place + 0.2 * (index - 1.5) for place in range(len(own))]
        axes.bar(places, [cell.direct.mean for cell in own], 0.18, color=color, label=f"{split}, {time}")
    for offset, method in zip((-0.1, 0.1), CONTROLS):
        control = [cell.direct.mean for cell in cells if cell.labels["method"] == method]
        axes.bar(len(names) + offset, np.mean(control), 0.18, color="#999999", hatch="/" * (offset > 0))
    names += ["controls:\nnone, fine-tuning"]
    axes.axhline(cells[0].ceiling, color="#999999", linestyle=":", label="ceiling of the design")
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="C2, sigma", ylabel="direct bound on epsilon")
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
