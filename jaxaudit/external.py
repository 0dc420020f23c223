"""An audit of scores that were made elsewhere, in any framework."""

import time

from jaxaudit.analysis import Claim, analyse
from jaxaudit.design import AuditDesign
from jaxaudit.designfile import DesignFile
from jaxaudit.errors import InputError
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.provenance import peak_memory_bytes, provenance
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.scorefile import ScoreFile, check_against_design

UNSTATED_SCORE = "not stated; higher = more likely a member"


def audit_scores(
    calibration: CalibrationRuns,
    audited: AuditedRuns,
    design: AuditDesign | DesignFile | None = None,
    *,
    name: str = "scores",
    description: str = "Scores of models that were trained and unlearned elsewhere.",
    score_definition: str | None = None,
    record_ids: tuple[tuple[str, ...], ...] | None = None,
    claim: Claim | None = None,
    reporter: Reporter | None = None,
) -> AuditReport:
    """Attack the audited runs with a predictor fitted on the calibration runs, and bound epsilon.

    Parameters
    ----------
    calibration, audited
        Sign vectors and scores of disjoint runs; **scores are higher for members**, so negate losses.
    design
        What was decided before the audited runs were seen. A `DesignFile` (from `read_design`) is a
        registered design: the runs must be exactly those it names, and its hash goes into the report.
        Default: `AuditDesign` with the sizes of the scores, which leaves guesses and temperature to be
        chosen on the calibration runs.
    name, description
        What the report calls the audited method: a short name without spaces, and one or two sentences.
    score_definition
        What the score is, in words. Default: as registered, or not stated.
    record_ids
        Ids of the records of each group. Default: a group is called by its number.
    claim
        A claimed (epsilon, delta) to test.
    reporter
        Where progress goes; default: nowhere.

    Returns
    -------
    An `AuditReport`; ``print(report.table())`` shows it, ``report.save(folder)`` writes it.

    Raises
    ------
    InputError
        If design and scores disagree, a run is in both sets, or the attack cannot be fitted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> signs = rng.permuted(np.tile([1, -1], (40, 10)), axis=1)
    >>> scores = 2.0 * signs + rng.normal(size=signs.shape)
    >>> report = audit_scores(CalibrationRuns(signs[:30], scores[:30]), AuditedRuns(signs[30:], scores[30:]))
    >>> report.methods[0].analysis.epsilon > 2
    True
    """
    began = time.perf_counter()
    spec: dict[str, str] = {"scores": "made elsewhere"}
    if isinstance(design, DesignFile):
        check_against_design(ScoreFile(calibration, audited), design)
        score_definition = _registered_score(design, score_definition)
        spec["design_sha256"] = design.sha256
        design = design.design
    elif design is None:
        design = _default_design(calibration, audited)
    score = score_definition or UNSTATED_SCORE
    with (reporter or SilentReporter()).task("attack and bound", 1) as advance:
        analysis = analyse(design, calibration, audited, claim)
        advance(1)
    result = MethodResult(
        name=name,
        title=name,
        description=description,
        certificate=None,
        calibration=calibration,
        audited=audited,
        analysis=analysis,
    )
    return AuditReport(
        methods=(result,),
        design=design,
        claim=claim,
        spec={**spec, "score": score},
        data={"name": name, "num_groups": design.num_groups, "group_size": audited.scores.shape[2]},
        provenance={**provenance(), "score": score},
        record_ids=record_ids,
        registered="design_sha256" in spec,
        timings={
            "total_seconds": time.perf_counter() - began,
            "peak_memory_bytes": peak_memory_bytes(),
        },
    )


def _default_design(calibration: CalibrationRuns, audited: AuditedRuns) -> AuditDesign:
    return AuditDesign(
        num_groups=audited.num_groups,
        num_calibration_runs=calibration.num_runs,
        num_audit_runs=audited.num_runs,
    )


def _registered_score(registered: DesignFile, stated: str | None) -> str:
    if stated not in (None, registered.score_definition):
        raise InputError(
            f"score_definition is fixed by the registered design, {registered.score_definition!r}; "
            f"got {stated!r}"
        )
    return registered.score_definition
