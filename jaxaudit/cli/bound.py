"""``jaxaudit bound``: epsilon from scores, log-ratios, guesses or overlaps that were made elsewhere."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import tyro

from jaxaudit.analysis import Claim
from jaxaudit.bound import BoundMethod, epsilon_lower_bound
from jaxaudit.cli.common import busy, check_out, finish_audit
from jaxaudit.cli.counting import agreed, count, finish_count
from jaxaudit.cli.weighing import DEFAULT_TEMPERATURE, finish_weigh
from jaxaudit.design import AuditDesign, Method
from jaxaudit.designfile import DesignFile, read_design
from jaxaudit.errors import InputError
from jaxaudit.external import audit_scores
from jaxaudit.progress import default_reporter
from jaxaudit.rules import InlineRules, Rules, make_claim
from jaxaudit.scorefile import (
    GuessFile,
    LogRatioFile,
    OverlapFile,
    ScoreFile,
    check_against_design,
    read_score_file,
)

_NOT_REGISTERED = (
    "the design was not registered beforehand (no --design): the bound holds only if nothing was chosen "
    "after the audited runs were seen"
)
_ONLY_FOR_SCORES = ("predictor", "variance", "variance_floor")
_ONLY_FOR_SOFT = ("temperature", "evidence_form")


@dataclass(frozen=True)
class Bound:
    """Bound epsilon from a file of scores (the attack is fitted here), log-ratios, guesses, or overlaps.

    An .npz file (never pickled) or a .csv file. Scores: arrays calibration_signs, calibration_scores, signs,
    scores; or columns run,group,example,sign,score,split. Log-ratios: arrays log_ratios, signs; or columns
    run,group,log_ratio,sign; with --num-guesses for the direct bound, and for soft evidence a --temperature
    that was fixed beforehand (default 1). Guesses: arrays guesses, signs; or columns run,group,guess,sign.
    Overlaps: array overlaps; or columns run,overlap.
    """

    file: tyro.conf.Positional[Path]
    """File of scores, log-ratios, guesses or overlaps."""
    design: Path | None = None
    """Design file, written by "jaxaudit design" before the runs were made; its rules hold."""
    method: Literal["direct", "soft", "both", "odds", "theorem-4.2"] | None = None
    """Bound that decides. None: the registered one, or direct. soft and both need scores or log-ratios;
    odds and theorem-4.2 (the paper's) are for guesses and overlaps."""
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
        evidence = read_score_file(self.file)
        if isinstance(evidence, ScoreFile):
            return self._attack(evidence, registered, claim)
        if self.out is not None:
            raise InputError(
                f"out must be left out, got {self.out}: a report needs scores, {self.file} has none"
            )
        self.rules.refuse(_ONLY_FOR_SCORES, "is only used for scores")
        if registered is not None:
            check_against_design(evidence, registered)
        if isinstance(evidence, LogRatioFile):
            return self._weigh(evidence, registered, claim)
        return self._count(evidence, registered, claim)

    def _attack(self, evidence: ScoreFile, registered: DesignFile | None, claim: Claim | None) -> int:
        calibration, audited = evidence.calibration, evidence.audited
        rules, method = self._declared(registered)
        _check_method(method, get_args(Method), "for scores")
        agreed("num_groups", {"the file": audited.num_groups, "the option": self.num_groups})
        declared = rules.design(
            audited.num_groups,
            num_calibration_runs=calibration.num_runs,
            num_audit_runs=audited.num_runs,
            method=method,
        )
        reporter = default_reporter(self.quiet)
        report = audit_scores(
            calibration, audited, registered or declared, name=self.name, claim=claim, reporter=reporter
        )
        return finish_audit(
            report,
            self.out,
            reporter,
            overwrite=self.overwrite,
            as_json=self.json,
            notes=() if registered else (_NOT_REGISTERED,),
        )

    def _weigh(self, evidence: LogRatioFile, registered: DesignFile | None, claim: Claim | None) -> int:
        rules, method = self._filled(registered)
        _check_method(method, get_args(Method), "for log-ratios")
        runs, groups = evidence.signs.shape
        agreed("num_groups", {"the file": groups, "the option": self.num_groups})
        design = rules.design(groups, num_audit_runs=runs, method=method)
        notes = _notes(evidence, registered)
        if registered is None or registered.design.temperature is None:
            temperature = design.temperature or DEFAULT_TEMPERATURE
            notes += (
                f"the bound of soft evidence holds only if its temperature, {temperature:g}, was fixed before "
                "the audited runs were seen",
            )
        with busy("bound", self.quiet):
            return finish_weigh(evidence, design, claim, registered is not None, notes, self.json)

    def _count(
        self, evidence: GuessFile | OverlapFile, registered: DesignFile | None, claim: Claim | None
    ) -> int:
        rules, method = self._filled(registered)
        self.rules.refuse(_ONLY_FOR_SOFT, "is only used for scores and log-ratios")
        _check_method(method, get_args(BoundMethod), "for a file of guesses or overlaps")
        if method == "odds" and claim is not None and claim.delta > 0:
            raise InputError(f"claim_delta must be 0 with method odds, got {claim.delta}")
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
        notes = _notes(evidence, registered)
        return finish_count(bound, counts.failed, claim, registered is not None, notes, self.json)

    def _declared(self, registered: DesignFile | None, filled: tuple[str, ...] = ()) -> tuple[Rules, str]:
        """Rules and deciding method: the registered ones, or those of the options.

        ``filled`` names what the design leaves open and an option may fill.
        """
        if registered is None:
            return self.rules, self.method or AuditDesign.method
        fixed = {name: getattr(registered.design, name) for name in vars(self.rules) if name not in filled}
        self.rules.refuse(tuple(fixed), "is fixed by the registered design")
        if self.method not in (None, registered.design.method):
            raise InputError(
                f"method is fixed by the registered design, {registered.design.method}; got {self.method}"
            )
        return replace(self.rules, **fixed), registered.design.method

    def _filled(self, registered: DesignFile | None) -> tuple[Rules, str]:
        """Rules for evidence of the user's own attack, which fills what a design leaves to the attack."""
        if registered is None:
            return self._declared(None)
        rules = registered.design
        if rules.statistic == "tail" and rules.threshold is None:
            # With the outcome in sight, every threshold would be one more look.
            raise InputError(
                "statistic 'tail' needs a registered threshold: the design leaves it to calibration runs, "
                f"which {self.file} does not have"
            )
        left_open = [name for name in ("num_guesses", "temperature") if getattr(rules, name) is None]
        return self._declared(registered, tuple(left_open))


def _check_method(method: str, choices: tuple[str, ...], where: str) -> None:
    if method not in choices:
        raise InputError(f"method must be {', '.join(choices)} {where}, got {method}")


def _notes(
    evidence: LogRatioFile | GuessFile | OverlapFile, registered: DesignFile | None
) -> tuple[str, ...]:
    """Failed runs, and what was not written down beforehand."""
    notes = []
    failed = evidence.run_ids[evidence.failed]
    if len(failed):
        notes.append(f"failed runs, counted as no evidence: {', '.join(map(str, failed))}")
    if registered is None:
        notes.append(_NOT_REGISTERED)
    elif registered.design.num_guesses is None:
        notes.append(
            "the number of guesses was not registered: the counting bound holds only if it was fixed "
            "before the audited runs were seen"
        )
    return tuple(notes)
