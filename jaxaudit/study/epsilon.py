"""From the scores of an audit of edges to its numbers: epsilon by part and predictor, and what stands beside it."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxaudit.analysis import Analysis, analyse
from jaxaudit.bound import Plan, plan
from jaxaudit.design import PredictorName
from jaxaudit.metrics import Deviation, Interval, deviation_from_retraining, deviation_of_means
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.signs import draw_run_signs
from jaxaudit.study.candidates import Candidates, restrict_to
from jaxaudit.study.edgeaudit import EdgeAudit
from jaxaudit.study.edgespec import BEFORE, RETRAINED, EdgeAuditSpec
from jaxaudit.study.resampling import paired_interval


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
    >>> round(look_plan(20, EdgeAuditSpec(StudySpec(seeds=(1,))), num_looks=3).ceiling, 2)
    11.72
    """
    return plan(
        num_groups=num_groups,
        num_guesses=num_groups - num_groups % 2,
        num_runs=spec.num_audit_runs,
        significance=spec.significance / num_looks,
    )


def ceiling_of(candidates: Candidates, spec: EdgeAuditSpec) -> float:
    """The largest epsilon that a look at these candidates can show, see `look_plan`; what every share is taken of.

    Parameters
    ----------
    candidates
        Their number and their parts.
    spec
        Runs, significance, predictors.
    """
    return look_plan(candidates.num_groups, spec, len(looks_of(candidates, spec))).ceiling


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


def control_looks(audit: EdgeAudit) -> dict[Look, Analysis]:
    """The looks at the scores without unlearning, attacked with sign vectors that were drawn anew.

    The scores know nothing of these, so that epsilon must be 0, but for a false alarm: in all looks together as
    probable as the significance at most. If the attack or the bound cheated, this would show it.

    Parameters
    ----------
    audit
        Its row ``before``.
    """
    seed = zlib.crc32(f"control of seed {audit.seed}".encode())
    signs = np.concatenate(draw_run_signs(audit.design, seed))
    return analyse_looks(audit.candidates, audit.spec, *audit.runs(BEFORE, signs))


def matched_auc(
    candidates: Candidates, spec: EdgeAuditSpec, calibration: CalibrationRuns, audited: AuditedRuns
) -> dict[str, float]:
    """How well an attacker tells learnt edges by a ``shared`` and by an ``exclusive`` address of the same edge.

    Area under the ROC curve of all pairs of an audited run that did not fail and an edge with both; 0.5 is chance.
    Nothing of this enters a bound. Empty if no edge has both.

    Parameters
    ----------
    candidates
        See `Candidates.matched`.
    spec
        Its design.
    calibration, audited
        Scores of disjoint runs.
    """
    found = {}
    for kind, flags in candidates.matched().items():
        design = spec.design(candidates.num_groups).replace(predictor="batchwise")
        one = analyse(design, restrict_to(calibration, flags), restrict_to(audited, flags))
        edges, runs = flags.any(axis=1), ~audited.failed
        found[kind] = _auc(one.log_ratios[runs][:, edges], audited.signs[runs][:, edges] == 1)
    return found


def _auc(values: Float[np.ndarray, "runs edges"], learnt: Bool[np.ndarray, "runs edges"]) -> float:
    """Probability that a learnt one has the larger value; one half without either kind."""
    from sklearn.metrics import roc_auc_score  # slow to import, and needed here only

    if not learnt.any() or learnt.all():
        return 0.5
    return float(roc_auc_score(learnt.ravel(), values.ravel()))


def edge_success(
    log_ratios: Float[np.ndarray, "runs groups"],
    signs: Int[np.ndarray, "runs groups"],
    failed: Bool[np.ndarray, " runs"],
) -> Float[np.ndarray, " groups"]:
    """Per edge the share of runs in which it is on the right side if every edge is guessed; chance is one half.

    The likelier half counts as learnt; if edges are odd in number, the middle one is not guessed and counts one half.
    Of equal log-ratios any may come first, with equal probability. Failed runs are left out; of none, all is one half.

    Parameters
    ----------
    log_ratios
        Of audited runs, higher = more likely learnt.
    signs
        What they learnt.
    failed
        Which of them failed.

    Examples
    --------
    >>> signs, none = np.array([[1, -1, 1, -1]]), np.array([False])
    >>> edge_success(np.array([[3.0, 2.0, 0.0, 0.0]]), signs, none).tolist()
    [1.0, 0.0, 0.0, 1.0]
    >>> edge_success(np.array([[3.0, 1.0, 1.0, 0.0]]), signs, none).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """
    ratios, own = log_ratios[~failed], signs[~failed]
    if not len(ratios):
        return np.full(signs.shape[1], 0.5)
    half = ratios.shape[1] // 2
    pairs = ratios[:, :, None], ratios[:, None, :]
    equal = (pairs[0] == pairs[1]).sum(axis=2)
    above, below = ((one > other).sum(axis=2) for one, other in (pairs[::-1], pairs))
    learnt, others = (np.clip((half - before) / equal, 0, 1) for before in (above, below))
    right = np.where(own == 1, learnt, others) + (1 - learnt - others) / 2
    return right.mean(axis=0)


