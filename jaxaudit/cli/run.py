"""``jaxaudit run``: the whole audit."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from jaxaudit.cli.common import check_out, finish_audit
from jaxaudit.progress import default_reporter
from jaxaudit.runs import profile
from jaxaudit.spec import RunSpec, run_suites


@dataclass(frozen=True)
class Run:
    """Audit unlearning methods.

    Trains many models on random halves of the candidate groups, lets each method forget its half, attacks the
    result, bounds epsilon, writes a report.

    Without options: four methods on scikit-learn's digits, 60 runs, about a minute.
    """

    spec: Annotated[RunSpec, tyro.conf.arg(name="")] = field(default_factory=RunSpec)
    """What to do."""
    out: Path = Path("jaxaudit-report")
    """Folder of the report."""
    overwrite: bool = False
    """Replace an earlier report in that folder."""
    profile: Path | None = None
    """Folder for a JAX trace of the whole audit, for Perfetto or XProf."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        began = time.perf_counter()
        check_out(self.out, self.overwrite)
        reporter = default_reporter(self.quiet)
        with profile(self.profile):
            audits = run_suites(self.spec, reporter)
        only_one = len(audits.reports) == 1
        result = next(iter(audits.reports.values())) if only_one else audits
        code = finish_audit(result, self.out, reporter, overwrite=self.overwrite, as_json=self.json)
        reporter.say(f"{time.perf_counter() - began:.0f} s in total")
        return code
