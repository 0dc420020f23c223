"""How much of the forgotten edges is left: a lower bound on epsilon for every method, against density and degree.

    python experiments/pistol_epsilon.py [--model small|smollm2|FOLDER] [--preset cpu|paper|smollm2|smoke]
        [--points chain random complete star dataset-1 joint] [--dry-run]

Every run learns the retained edges and half of the candidates, forgets that half by every method, and is asked all
candidates; an attack calibrated on other runs guesses which half it was. Beside it stand ROUGE-1 and deviation score:
does a good deviation score mean forgotten? The paper has no such numbers. Cost: `--dry-run` says it; what is finished
is kept, a few runs at a time, so that a killed run goes on.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pistol_page
from command_line import carry_out
from pistol import Options
from pistol_epsilon_checks import PointResult
from pistol_epsilon_page import build
from pistol_epsilon_points import SIZES, Point, candidates_of, chosen_points

from jaxaudit.data.pistol import PistolData
from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.study import (
    EdgeAudit,
    EdgeAuditSpec,
    LanguageModel,
    QuestionSet,
    StudySpec,
    edge_epsilon,
    look_plan,
    looks_of,
    published_model,
    small_model,
)
from jaxaudit.study.cost import audit_line, duration, untrained_model


@dataclass(frozen=True)
class EpsilonOptions(Options):
    """Options of the audit of edges."""

    points: tuple[str, ...] = ()
    """Graphs: chain, random, complete, star, dataset-1, joint, half. Default: those of the preset."""

    @property
    def chosen(self) -> dict[str, Point]:
        """Points by name."""
        return chosen_points(self.points, self.settings)

    @property
    def command(self) -> str:
        """Options that say what is computed, as one types them."""
        return super().command + (f" --points {' '.join(self.points)}" if self.points else "")

    @property
    def stem(self) -> str:
        """Of the names of files; a page about some points only does not replace the whole one."""
        return "_".join([super().stem, *self.points])

    @property
    def study(self) -> StudySpec:
        """Settings of fine-tuning and unlearning."""
        changes = {"reading": self.reading, "seeds": self.seeds, "chunk": self.chunk}
        chosen = {name: value for name, value in changes.items() if value is not None}
        return replace(SIZES[self.settings].study, **chosen)

    def audit_spec(self, point: Point) -> EdgeAuditSpec:
        """Settings of the audit of a point."""
        return SIZES[self.settings].spec(point, self.study)


def audit_of(options: EpsilonOptions, point: Point, reporter: Reporter) -> EdgeAudit:
    """The audit of a point; nothing is trained but a small decoder's base."""
    data = point.data()
    candidates = candidates_of(point, QuestionSet(data, _model(options, data, reporter)))
    return EdgeAudit(
        candidates, options.audit_spec(point), store=options.store_folder / "epsilon", reporter=reporter
    )


def _model(options: EpsilonOptions, data: PistolData, reporter: Reporter) -> LanguageModel:
    if options.is_published:
        return published_model(options.model)
    if options.dry_run:
        return untrained_model(data, options.size)
    return small_model(
        data,
        size=options.size,
        pretraining=options.pretraining,
        store=options.store_folder,
        reporter=reporter,
    )


def ceiling_line(name: str, audit: EdgeAudit) -> str:
    """What the design can show, known before anything is run."""
    spec, looks = audit.spec, len(looks_of(audit.candidates, audit.spec))
    ceiling = look_plan(audit.candidates.num_groups, spec, looks).ceiling
    return (
        f"{name}: {audit.candidates.num_groups} candidate and {len(audit.candidates.retained)} retained edges, "
        f"{spec.num_calibration_runs} + {spec.num_audit_runs} runs, {looks} looks: epsilon of at most {ceiling:.2f} "
        "can be shown (every guess right)"
    )


def _show(options: EpsilonOptions) -> None:
    if options.data != "generated":
        raise InputError(f"data must be generated, since the graphs are, got {options.data}")
    reporter = default_reporter(options.quiet)
    audits = {name: audit_of(options, point, reporter) for name, point in options.chosen.items()}
    for name, audit in audits.items():
        print(ceiling_line(name, audit), flush=True)
    if options.dry_run:
        costs = [audit_line(audit.candidates, audit.spec) for audit in audits.values()]
        for name, (line, _) in zip(audits, costs):
            print(f"{name}: {line}")
        print(
            f"together about {duration(sum(seconds for _, seconds in costs))} on this machine; what is finished is kept"
        )
        return
    results = []
    for name, audit in audits.items():
        reporter.say(name)
        audit.ensure(audit.spec.rows)
        rows = {row: edge_epsilon(audit, row) for row in audit.spec.rows}
        results.append(PointResult(name, options.chosen[name], audit, rows))
    page = build(results)
    print(pistol_page.text(page))
    if options.folder is not None:
        for path in pistol_page.save(options.folder, page, options):
            print(f"written: {path}")


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the experiment; returns the exit code, 2 for bad input."""
    return carry_out(EpsilonOptions, __doc__, argv, _show)


if __name__ == "__main__":
    sys.exit(main())
