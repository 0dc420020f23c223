"""``jaxaudit verify``: a sound report passes, a changed one does not, a missing one is bad input."""

import json

import numpy as np
import pytest

from jaxaudit.external import audit_scores
from jaxaudit.scored import AuditedRuns, CalibrationRuns


@pytest.fixture
def folder(cli, score_arrays):
    calibration = CalibrationRuns(score_arrays["calibration_signs"], score_arrays["calibration_scores"])
    report = audit_scores(calibration, AuditedRuns(score_arrays["signs"], score_arrays["scores"]))
    return report.save("report")


def test_sound_report(cli, folder):
    outcome = cli("verify", folder)
    assert outcome.code == 0
    assert "verified" in outcome.out
    assert "MISMATCH" not in outcome.out
    document = cli("verify", folder, "--json", "--quiet").document
    assert document["ok"]
    assert all(check["ok"] for check in document["checks"])


def test_changed_number(cli, folder):
    report = json.loads((folder / "report.json").read_text())
    report["methods"][0]["statistics"]["direct"]["epsilon"] += 1
    (folder / "report.json").write_text(json.dumps(report))
    outcome = cli("verify", folder)
    assert outcome.code == 4
    assert "MISMATCH  scores: statistics: direct.epsilon" in outcome.out
    assert not cli("verify", folder, "--json").document["ok"]


def test_changed_evidence(cli, folder):
    with np.load(folder / "evidence.npz") as archive:
        arrays = dict(archive)
    arrays["method/scores/scores"] = -arrays["method/scores/scores"]
    np.savez(folder / "evidence.npz", **arrays)
    assert cli("verify", folder).code == 4


def test_nothing_to_verify(cli, folder):
    assert cli("verify", "nowhere").code == 2
    (folder / "evidence.npz").unlink()
    outcome = cli("verify", folder)
    assert outcome.code == 2
    assert "evidence.npz" in outcome.err
