"""``evidence.npz``: the arrays from which every statistical number of a report can be recomputed.

One JSON string ``header``, and per method the arrays ``method/<name>/<array>``. Never pickled.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxaudit.border import read_npz, write_npz
from jaxaudit.errors import InputError
from jaxaudit.report.document import PRIVACY_WARNING, SCHEMA_VERSION, plain

if TYPE_CHECKING:
    from jaxaudit.report.results import AuditReport, MethodResult

REQUIRED_ARRAYS = (
    *("calibration_signs", "calibration_scores", "calibration_run_ids", "calibration_failed"),
    *("signs", "scores", "run_ids", "failed", "weights"),
    *("log_ratios", "guesses", "overlaps", "log_evidence"),
)
"""Arrays of each method; ``noise_keys`` is there too if the header says that its models were trained here."""


_HEADER = ("schema_version", "design", "claim", "registered", "record_ids", "trained_here", "certificates")


@dataclass(frozen=True)
class Evidence:
    """Content of an evidence file: the header and, per method, its arrays by name."""

    header: dict[str, Any]
    methods: dict[str, dict[str, np.ndarray]]


def write_evidence(path: Path, report: "AuditReport") -> None:
    """Write the evidence of every method of a report."""
    header = {
        "kind": "jaxaudit evidence",
        "schema_version": SCHEMA_VERSION,
        "privacy": PRIVACY_WARNING,
        "design": report.design.as_dict(),
        "claim": plain(report.claim),
        "registered": report.registered,
        "record_ids": plain(report.record_ids),
        "trained_here": {method.name: method.trained_here for method in report.methods},
        "certificates": {method.name: plain(method.certificate) for method in report.methods},
    }
    arrays = {
        f"method/{method.name}/{name}": array
        for method in report.methods
        for name, array in _method_arrays(method).items()
    }
    write_npz(path, {"header": np.array(json.dumps(header)), **arrays})


def _method_arrays(method: "MethodResult") -> dict[str, np.ndarray]:
    fields = ("signs", "scores", "run_ids", "failed")
    arrays = {f"calibration_{field}": getattr(method.calibration, field) for field in fields}
    arrays |= {field: getattr(method.audited, field) for field in (*fields, "weights")}
    computed = ("log_ratios", "guesses", "overlaps", "log_evidence")
    arrays |= {name: np.asarray(getattr(method.analysis, name)) for name in computed}
    return arrays if method.noise_keys is None else arrays | {"noise_keys": np.asarray(method.noise_keys)}


def read_evidence(path: Path) -> Evidence:
    """Read an evidence file.

    Raises
    ------
    InputError
        If the file is missing, damaged or pickled, or if an array is missing (says which).
    """
    arrays = read_npz(path)
    if "header" not in arrays:
        raise InputError(f"{path} has no array 'header'; it is not an evidence file")
    try:
        header = json.loads(str(arrays.pop("header")))
        missing = [key for key in _HEADER if key not in header]
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the header is not a JSON object: {error}") from error
    if missing:
        raise InputError(f"{path}: the header lacks {', '.join(missing)}")
    methods: dict[str, dict[str, np.ndarray]] = {}
    for full_name, array in arrays.items():
        method, separator, name = full_name.removeprefix("method/").partition("/")
        if not separator:
            raise InputError(f"{path} holds an unknown array {full_name!r}")
        methods.setdefault(method, {})[name] = array
    for method, named in methods.items():
        missing = [name for name in REQUIRED_ARRAYS if name not in named]
        if missing:
            raise InputError(f"{path} lacks the arrays {', '.join(missing)} of method {method!r}")
    return Evidence(header, methods)
