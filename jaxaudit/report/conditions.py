"""The conditions under which the bounds are valid, and how an audit meets each of them."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport
    from jaxaudit.scored import ScoredRuns

VERIFIED, CONSTRUCTION, AUDITOR, CLAIM = "verified", "by construction", "the auditor", "part of the claim"


def condition_rows(report: "AuditReport") -> list[tuple[str, str, str]]:
    """Rows (condition, how it is met, who vouches for it): the five of the theory, then those that follow."""
    made, seen = (CONSTRUCTION, VERIFIED) if _trained_here(report) else (AUDITOR, AUDITOR)
    return [
        (
            "1. One reference algorithm for every data set",
            "The claim compares the unlearned model with one model that never saw the forgotten records.",
            CLAIM,
        ),
        (
            "2. The starting point and the order of the data do not depend on who is a member",
            "One initialisation serves all runs, and one total order of all candidates, restricted to the "
            "members.",
            made,
        ),
        (
            "3. The auditor sees the unlearned model, start, order and calibration runs, nothing else",
            f"Its guesses are a function of the scores. {_choices(report)}{_elsewhere(report)}",
            seen,
        ),
        (
            "4. Every run draws its half of the groups and its noise afresh",
            "Sign vectors and noise are drawn from one key per run; a trained model is reused only for an "
            "equal sign vector, where training is deterministic.",
            made,
        ),
        ("5. No audited run is dropped or drawn again", _counted(report), seen),
        ("Sign vectors are balanced", "Half of the groups, rounded down, are members in each run.", VERIFIED),
        ("Guesses are balanced", "Half of the guesses of a run say member, half non-member.", VERIFIED),
        ("Calibration and audited runs are disjoint", *_disjoint(report)),
        ("No noise key is used twice", *_noise(report)),
        (
            "The order of the runs is no choice",
            "Soft evidence adds up the runs in the order of their run ids.",
            CONSTRUCTION,
        ),
        ("The design was fixed beforehand", *registration(report)),
    ]


def _trained_here(report: "AuditReport") -> bool:
    return all(method.trained_here for method in report.methods)


def _choices(report: "AuditReport") -> str:
    declared = report.design.num_guesses is not None and report.design.temperature is not None
    how = (
        "declared in the design"
        if declared
        else "fixed on the calibration runs where the design leaves them open"
    )
    return f"The number of guesses r, the temperature and the threshold are {how}; the statistic is declared."


def _elsewhere(report: "AuditReport") -> str:
    if _trained_here(report):
        return ""
    return " The scores were made elsewhere: they must be scores of the unlearned model, and of nothing else."


def _counted(report: "AuditReport") -> str:
    planned = report.design.num_audit_runs
    failed = sum(len(method.analysis.failed_audited) for method in report.methods)
    end = f"{failed} failed and count as overlap 0 and evidence 0" if failed else "none failed"
    counted = f"All {planned} audited runs of each method are counted; {end}."
    if _trained_here(report):
        return counted
    if report.registered:
        return (
            f"{counted} Their number is verified against the registered design; that none of them was drawn "
            "again, the software cannot see."
        )
    return f"{counted} That there were no others, and that none was drawn again, the software cannot see."


def _disjoint(report: "AuditReport") -> tuple[str, str]:
    numbered = all(
        _numbered(runs) for method in report.methods for runs in (method.calibration, method.audited)
    )
    if numbered and not (report.registered or _trained_here(report)):
        return (
            "The runs came without ids of their own and were numbered here, so that ids say nothing: no run "
            "may be in both sets.",
            AUDITOR,
        )
    return "No run id is in both sets.", VERIFIED


def _numbered(runs: "ScoredRuns") -> bool:
    """Whether the run ids are those that runs without ids are given."""
    return np.array_equal(runs.run_ids, np.arange(runs.num_runs) + runs.first_run_id)


def _noise(report: "AuditReport") -> tuple[str, str]:
    if _trained_here(report):
        shared = any(method.recorded_at is not None for method in report.methods)
        looks = " Iterates on the way are those of one set of runs, and share its keys." if shared else ""
        return f"The key data of each run are in evidence.npz and are all different.{looks}", VERIFIED
    return "The runs were made elsewhere: each must have used random numbers of its own.", AUDITOR


def registration(report: "AuditReport") -> tuple[str, str]:
    """Whether the design was fixed beforehand, and who vouches for it."""
    if _trained_here(report):
        return (
            "The design is part of the specification and was fixed before the first run was trained. Whether "
            "other designs were tried before, nobody can see.",
            CONSTRUCTION,
        )
    if report.registered:
        return (
            f"A design file with the SHA-256 {report.spec.get('design_sha256', '(unknown)')} was handed in, and "
            "the audit follows it. When it was written is the auditor's word.",
            AUDITOR,
        )
    return (
        "The design was NOT registered in a file beforehand: the reader has to trust that it was not "
        "adapted.",
        AUDITOR,
    )
