"""``jaxaudit design``: the sign vectors and rules of an audit, for training elsewhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from jaxaudit.cli.common import OK, show
from jaxaudit.designfile import DesignFile, write_design
from jaxaudit.designspec import DesignSpec, make_design
from jaxaudit.errors import InputError


@dataclass(frozen=True)
class Design:
    """Draw the sign vectors of an audit and write them down with the rules, before any model is trained."""

    spec: Annotated[DesignSpec, tyro.conf.arg(name="")]
    """What to declare."""
    export: Path
    """The .npz file to write."""
    overwrite: bool = False
    """Replace the file if it exists."""
    json: bool = False
    """Print one JSON object instead of the text."""

    def execute(self) -> int:
        """Carry out the command; returns the exit code."""
        if self.export.suffix != ".npz":
            raise InputError(f"export must be a .npz file, got {self.export}")
        design_file = make_design(self.spec)
        write_design(self.export, design_file, overwrite=self.overwrite)
        show(_next_steps(self.export, design_file), _document(self.export, design_file), self.json)
        return OK


def _document(path: Path, design_file: DesignFile) -> dict[str, Any]:
    return {
        "file": str(path),
        "sha256": design_file.sha256,
        "design": design_file.design.as_dict(),
        "seed": design_file.seed,
        "schema_version": design_file.schema_version,
    }


def _next_steps(path: Path, design_file: DesignFile) -> str:
    rules = design_file.design
    runs = (
        f"{rules.num_calibration_runs} calibration and {rules.num_audit_runs} audited runs of "
        f"{rules.num_groups} groups"
    )
    members = (
        "The positions that each run trains on, in training order, are in\n"
        "   calibration_member_indices and member_indices: retain records first, then the groups."
        if design_file.member_indices is not None
        else "Let all runs read their records in one fixed order."
    )
    return f"""\
{path}: {runs}
sha256 {design_file.sha256}

1. For each row of calibration_signs and of signs, train a model on the retain records and on the groups
   with sign +1, then unlearn those groups. {members}
   Start all runs from the same initial parameters, and draw their other random numbers afresh.
2. Score every record of every group with the unlearned model. Higher must mean more likely a member, so
   negate losses.
3. Save with numpy.savez("scores.npz", ...) the arrays
     calibration_scores, scores        (runs, groups, records of a group)
     calibration_signs, signs, calibration_run_ids, run_ids   as they are in {path.name}
     calibration_failed, failed        (runs,) if a run crashed or diverged: none may be left out or repeated
4. jaxaudit bound scores.npz --design {path}"""
