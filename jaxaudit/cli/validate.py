"""``jaxaudit validate``: measured false-alarm rates."""

from dataclasses import dataclass

from jaxaudit.bound import BoundMethod
from jaxaudit.bound.validate import validate
from jaxaudit.cli.common import MISMATCH, OK, busy, show
from jaxaudit.design import AuditDesign, Statistic


@dataclass(frozen=True)
class Validate:
    """Measure how often the bounds exceed the true epsilon, on simulated audits. Nothing is trained."""

    num_groups: int = 45
    """Candidate groups, the paper's m."""
    num_guesses: int = 40
    """Guesses per run, the paper's r, even."""
    num_audit_runs: int = AuditDesign.num_audit_runs
    """Independent runs that count as evidence, the paper's L."""
    epsilon: float = 2.0
    """True epsilon of the simulated worst case."""
    delta: float = AuditDesign.delta
    """Its delta, and that of the claim."""
    significance: float = AuditDesign.significance
    """Level of the test, the paper's zeta: the share of false alarms that is allowed."""
    method: BoundMethod = "direct"
    """Counting bound to measure; "theorem-4.2" is the paper's."""
    statistic: Statistic = AuditDesign.statistic
    """Summary of the overlaps that the counting bound tests."""
    threshold: int | None = None
    """For statistic "tail": the overlap a run must reach."""
    num_audits: int = 2000
    """Simulated audits of each mechanism."""
    seed: int = 0
    """Seed of the simulation."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        with busy("validate", self.quiet):
            validation = validate(
                num_groups=self.num_groups,
                num_guesses=self.num_guesses,
                num_runs=self.num_audit_runs,
                epsilon=self.epsilon,
                delta=self.delta,
                significance=self.significance,
                method=self.method,
                statistic=self.statistic,
                threshold=self.threshold,
                num_audits=self.num_audits,
                seed=self.seed,
            )
        show(validation.text(), validation.as_dict(), self.json)
        return OK if validation.consistent else MISMATCH
