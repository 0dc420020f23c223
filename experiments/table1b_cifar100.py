"""Table 1b of the paper: heuristic unlearning of CIFAR-100 images, uniform and adversarial split.

    python experiments/table1b_cifar100.py [--preset cpu|paper|smoke] [--data digits|cifar100|PATH] [--dry-run]

Cost: `--dry-run` says it. Paper: 80 to 142 (uniform), 0 to 86
(adversarial); R/F/T are accuracies on retained, forgotten and test images.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cifar100_paper
from cifar100 import Script, main
from cifar100_cells import Cell, accuracies_text, looks, measure
from cifar100_checks import pairs_check, shape_check
from cifar100_jobs import SPLITS, JobKey, Lab, heuristic_key
from cifar100_page import COLORS, Check, Page, Section
from cifar100_presets import MAIN_RECORDS, Preset

from jaxaudit.train import num_batches
from jaxaudit.unlearn.hessian import HessianSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "none": "no unlearning",
    "retain-finetune": "retain fine-tuning",
    "ascent": "ascent, then fine-tuning",
    "hessian": "Hessian (LiSSA)",
    "retrain": "exact retraining",
}
_LEAKS = 0.1
_MEMORISED = 0.9


def printed() -> dict[tuple[str, str], tuple[float, ...]]:
    """The paper's epsilon and accuracies by method and split."""
    return {(method, split): tuple(values) for method, split, *values in cifar100_paper.table("1b")}


def keys(preset: Preset) -> list[JobKey]:
    """One audit of all heuristics per split and seed."""
    return [heuristic_key(preset, split, seed) for seed in preset.seeds for split in SPLITS]


def title(method: str) -> str:
    """What a reader sees."""
    return TITLES.get(method) or f"descent-ascent (IDA), q = {method.removeprefix('ida-')}"


def heuristics(preset: Preset) -> list[str]:
    """Names of the heuristics in the order of the table."""
    return [*preset.interleaved_names, "retain-finetune", "ascent", "hessian"]


def build(lab: Lab) -> Page:
    """Audit, and fill the table."""
    preset, paper = lab.preset, printed()
    cells: dict[tuple[str, str], Cell] = {}
    for split in SPLITS:
        reports = [lab.audit(heuristic_key(preset, split, seed)) for seed in preset.seeds]
        for method in (*heuristics(preset), "none", "retrain"):
            results = [looks(report, method)[0] for report in reports]
            labels = {"method": method, "split": split}
            cells[method, split] = measure(results, labels, paper.get((method, split), (None,))[0])
    rows = [_row(cell, paper) for cell in cells.values()]
    header = ("method", "split", "paper", "Theorem 4.2", "direct", "ceiling", "paper: R/F/T", "ours: R/F/T")
    m, r = preset.num_groups(preset.group_sizes[0]), preset.guesses(MAIN_RECORDS, preset.group_sizes[0])
    return Page(
        name="table1b",
        title="Table 1b: heuristics",
        script="table1b_cifar100.py",
        sections=(Section(f"Lower bounds on epsilon, m = {m}, r = {r}", header, rows),),
        cells=tuple(cells.values()),
        checks=_checks(preset, cells),
        draw=lambda panels: _draw(panels, preset, cells),
        notes=(
            "Exact retraining gives the same model whatever was forgotten, so it is carried out once. *No "
            "unlearning* releases the trained model. The Hessian row is the first noise of Table 7.",
            "What differs from the paper's runs: its code climbs on all candidates, chosen or not, where we climb on "
            "the run's own forget set, as the paper describes; its descent-ascent meets some forget batches again and "
            "again where their number and q + 1 have a common divisor, where we put in one more retain step (ours: "
            f"{num_batches(preset.num_candidates // 2, preset.interleaving.sgd.batch_size)} batches). For q = 2 and "
            "the adversarial split the paper prints 18 here and 15.06 in its Table 3.",
        ),
    )


def _row(cell: Cell, paper: dict[tuple[str, str], tuple[float, ...]]) -> list[str]:
    method, split = cell.labels["method"], cell.labels["split"]
    theirs = paper.get((method, split))
    return [
        title(method),
        split,
        cell.printed_text,
        cell.theorem.text(),
        cell.direct.text(),
        f"{cell.ceiling:.1f}",
        accuracies_text(None if theirs is None else theirs[1:]),
        cell.accuracies_text,
    ]


