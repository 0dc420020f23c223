"""An audit of scores that were made elsewhere, in any framework."""

import time

from jaxaudit.analysis import Claim, analyse
from jaxaudit.design import AuditDesign
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.provenance import peak_memory_bytes, provenance
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.scored import AuditedRuns, CalibrationRuns

UNSTATED_SCORE = "not stated; higher = more likely a member"


def audit_scores(
    calibration: CalibrationRuns,
    audited: AuditedRuns,
    design: AuditDesign | None = None,
    *,
    name: str = "scores",
    description: str = "Scores of models that were trained and unlearned elsewhere.",
    score_definition: str = UNSTATED_SCORE,
    record_ids: tuple[tuple[str, ...], ...] | None = None,
    claim: Claim | None = None,
    registered: bool = False,
    reporter: Reporter | None = None,
) -> AuditReport:
    """Attack the audited runs with a predictor fitted on the calibration runs, and bound epsilon.

    Parameters
    ----------
    calibration, audited
        Sign vectors and scores of disjoint runs; **scores are higher for members**, so negate losses.
    design
        What was decided before the audited runs were seen. Default: `AuditDesign` with the sizes of
        the scores, which leaves guesses and temperature to be chosen on the calibration runs.
    name, description
        What the report calls the audited method: a short name without spaces, and one or two sentences.
    score_definition
        What the score is, in words.
    record_ids
        Ids of the records of each group. Default: a group is called by its number.
    claim
        A claimed (epsilon, delta) to test.
    registered
        Whether the design was written to a file before the runs were made.
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
    design = _default_design(calibration, audited) if design is None else design
    with (reporter or SilentReporter()).task("attack and bound", 1) as advance:
        analysis = analyse(design, calibration, audited, claim)
        advance(1)
    result = MethodResult(
        name=name,
        title=name,
        description=description,
        certified=False,
        calibration=calibration,
        audited=audited,
        analysis=analysis,
    )
    return AuditReport(
        methods=(result,),
        design=design,
        claim=claim,
        spec={"scores": "made elsewhere", "score": score_definition},
        data={"name": name, "num_groups": design.num_groups, "group_size": audited.scores.shape[2]},
        provenance={**provenance(), "score": score_definition},
        record_ids=record_ids,
        registered=registered,
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
