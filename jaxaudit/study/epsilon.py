"""From the scores of an audit of edges to its numbers: epsilon by part and predictor, and what stands beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.analysis import Analysis, analyse
from jaxaudit.attack import guess
from jaxaudit.bound import Plan, plan
from jaxaudit.design import PredictorName
from jaxaudit.metrics import Deviation, deviation_from_retraining
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.study.candidates import Candidates
from jaxaudit.study.edgeaudit import EdgeAudit
from jaxaudit.study.edgespec import RETRAINED, EdgeAuditSpec


class Look(NamedTuple):
    """One attack on the scores of a method."""

    part: str
    """Questions that it looks at; see `jaxaudit.study.candidates.PARTS`."""
    predictor: PredictorName

    @property
    def name(self) -> str:
        """What a reader sees.

        Examples
        --------
        >>> Look("exclusive", "joint").name
        'exclusive, joint'
        """
        return self.part if self.predictor == "batchwise" else f"{self.part}, {self.predictor}"


def looks_of(candidates: Candidates, spec: EdgeAuditSpec) -> tuple[Look, ...]:
    """All attacks on a method, the first of which is the headline.

    Parameters
    ----------
    candidates
        Their parts.
    spec
        Its predictors.
    """
    return tuple(Look(part, predictor) for predictor in spec.predictors for part in candidates.parts)


def look_plan(num_groups: int, spec: EdgeAuditSpec, num_looks: int) -> Plan:
    """What one look can show: its ``ceiling`` is the bound after perfect guesses, known before a run is made.

    Parameters
    ----------
    num_groups
        Candidate edges; if odd, one is not guessed.
    spec
        Runs and significance, of which each look has an equal share.
    num_looks
        Attacks on the same runs.

    Examples
    --------
    >>> from jaxaudit.study import StudySpec
    >>> round(look_plan(20, EdgeAuditSpec(StudySpec()), num_looks=3).ceiling, 2)
    11.72
    """
    return plan(
        num_groups=num_groups,
        num_guesses=num_groups - num_groups % 2,
        num_runs=spec.num_audit_runs,
        significance=spec.significance / num_looks,
    )


def analyse_looks(
    candidates: Candidates, spec: EdgeAuditSpec, calibration: CalibrationRuns, audited: AuditedRuns
) -> dict[Look, Analysis]:
    """Every look at the scores of one method: the direct bound, each at its share of the significance.

    So all of them hold together, and the best one may be picked. How many edges are guessed is chosen on calibration
    runs alone.

    Parameters
    ----------
    candidates
        Which of their questions each look may see.
    spec
        Predictors, significance.
    calibration, audited
        Scores of disjoint runs, higher = more likely a member.

    Raises
    ------
    InputError
        If the scores do not fit the spec.
    """
    looks = looks_of(candidates, spec)
    design = spec.design(candidates.num_groups).replace(significance=spec.significance / len(looks))
    return {
        look: analyse(
            design.replace(predictor=look.predictor),
            candidates.restrict(calibration, look.part),
            candidates.restrict(audited, look.part),
        )
        for look in looks
    }


@dataclass(frozen=True, eq=False)
class EdgeEpsilon:
    """One method, or no unlearning, or exact retraining."""

    row: str
    analyses: Mapping[Look, Analysis]
    deviation: Deviation
    """Of the measured runs together, beside the retrained model on the same questions."""
    forget: float
    """ROUGE-1 recall of the questions that the measured runs learnt and forgot, mean over questions and runs."""
    retain: float
    """The same of the retained edges."""
    num_measured: int
    signs: Int[np.ndarray, "runs groups"]
    """Of the audited runs."""

    @property
    def headline(self) -> Analysis:
        """All questions, by the first predictor."""
        return next(iter(self.analyses.values()))

    @property
    def epsilon(self) -> float:
        """Lower bound of the headline."""
        return self.headline.epsilon

    @property
    def edge_success(self) -> Float[np.ndarray, " groups"]:
        """Per candidate the share of audited runs in which it is on the right side if every edge is guessed.

        By the log-ratios of the headline: the likelier half counts as learnt. Chance is one half; without evidence it
        is one half for all.
        """
        analysis = self.headline
        if analysis.no_evidence:
            return np.full(analysis.log_ratios.shape[1], 0.5)
        groups = analysis.log_ratios.shape[1]
        right = guess(analysis.log_ratios, groups - groups % 2).guesses == self.signs
        return right.mean(axis=0)

    def document(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "method": self.row,
            "looks": {look.name: _document(analysis) for look, analysis in self.analyses.items()},
            "forget": self.forget,
            "retain": self.retain,
            "deviation": {
                "score": self.deviation.score,
                "retrained": self.deviation.retrained_score,
                "distance": self.deviation.distance,
            },
            "measured_runs": self.num_measured,
            "edge_success": self.edge_success.tolist(),
        }


def _document(analysis: Analysis) -> dict[str, Any]:
    direct = analysis.direct
    return {
        "epsilon": analysis.epsilon,
        "ceiling": analysis.ceiling,
        "significance": direct.significance,
        "num_guesses": direct.num_guesses,
        "overlaps": list(direct.overlaps),
        "roc_auc": analysis.leakage.roc_auc,
        "soft_epsilon": analysis.soft.epsilon,
        "paper_epsilon": analysis.paper.epsilon,
        "notes": list(analysis.notes),
    }


def edge_epsilon(audit: EdgeAudit, row: str) -> EdgeEpsilon:
    """Everything about one row of an audit; runs that are missing are made.

    Parameters
    ----------
    audit
        Its candidates, settings and store.
    row
        One of ``audit.spec.rows``.

    Raises
    ------
    InputError
        If there is no such row.
    """
    calibration, audited = audit.runs(row)
    (forget, retain), (floor_forget, floor_retain) = (_recalls(audit, one) for one in (row, RETRAINED))
    return EdgeEpsilon(
        row=row,
        analyses=analyse_looks(audit.candidates, audit.spec, calibration, audited),
        deviation=deviation_from_retraining(
            forget, retain, retrained_forget=floor_forget, retrained_retain=floor_retain
        ),
        forget=float(forget.mean()),
        retain=float(retain.mean()),
        num_measured=len(audit.measured_runs),
        signs=audited.signs,
    )


def _recalls(audit: EdgeAudit, row: str) -> tuple[Float[np.ndarray, " forget"], Float[np.ndarray, " retain"]]:
    """ROUGE-1 recall of what each measured run forgets and retains; of the retrained model on the same questions."""
    found = audit.measured(row)
    recalls = [one["recall"] for one in (found * len(audit.measured_runs) if row == RETRAINED else found)]
    kept = audit.candidates.retained_rows
    forget = [own[audit.forgotten(run)] for own, run in zip(recalls, audit.measured_runs)]
    return np.concatenate(forget), np.concatenate([own[kept] for own in recalls])
