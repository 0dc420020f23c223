"""``jaxaudit plan``: what a design can show."""

from dataclasses import dataclass

from jaxaudit.bound import BoundMethod
from jaxaudit.bound.plan import plan
from jaxaudit.cli.common import OK, busy, show
from jaxaudit.design import AuditDesign, Statistic


@dataclass(frozen=True)
class Plan:
    """Show what a design can find: ceiling, least evidence needed, power. Nothing is trained."""

    num_groups: int
    """Candidate groups, the paper's m."""
    num_guesses: int
    """Guesses per run, the paper's r, even."""
    num_audit_runs: int = AuditDesign.num_audit_runs
    """Independent runs that count as evidence, the paper's L."""
    significance: float = AuditDesign.significance
    """Level of the test, the paper's zeta."""
    delta: float = AuditDesign.delta
    """Delta of the claim."""
    method: BoundMethod = "direct"
    """Bound to plan for; "theorem-4.2" is the paper's."""
    statistic: Statistic = AuditDesign.statistic
    """Summary of the overlaps that is tested."""
    threshold: int | None = None
    """For statistic "tail": the overlap a run must reach."""
    true_epsilon: float | None = None
    """Also show the power against a mechanism that truly has this epsilon."""
    claim_epsilon: float | None = None
    """With --true-epsilon: also the probability of falsifying this claim."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        with busy("plan", self.quiet):
            outlook = plan(
                num_groups=self.num_groups,
                num_guesses=self.num_guesses,
                num_runs=self.num_audit_runs,
                significance=self.significance,
                delta=self.delta,
                method=self.method,
                statistic=self.statistic,
                threshold=self.threshold,
                true_epsilon=self.true_epsilon,
                claim_epsilon=self.claim_epsilon,
            )
        show(outlook.text(), outlook.as_dict(), self.json)
        return OK
