"""One small report for all tests of the report: a leaky method with failed runs, and one that forgets."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.analysis import Claim, analyse
from jaxaudit.design import AuditDesign
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.unlearn.base import Certificate

GROUPS, CALIBRATION, AUDITED = 12, 16, 5
DESIGN = AuditDesign(num_groups=GROUPS, num_calibration_runs=CALIBRATION, num_audit_runs=AUDITED)
CLAIM = Claim(epsilon=0.2)


def make_method(name: str, strength: float, failed: bool = False, noise: float = 1.0) -> MethodResult:
    """A method whose scores are ``strength`` times the sign plus Gaussian noise."""
    rng = np.random.default_rng(7)
    signs = rng.permuted(np.tile([1, -1], (CALIBRATION + AUDITED, GROUPS // 2)), axis=1)
    scores = strength * signs[:, :, None] + noise * rng.normal(size=(*signs.shape, 2))
    weights = np.ones((GROUPS, 2))
    weights[3, 1] = 0
    flags = np.zeros(len(signs), bool)
    flags[[2, CALIBRATION + 1]] = failed
    scores[flags] = np.nan
    ids = np.arange(len(signs))
    calibration, audited = (
        kind(signs[part], scores[part], ids[part], flags[part], weights)
        for kind, part in ((CalibrationRuns, slice(CALIBRATION)), (AuditedRuns, slice(CALIBRATION, None)))
    )
    return MethodResult(
        name=name,
        title=f"method {name}",
        description=f"Scores are {strength} times the sign plus noise.",
        certificate=Certificate.none("a heuristic"),
        calibration=calibration,
        audited=audited,
        analysis=analyse(DESIGN, calibration, audited, CLAIM),
        retain_accuracy=1.0,
        forget_accuracy=0.75,
        test_accuracy=0.5,
        moved=0.0 if strength else 2.5,
        noise_keys=np.stack([ids, np.full_like(ids, zlib.crc32(name.encode()))], axis=1).astype(np.uint32),
        seconds=1.5,
    )


def make_report(**changes: object) -> AuditReport:
    """The report, with some fields changed."""
    report = AuditReport(
        methods=(make_method("leaky", 0.7, failed=True), make_method("blind", 0.0)),
        design=DESIGN,
        claim=CLAIM,
        spec={"seed": 0, "model": {"widths": (64, 10)}},
        data={"name": "toy", "num_retain": 100, "fingerprint": "ab12"},
        provenance={"date": "2026-01-01", "numpy": np.__version__, "score": "logit"},
        record_ids=tuple((f"r{group}a", f"r{group}b")[: 1 if group == 3 else 2] for group in range(GROUPS)),
        registered=False,
        timings={"total_seconds": 3.25, "runs_at_once": 21},
    )
    return replace(report, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def report() -> AuditReport:
    return make_report()


@pytest.fixture(scope="session")
def clear() -> AuditReport:
    """A report on a method that leaks so much that records are recognised."""
    return make_report(methods=(make_method("clear", 3.0),))


@pytest.fixture(scope="session")
def silent() -> AuditReport:
    """A report on a method whose scores are all the same, with failed runs."""
    return make_report(methods=(make_method("silent", 0.0, failed=True, noise=0.0),))


@pytest.fixture(scope="session")
def saved(report, tmp_path_factory):
    """Folder of the saved report; read only."""
    return report.save(tmp_path_factory.mktemp("reports") / "report")
