import pytest

from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_groups": 1}, "num_groups must be an integer of at least 2, got 1"),
        ({"num_groups": 6.0}, "num_groups must be an integer of at least 2, got 6.0"),
        ({"num_calibration_runs": 3}, "num_calibration_runs must be an integer of at least 4, got 3"),
        (
            {"num_calibration_runs": 1, "num_guesses": 4, "temperature": 1.0},
            "num_calibration_runs must be an integer of at least 2, got 1",
        ),
        (
            {"num_groups": 7, "num_calibration_runs": 3, "num_guesses": 4, "temperature": 1.0},
            "num_calibration_runs must be an integer of at least 4, got 3",
        ),
        (
            {"num_calibration_runs": 39, "predictor": "joint"},
            "num_calibration_runs must be an integer of at least 40, got 39",
        ),
        ({"num_audit_runs": 0}, "num_audit_runs must be an integer of at least 1, got 0"),
        ({"num_guesses": 3}, "num_guesses must be even, got 3"),
        ({"num_guesses": 0}, "got 0"),
        ({"num_guesses": 8}, "got 8"),
        ({"temperature": 0.0}, "temperature must be positive and finite, got 0.0"),
        ({"temperature": float("nan")}, "temperature must be positive and finite, got nan"),
        ({"temperature": float("inf")}, "temperature must be positive and finite, got inf"),
        ({"statistic": "tail", "threshold": 7}, "threshold must be an integer between 1 and 6, got 7"),
        (
            {"statistic": "tail", "threshold": 5, "num_guesses": 4},
            "threshold must be an integer between 1 and 4, got 5",
        ),
        ({"significance": 0.0}, r"significance must be in \(0, 1\), got 0.0"),
        ({"significance": 1.0}, r"significance must be in \(0, 1\), got 1.0"),
        ({"delta": -0.1}, r"delta must be in \[0, 1\), got -0.1"),
        ({"delta": 1.0}, r"delta must be in \[0, 1\), got 1.0"),
        ({"variance_floor": 0.0}, "variance_floor must be positive"),
        ({"method": "theorem"}, "method must be one of direct, soft, both, got 'theorem'"),
        ({"statistic": "max"}, "statistic must be one of mean, median, tail, got 'max'"),
        ({"predictor": "best"}, "predictor must be one of batchwise, joint"),
        ({"variance": "none"}, "variance must be one of per-point, pooled, global"),
        ({"evidence_form": "sum"}, "evidence_form must be one of product, betting"),
        ({"threshold": 3}, "threshold is only used by statistic='tail', got 3"),
        ({"predictor": "joint", "num_guesses": 4}, "joint predictor guesses every group"),
        ({"predictor": "joint", "num_groups": 5}, "joint predictor guesses every group"),
    ],
)
def test_bad_designs(change, message):
    with pytest.raises(InputError, match=message):
        AuditDesign(**{"num_groups": 6, **change})


def test_a_changed_copy_is_checked_again():
    design = AuditDesign(num_groups=6)
    assert design.replace(num_guesses=4).num_guesses == 4
    with pytest.raises(InputError, match="num_guesses"):
        design.replace(num_guesses=5)


def test_as_dict_round_trips():
    design = AuditDesign(num_groups=6, statistic="tail", threshold=5)
    assert AuditDesign(**design.as_dict()) == design
