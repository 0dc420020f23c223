"""What an audit returns: one `MethodResult` per unlearning method, together in an `AuditReport`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt32

from jaxaudit.analysis import Analysis, Claim
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.report.document import report_document
from jaxaudit.report.folder import save_report
from jaxaudit.report.table import report_table
from jaxaudit.scored import AuditedRuns, CalibrationRuns

_ACCURACIES = ("retain_accuracy", "forget_accuracy", "test_accuracy")
_MEASURED = (*_ACCURACIES, "moved", "seconds")


@dataclass(frozen=True)
class MethodResult:
    """Everything that was measured about one unlearning method.

    Parameters
    ----------
    name
        Short unique name, as on the command line.
    title, description
        What a reader sees: a few words, and one or two sentences.
    certified
        Whether the method comes with a proof for some (epsilon, delta); ``None`` if unknown.
    calibration, audited
        The runs with their scores.
    analysis
        Every statistical number, computed from the two of them.
    retain_accuracy, forget_accuracy, test_accuracy
        Means over the audited runs, in [0, 1]; ``None`` when the scores were made elsewhere.
    moved
        Mean Euclidean distance between trained and unlearned parameters; 0 if the method changed nothing,
        ``None`` if unknown.
    noise_keys
        ``(runs, ...)`` key data of the noise of each run, calibration runs first; ``None`` if the runs were
        made elsewhere.
    seconds
        Wall time of unlearning and scoring; ``None`` if unknown.
    """

    name: str
    title: str
    description: str
    certified: bool | None
    calibration: CalibrationRuns
    audited: AuditedRuns
    analysis: Analysis
    retain_accuracy: float | None = None
    forget_accuracy: float | None = None
    test_accuracy: float | None = None
    moved: float | None = None
    noise_keys: UInt32[np.ndarray, "runs ..."] | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_method_name(self.name)
        for field in _MEASURED:
            value = getattr(self, field)
            if value is not None and not np.isfinite(value):
                raise InputError(f"{field} of method {self.name!r} must be finite or None, got {value}")
        if self.noise_keys is not None:
            runs = self.calibration.num_runs + self.audited.num_runs
            if len(self.noise_keys) != runs:
                raise InputError(f"noise_keys must have one row per run, {runs}, got {len(self.noise_keys)}")

    @property
    def accuracies(self) -> tuple[float, float, float] | None:
        """Accuracy on retained, forgotten and test records; ``None`` if the scores were made elsewhere."""
        values = tuple(getattr(self, name) for name in _ACCURACIES)
        return None if None in values else values

    @property
    def trained_here(self) -> bool:
        """Whether this software trained the models, so that it can vouch for how they were made."""
        return self.noise_keys is not None


@dataclass(frozen=True)
class AuditReport:
    """Result of an audit: the methods' results, what they rest on, and how to repeat them.

    Parameters
    ----------
    methods
        One result per unlearning method, all at the same design.
    design
        What was fixed beforehand.
    claim
        The claimed (epsilon, delta), or ``None`` if no claim was tested.
    spec
        Everything that is needed to repeat the audit: data, model, training, seeds. Plain JSON types.
    data
        Name, sizes and fingerprint of the data set. Plain JSON types.
    provenance
        Versions, platform, date, score definition. Plain JSON types.
    record_ids
        Ids of the records of each candidate group, or ``None``: a group is then called by its number.
    registered
        Whether a design file was handed in with runs made elsewhere; its hash is ``spec["design_sha256"]``.
    timings
        What the audit cost: seconds of its stages, runs at once, bytes of memory; ``None`` if unknown.

    Examples
    --------
    >>> from jaxaudit.external import audit_scores
    >>> signs = np.random.default_rng(0).permuted(np.tile([1, -1], (30, 10)), axis=1)
    >>> scores = 3.0 * signs + np.sin(np.arange(600)).reshape(30, 20)
    >>> report = audit_scores(CalibrationRuns(signs[:20], scores[:20]), AuditedRuns(signs[20:], scores[20:]))
    >>> print(report.table().splitlines()[0])
    method  eps direct*  eps soft     Thm 4.2  ceiling  overlap  accuracy in %      verdict
    >>> report.as_dict()["methods"][0]["name"]
    'scores'
    """

    methods: tuple[MethodResult, ...]
    design: AuditDesign
    claim: Claim | None
    spec: dict[str, Any]
    data: dict[str, Any]
    provenance: dict[str, Any]
    record_ids: tuple[tuple[str, ...], ...] | None
    registered: bool
    timings: dict[str, float | None]

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if not names or len(set(names)) != len(names):
            raise InputError(f"methods must be at least one, with unique names, got {names}")
        if self.record_ids is not None and len(self.record_ids) != self.design.num_groups:
            raise InputError(
                f"record_ids must have one entry per group, {self.design.num_groups}, "
                f"got {len(self.record_ids)}"
            )

    def table(self) -> str:
        """The results as plain text for a terminal."""
        return report_table(self)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``report.json``: plain JSON types; what is per record is in ``evidence.npz``."""
        return report_document(self)

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the report folder and return its path; see `jaxaudit.report.folder.save_report`."""
        return save_report(self, Path(folder), overwrite)


def check_method_name(name: str) -> None:
    """Raise unless the name can be part of a path in the evidence file.

    Examples
    --------
    >>> check_method_name("my method")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: method name must be non-empty without slashes or spaces, got 'my method'
    """
    if not re.fullmatch(r"[^/\s]+", name):
        raise InputError(f"method name must be non-empty without slashes or spaces, got {name!r}")
