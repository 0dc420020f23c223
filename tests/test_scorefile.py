"""Evidence files of any framework, and their agreement with a registered design."""

import numpy as np
import pytest

from jaxaudit.design import AuditDesign
from jaxaudit.designfile import DesignFile
from jaxaudit.errors import InputError
from jaxaudit.scorefile import (
    GuessFile,
    LogRatioFile,
    OverlapFile,
    ScoreFile,
    check_against_design,
    read_score_file,
)

CALIBRATION = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]])
SIGNS = np.array([[-1, 1, -1], [-1, -1, 1]])
RNG = np.random.default_rng(0)
SCORES = {
    "calibration_signs": CALIBRATION,
    "calibration_scores": RNG.normal(size=(4, 3, 2)),
    "signs": SIGNS,
    "scores": RNG.normal(size=(2, 3, 2)),
}
IDS = {"calibration_run_ids": np.array([10, 11, 12, 13]), "run_ids": np.array([3, 2])}
DESIGN = AuditDesign(num_groups=3, num_calibration_runs=4, num_audit_runs=2, num_guesses=2)
REGISTERED = DesignFile(DESIGN, CALIBRATION, SIGNS, score_definition="logit", **IDS)


def read(tmp_path, design_file=None, **arrays):
    np.savez(tmp_path / "evidence.npz", **arrays)
    found = read_score_file(tmp_path / "evidence.npz")
    if design_file is not None:
        check_against_design(found, design_file)
    return found


def without(name):
    return {key: array for key, array in SCORES.items() if key != name}


def test_scores(tmp_path):
    weights = np.array([[1, 1], [1, 0], [1, 1]])
    failed = np.array([0, 1, 0, 0])
    found = read(
        tmp_path, **SCORES, **IDS, weights=weights, calibration_failed=failed, failed=np.array([False, True])
    )
    assert isinstance(found, ScoreFile)
    np.testing.assert_array_equal(found.calibration.scores, SCORES["calibration_scores"])
    np.testing.assert_array_equal(found.audited.scores, SCORES["scores"])
    np.testing.assert_array_equal(found.calibration.signs, CALIBRATION)
    np.testing.assert_array_equal(found.audited.signs, SIGNS)
    assert (found.run_ids.tolist(), found.calibration.run_ids.tolist()) == ([3, 2], [10, 11, 12, 13])
    assert (found.calibration.failed.tolist(), found.audited.failed.tolist()) == (
        [False, True, False, False],
        [0, 1],
    )
    np.testing.assert_array_equal(found.audited.weights, weights)
    np.testing.assert_array_equal(found.calibration.weights, weights)


def test_one_score_per_group_and_default_ids(tmp_path):
    arrays = {name: array[..., 0] if "scores" in name else array for name, array in SCORES.items()}
    found = read(tmp_path, **arrays, weights=np.ones(3))
    np.testing.assert_array_equal(found.audited.scores, SCORES["scores"][..., :1])
    assert found.run_ids.tolist() == [1_000_000, 1_000_001]
    assert found.calibration.run_ids.tolist() == [0, 1, 2, 3]


def test_guesses(tmp_path):
    found = read(tmp_path, guesses=[[-1, 1, 0], [0, 0, 0]], signs=SIGNS, failed=[0, 1], run_ids=[5, 4])
    assert isinstance(found, GuessFile)
    assert found.guesses.tolist() == [[-1, 1, 0], [0, 0, 0]]
    assert found.signs.tolist() == SIGNS.tolist()
    assert (found.failed.tolist(), found.run_ids.tolist()) == ([False, True], [5, 4])


def test_log_ratios(tmp_path):
    ratios = np.array([[-0.5, 2.5, 0.0], [np.nan, np.inf, 1.0]])
    found = read(tmp_path, log_ratios=ratios, signs=SIGNS, failed=[0, 1], run_ids=[5, 4])
    assert isinstance(found, LogRatioFile)
    assert found.log_ratios.tolist() == [[-0.5, 2.5, 0.0], [0.0, 0.0, 0.0]]
    assert found.signs.tolist() == SIGNS.tolist()
    assert (found.failed.tolist(), found.run_ids.tolist()) == ([False, True], [5, 4])


def test_overlaps(tmp_path):
    found = read(
        tmp_path, overlaps=[2.0, 3.0, 4.0], num_groups=6, num_guesses=np.array([4]), failed=[0, 1, 0]
    )
    assert isinstance(found, OverlapFile)
    assert (found.overlaps.tolist(), found.num_groups, found.num_guesses) == ([2, 0, 4], 6, 4)
    found = read(tmp_path, overlaps=[2, 3])
    assert (found.num_groups, found.num_guesses, found.failed.tolist()) == (None, None, [False, False])
    assert found.run_ids.tolist() == [1_000_000, 1_000_001]