@dataclass(frozen=True, eq=False)
class EdgeEpsilon:
    """One method, or no unlearning, or exact retraining."""

    row: str
    rate: float
    """Learning rate of the method; 0 for the two others."""
    analyses: Mapping[Look, Analysis]
    ceiling: float
    """Largest epsilon that any look could have shown, with perfect guesses of all edges."""
    deviation: Deviation
    """Of the measured runs together, beside the retrained model on the same questions."""
    score: Interval
    """The deviation score, with a rough bootstrap interval over the measured runs and their questions."""
    forget: float
    """ROUGE-1 recall of the questions that the measured runs learnt and forgot, mean over questions and runs."""
    retain: float
    """The same of the retained edges."""
    num_measured: int
    signs: Int[np.ndarray, "runs groups"]
    """Of the audited runs."""
    failed: Bool[np.ndarray, " runs"]
    """Audited runs that failed."""
    num_untouched: int
    """Runs in which the method changed nothing at all."""
    learnt: float
    """Mean score of a question of edges that the run had learnt, over all runs that did not fail; 0 if all did."""
    others: float
    """The same of the other candidates."""
    matched: Mapping[str, float]
    """See `matched_auc`."""

    @property
    def headline(self) -> Analysis:
        """All questions, by the first predictor."""
        return next(iter(self.analyses.values()))

    @property
    def epsilon(self) -> float:
        """Lower bound of the headline."""
        return self.headline.epsilon

    @property
    def share(self) -> float:
        """Epsilon as a share of the ceiling, so that graphs with different numbers of candidates can be compared."""
        return self.epsilon / self.ceiling if self.ceiling > 0 else 0.0

    @property
    def all_failed(self) -> bool:
        """Whether no audited run came to a result: then an epsilon of 0 says nothing."""
        return bool(self.failed.all())

    @property
    def edge_success(self) -> Float[np.ndarray, " groups"]:
        """By the log-ratios of the headline; see `edge_success`."""
        return edge_success(self.headline.log_ratios, self.signs, self.failed)

    def document(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "method": self.row,
            "rate": self.rate,
            "ceiling": self.ceiling,
            "share_of_ceiling": self.share,
            "looks": {look.name: look_document(analysis) for look, analysis in self.analyses.items()},
            "forget": self.forget,
            "retain": self.retain,
            "deviation": {
                "score": self.deviation.score,
                "interval": [self.score.low, self.score.high],
                "retrained": self.deviation.retrained_score,
                "distance": self.deviation.distance,
            },
            "measured_runs": self.num_measured,
            "failed_audited_runs": int(self.failed.sum()),
            "runs_without_change": self.num_untouched,
            "scores": {"learnt": self.learnt, "others": self.others},
            "matched_auc": dict(self.matched),
            "edge_success": self.edge_success.tolist(),
        }


def look_document(analysis: Analysis) -> dict[str, Any]:
    """One look as plain JSON types; its ceiling is that of its own number of guesses.

    Parameters
    ----------
    analysis
        Of one look.
    """
    direct = analysis.direct
    return {
        "epsilon": analysis.epsilon,
        "ceiling_at_num_guesses": analysis.ceiling,
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
    own, count, spec = audit.candidates, len(audit.measured_runs), audit.spec
    return EdgeEpsilon(
        row=row,
        rate=audit.rates()[row].rate if row in spec.variants else 0.0,
        analyses=analyse_looks(own, spec, calibration, audited),
        ceiling=ceiling_of(own, spec),
        deviation=deviation_from_retraining(
            forget, retain, retrained_forget=floor_forget, retrained_retain=floor_retain
        ),
        score=_score_interval(row, forget, retain),
        forget=float(forget.mean()),
        retain=float(retain.mean()),
        num_measured=count,
        signs=audited.signs,
        failed=audited.failed,
        **_of_scores(audit, row),
        matched=matched_auc(own, spec, calibration, audited),
    )


def _of_scores(audit: EdgeAudit, row: str) -> dict[str, Any]:
    """Fields of `EdgeEpsilon` over all runs."""
    scored = audit.scored(row)
    scores, learnt = scored.scores[~scored.failed], audit.signs[~scored.failed] == 1
    return {
        "num_untouched": int((scored.norms == 0).sum()) if row in audit.spec.variants else 0,
        "learnt": float(scores[learnt].mean()) if len(scores) else 0.0,
        "others": float(scores[~learnt].mean()) if len(scores) else 0.0,
    }


def _score_interval(
    row: str, forget: Float[np.ndarray, "runs forget"], retain: Float[np.ndarray, "runs retain"]
) -> Interval:
    """Rough, since runs are few, forget other edges each, and questions of one edge hang together.

    Of retraining there is one model, so that only questions are resampled.
    """
    if row == RETRAINED:
        tables, count = (forget.reshape(1, -1), retain[:1]), 1
    else:
        tables, count = (forget, retain), len(forget)
    return paired_interval(deviation_of_means, tables, num_seeds=count)


def _recalls(
    audit: EdgeAudit, row: str
) -> tuple[Float[np.ndarray, "runs forget"], Float[np.ndarray, "runs retain"]]:
    """ROUGE-1 recall of what each measured run forgets and retains; of the retrained model on the same questions."""
    found = audit.measured(row)
    recalls = [one["recall"] for one in (found * len(audit.measured_runs) if row == RETRAINED else found)]
    kept = audit.candidates.retained_rows
    forget = [own[audit.forgotten(run)] for own, run in zip(recalls, audit.measured_runs)]
    return np.stack(forget), np.stack([own[kept] for own in recalls])
