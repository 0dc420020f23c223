"""Results refuse what cannot be reported."""

from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.analysis import Claim, analyse
from jaxaudit.errors import InputError
from jaxaudit.unlearn.base import Certificate


def test_accuracies_are_in_order(report):
    assert report.methods[0].accuracies == (1.0, 0.75, 0.5)
    assert replace(report.methods[0], test_accuracy=None).accuracies is None


def test_trained_here_follows_the_noise_keys(report):
    assert report.methods[0].trained_here
    elsewhere = replace(report.methods[0], noise_keys=None)
    assert not elsewhere.trained_here
    assert replace(report, methods=(elsewhere,)).as_dict()["methods"][0]["trained_here"] is False


@pytest.mark.parametrize(
    "field", ["retain_accuracy", "forget_accuracy", "test_accuracy", "moved", "seconds", "cost"]
)
def test_nan_is_refused(report, field):
    with pytest.raises(InputError, match=f"{field} of method 'leaky' must be finite or None, got nan"):
        replace(report.methods[0], **{field: float("nan")})


@pytest.mark.parametrize("name", ["", "a/b", "a b"])
def test_names_that_cannot_be_stored_are_refused(report, name):
    with pytest.raises(InputError, match="method name"):
        replace(report.methods[0], name=name)


def test_every_run_needs_a_noise_key(report):
    with pytest.raises(InputError, match="noise_keys must have one row per run, 21, got 20"):
        replace(report.methods[0], noise_keys=np.zeros((20, 2), np.uint32))


def test_a_report_needs_methods_with_unique_names(report):
    with pytest.raises(InputError, match="unique names"):
        replace(report, methods=())
    with pytest.raises(InputError, match="unique names"):
        replace(report, methods=(report.methods[0], report.methods[0]))


def test_record_ids_cover_every_group(report):
    with pytest.raises(InputError, match="record_ids must have one entry per group, 12, got 1"):
        replace(report, record_ids=(("a",),))


def test_table_and_dict_are_those_of_their_modules(report):
    assert "method leaky" in report.table()
    assert report.as_dict()["methods"][1]["name"] == "blind"


def test_measured_numbers_are_finite(report):
    numbers = {"mean": float("inf"), "min": 1.0, "max": 2.0, "not_finite": 0}
    with pytest.raises(InputError, match="measured 'eigenvalue' of method 'leaky' must be finite"):
        replace(report.methods[0], measured={"eigenvalue": numbers})


def test_a_record_is_named_after_its_method_and_its_update(report):
    method = replace(report.methods[0], name="leaky@20", recorded_at=20)
    assert method.family == report.methods[0].family == "leaky"
    with pytest.raises(InputError, match="name of a record after 21 updates ends in it, got 'leaky@20'"):
        replace(method, recorded_at=21)


def test_a_certificate_is_tested_at_its_own_delta_on_the_same_evidence(report):
    method = report.methods[0]
    assert method.certified is False
    assert method.certificate_verdict is None
    assert replace(method, certificate=None).certified is None
    certified = replace(method, certificate=Certificate(0.1, 1e-5, "a theorem"))
    assert certified.certified
    expected = analyse(report.design, method.calibration, method.audited, Claim(0.1, 1e-5)).verdict
    assert certified.certificate_verdict == expected


@pytest.mark.parametrize(
    ("name", "mean", "words"),
    [
        ("diverged", 0.25, "the series diverged in 25 % of the runs"),
        ("diverged", 0.0, None),
        ("dampened", 0.0, "no parameter was dampened"),
        ("dampened", 0.1, None),
        ("residual", 0.0, None),
    ],
)
def test_a_step_that_did_not_work_is_called_out(report, name, mean, words):
    method = replace(
        report.methods[0], measured={name: {"mean": mean, "min": 0.0, "max": 1.0, "not_finite": 0.0}}
    )
    own = [note for note in method.notes if note not in report.methods[0].notes]
    assert (own == []) if words is None else own[0].startswith(words)
