"""Rules: the part of a design that is declared before its sizes are known."""

from dataclasses import MISSING, fields

import pytest

from jaxaudit.analysis import Claim
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.rules import Rules, make_claim

SIZES_AND_METHOD = {"num_groups", "num_calibration_runs", "num_audit_runs", "method"}


def test_rules_are_the_design_without_its_sizes_and_method():
    design = {field.name: (field.type, field.default) for field in fields(AuditDesign)}
    rules = {field.name: (field.type, field.default) for field in fields(Rules)}
    assert rules == {name: value for name, value in design.items() if name not in SIZES_AND_METHOD}
    assert MISSING not in {default for _, default in rules.values()}


def test_design_has_what_was_declared():
    rules = Rules(
        num_guesses=6, significance=0.01, delta=1e-5, statistic="tail", threshold=5, predictor="joint"
    )
    design = rules.design(num_groups=6, num_calibration_runs=40, num_audit_runs=3, method="both")
    assert design == AuditDesign(
        num_groups=6,
        num_calibration_runs=40,
        num_audit_runs=3,
        num_guesses=6,
        significance=0.01,
        delta=1e-5,
        method="both",
        statistic="tail",
        threshold=5,
        predictor="joint",
    )


def test_fields_without_effect_are_refused_only_if_they_were_set():
    Rules(delta=0.1).refuse(("variance", "temperature"), "is only used for scores")
    with pytest.raises(InputError, match=r"temperature is only used for scores, got 0\.5"):
        Rules(temperature=0.5).refuse(("variance", "temperature"), "is only used for scores")


def test_claims():
    assert make_claim(None) is None
    assert make_claim(2.0, 1e-5) == Claim(2.0, 1e-5)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ((None, 1e-5), "claim_delta needs claim_epsilon, got claim_delta=1e-05 alone"),
        ((-1.0, 0.0), "claim_epsilon must not be negative, got -1.0"),
        ((float("inf"), 0.0), "claim_epsilon must be a finite number, got inf"),
        ((float("nan"), 0.0), "claim_epsilon must be a finite number, got nan"),
        ((1.0, float("nan")), "claim_delta must be a finite number, got nan"),
        ((1.0, 1.0), r"claim_delta must be in \[0, 1\), got 1.0"),
    ],
)
def test_impossible_claims(claim, message):
    with pytest.raises(InputError, match=message):
        make_claim(*claim)
