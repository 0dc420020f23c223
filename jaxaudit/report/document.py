"""Results as plain JSON types: the content of ``report.json``."""

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxaudit.errors import InputError

if TYPE_CHECKING:
    from jaxaudit.analysis import Analysis
    from jaxaudit.report.results import AuditReport, MethodResult
    from jaxaudit.verdict import Verdict

SCHEMA_VERSION = 1
NUM_TOP_RECORDS = 20

PRIVACY_WARNING = (
    "This folder holds one score per record and run, and record ids where they were given: who reads it "
    "learns how well single records are remembered. Keep it as safe as the training data."
)

# Per record: these live in evidence.npz; the leakage is summarised.
_LEFT_OUT = {"design", "log_ratios", "guesses", "leakage"}


def plain(value: Any, name: str = "value") -> Any:
    """The same value in JSON types. Infinities and NaN become strings: ``"inf"``, ``"-inf"``, ``"nan"``.

    Examples
    --------
    >>> plain({"overlaps": np.array([3, 4]), "log_evidence": (float("-inf"),)})
    {'overlaps': [3, 4], 'log_evidence': ['-inf']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, name) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), name)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Path):
        return str(value)
    raise InputError(f"{name} cannot be written as JSON, got {type(value).__name__}")


def report_document(report: "AuditReport") -> dict[str, Any]:
    """The whole report as JSON types."""
    return {
        "kind": "jaxaudit report",
        "schema_version": SCHEMA_VERSION,
        "privacy": PRIVACY_WARNING,
        "claim": plain(report.claim),
        "design": report.design.as_dict(),
        "registered": report.registered,
        "methods": [_method_document(method, report.record_ids) for method in report.methods],
        "spec": plain(report.spec, "spec"),
        "data": plain(report.data, "data"),
        "provenance": plain(report.provenance, "provenance"),
        "timings": plain(report.timings, "timings"),
    }


def _method_document(
    method: "MethodResult", record_ids: tuple[tuple[str, ...], ...] | None
) -> dict[str, Any]:
    names = (
        "name",
        "title",
        "description",
        "certified",
        "certificate",
        "recorded_at",
        "trained_here",
        "retain_accuracy",
        "forget_accuracy",
        "test_accuracy",
        "moved",
        "seconds",
        "cost",
        "measured",
    )
    return {
        **{name: plain(getattr(method, name), name) for name in names},
        "certificate_verdict": verdict_document(method.certificate_verdict),
        "calibration_run_ids": plain(method.calibration.run_ids),
        "run_ids": plain(method.audited.run_ids),
        "statistics": statistics_document(method.analysis, record_ids),
    }


def statistics_document(
    analysis: "Analysis", record_ids: tuple[tuple[str, ...], ...] | None
) -> dict[str, Any]:
    """Every statistical number of one method, except those that are one per record.

    These are exactly the numbers that ``jaxaudit verify`` recomputes.
    """
    kept = [field.name for field in fields(analysis) if field.name not in _LEFT_OUT]
    document = {"epsilon": analysis.epsilon} | {name: plain(getattr(analysis, name), name) for name in kept}
    document["verdict"] = verdict_document(analysis.verdict)
    return document | {"leakage": _leakage_document(analysis, record_ids)}


def verdict_document(verdict: "Verdict | None") -> dict[str, Any] | None:
    """A verdict with its sentence."""
    return None if verdict is None else plain(verdict) | {"text": verdict.text}


def _leakage_document(analysis: "Analysis", record_ids: tuple[tuple[str, ...], ...] | None) -> dict[str, Any]:
    top = [
        plain(record) | {"record_ids": plain(record_ids[record.group]) if record_ids else None}
        for record in analysis.leakage.records[:NUM_TOP_RECORDS]
    ]
    return plain(analysis.leakage) | {"records": top}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a document as indented UTF-8 JSON without non-standard numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder) / "report.json", {"epsilon": 1.5})
    ...     read_json(Path(folder) / "report.json")
    {'epsilon': 1.5}
    """
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a document back. Raises `InputError` if the file is missing, damaged or not an object.

    See `write_json`.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} must hold a JSON object, got {type(document).__name__}")
    return document
