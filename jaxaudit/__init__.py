"""Audits of machine unlearning: lower bounds, with confidence, on how much a model still remembers.

Names are loaded on first use, so that the statistics (`jaxaudit.bound`) never load JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxaudit import bound as bound
    from jaxaudit import convex as convex
    from jaxaudit import models as models
    from jaxaudit import unlearn as unlearn
    from jaxaudit.analysis import Claim as Claim
    from jaxaudit.audit import run_audit as run_audit
    from jaxaudit.bound import epsilon_lower_bound as epsilon_lower_bound
    from jaxaudit.data import AuditData as AuditData
    from jaxaudit.data import Examples as Examples
    from jaxaudit.data import load as load_data
    from jaxaudit.design import AuditDesign as AuditDesign
    from jaxaudit.external import audit_scores as audit_scores
    from jaxaudit.report import AuditReport as AuditReport
    from jaxaudit.scored import AuditedRuns as AuditedRuns
    from jaxaudit.scored import CalibrationRuns as CalibrationRuns
    from jaxaudit.spec import RunSpec as RunSpec
    from jaxaudit.spec import run_spec as run_spec
    from jaxaudit.spec import run_suites as run_suites
    from jaxaudit.train import SgdSpec as SgdSpec

    __version__: str

_SUBMODULES = ("bound", "convex", "models", "unlearn")
_HOMES = {
    "AuditData": "data",
    "AuditDesign": "design",
    "AuditReport": "report",
    "AuditedRuns": "scored",
    "CalibrationRuns": "scored",
    "Claim": "analysis",
    "Examples": "data",
    "RunSpec": "spec",
    "SgdSpec": "train",
    "audit_scores": "external",
    "epsilon_lower_bound": "bound",
    "load_data": "data",
    "run_audit": "audit",
    "run_spec": "spec",
    "run_suites": "spec",
}
"""Module of each name."""
_ORIGINAL_NAMES = {"load_data": "load"}

__all__ = [
    "AuditData",
    "AuditDesign",
    "AuditReport",
    "AuditedRuns",
    "CalibrationRuns",
    "Claim",
    "Examples",
    "RunSpec",
    "SgdSpec",
    "__version__",
    "audit_scores",
    "bound",
    "convex",
    "epsilon_lower_bound",
    "load_data",
    "models",
    "run_audit",
    "run_spec",
    "run_suites",
    "unlearn",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = import_module(f"{__name__}.provenance").installed_version(__name__)
    elif name in _SUBMODULES:
        value = import_module(f"{__name__}.{name}")
    elif name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), _ORIGINAL_NAMES.get(name, name))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