def test_scores_come_before_log_ratios_before_guesses_before_overlaps(tmp_path):
    everything = {**SCORES, "log_ratios": SIGNS, "guesses": SIGNS, "overlaps": np.array([2, 2])}
    for name, kind in (
        ("calibration_scores", ScoreFile),
        ("log_ratios", LogRatioFile),
        ("guesses", GuessFile),
        ("overlaps", OverlapFile),
    ):
        assert isinstance(read(tmp_path, **everything), kind)
        del everything[name]


def test_csv_and_npz_agree(tmp_path):
    lines = ["run,group,example,sign,score,split"]
    for prefix, split in (("calibration_", "calibration"), ("", "audit")):
        for run, run_id in enumerate(IDS[f"{prefix}run_ids"]):
            for group in range(3):
                for example in range(2):
                    sign = SCORES[f"{prefix}signs"][run, group]
                    score = float(SCORES[f"{prefix}scores"][run, group, example])
                    lines.append(f"{run_id},{group},{example},{sign},{score!r},{split}")
    (tmp_path / "evidence.csv").write_text("\n".join(lines))
    from_csv, from_npz = read_score_file(tmp_path / "evidence.csv"), read(tmp_path, **SCORES, **IDS)
    for part in ("calibration", "audited"):
        one, other = getattr(from_csv, part), getattr(from_npz, part)
        order = np.argsort(other.run_ids)
        for name in ("signs", "scores", "run_ids", "failed"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[order])
        np.testing.assert_array_equal(one.weights, other.weights)


def test_csv_of_guesses_and_of_overlaps(tmp_path):
    path = tmp_path / "evidence.csv"
    path.write_text("run,group,guess,sign\n4,0,1,1\n4,1,-1,-1\n")
    assert isinstance(read_score_file(path), GuessFile)
    path.write_text("run,group,log_ratio,sign,failed\n4,0,0.5,1,0\n4,1,-2,-1,0\n5,0,,-1,1\n5,1,,1,1\n")
    found = read_score_file(path)
    assert isinstance(found, LogRatioFile)
    assert found.log_ratios.tolist() == [[0.5, -2.0], [0.0, 0.0]]
    path.write_text("run,overlap,failed\n4,2,0\n5,,1\n")
    found = read_score_file(path)
    assert (found.overlaps.tolist(), found.failed.tolist(), found.num_groups) == ([2, 0], [False, True], None)
    path.write_text("run,overlap\n4,2\n4,2\n")
    with pytest.raises(InputError, match="run_ids must be unique, got 4 more than once"):
        read_score_file(path)
    path.write_text(
        "run,group,example,sign,score,split\n"
        + "\n".join(
            f"{run},{group},0,{sign},{'' if run else 1},{split}"
            for run, split in ((0, "calibration"), (1, "audit"))
            for group, sign in ((0, 1), (1, -1))
        )
    )
    with pytest.raises(
        InputError, match="audited scores must be finite, got nan in run 1, group 0, example 0"
    ):
        read_score_file(path)


def test_files_that_are_no_evidence(tmp_path):
    with pytest.raises(InputError, match=r"no such file: .*gone\.npz"):
        read_score_file(tmp_path / "gone.npz")
    (tmp_path / "a.pkl").write_text("x")
    with pytest.raises(InputError, match=r"evidence must be a \.npz or \.csv file, got .*a\.pkl"):
        read_score_file(tmp_path / "a.pkl")
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(InputError, match=r"a\.csv is empty"):
        read_score_file(tmp_path / "a.csv")


