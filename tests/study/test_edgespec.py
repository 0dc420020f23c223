"""Settings of an audit of edges."""

from dataclasses import replace

import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import LoraSpec
from jaxaudit.study import EdgeAuditSpec, StudySpec

STUDY = StudySpec(seeds=(1,))


def test_rows_are_the_baselines_and_the_methods():
    spec = EdgeAuditSpec(STUDY, methods=("npo",))
    assert spec.rows == ("before", "retrained", "npo")
    assert EdgeAuditSpec(STUDY).variants == StudySpec().methods
    both = EdgeAuditSpec(STUDY, ("npo",), ("utility", "strong"))
    assert both.variants == ("npo", "npo (strong)")


def test_signs_are_drawn_for_the_joint_predictor_if_it_is_asked_for():
    spec = EdgeAuditSpec(STUDY, predictors=("batchwise", "joint"))
    assert spec.design(6).predictor == "joint"
    with pytest.raises(InputError, match="num_calibration_runs"):
        spec.design(8)  # 70 sign vectors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ("dpo",)}, "methods must be one of"),
        ({"methods": ()}, "methods must hold at least one method, got none"),
        ({"study": replace(STUDY, seeds=(1, 2))}, r"seeds must be one, that of the audit, got \(1, 2\)"),
        (
            {"study": replace(STUDY, fine_tuning_lora=LoraSpec(dropout=0.05))},
            r"fine_tuning_lora must have dropout 0 in an audit of edges, got 0\.05",
        ),
        ({"rules": ("best",)}, "rules must be one of"),
        ({"rules": ("strong", "strong")}, "rules must be different"),
        ({"methods": ("npo", "npo")}, "methods must be different"),
        ({"num_measured": 11}, "num_measured"),
        ({"predictors": ()}, "predictors"),
        ({"predictors": ("joint", "joint")}, "predictors"),
    ],
)
def test_wrong_settings_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        EdgeAuditSpec(**{"study": STUDY, **changes})
