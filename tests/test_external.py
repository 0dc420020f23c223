"""Audits of scores made elsewhere: the report is that of the analysis, and says where the runs came from."""

from contextlib import nullcontext

import numpy as np
import pytest

from jaxaudit.analysis import Claim, analyse
from jaxaudit.design import AuditDesign
from jaxaudit.designfile import DesignFile
from jaxaudit.errors import InputError
from jaxaudit.external import UNSTATED_SCORE, audit_scores
from jaxaudit.report.verify import verify
from jaxaudit.scored import AuditedRuns, CalibrationRuns

GROUPS, CALIBRATION, AUDITED = 12, 20, 6


class Recorder:
    """A reporter that remembers the tasks."""

    def __init__(self):
        self.labels = []

    def say(self, text):
        self.labels.append(text)

    def task(self, label, total):
        self.labels.append(label)
        return nullcontext(lambda steps: None)


def make_runs(strength=2.0):
    rng = np.random.default_rng(3)
    signs = rng.permuted(np.tile([1, -1], (CALIBRATION + AUDITED, GROUPS // 2)), axis=1)
    scores = strength * signs[:, :, None] + rng.normal(size=(*signs.shape, 2))
    return (
        CalibrationRuns(signs[:CALIBRATION], scores[:CALIBRATION]),
        AuditedRuns(signs[CALIBRATION:], scores[CALIBRATION:]),
    )


def test_numbers_are_those_of_the_analysis_at_the_default_design():
    calibration, audited = make_runs()
    recorder = Recorder()
    report = audit_scores(calibration, audited, claim=Claim(0.5), reporter=recorder)
    design = AuditDesign(num_groups=GROUPS, num_calibration_runs=CALIBRATION, num_audit_runs=AUDITED)
    expected = analyse(design, calibration, audited, Claim(0.5))
    analysis = report.methods[0].analysis
    assert report.design == design
    assert analysis.direct == expected.direct
    assert analysis.soft == expected.soft
    assert analysis.verdict == expected.verdict
    assert analysis.verdict.falsified
    assert recorder.labels == ["attack and bound"]


def test_design_is_followed():
    design = AuditDesign(
        num_groups=GROUPS, num_calibration_runs=CALIBRATION, num_audit_runs=AUDITED, num_guesses=4, delta=1e-3
    )
    analysis = audit_scores(*make_runs(), design).methods[0].analysis
    assert (analysis.direct.num_guesses, analysis.direct.delta) == (4, 1e-3)


def test_design_of_other_sizes_is_refused():
    with pytest.raises(InputError, match="num_audit_runs must be that of the scores, 6, got 10"):
        audit_scores(*make_runs(), AuditDesign(num_groups=GROUPS, num_calibration_runs=CALIBRATION))


def test_report_says_that_the_runs_were_made_elsewhere():
    report = audit_scores(*make_runs(), name="mine", description="My method.")
    (method,) = report.methods
    assert (method.name, method.title, method.description) == ("mine", "mine", "My method.")
    assert not method.trained_here
    assert method.certificate is None
    assert method.certified is None
    assert method.accuracies is None
    assert not report.registered
    assert report.spec["scores"] == "made elsewhere"
    assert report.provenance["score"] == UNSTATED_SCORE
    assert "design_sha256" not in report.spec


def registered_design(calibration, audited, **rules):
    design = AuditDesign(
        num_groups=GROUPS, num_calibration_runs=CALIBRATION, num_audit_runs=AUDITED, num_guesses=6, **rules
    )
    return DesignFile(design, calibration.signs, audited.signs, score_definition="minus the loss")


def test_a_registered_design_is_followed_and_named():
    calibration, audited = make_runs()
    registered = registered_design(calibration, audited)
    report = audit_scores(calibration, audited, registered)
    assert report.registered
    assert report.design == registered.design
    assert report.spec["design_sha256"] == registered.sha256
    assert report.spec["score"] == report.provenance["score"] == "minus the loss"
    assert audit_scores(calibration, audited, registered, score_definition="minus the loss").registered
    assert not audit_scores(calibration, audited, registered.design).registered


def test_a_registered_design_names_its_runs_and_its_score():
    calibration, audited = make_runs()
    registered = registered_design(calibration, audited)
    other = AuditedRuns(audited.signs[:, ::-1], audited.scores)
    with pytest.raises(InputError, match="audited run 1000000 has sign"):
        audit_scores(calibration, other, registered)
    fewer = AuditedRuns(audited.signs[1:], audited.scores[1:], audited.run_ids[1:])
    with pytest.raises(InputError, match="audited run 1000000 of the registered design is missing"):
        audit_scores(calibration, fewer, registered)
    with pytest.raises(InputError, match="score_definition is fixed by the registered design, 'minus the"):
        audit_scores(calibration, audited, registered, score_definition="logit")


def test_report_can_be_saved_and_verified(tmp_path):
    ids = tuple((f"a{group}", f"b{group}") for group in range(GROUPS))
    report = audit_scores(
        *make_runs(), record_ids=ids, score_definition="minus the loss", claim=Claim(1.0, 1e-6)
    )
    folder = report.save(tmp_path / "report")
    assert verify(folder).ok
    assert "minus the loss" in (folder / "report.md").read_text()