def nan_score():
    scores = SCORES["scores"].copy()
    scores[1, 2, 0] = np.nan
    return scores


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "arrays lack 'calibration_signs', 'calibration_scores', 'signs', 'scores'; found none"),
        (
            without("calibration_signs"),
            "arrays lack 'calibration_signs'; found 'calibration_scores', 'signs', 'scores'",
        ),
        (without("calibration_scores"), "arrays lack 'calibration_scores'"),
        (without("signs"), "arrays lack 'signs'"),
        (without("scores"), "arrays lack 'scores'"),
        (without("scores") | {"score": SIGNS}, "arrays lack 'scores'; .* is 'score' meant to be 'scores'"),
        ({"overlap": [1, 2]}, "arrays lack 'overlaps'; found 'overlap'; is 'overlap' meant to be 'overlaps'"),
        ({"guess": SIGNS, "signs": SIGNS}, "arrays lack 'guesses'; .* is 'guess' meant to be 'guesses'"),
        (SCORES | {"faild": [0, 0]}, "is 'faild' meant to be 'failed'"),
        (SCORES | {"scores": np.array([[["a"] * 2] * 3] * 2, dtype=object)}, "array 'scores' is pickled"),
        (SCORES | {"scores": SIGNS.astype(str)}, "scores must be numbers, got dtype <U"),
        (SCORES | {"scores": SCORES["scores"][:1]}, r"axis 0 \(runs\) of scores must have length 2, got 1"),
        (
            SCORES | {"calibration_scores": np.ones((4, 2))},
            r"axis 1 \(groups\) of calibration_scores .* 3, got 2",
        ),
        (
            SCORES | {"scores": np.ones(2)},
            r"scores must have axes \(runs, groups, examples\), got shape \(2,\)",
        ),
        (
            SCORES | {"scores": np.array(1.0)},
            r"scores must have axes \(runs, groups, examples\), got shape \(\)",
        ),
        (SCORES | {"scores": np.ones((2, 3, 4))}, r"same \(groups, examples\), got \(3, 2\) and \(3, 4\)"),
        (SCORES | {"signs": SIGNS[0]}, r"signs must have axes \(runs, groups\), got shape \(3,\)"),
        (SCORES | {"signs": -SIGNS}, "audited signs must have exactly 1 of 3 entries"),
        (SCORES | {"signs": SIGNS * np.nan}, "signs must be integers, got nan"),
        (
            SCORES | {"scores": nan_score()},
            "audited scores must be finite, got nan in run 1000001, group 2, example 0",
        ),
        (SCORES | {"weights": np.ones((2, 2))}, r"axis 0 \(groups\) of weights must have length 3, got 2"),
        (SCORES | {"weights": np.ones((3, 1))}, r"axis 1 \(examples\) of weights must have length 2, got 1"),
        (SCORES | {"weights": np.zeros((3, 2))}, "weights must be 0 or 1 with at least one 1 per group"),
        (SCORES | {"failed": [0]}, r"axis 0 \(runs\) of failed must have length 2, got 1"),
        (SCORES | {"calibration_failed": [0, 0, 2, 0]}, "calibration_failed must be 0 or 1, got 2"),
        (SCORES | {"run_ids": [1, 2]}, "run_ids and calibration_run_ids must be given both or not at all"),
        (SCORES | IDS | {"run_ids": [1]}, r"axis 0 \(runs\) of run_ids must have length 2, got 1"),
        (SCORES | IDS | {"run_ids": [1, 12]}, "must be disjoint, got run id .*12.* in both"),
        (SCORES | IDS | {"run_ids": [1, 1]}, "audited run_ids must be unique"),
        (SCORES | IDS | {"run_ids": ["a", "b"]}, "run_ids must be integers, got dtype <U1"),
        ({"guesses": SIGNS[:1], "signs": SIGNS}, r"axis 0 \(runs\) of guesses must have length 2, got 1"),
        (
            {"guesses": SIGNS[:, :2], "signs": SIGNS},
            r"axis 1 \(groups\) of guesses must have length 3, got 2",
        ),
        ({"guesses": SIGNS * np.nan, "signs": SIGNS}, "guesses must be integers, got nan"),
        (
            {"log_ratios": [[0.5, np.inf, 0.0], [0.1, 0.2, 0.3]], "signs": SIGNS},
            "log_ratios must be finite, got inf in run 1000000, group 1; a run that diverged",
        ),
        (
            {"log_ratios": SIGNS[:, :2], "signs": SIGNS},
            r"axis 1 \(groups\) of log_ratios must have length 3, got 2",
        ),
        ({"log_ratios": SIGNS.astype(str), "signs": SIGNS}, "log_ratios must be numbers, got dtype <U"),
        ({"log_ratio": SIGNS, "signs": SIGNS}, "arrays lack 'log_ratios'; .* is 'log_ratio' meant to be"),
        (
            {"guesses": SIGNS, "signs": SIGNS, "failed": [1, 0, 0]},
            r"axis 0 \(runs\) of failed must have length 2",
        ),
        (
            {"guesses": SIGNS, "signs": SIGNS, "run_ids": [1, 1]},
            "run_ids must be unique, got 1 more than once",
        ),
        ({"overlaps": []}, "overlaps must hold at least one run, got none"),
        ({"overlaps": [1, -2]}, "overlaps must not be negative, got -2"),
        ({"overlaps": [1, 2.5]}, "overlaps must be integers, got 2.5"),
        ({"overlaps": [1, np.nan]}, "overlaps must be integers, got nan"),
        ({"overlaps": [[1, 2]]}, r"overlaps must have axes \(runs\), got shape \(1, 2\)"),
        ({"overlaps": [1, 2], "num_groups": [6, 6]}, r"num_groups must be one number, got shape \(2,\)"),
        ({"overlaps": [1, 2], "failed": [0]}, r"axis 0 \(runs\) of failed must have length 2, got 1"),
        ({"overlaps": [1, 2], "num_guess": 4}, "is 'num_guess' meant to be 'num_guesses'"),
    ],
)
def test_refused(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, **arrays)


