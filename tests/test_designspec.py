"""The design of an audit elsewhere is the one that an audit here would have."""

import numpy as np
import pytest

from jaxaudit import data
from jaxaudit.design import AuditDesign
from jaxaudit.designspec import DesignSpec, make_design
from jaxaudit.errors import InputError
from jaxaudit.models import mlp
from jaxaudit.pipeline import set_up
from jaxaudit.rules import Rules


def test_exported_design_has_the_sign_vectors_and_members_of_an_audit():
    sizes = {"num_groups": 20, "num_calibration_runs": 6, "num_audit_runs": 3}
    design_file = make_design(DesignSpec(num_retain=77, seed=5, **sizes))
    records = data.load("digits", seed=5, num_groups=20, num_holdout=1700)
    assert records.num_retain == 77
    setup = set_up(records, mlp((64,), 10, (8,)), AuditDesign(**sizes), seed=5)
    np.testing.assert_array_equal(design_file.calibration_signs, setup.signs[:6])
    np.testing.assert_array_equal(design_file.signs, setup.signs[6:])
    np.testing.assert_array_equal(design_file.order, setup.order)
    np.testing.assert_array_equal(design_file.member_indices, setup.members[6:])
    assert design_file.design == AuditDesign(**sizes)


def test_design_without_retain_records_has_signs_only():
    design_file = make_design(DesignSpec(num_groups=6, rules=Rules(num_guesses=4), method="soft"))
    assert design_file.member_indices is None
    assert design_file.order is None
    assert (design_file.design.num_guesses, design_file.design.method) == (4, "soft")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"num_retain": 0}, "num_retain must be an integer of at least 1, got 0"),
        ({"num_retain": 5, "group_size": 0}, "group_size must be an integer of at least 1, got 0"),
    ],
)
def test_design_sizes(sizes, message):
    with pytest.raises(InputError, match=message):
        make_design(DesignSpec(num_groups=6, **sizes))