def _checks(preset: Preset, cells: dict[tuple[str, str], Cell]) -> tuple[Check, ...]:
    names = heuristics(preset)
    ida = preset.interleaved_names
    leaking = {f"{title(name)}, {split}": cells[name, split] for name in names for split in SPLITS}
    least = min(leaking.values(), key=lambda cell: cell.direct.mean)
    retrained = max(cells["retrain", split].direct.mean for split in SPLITS)
    worst = max(names, key=lambda name: cells[name, "uniform"].direct.mean)
    untouched = cells["none", "uniform"].direct.mean
    return (
        Check(
            f"every heuristic leaks: its bound is above {_LEAKS:.0%} of the ceiling",
            all(cell.direct.mean > _LEAKS * cell.ceiling for cell in leaking.values()),
            f"least {least.direct.mean:.2f} ({title(least.labels['method'])}, {least.labels['split']}), ceiling "
            f"{least.ceiling:.1f}",
        ),
        _memorised(cells),
        Check("exact retraining gives 0", retrained == 0, f"{retrained:.2f}"),
        shape_check(
            "IDA, adversarial: the bound rises with q",
            {"q rising": [cells[name, "adversarial"] for name in ida]},
            "rises",
            "with few retained images, the fine-tuning that follows undoes what differs between values of q",
        ),
        pairs_check(
            "IDA and Hessian leak more under the uniform split",
            {title(name): _both(cells, name) for name in (*ida, "hessian")},
            reason="under the adversarial split only the forgotten images teach their classes, so that a network of "
            "few classes shows it more than the paper's",
        ),
        pairs_check(
            "fine-tuning and ascent leak as much or more under the adversarial split (the paper's exceptions)",
            {title(name): _both(cells, name)[::-1] for name in ("retain-finetune", "ascent")},
            reason="the classes that are forgotten are unlearned as a whole, chosen images or not",
        ),
        Check(
            "the Hessian-based method leaks most of all (uniform)",
            worst == "hessian",
            f"most: {title(worst)}, {cells[worst, 'uniform'].direct.mean:.2f}; Hessian "
            f"{cells['hessian', 'uniform'].direct.mean:.2f}; no unlearning {untouched:.2f}",
            _short_step(preset.hessian),
        ),
    )


def _short_step(spec: HessianSpec) -> str:
    return (
        f"LiSSA of depth {spec.depth} at scale {spec.scale:g} moves at most {(spec.depth + 1) / spec.scale:.2g} times "
        "the gradient; fine-tuning, which all others end with, moves much more"
    )


def _memorised(cells: dict[tuple[str, str], Cell]) -> Check:
    bases = {split: cells["none", split].accuracies[:2] for split in SPLITS}
    found = (f"{split}: {retain.text()} and {forget.text()}" for split, (retain, forget) in bases.items())
    return Check(
        f"the trained model has memorised: accuracy of at least {_MEMORISED:g} on retained and forgotten images",
        all(one.mean >= _MEMORISED for pair in bases.values() for one in pair if one.values),
        "; ".join(found),
        "a network that is small, or trained briefly; forgotten images are learned last where their classes are theirs "
        "alone",
    )


def _both(cells: dict[tuple[str, str], Cell], method: str) -> tuple[float, float]:
    return cells[method, "uniform"].direct.mean, cells[method, "adversarial"].direct.mean


def _draw(panels: "Sequence[Axes]", preset: Preset, cells: dict[tuple[str, str], Cell]) -> None:
    axes, names = panels[0], [*heuristics(preset), "none", "retrain"]
    for offset, split, color in ((-0.2, "uniform", COLORS[0]), (0.2, "adversarial", COLORS[1])):
        spreads = [cells[name, split].direct for name in names]
        means = [one.mean for one in spreads]
        errors = [[one.mean - one.low for one in spreads], [one.high - one.mean for one in spreads]]
        places = [index + offset for index in range(len(names))]
        axes.barh(places, means, 0.38, xerr=errors, color=color, label=split)
        theorem = [cells[name, split].theorem.mean for name in names]
        axes.plot(
            theorem, places, "|", color="black", markersize=10, label="Theorem 4.2" if offset > 0 else None
        )
    axes.set_yticks(range(len(names)), [title(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("lower bound on epsilon (bars: direct; range over seeds)")
    axes.legend(frameon=False, fontsize=8)


SCRIPT = Script(keys, build)

if __name__ == "__main__":
    sys.exit(main(SCRIPT, __doc__))
