import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.scored import AuditedRuns, CalibrationRuns, check_disjoint, check_signs

SIGNS = [[1, -1], [-1, 1]]
SCORES = np.array([[[0.5], [1.0]], [[2.0], [3.0]]])


def test_defaults_and_shapes():
    runs = CalibrationRuns(SIGNS, SCORES[:, :, 0])
    assert runs.scores.shape == (2, 2, 1)
    assert runs.run_ids.tolist() == [0, 1]
    assert not runs.failed.any()
    assert runs.weights.tolist() == [[1.0], [1.0]]
    assert (runs.num_runs, runs.num_groups) == (2, 2)
    assert AuditedRuns(SIGNS, SCORES).run_ids.tolist() == [1_000_000, 1_000_001]


def test_checked_arrays_cannot_be_changed():
    scores = SCORES.copy()
    runs = CalibrationRuns(SIGNS, scores)
    with pytest.raises(ValueError, match="read-only"):
        runs.scores[0, 0, 0] = 9.0
    scores[0, 0, 0] = 9.0  # the caller's array stays writable
    assert runs.scores[0, 0, 0] == 0.5
    assert runs.signs.dtype == np.int8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"signs": [[1, 1], [-1, 1]]}, "exactly 1 of 2 entries"),
        ({"signs": [[1, 0], [-1, 1]]}, r"signs must be -1 or \+1, got 0"),
        ({"signs": [1, -1]}, "signs must have shape"),
        ({"signs": np.zeros((0, 2))}, "signs must have shape"),
        ({"scores": SCORES[:1]}, r"scores must have shape \(runs, groups, examples\)"),
        ({"scores": SCORES[:, :, :, None]}, "scores must have shape"),
        (
            {"scores": SCORES * np.nan},
            r"scores must be finite, got nan in run 7, group 0, example 0 \(4 such values\)",
        ),
        ({"scores": np.where(SCORES == 0.5, np.inf, SCORES)}, "got inf in run 7, group 0, example 0"),
        ({"run_ids": [3, 3]}, "run_ids must be unique, got 3 more than once"),
        ({"run_ids": [0.5, 1.0]}, "run_ids must be integers, got 0.5"),
        ({"failed": [0.5, 0.0]}, "failed must be 0 or 1, got 0.5"),
        ({"failed": [2, 0]}, "failed must be 0 or 1, got 2"),
        ({"failed": ["yes", ""]}, "failed must be numbers, got dtype"),
        ({"run_ids": [3]}, r"run_ids must have shape \(2,\), got \(1,\)"),
        ({"failed": [True]}, r"failed must have shape \(2,\)"),
        ({"weights": [[1.0, 1.0]]}, r"weights must have shape \(2, 1\)"),
        ({"weights": [[0.5], [1.0]]}, "weights must be 0 or 1"),
        ({"weights": [[0.0], [1.0]]}, "at least one 1 per group"),
    ],
)
@pytest.mark.parametrize("kind", [CalibrationRuns, AuditedRuns])
def test_bad_runs(kind, change, message):
    with pytest.raises(InputError, match=message):
        kind(**{"signs": SIGNS, "scores": SCORES, "run_ids": [7, 8], **change})


def test_nan_is_allowed_in_failed_runs_and_in_padding_only():
    scores = np.tile(SCORES, (1, 1, 2))
    scores[0] = np.nan
    scores[1, 1, 1] = np.nan
    runs = AuditedRuns(SIGNS, scores, failed=[True, False], weights=[[1, 1], [1, 0]])
    assert runs.failed.tolist() == [True, False]


def test_failed_is_bool_or_0_or_1():
    for failed in ([True, False], [1, 0], [1.0, 0.0]):
        runs = AuditedRuns(SIGNS, SCORES, failed=failed)
        assert runs.failed.dtype == bool
        assert runs.failed.tolist() == [True, False]


def test_runs_in_both_sets_are_refused():
    calibration = CalibrationRuns(SIGNS, SCORES, run_ids=[1, 2])
    with pytest.raises(InputError, match="must be disjoint, got run id 2 in both"):
        check_disjoint(calibration, AuditedRuns(SIGNS, SCORES, run_ids=[2, 3]))
    check_disjoint(calibration, AuditedRuns(SIGNS, SCORES, run_ids=[3, 4]))


def test_both_sets_describe_the_same_groups():
    calibration = CalibrationRuns(SIGNS, SCORES)
    with pytest.raises(InputError, match=r"same \(groups, examples\)"):
        check_disjoint(calibration, AuditedRuns(SIGNS, np.tile(SCORES, (1, 1, 2))))
    wide = np.tile(SCORES, (1, 1, 2))
    with pytest.raises(InputError, match="weights must be equal"):
        check_disjoint(CalibrationRuns(SIGNS, wide), AuditedRuns(SIGNS, wide, weights=[[1, 1], [1, 0]]))


def test_odd_numbers_of_groups_have_one_more_minus():
    assert check_signs([[1, -1, -1]]).tolist() == [[1, -1, -1]]
    with pytest.raises(InputError, match="got 2 in row 1"):
        check_signs([[1, -1, -1], [1, 1, -1]])
