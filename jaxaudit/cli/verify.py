"""``jaxaudit verify``: recompute a report from its evidence."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from jaxaudit.cli.common import MISMATCH, OK, busy, show
from jaxaudit.report.comparison import verify_folder


@dataclass(frozen=True)
class Verify:
    """Recompute every statistical number of a report folder, or of every report behind a comparison."""

    folder: tyro.conf.Positional[Path]
    """Folder of the report."""
    quiet: bool = False
    """Show no progress."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        with busy("verify", self.quiet):
            verification = verify_folder(self.folder)
        show(verification.text(), verification.as_dict(), self.json)
        return OK if verification.ok else MISMATCH
