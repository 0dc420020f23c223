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
from pistol_epsilon_points import SIZES, Point, chosen_points

from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, default_reporter
from jaxaudit.study import (
    Candidates,
    EdgeAudit,
    EdgeAuditSpec,
    LanguageModel,
    QuestionSet,
    audit_line,
    ceiling_of,
    control_looks,
    duration,
    edge_epsilon,
    looks_of,
    published_model,
    untrained_model,
)


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
    def seed(self) -> int:
        """From which every graph has seeds of its own.

        Raises
        ------
        InputError
            If there is more than one.
        """
        if self.seeds is not None and len(self.seeds) != 1:
            raise InputError(f"seeds must be a single one, since an audit has one, got {self.seeds}")
        return 1 if self.seeds is None else self.seeds[0]

    def audit_spec(self, point: Point) -> EdgeAuditSpec:
        """Settings of the audit of a point."""
        changes = {"reading": self.reading, "chunk": self.chunk}
        chosen = {name: value for name, value in changes.items() if value is not None}
        size = SIZES[self.settings]
        return size.spec(point, replace(size.study, **chosen), self.seed)

    def candidates(self, point: Point, model: LanguageModel) -> Candidates:
        """Edges of a point, with a model for its questions."""
        data = point.data()
        return Candidates(QuestionSet(data, model), point.candidates(data))


def audit_of(options: EpsilonOptions, point: Point, reporter: Reporter) -> EdgeAudit:
    """The audit of a point; nothing is trained but a small decoder's base."""
    model = options.language_model(point.data(), reporter)
    return EdgeAudit(
        options.candidates(point, model),
        options.audit_spec(point),
        store=options.store_folder / "epsilon",
        reporter=reporter,
    )


def choose_rates(point: Point, audit: EdgeAudit) -> None:
    """Make what rates are chosen on, and say what was chosen: here it is early enough to try others."""
    audit.reporter.say(f"{point.name}: choosing rates")
    for variant, choice in audit.rates().items():
        notes = [*([] if choice.met else ["no rate is allowed"]), *(["at an end"] if choice.at_end else [])]
        audit.reporter.say(f"{point.name}, {variant}: {choice.rate:g} {', '.join(notes)}".rstrip())


def result_of(point: Point, audit: EdgeAudit) -> PointResult:
    """Make all runs of a point that are missing, and analyse them."""
    audit.reporter.say(point.name)
    audit.ensure(audit.spec.rows)
    rows = {row: edge_epsilon(audit, row) for row in audit.spec.rows}
    return PointResult(point.name, point, audit, rows, control_looks(audit))


def ceiling_line(point: Point, candidates: Candidates, spec: EdgeAuditSpec) -> str:
    """What the design can show, known before anything is trained."""
    return (
        f"{point.name}: {candidates.num_groups} candidate and {len(candidates.retained)} retained edges, "
        f"{spec.num_calibration_runs} + {spec.num_audit_runs} runs, {len(looks_of(candidates, spec))} looks: epsilon "
        f"of at most {ceiling_of(candidates, spec):.2f} can be shown (every guess right)"
    )


def _show(options: EpsilonOptions) -> None:
    if options.data != "generated":
        raise InputError(f"data must be generated, since the graphs are, got {options.data}")
    reporter, points = default_reporter(options.quiet), list(options.chosen.values())
    specs = {point.name: options.audit_spec(point) for point in points}
    for point in points:
        planned = options.candidates(point, untrained_model(point.data(), options.size))
        print(ceiling_line(point, planned, specs[point.name]), flush=True)
    if options.dry_run:
        print(cost_text(options, points))
        return
    audits = {point: audit_of(options, point, reporter) for point in points}
    for point, audit in audits.items():
        choose_rates(point, audit)
    pistol_page.show(build([result_of(point, audit) for point, audit in audits.items()]), options)


def cost_text(options: EpsilonOptions, points: Sequence[Point]) -> str:
    """What would be done, and for how long on this machine."""
    lines, total = [], 0.0
    for point in points:
        published = options.is_published
        model = published_model(options.model) if published else untrained_model(point.data(), options.size)
        line, seconds = audit_line(options.candidates(point, model), options.audit_spec(point))
        lines.append(f"{point.name}: {line}")
        total += seconds
    return "\n".join([*lines, f"together about {duration(total)} on this machine; what is finished is kept"])


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the experiment; returns the exit code, 2 for bad input."""
    return carry_out(EpsilonOptions, __doc__, argv, _show)


if __name__ == "__main__":
    sys.exit(main())
