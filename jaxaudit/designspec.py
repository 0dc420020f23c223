"""The design of an audit whose models are trained elsewhere, as a frozen dataclass, and the file that registers it."""

from dataclasses import dataclass, field
from typing import Any

from jaxaudit.checks import check_integer
from jaxaudit.design import AuditDesign, Method
from jaxaudit.designfile import DesignFile
from jaxaudit.external import UNSTATED_SCORE
from jaxaudit.rules import InlineRules, Rules
from jaxaudit.signs import draw_order, draw_run_signs, member_indices


@dataclass(frozen=True)
class DesignSpec:
    """The design of an audit whose models are trained elsewhere.

    Examples
    --------
    >>> DesignSpec(num_groups=6).num_audit_runs
    10
    """

    num_groups: int
    """Candidate groups, the paper's m."""
    num_retain: int | None = None
    """Retain records at the head of the pool. If given, the file also holds each run's member indices."""
    group_size: int = 1
    """Records per group."""
    score_definition: str = UNSTATED_SCORE
    """What the score will be, in words; higher must mean more likely a member."""
    num_calibration_runs: int = AuditDesign.num_calibration_runs
    """Runs that the attack will be fitted on, the paper's Gamma."""
    num_audit_runs: int = AuditDesign.num_audit_runs
    """Independent runs that will count as evidence, the paper's L."""
    method: Method = AuditDesign.method
    """Bound that decides the verdict; "both" gives each half of the significance."""
    rules: InlineRules = field(default_factory=Rules)
    """Everything else that is declared beforehand."""
    seed: int = 0
    """Seed of the sign vectors and of the order: those that "jaxaudit run" would draw."""


def make_design(spec: DesignSpec) -> DesignFile:
    """Draw the sign vectors (and member indices) of a design, for `jaxaudit.designfile.write_design`.

    Examples
    --------
    >>> design_file = make_design(DesignSpec(num_groups=6, num_retain=10, num_calibration_runs=4))
    >>> design_file.signs.shape, design_file.member_indices.shape, len(design_file.order)
    ((10, 6), (10, 13), 16)
    """
    design = spec.rules.design(
        spec.num_groups,
        num_calibration_runs=spec.num_calibration_runs,
        num_audit_runs=spec.num_audit_runs,
        method=spec.method,
    )
    calibration_signs, signs = draw_run_signs(design, spec.seed)
    tables: dict[str, Any] = {}
    if spec.num_retain is not None:
        check_integer("num_retain", spec.num_retain, 1)
        check_integer("group_size", spec.group_size, 1)
        order = draw_order(spec.seed, spec.num_retain + spec.num_groups * spec.group_size)
        pool = (spec.num_retain, spec.group_size, order)
        tables = {
            "order": order,
            "calibration_member_indices": member_indices(calibration_signs, *pool),
            "member_indices": member_indices(signs, *pool),
        }
    return DesignFile(
        design=design,
        calibration_signs=calibration_signs,
        signs=signs,
        score_definition=spec.score_definition,
        seed=spec.seed,
        num_retain=spec.num_retain,
        group_size=spec.group_size,
        **tables,
    )
