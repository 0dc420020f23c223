"""Long-format CSV files: the same arrays as an npz file, and every gap, repeat and contradiction named."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxaudit.errors import InputError
from jaxaudit.scorecsv import read_table


def table(tmp_path, text):
    (tmp_path / "runs.csv").write_text(text)
    return read_table(tmp_path / "runs.csv")


HEADER = "run,group,example,sign,score,split"


def rows(changes=None, drop=(), extra=()):
    """Runs 3 (calibration) and 8 (audit), 2 groups of 2 examples; `changes` replaces rows by their place."""
    lines = {
        (run, group, example): f"{run},{group},{example},{1 if (run == 3) == (group == 0) else -1},"
        f"{run + group / 10 + example / 100},{'calibration' if run == 3 else 'audit'}"
        for run in (3, 8)
        for group in (0, 1)
        for example in (0, 1)
    }
    lines |= changes or {}
    return "\n".join([HEADER, *(line for place, line in lines.items() if place not in drop), *extra])


def test_scores(tmp_path):
    arrays = table(tmp_path, rows())
    assert arrays["calibration_signs"].tolist() == [[1, -1]]
    assert arrays["signs"].tolist() == [[-1, 1]]
    assert arrays["scores"].tolist() == [[[8, 8.01], [8.1, 8.11]]]
    assert arrays["calibration_scores"].tolist() == [[[3, 3.01], [3.1, 3.11]]]
    assert (arrays["calibration_run_ids"].tolist(), arrays["run_ids"].tolist()) == ([3], [8])
    assert arrays["weights"].all()
    assert not arrays["failed"].any()


@st.composite
def grids(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(draw(st.integers(low, 4)) for low in (2, 2, 1))
    runs, groups, _ = shape
    weights = rng.random(shape[1:]) < 0.7
    weights[:, 0] = True
    weights[0] = True  # so that every example number occurs
    return {
        "run_ids": np.sort(rng.choice(1000, runs, replace=False)),
        "signs": rng.choice([-1, 1], (runs, groups)),
        "scores": rng.normal(size=shape) * 10.0 ** rng.integers(-200, 200),
        "failed": rng.random(runs) < 0.3,
        "calibration": rng.permutation(np.arange(runs) < 1 + rng.integers(runs - 1)),
        "weights": weights,
        "order": rng,
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(grids())
def test_any_order_of_rows_gives_back_the_arrays(tmp_path, grid):
    lines = [
        f"{grid['run_ids'][r]},{g},{e},{grid['signs'][r, g]:+d},{grid['scores'][r, g, e]!r},"
        f"{'calibration' if grid['calibration'][r] else 'audit'},{int(grid['failed'][r])}"
        for r in range(len(grid["run_ids"]))
        for g, e in zip(*np.nonzero(grid["weights"]))
    ]
    lines = [line.replace("np.float64(", "").replace(")", "") for line in lines]
    grid["order"].shuffle(lines)
    arrays = table(tmp_path, "\n".join([HEADER + ",failed", *lines]))
    np.testing.assert_array_equal(arrays["weights"], grid["weights"])
    for prefix, chosen in (("calibration_", grid["calibration"]), ("", ~grid["calibration"])):
        for name in ("run_ids", "signs", "failed"):
            np.testing.assert_array_equal(arrays[prefix + name], grid[name][chosen])
        expected = np.where(grid["weights"], grid["scores"][chosen], np.nan)
        np.testing.assert_array_equal(arrays[prefix + "scores"], expected)


def test_what_no_run_has_is_padding(tmp_path):
    arrays = table(tmp_path, rows(drop=[(3, 1, 1), (8, 1, 1)]))
    assert arrays["weights"].tolist() == [[True, True], [True, False]]
    assert np.isnan(arrays["scores"][0, 1, 1])


def test_a_failed_run_may_lack_scores_and_examples(tmp_path):
    crashed = {(8, g, 0): f"8,{g},0,{sign},,audit" for g, sign in ((0, -1), (1, 1))}
    lines = rows(crashed, drop=[(8, 0, 1), (8, 1, 1)]).splitlines()
    text = "\n".join(
        [lines[0] + ",failed", *(f"{line},{'TRUE' if line[0] == '8' else '0'}" for line in lines[1:])]
    )
    arrays = table(tmp_path, text)
    assert arrays["failed"].tolist() == [True]
    assert np.isnan(arrays["scores"]).all()
    assert arrays["signs"].tolist() == [[-1, 1]]
    assert arrays["weights"].all()


def test_guesses_and_overlaps(tmp_path):
    arrays = table(tmp_path, "group,run,sign,guess\n1,4,1,0\n0,4,-1,-1\n0,2,+1,1\n1,2,-1,-1\n")
    assert arrays["guesses"].tolist() == [[1, -1], [-1, 0]]
    assert arrays["signs"].tolist() == [[1, -1], [-1, 1]]
    assert arrays["run_ids"].tolist() == [2, 4]
    arrays = table(tmp_path, "run,overlap,failed\n9,3,0\n1,,1\n")
    assert (arrays["overlaps"].tolist(), arrays["run_ids"].tolist()) == ([3, 0], [9, 1])
    assert arrays["failed"].tolist() == [False, True]
    arrays = table(tmp_path, "run,group,guess,sign,failed\n1,0,,1,1\n1,1,,-1,1\n")
    assert arrays["guesses"].tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"runs\.csv is empty"),
        (HEADER, "has a header but no rows"),
        (rows().replace("sign", "sgin"), "columns lack 'sign'; found .*; is 'sgin' meant to be 'sign'"),
        ("run,overlpa\n1,2\n", "columns lack 'overlap'; found 'run', 'overlpa'; is 'overlpa' meant"),
        ("run,group,gues,sign\n1,0,1,1\n", "columns lack 'guess'; .* is 'gues' meant to be 'guess'"),
        ("run,overlap,fialed\n1,2,1\n", "is 'fialed' meant to be 'failed'"),
        (
            rows({(3, 0, 1): "3,0,1,1,high,calibration"}),
            "line 3, column 'score': expected a number, got 'high'",
        ),
        (rows({(3, 0, 1): "3,0,1,0,1,calibration"}), "line 3, column 'sign': expected -1 or 1, got '0'"),
        (
            rows({(3, 0, 1): "3,0,1,1,1,test"}),
            "line 3, column 'split': expected calibration or audit, got 'test'",
        ),
        (rows({(3, 0, 1): "3,0,x,1,1,audit"}), "line 3, column 'example': expected an integer, got 'x'"),
        ("run,overlap,failed\n1,2,maybe\n", "line 2, column 'failed': expected 0 or 1, got 'maybe'"),
        (rows(drop=[(8, 1, 1)]), "no row for run 8, group 1, example 1, which other runs have"),
        (rows(drop=[(8, 1, 0), (8, 1, 1)]), r"runs\.csv: no row for run 8, group 1$"),
        (rows(drop=[(8, 0, 0), (8, 0, 1)]), r"runs\.csv: no row for run 8, group 0$"),
        (rows(drop=[(3, 0, 0), (3, 0, 1)]), r"runs\.csv: no row for run 3, group 0$"),
        (rows(extra=["3,0,0,1,1,calibration"]), "run 3, group 0, example 0 has more than one row"),
        (rows({(8, 1, 1): "8,1,1,-1,1,audit"}), "run 8, group 1 has two values of sign: 1 and -1"),
        (rows({(8, 1, 1): "8,1,1,1,1,calibration"}), "run 8 has two values of split: audit and calibration"),
        (rows().replace("audit", "calibration"), "no rows with split 'audit'"),
        (rows().replace("calibration", "audit"), "no rows with split 'calibration'"),
        (
            rows(drop=[(r, 0, e) for r in (3, 8) for e in (0, 1)]),
            "group must be numbered from 0 .* got 1 where 0",
        ),
        (
            rows(drop=[(r, g, 0) for r in (3, 8) for g in (0, 1)]),
            "example must be numbered from 0 .* got 1 where 0",
        ),
        (
            rows(extra=["3,-1,0,1,1,calibration"]),
            "group must be numbered from 0 without gaps, got -1 where 0",
        ),
        (
            rows(extra=["3,4000000000,0,1,1,calibration"]),
            "group must be .* got 4000000000 where 2 was expected",
        ),
        ("run,group,guess,sign\n1,0,1,1\n1,1,-1,-1\n1,1,-1,-1\n", "run 1, group 1 has more than one row"),
        (
            "run,group,guess,sign\n1,0,1,1\n1,1,,-1\n",
            "guess is missing in run 1; .* must be flagged as failed",
        ),
        ("run,overlap\n5,nan\n", "overlap is missing in run 5; .* must be flagged as failed"),
        (
            "run,group,guess,sign,failed\n1,0,1,1,0\n1,1,-1,-1,1\n",
            "run 1 has two values of failed: False and True",
        ),
    ],
)
def test_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        table(tmp_path, text)
