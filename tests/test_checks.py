import numpy as np
import pytest

from jaxaudit import checks
from jaxaudit.errors import InputError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.check_groups(1), "num_groups must be an integer of at least 2, got 1"),
        (lambda: checks.check_groups(6.0), "num_groups must be an integer of at least 2, got 6.0"),
        (lambda: checks.check_groups(True), "num_groups must be an integer of at least 2, got True"),
        (lambda: checks.check_groups(None), "num_groups must be an integer of at least 2, got None"),
        (lambda: checks.check_design(6, 0), "num_guesses must be an integer between 2 and 6, got 0"),
        (lambda: checks.check_design(6, 8), "num_guesses must be an integer between 2 and 6, got 8"),
        (lambda: checks.check_design(6, 5), "num_guesses must be even, got 5"),
        (lambda: checks.check_runs(0), "num_runs must be an integer of at least 1, got 0"),
        (lambda: checks.check_real("mean", "3"), "mean must be a finite number, got '3'"),
        (lambda: checks.check_real("mean", np.nan), "mean must be a finite number, got nan"),
        (lambda: checks.check_epsilon(-0.1), "epsilon must not be negative, got -0.1"),
        (lambda: checks.check_epsilon(np.inf), "epsilon must be a finite number, got inf"),
        (lambda: checks.check_epsilon(-1, "epsilon_ldp"), "epsilon_ldp must not be negative, got -1.0"),
        (lambda: checks.check_delta(1.0), r"delta must be in \[0, 1\), got 1.0"),
        (lambda: checks.check_delta(2.0, "claim_delta"), r"claim_delta must be in \[0, 1\), got 2.0"),
        (lambda: checks.check_delta(-1e-9), r"delta must be in \[0, 1\), got -1e-09"),
        (lambda: checks.check_delta(np.nan), "delta must be a finite number, got nan"),
        (lambda: checks.check_significance(0.0), r"significance must be in \(0, 1\), got 0.0"),
        (lambda: checks.check_significance(1), r"significance must be in \(0, 1\), got 1.0"),
        (lambda: checks.check_significance(np.nan), "significance must be a finite number, got nan"),
        (lambda: checks.check_choice("form", "x", ["a", "b"]), "form must be one of a, b, got 'x'"),
        (lambda: checks.check_overlaps([], 6), r"at least one run, got shape \(0,\)"),
        (lambda: checks.check_overlaps([[1, 2]], 6), r"one number per run, .* got shape \(1, 2\)"),
        (lambda: checks.check_overlaps(3, 6), r"one number per run, .* got shape \(\)"),
        (lambda: checks.check_overlaps([1, -1], 6), "between 0 and num_guesses = 6, got -1"),
        (lambda: checks.check_overlaps([1, 7], 6), "between 0 and num_guesses = 6, got 7"),
        (lambda: checks.check_overlaps([1, 2.5], 6), "overlaps must be integers .* got 2.5"),
        (lambda: checks.check_overlaps([1, np.nan], 6), "overlaps must be integers .* got nan"),
        (lambda: checks.check_overlaps([True, False], 6), "overlaps must be integers, got dtype bool"),
        (lambda: checks.check_overlaps(["1"], 6), "overlaps must be integers, got dtype"),
    ],
)
def test_bad_argument_is_named_with_its_value(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_good_arguments_come_back_as_plain_types():
    num_groups, num_guesses = checks.check_design(np.int64(6), np.int32(4))
    assert (num_groups, num_guesses) == (6, 4)
    assert type(num_groups) is int
    assert type(num_guesses) is int
    assert checks.check_integer("count", 3, low=3, high=3) == 3
    assert checks.check_epsilon(0) == 0.0
    assert checks.check_delta(np.float32(0.5)) == 0.5
    assert checks.check_significance(0.05) == 0.05
    assert checks.check_choice("form", "a", ["a", "b"]) is None


def test_whole_floats_are_overlaps():
    values = checks.check_overlaps([0.0, 6.0], 6)
    assert values.tolist() == [0, 6]
    assert values.dtype == np.int64