def test_registered_runs_in_any_order(tmp_path):
    swapped = {"signs": SIGNS[::-1], "scores": SCORES["scores"][::-1], "run_ids": IDS["run_ids"][::-1]}
    for arrays in (SCORES | IDS, SCORES | IDS | swapped):
        assert isinstance(read(tmp_path, REGISTERED, **arrays), ScoreFile)
    read(tmp_path, REGISTERED, log_ratios=SIGNS, signs=SIGNS, run_ids=IDS["run_ids"])
    read(tmp_path, REGISTERED, guesses=SIGNS, signs=SIGNS, run_ids=IDS["run_ids"])
    read(tmp_path, REGISTERED, overlaps=[2, 2], run_ids=[2, 3], num_groups=3, num_guesses=2)
    read(tmp_path, REGISTERED, overlaps=[2, 2], run_ids=[2, 3])
    default_ids = DesignFile(DESIGN, CALIBRATION, SIGNS, score_definition="logit")
    read(tmp_path, default_ids, **SCORES)


def test_a_rule_left_open_agrees_with_any_number_of_guesses(tmp_path):
    free = DesignFile(DESIGN.replace(num_guesses=None), CALIBRATION, SIGNS, score_definition="logit", **IDS)
    read(tmp_path, free, overlaps=[2, 2], run_ids=[2, 3], num_guesses=2)


def head(count):
    """The first audited runs only."""
    return {
        name: array[:count] for name, array in (SCORES | IDS).items() if not name.startswith("calibration_")
    }


WITHOUT_ONE_CALIBRATION_RUN = {
    name: array[1:] if name.startswith("calibration_") else array for name, array in (SCORES | IDS).items()
}
ROTATED = SIGNS[:, [1, 0, 2]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            SCORES | IDS | head(1),
            r"audited run 2 of the registered design is missing \(1 missing\); no run may be drop",
        ),
        (WITHOUT_ONE_CALIBRATION_RUN, "calibration run 10 of the registered design is missing"),
        (SCORES | IDS | {"run_ids": [3, 7]}, "audited run 2 of the registered design is missing"),
        (SCORES, "calibration run 10 of the registered design is missing"),
        (
            SCORES | IDS | {"run_ids": IDS["run_ids"][::-1]},
            "audited run 2 has sign 1 for group 1, .* design has -1",
        ),
        (
            SCORES | IDS | {"calibration_signs": CALIBRATION[[0, 2, 1, 3]]},
            "calibration run 11 has sign -1 for group 1, the registered design has 1",
        ),
        ({"guesses": SIGNS, "signs": ROTATED, "run_ids": [3, 2]}, "audited run 3 has sign 1 for group 0"),
        ({"guesses": SIGNS[:1], "signs": SIGNS[:1], "run_ids": [3]}, "audited run 2 .* is missing"),
        ({"log_ratios": SIGNS, "signs": ROTATED, "run_ids": [3, 2]}, "audited run 3 has sign 1 for group 0"),
        (
            {"guesses": np.zeros((2, 4)), "signs": [[1, 1, -1, -1]] * 2, "run_ids": [3, 2]},
            r"axis 1 \(groups\) of audited signs must have length 3, got 4",
        ),
        ({"overlaps": [2, 2, 2], "run_ids": [2, 3, 4]}, "audited run 4 is not in the registered design"),
        ({"overlaps": [2], "run_ids": [2]}, "audited run 3 of the registered design is missing"),
        (
            {"overlaps": [2, 2], "run_ids": [2, 3], "num_groups": 4},
            "num_groups is 4, the registered design has 3",
        ),
        (
            {"overlaps": [1, 1], "run_ids": [2, 3], "num_guesses": 4},
            "num_guesses is 4, the registered design has 2",
        ),
    ],
)
def test_disagreement_with_the_registered_design(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, REGISTERED, **arrays)


def test_a_failed_run_still_counts_as_there(tmp_path):
    scores = SCORES["scores"].copy()
    scores[1] = np.nan
    found = read(tmp_path, REGISTERED, **(SCORES | IDS | {"scores": scores, "failed": [0, 1]}))
    assert found.audited.failed.tolist() == [False, True]
