"""The conditions under which the bounds are valid, and how an audit meets each of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport

VERIFIED, CONSTRUCTION, AUDITOR, CLAIM = "verified", "by construction", "the auditor", "part of the claim"


def condition_rows(report: "AuditReport") -> list[tuple[str, str, str]]:
    """Rows (condition, how it is met, who vouches for it): the five of the theory, then those that follow."""
    made = CONSTRUCTION if all(method.trained_here for method in report.methods) else AUDITOR
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
            f"Its guesses are a function of the scores. {_choices(report)}",
            VERIFIED,
        ),
        (
            "4. Every run draws its half of the groups and its noise afresh",
            "Sign vectors and noise are drawn from one key per run; a trained model is reused only for an "
            "equal sign vector, where training is deterministic.",
            made,
        ),
        ("5. No audited run is dropped or drawn again", _counted(report), VERIFIED),
        ("Sign vectors are balanced", "Half of the groups, rounded down, are members in each run.", VERIFIED),
        ("Guesses are balanced", "Half of the guesses of a run say member, half non-member.", VERIFIED),
        ("Calibration and audited runs are disjoint", "No run id is in both sets.", VERIFIED),
        ("No noise key is used twice", *_noise(report)),
        ("The design was fixed beforehand", *_registered(report)),
    ]


def _choices(report: "AuditReport") -> str:
    declared = report.design.num_guesses is not None and report.design.temperature is not None
    how = (
        "declared in the design"
        if declared
        else "fixed on the calibration runs where the design leaves them open"
    )
    return f"The number of guesses r, the temperature and the threshold are {how}; the statistic is declared."


def _counted(report: "AuditReport") -> str:
    planned = report.design.num_audit_runs
    failed = sum(len(method.analysis.failed_audited) for method in report.methods)
    end = f"{failed} failed and count as overlap 0 and evidence 0" if failed else "none failed"
    return f"All {planned} audited runs of each method are counted; {end}."


def _noise(report: "AuditReport") -> tuple[str, str]:
    if all(method.trained_here for method in report.methods):
        return "The key data of each run are in evidence.npz and are all different.", VERIFIED
    return "The runs were made elsewhere: each must have used random numbers of its own.", AUDITOR


def _registered(report: "AuditReport") -> tuple[str, str]:
    if report.registered:
        return "A design file was written before the runs were made, and the audit follows it.", CONSTRUCTION
    return (
        "The design was NOT registered in a file beforehand: the reader has to trust that it was not "
        "adapted.",
        AUDITOR,
    )
