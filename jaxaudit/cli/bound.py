"""``jaxaudit bound``: epsilon from scores, guesses or overlaps that were made elsewhere."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np
import tyro
from jaxtyping import Int

from jaxaudit.analysis import Claim
from jaxaudit.bound import BoundMethod, epsilon_lower_bound
from jaxaudit.cli.common import busy, check_out, finish_audit
from jaxaudit.cli.counting import agreed, count, finish_count
from jaxaudit.design import AuditDesign, Method
from jaxaudit.designfile import DesignFile, read_design
from jaxaudit.errors import InputError
from jaxaudit.external import UNSTATED_SCORE, audit_scores
from jaxaudit.progress import default_reporter
from jaxaudit.rules import InlineRules, Rules, make_claim
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.scorefile import GuessFile, OverlapFile, ScoreFile, read_evidence

_NOT_REGISTERED = (
    "the design was not registered beforehand (no --design): the bound holds only if nothing was chosen "
    "after the audited runs were seen"
)
_ONLY_FOR_SCORES = ("temperature", "evidence_form", "predictor", "variance", "variance_floor")
Runs = TypeVar("Runs", CalibrationRuns, AuditedRuns)


@dataclass(frozen=True)
class Bound:
    """Bound epsilon from a file of scores (the attack is fitted here), of guesses, or of overlaps.

    An .npz file (never pickled) or a .csv file. Scores: arrays calibration_signs, calibration_scores, signs,
    scores; or columns run,group,example,sign,score,split. Guesses: arrays guesses, signs; or columns
    run,group,guess,sign. Overlaps: array overlaps; or columns run,overlap.
    """

    file: tyro.conf.Positional[Path]
    """File of scores, guesses or overlaps."""
    design: Path | None = None
    """Design file, written by "jaxaudit design" before the runs were made; its rules hold."""
    method: Literal["direct", "soft", "both", "odds", "theorem-4.2"] | None = None
    """Bound that decides. None: the registered one, or direct. soft and both need scores; odds and
    theorem-4.2 (the paper's) are for guesses and overlaps."""
    num_groups: int | None = None
    """Candidate groups, the paper's m, if a file of overlaps does not say it."""
    rules: InlineRules = field(default_factory=Rules)
    """Everything else that was declared beforehand."""
    claim_epsilon: float | None = None
    """Epsilon of a claim to test."""
    claim_delta: float = 0.0
    """Delta of the claim."""
    name: str = "scores"
    """What a report calls the audited method; no spaces."""
    out: Path | None = None
    """For scores: write a report into this folder."""
    overwrite: bool = False
    """Replace an earlier report in that folder."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        claim = make_claim(self.claim_epsilon, self.claim_delta)
        check_out(self.out, self.overwrite)
        registered = None if self.design is None else read_design(self.design)
        evidence = read_evidence(self.file, registered)
        if isinstance(evidence, ScoreFile):
            return self._attack(evidence, registered, claim)
        return self._count(evidence, registered, claim)

    def _attack(self, evidence: ScoreFile, registered: DesignFile | None, claim: Claim | None) -> int:
        calibration, audited = evidence.calibration, evidence.audited
        rules, method = self._declared(registered, may_fill=False)
        if method not in get_args(Method):
            raise InputError(f"method must be {', '.join(get_args(Method))} for scores, got {method}")
        agreed("num_groups", {"the file": audited.num_groups, "the option": self.num_groups})
        design = rules.design(
            audited.num_groups,
            num_calibration_runs=calibration.num_runs,
            num_audit_runs=audited.num_runs,
            method=method,
        )
        if registered is not None:
            calibration = _in_order(calibration, registered.calibration_run_ids)
            audited = _in_order(audited, registered.run_ids)
        reporter = default_reporter(self.quiet)
        report = audit_scores(
            calibration,
            audited,
            design,
            name=self.name,
            score_definition=UNSTATED_SCORE if registered is None else registered.score_definition,
            claim=claim,
            registered=registered is not None,
            reporter=reporter,
        )
        return finish_audit(
            report,
            self.out,
            reporter,
            overwrite=self.overwrite,
            as_json=self.json,
            notes=_registration(registered),
        )

    def _count(
        self, evidence: GuessFile | OverlapFile, registered: DesignFile | None, claim: Claim | None
    ) -> int:
        rules, method = self._declared(registered, may_fill=True)
        self.rules.refuse(_ONLY_FOR_SCORES, "is only used for scores")
        if method not in get_args(BoundMethod):
            choices = ", ".join(get_args(BoundMethod))
            raise InputError(f"method must be {choices} for a file without scores, got {method}")
        if self.out is not None:
            raise InputError(
                f"out must be left out, got {self.out}: a report needs scores, {self.file} has none"
            )
        counts = count(evidence)
        declared_groups = None if registered is None else registered.design.num_groups
        groups = {"the file": counts.num_groups, "the option": self.num_groups, "the design": declared_groups}
        guesses = {"the file": counts.num_guesses, "the declared rules": rules.num_guesses}
        with busy("bound", self.quiet):
            bound = epsilon_lower_bound(
                counts.overlaps,
                num_groups=agreed("num_groups", groups),
                num_guesses=agreed("num_guesses", guesses),
                delta=rules.delta,
                significance=rules.significance,
                method=method,  # type: ignore[arg-type]
                statistic=rules.statistic,
                threshold=rules.threshold,
            )
        notes = counts.notes + _registration(registered)
        return finish_count(bound, claim, registered is not None, notes, self.json)

    def _declared(self, registered: DesignFile | None, may_fill: bool) -> tuple[Rules, str]:
        """Rules and deciding method: the registered ones, or those of the options.

        What a registered design leaves open is chosen by the attack, so that options may fill it
        (``may_fill``) only if the attack is the user's own.
        """
        if registered is None:
            return self.rules, self.method or AuditDesign.method
        fixed = {name: getattr(registered.design, name) for name in vars(self.rules)}
        if may_fill:
            fixed = {name: value for name, value in fixed.items() if value is not None}
        self.rules.refuse(tuple(fixed), "is fixed by the registered design")
        if self.method not in (None, registered.design.method):
            raise InputError(
                f"method is fixed by the registered design, {registered.design.method}; got {self.method}"
            )
        return replace(self.rules, **fixed), registered.design.method


def _registration(registered: DesignFile | None) -> tuple[str, ...]:
    return (_NOT_REGISTERED,) if registered is None else ()


def _in_order(runs: Runs, run_ids: Int[np.ndarray, " runs"]) -> Runs:
    """The runs in their registered order: soft evidence adds them up one after the other."""
    place = {run_id: index for index, run_id in enumerate(runs.run_ids.tolist())}
    order = [place[run_id] for run_id in run_ids.tolist()]
    parts = {name: getattr(runs, name)[order] for name in ("signs", "scores", "run_ids", "failed")}
    return replace(runs, **parts)
