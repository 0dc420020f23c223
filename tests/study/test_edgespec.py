"""Settings of an audit of edges."""

import pytest

from jaxaudit.errors import InputError
from jaxaudit.study import EdgeAuditSpec, StudySpec


def test_rows_are_the_baselines_and_the_methods():
    spec = EdgeAuditSpec(StudySpec(), methods=("npo",))
    assert spec.rows == ("before", "retrained", "npo")
    assert EdgeAuditSpec(StudySpec()).variants == StudySpec().methods
    both = EdgeAuditSpec(StudySpec(), ("npo",), ("utility", "strong"))
    assert both.variants == ("npo", "npo (strong)")


def test_signs_are_drawn_for_the_joint_predictor_if_it_is_asked_for():
    spec = EdgeAuditSpec(StudySpec(), predictors=("batchwise", "joint"))
    assert spec.design(6).predictor == "joint"
    with pytest.raises(InputError, match="num_calibration_runs"):
        spec.design(8)  # 70 sign vectors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ("dpo",)}, "methods must be one of"),
        ({"rules": ("best",)}, "rules must be one of"),
        ({"num_measured": 11}, "num_measured"),
        ({"predictors": ()}, "predictors"),
        ({"predictors": ("joint", "joint")}, "predictors"),
    ],
)
def test_wrong_settings_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        EdgeAuditSpec(StudySpec(), **changes)
