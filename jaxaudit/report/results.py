"""What an audit returns: one `MethodResult` per unlearning method, together in an `AuditReport`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt32

from jaxaudit.analysis import Analysis, Claim, Verdict, judge_claim
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.report.document import report_document
from jaxaudit.report.folder import save_report
from jaxaudit.report.table import report_table
from jaxaudit.scored import AuditedRuns, CalibrationRuns

if TYPE_CHECKING:
    from jaxaudit.unlearn.base import Certificate

_ACCURACIES = ("retain_accuracy", "forget_accuracy", "test_accuracy")
_MEASURED = (*_ACCURACIES, "moved", "seconds", "cost")
_RECORD = "@"
_BARELY = 1e-12  # a distance that only rounding can explain

# Measures of one-shot methods that mean that they did not do what they should: when, and what is then said.
_OF_A_STEP: dict[str, tuple[Callable[[float], bool], str]] = {
    "diverged": (
        lambda mean: mean > 0,
        "the series diverged in {share:.0f} % of the runs, whose parameters were left as they were: choose a scale "
        "of at least converging_scale",
    ),
    "dampened": (lambda mean: mean == 0, "no parameter was dampened: the threshold is too high"),
}


@dataclass(frozen=True)
class MethodResult:
    """Everything that was measured about one unlearning method.

    Parameters
    ----------
    name
        Short unique name, as on the command line.
    title, description
        What a reader sees: a few words, and one or two sentences.
    certificate
        The (epsilon, delta) that is proved about the method, or why none is; ``None`` if unknown.
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
    cost
        Gradient evaluations of single examples per run, at least 0; ``None`` if unknown.
    measured
        What the method measured about its own runs, by name: ``mean``, ``min`` and ``max`` over the runs where it is
        finite (left out if there is none), and ``not_finite``, the number of the other runs.
    recorded_at
        Number of updates after which the iterate of a longer method was looked at; ``None``: the method's end. The
        name is then that of the method, ``@`` and this number.
    """

    name: str
    title: str
    description: str
    certificate: "Certificate | None"
    calibration: CalibrationRuns
    audited: AuditedRuns
    analysis: Analysis
    retain_accuracy: float | None = None
    forget_accuracy: float | None = None
    test_accuracy: float | None = None
    moved: float | None = None
    noise_keys: UInt32[np.ndarray, "runs ..."] | None = None
    seconds: float | None = None
    cost: float | None = None
    measured: dict[str, dict[str, float]] = field(default_factory=dict)
    recorded_at: int | None = None

    def __post_init__(self) -> None:
        check_method_name(self.name)
        for name in _MEASURED:
            value = getattr(self, name)
            if value is not None and not np.isfinite(value):
                raise InputError(f"{name} of method {self.name!r} must be finite or None, got {value}")
        for name, numbers in self.measured.items():
            if not np.isfinite(list(numbers.values())).all():
                raise InputError(f"measured {name!r} of method {self.name!r} must be finite, got {numbers}")
        if self.recorded_at is not None and self.name != record_name(self.family, self.recorded_at):
            raise InputError(
                f"name of a record after {self.recorded_at} updates ends in it, got {self.name!r}"
            )
        if self.noise_keys is not None:
            runs = self.calibration.num_runs + self.audited.num_runs
            if len(self.noise_keys) != runs:
                raise InputError(f"noise_keys must have one row per run, {runs}, got {len(self.noise_keys)}")

    @property
    def family(self) -> str:
        """Name of the method that this is a result of; iterates on the way share the runs of its end."""
        return family_name(self.name)

    @property
    def certified(self) -> bool | None:
        """Whether some (epsilon, delta) is proved about the method; ``None`` if unknown."""
        return None if self.certificate is None else self.certificate.certified

    @property
    def certificate_verdict(self) -> Verdict | None:
        """The certificate, tested like a claim by the same evidence; ``None`` if nothing is proved."""
        if self.certificate is None or self.certificate.epsilon is None:
            return None
        return judge_claim(self.analysis, Claim(self.certificate.epsilon, self.certificate.delta))

    @property
    def notes(self) -> tuple[str, ...]:
        """Plain sentences that a reader must see, about the numbers and about the runs."""
        return (*self.analysis.notes, *self._own_notes())

    def _own_notes(self) -> Iterator[str]:
        verdict = self.certificate_verdict
        if verdict is not None and verdict.falsified:
            rate = self.analysis.design.significance
            yield (
                f"THE CERTIFICATE IS CONTRADICTED: {verdict.text}; the proof, what it assumes, or the code is wrong, "
                f"unless this is one of the false alarms, at most {100 * rate:g} % of such tests"
            )
        if self.moved == 0:
            yield "the parameters did not move: the unlearned model is the trained model"
        elif self.moved is not None and self.moved < _BARELY:
            yield f"the parameters moved by less than {_BARELY:g}: the unlearned model is nearly the trained model"
        for name, numbers in self.measured.items():
            if name in _OF_A_STEP and _OF_A_STEP[name][0](numbers.get("mean", 0.0)):
                yield _OF_A_STEP[name][1].format(share=100 * numbers.get("mean", 0.0))
            if numbers["not_finite"]:
                yield f"{name} was not finite in {numbers['not_finite']:.0f} runs"

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
        What the audit cost: seconds of its stages, runs at once, bytes of memory; ``None`` if unknown. ``phases`` is a
        list with one entry per computation over all runs: how it was carried out, and how fast.

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
    timings: dict[str, Any]

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


def record_name(family: str, update: int) -> str:
    """Name of the iterate of a method after so many updates.

    Examples
    --------
    >>> record_name("ascent", 20)
    'ascent@20'
    """
    return f"{family}{_RECORD}{update}"


def family_name(name: str) -> str:
    """Name of the method that a result, at its end or on the way, belongs to.

    Examples
    --------
    >>> family_name("ascent@20"), family_name("ascent")
    ('ascent', 'ascent')
    """
    return name.partition(_RECORD)[0]
