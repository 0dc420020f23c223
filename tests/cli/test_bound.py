"""``jaxaudit bound``: the right number from every kind of file, and no number from a bad one."""

import numpy as np
import pytest

from jaxaudit.analysis import Claim
from jaxaudit.bound import epsilon_lower_bound, p_value
from jaxaudit.design import AuditDesign
from jaxaudit.designfile import read_design
from jaxaudit.external import audit_scores
from jaxaudit.report.verify import verify
from jaxaudit.scored import AuditedRuns, CalibrationRuns

SIZES = {"num_groups": 12, "num_calibration_runs": 20, "num_audit_runs": 6}
OVERLAPS = [6, 5, 6, 6, 4, 6]


def write_csv(header, rows):
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    with open("evidence.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return "evidence.csv"


def write_npz(arrays):
    np.savez("evidence.npz", **arrays)
    return "evidence.npz"


def guess_arrays(direction=1):
    """Eight runs on six groups whose guesses are the sign vectors, but for one wrong pair in the first run."""
    rng = np.random.default_rng(0)
    signs = rng.permuted(np.tile([1, -1], (8, 3)), axis=1)
    guesses = direction * signs
    guesses[0, :] = -guesses[0, :]
    return {"guesses": guesses, "signs": signs}


# Scores


def test_scores_are_audited_in_full(cli, score_arrays):
    path = write_npz(score_arrays)
    outcome = cli(
        "bound", path, "--json", "--quiet", "--claim-epsilon", 0.5, "--delta", 1e-6, "--num-guesses", 4
    )
    expected = audit_scores(
        CalibrationRuns(score_arrays["calibration_signs"], score_arrays["calibration_scores"]),
        AuditedRuns(score_arrays["signs"], score_arrays["scores"]),
        AuditDesign(**SIZES, num_guesses=4, delta=1e-6),
        claim=Claim(0.5),
    )
    assert outcome.code == 3
    assert outcome.document["methods"] == expected.as_dict()["methods"]
    assert not outcome.document["registered"]
    assert outcome.document["methods"][0]["statistics"]["verdict"]["falsified"]


def test_scores_from_csv_give_the_same_numbers(cli, score_arrays):
    rows = [
        (run + first, group, 0, signs[run, group], repr(float(scores[run, group])), split)
        for split, prefix, first in (("calibration", "calibration_", 0), ("audit", "", 1_000_000))
        for signs, scores in [(score_arrays[f"{prefix}signs"], score_arrays[f"{prefix}scores"])]
        for run in range(len(signs))
        for group in range(12)
    ]
    table = cli("bound", write_csv("run,group,example,sign,score,split", rows), "--json").document
    arrays = cli("bound", write_npz(score_arrays), "--json").document
    assert table["methods"] == arrays["methods"]


def test_text_says_verdict_and_that_nothing_was_registered(cli, score_arrays):
    outcome = cli("bound", write_npz(score_arrays), "--claim-epsilon", 1000)
    assert outcome.code == 0
    assert "not falsified: (epsilon 1000, delta 0) is not below the design's ceiling" in " ".join(
        outcome.out.split()
    )
    assert "note: the design was not registered beforehand" in outcome.out
    assert "attack and bound: done" in outcome.err
    assert cli("bound", write_npz(score_arrays), "--quiet").err == ""


def test_report_folder(cli, score_arrays):
    path = write_npz(score_arrays)
    outcome = cli("bound", path, "--out", "report", "--name", "mine")
    assert outcome.code == 0
    assert "check it: jaxaudit verify report" in outcome.out
    assert verify("report").ok
    again = cli("bound", path, "--out", "report")
    assert again.code == 2
    assert "report folder report exists and is not empty" in again.err
    assert cli("bound", path, "--out", "report", "--overwrite", "--json").document["folder"] == "report"


def test_equal_scores_are_no_evidence_with_a_warning(cli, score_arrays):
    for name in ("calibration_scores", "scores"):
        score_arrays[name] = np.ones_like(score_arrays[name])
    outcome = cli("bound", write_npz(score_arrays), "--claim-epsilon", 0)
    assert outcome.code == 0
    assert (
        "every score is the same in all runs, so nothing can be learned from them: epsilon is 0"
        in outcome.out
    )
    document = cli("bound", "evidence.npz", "--json").document
    assert document["methods"][0]["statistics"]["epsilon"] == 0.0


def test_scores_of_the_wrong_sign_in_the_audited_runs_are_worse_than_chance(cli, score_arrays):
    score_arrays["scores"] = -score_arrays["scores"]
    outcome = cli("bound", write_npz(score_arrays))
    assert outcome.code == 0
    assert "significantly worse than chance" in " ".join(outcome.out.split())


def broken(name, change):
    """A change of one array of a score file."""

    def apply(arrays):
        arrays[name] = change(arrays[name].astype(float) if name.endswith("scores") else arrays[name])

    return apply


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def same_run_ids(arrays):
    arrays |= {"calibration_run_ids": np.arange(20), "run_ids": np.arange(19, 25)}


def group_never_member(arrays):
    signs = arrays["calibration_signs"]
    for row in np.flatnonzero(signs[:, 0] == 1):
        other = np.flatnonzero(signs[row] == -1)[0]
        signs[row, [0, other]] = -1, 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            broken("scores", lambda scores: np.full_like(scores, np.nan)),
            "audited scores must be finite, got nan",
        ),
        (
            broken("scores", put((2, 3), np.inf)),
            "audited scores must be finite, got inf in run 1000002, group 3",
        ),
        (
            broken("calibration_scores", put((0, 0), np.nan)),
            "calibration scores must be finite, got nan in run 0",
        ),
        (
            group_never_member,
            "calibration signs must give every group a member run that did not fail, got none for group 0",
        ),
        (same_run_ids, "calibration and audited runs must be disjoint, got run id"),
        (lambda arrays: arrays.pop("calibration_scores"), "lack 'calibration_scores'"),
        (lambda arrays: arrays.pop("signs"), "lack 'signs'"),
        (
            broken("scores", lambda scores: scores.astype(object)),
            "evidence.npz: array 'scores' is pickled (dtype object) and is not read",
        ),
        (
            broken("scores", lambda scores: scores[:, :11]),
            "axis 1 (groups) of scores must have length 12, got 11",
        ),
        (broken("scores", lambda scores: scores[:5]), "axis 0 (runs) of scores must have length 6, got 5"),
        (broken("scores", lambda scores: scores[0]), "scores must have axes (runs, groups, examples)"),
        (
            broken("signs", put((0, slice(None)), 1)),
            "signs must have exactly 6 of 12 entries +1 in every row",
        ),
        (broken("signs", put((0, 0), 0)), "signs must be -1 or +1, got 0"),
    ],
)
def test_bad_score_files_give_a_message_and_no_number(cli, score_arrays, change, message):
    change(score_arrays)
    outcome = cli("bound", write_npz(score_arrays))
    assert outcome.code == 2
    assert outcome.err.startswith("jaxaudit: error: ")
    assert message in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--num-guesses", 14), "num_guesses must be an integer between 2 and 12, got 14"),
        (
            ("--num-groups", 10),
            "num_groups must be the same everywhere, got 12 in the file, 10 in the option",
        ),
        (("--method", "odds"), "method must be direct, soft, both for scores, got odds"),
        (("--delta", 1), "delta must be in [0, 1), got 1.0"),
        (("--claim-epsilon", -1), "claim_epsilon must not be negative, got -1.0"),
        (("--claim-delta", 0.1), "claim_delta needs claim_epsilon"),
        (("--out", "evidence.npz"), "evidence.npz exists and is not a folder"),
        (("--out", "evidence.npz/report"), "report folder evidence.npz/report cannot be written"),
        (("--name", "two words"), "method name must be non-empty without slashes or spaces, got 'two words'"),
        (("--design", "nowhere.npz"), "no such file: nowhere.npz"),
    ],
)
def test_bad_options_for_scores(cli, score_arrays, options, message):
    outcome = cli("bound", write_npz(score_arrays), *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


# Log-ratios


def log_ratio_arrays(direction=1):
    rng = np.random.default_rng(2)
    signs = rng.permuted(np.tile([1, -1], (8, 6)), axis=1)
    return {"log_ratios": direction * (3.0 * signs + rng.normal(size=signs.shape)), "signs": signs}


def test_log_ratios_give_both_bounds_and_the_declared_one_decides(cli):
    path = write_npz(log_ratio_arrays())
    options = ("--num-guesses", 6, "--temperature", 0.5, "--significance", 0.1, "--json", "--quiet")
    outcome = cli("bound", path, *options, "--method", "both", "--claim-epsilon", 0.5)
    document = outcome.document
    assert outcome.code == 3
    assert document["deciding"] == ["direct", "soft"]
    assert document["temperature"] == 0.5
    assert document["verdict"]["levels"] == {"direct": 0.05, "soft": 0.05}
    assert document["bounds"]["direct"]["epsilon"] > 0.5
    assert document["bounds"]["soft"]["significance"] == 0.05
    alone = cli("bound", path, *options, "--method", "soft").document
    assert alone["deciding"] == ["soft"]
    assert alone["bounds"]["soft"]["significance"] == 0.1
    assert not alone["registered"]


def test_log_ratios_in_words(cli):
    path = write_npz(log_ratio_arrays() | {"failed": np.arange(8) == 1})
    text = " ".join(cli("bound", path, "--num-guesses", 6, "--claim-epsilon", 0.5).out.split())
    assert "(direct bound, mean) epsilon is at least" in text
    assert "(soft evidence, product, temperature 1; informational)" in text
    assert "m = 12, r = 6, L = 8: mean overlap" in text
    assert "falsified at level 0.05: the claim (epsilon 0.5, delta 0) (direct: p-value" in text
    assert "failed runs, counted as no evidence: 1000001" in text
    assert "its temperature, 1, was fixed before the audited runs were seen" in text
    assert "not registered beforehand" in text
    assert "worse than chance" not in text


def test_log_ratios_from_csv_give_the_same_numbers(cli):
    arrays = log_ratio_arrays() | {"run_ids": np.arange(8)}
    rows = [
        (run, group, repr(float(arrays["log_ratios"][run, group])), arrays["signs"][run, group])
        for run in range(8)
        for group in range(12)
    ]
    table = cli("bound", write_csv("run,group,log_ratio,sign", rows), "--method", "soft", "--json").document
    assert table == cli("bound", write_npz(arrays), "--method", "soft", "--json").document
    assert list(table["bounds"]) == ["soft"]


@pytest.mark.parametrize("options", [("--method", "soft"), ("--num-guesses", 6)])
def test_log_ratios_of_the_wrong_sign_are_worse_than_chance(cli, options):
    text = " ".join(cli("bound", write_npz(log_ratio_arrays(direction=-1)), *options).out.split())
    assert "note: the log-ratios are significantly worse than chance (p = " in text
    assert ("guessing is significantly worse than chance" in text) == ("--num-guesses" in options)
    assert "a sign is the wrong way round" in text


def test_failed_log_ratios_have_no_direction(cli):
    arrays = log_ratio_arrays() | {"failed": np.ones(8, bool)}
    outcome = cli("bound", write_npz(arrays), "--num-guesses", 6)
    assert outcome.code == 0
    assert "worse than chance" not in outcome.out
    assert "epsilon is at least 0 of" in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "num_guesses must be given with method direct: the direct bound counts that many guesses"),
        (("--method", "both"), "num_guesses must be given with method both"),
        (("--num-guesses", 14), "num_guesses must be an integer between 2 and 12, got 14"),
        (("--method", "odds"), "method must be direct, soft, both for log-ratios, got odds"),
        (("--method", "soft", "--temperature", 0), "temperature must be positive and finite, got 0"),
        (("--method", "soft", "--variance", "global"), "variance is only used for scores, got global"),
        (("--method", "soft", "--out", "report"), "a report needs scores, evidence.npz has none"),
        (
            ("--num-groups", 10),
            "num_groups must be the same everywhere, got 12 in the file, 10 in the option",
        ),
        (("--num-guesses", 6, "--statistic", "tail"), "threshold"),
    ],
)
def test_bad_options_for_log_ratios(cli, options, message):
    outcome = cli("bound", write_npz(log_ratio_arrays()), *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


# Files that are no evidence at all


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "evidence.csv is empty"),
        ("run,overlap\n", "evidence.csv has a header but no rows"),
        ("run,overlpa\n0,5\n", "is 'overlpa' meant to be 'overlap'?"),
        ("run,group,example,sign,scor,split\n0,0,0,1,0.5,audit\n", "is 'scor' meant to be 'score'?"),
        ("run,overlap\n0,5\n0,6\n", "run_ids must be unique, got 0 more than once"),
        ("run,overlap\n0,5.5\n", "overlaps must be integers, got 5.5"),
        ("run,overlap\n0,7\n", "overlaps must be integers between 0 and num_guesses = 6, got 7"),
        ("run,overlap\n0,\n", "overlap is missing in run 0"),
    ],
)
def test_bad_tables(cli, tmp_path, content, message):
    (tmp_path / "evidence.csv").write_text(content)
    outcome = cli("bound", "evidence.csv", "--num-groups", 6, "--num-guesses", 6)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize("name", ["nowhere.npz", "evidence.txt"])
def test_no_file_of_evidence(cli, tmp_path, name):
    (tmp_path / "evidence.txt").write_text("5 6 6")
    assert cli("bound", name).code == 2


# Overlaps and guesses


@pytest.mark.parametrize("method", ["direct", "odds", "theorem-4.2"])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_overlaps(cli, method, statistic):
    path = write_csv("run,overlap", enumerate(OVERLAPS))
    options = ("--num-groups", 8, "--num-guesses", 6, "--method", method, "--statistic", statistic)
    outcome = cli(
        "bound", path, *options, "--significance", 0.1, "--claim-epsilon", 0.25, "--json", "--quiet"
    )
    design = {"num_groups": 8, "num_guesses": 6, "method": method, "statistic": statistic}
    expected = epsilon_lower_bound(OVERLAPS, **design, significance=0.1)
    p = p_value(OVERLAPS, 0.25, **design)
    document = outcome.document
    assert document["bound"]["epsilon"] == expected.epsilon
    assert document["bound"]["ceiling"] == expected.ceiling
    assert document["verdict"]["p_values"] == {method: pytest.approx(p)}
    assert document["verdict"]["falsified"] == (p <= 0.1)
    assert outcome.code == (3 if p <= 0.1 else 0)


def test_overlaps_in_words(cli):
    path = write_npz({"overlaps": OVERLAPS, "num_groups": 8, "num_guesses": 6})
    outcome = cli("bound", path, "--statistic", "tail", "--threshold", 5, "--claim-epsilon", 0.1)
    expected = epsilon_lower_bound(OVERLAPS, num_groups=8, num_guesses=6, statistic="tail", threshold=5)
    assert outcome.code == 3
    assert f"epsilon is at least {expected.epsilon:.4g} at delta = 0, with 95 % confidence" in outcome.out
    assert "L = 6: 5 runs with an overlap of at least 5" in outcome.out
    assert "falsified at level 0.05: the claim (epsilon 0.1, delta 0) (direct: p-value" in outcome.out
    assert "not registered beforehand" in outcome.out
    assert "bound: done" in outcome.err


def test_perfect_overlaps_are_at_the_ceiling(cli):
    path = write_csv("run,overlap", enumerate([6] * 10))
    outcome = cli("bound", path, "--num-groups", 6, "--num-guesses", 6)
    assert "epsilon is at least 2.696" in outcome.out
    assert "epsilon is at the ceiling of this design and may be larger" in outcome.out


def test_guesses_are_counted(cli):
    arrays = guess_arrays()
    document = cli("bound", write_npz(arrays), "--json").document
    assert document["bound"]["overlaps"] == [0, *[6] * 7]
    assert (document["bound"]["num_groups"], document["bound"]["num_guesses"]) == (6, 6)
    assert (
        document["bound"]["epsilon"]
        == epsilon_lower_bound([0] + [6] * 7, num_groups=6, num_guesses=6).epsilon
    )
    rows = [
        (run, group, arrays["guesses"][run, group], arrays["signs"][run, group])
        for run in range(8)
        for group in range(6)
    ]
    assert cli("bound", write_csv("run,group,guess,sign", rows), "--json").document == document


def test_failed_runs_count_nothing_and_are_named(cli):
    arrays = guess_arrays()
    arrays["guesses"][3] = 0
    arrays |= {"failed": np.arange(8) == 3, "run_ids": np.arange(8)}
    outcome = cli("bound", write_npz(arrays))
    assert "failed runs, counted as no evidence: 3" in outcome.out
    assert cli("bound", "evidence.npz", "--json").document["bound"]["overlaps"] == [0, 6, 6, 0, 6, 6, 6, 6]
    arrays["failed"][:] = True
    all_failed = cli("bound", write_npz(arrays), "--num-guesses", 4, "--json").document
    assert (all_failed["bound"]["epsilon"], all_failed["bound"]["num_runs"]) == (0.0, 8)


def test_guesses_of_the_wrong_sign_are_worse_than_chance(cli):
    outcome = cli("bound", write_npz(guess_arrays(direction=-1)), "--claim-epsilon", 0)
    assert outcome.code == 0
    assert "epsilon is at least 0 at" in outcome.out
    assert "significantly worse than chance" in outcome.out


def test_lemma_says_when_it_is_vacuous(cli):
    path = write_csv("run,overlap", enumerate(OVERLAPS))
    outcome = cli(
        *("bound", path, "--num-groups", 8, "--num-guesses", 6, "--method", "theorem-4.2", "--delta", 0.5)
    )
    assert outcome.code == 0
    assert "Lemma C.1 says nothing at delta = 0.5" in outcome.out


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"overlaps": OVERLAPS}, ("--num-groups", 8), "num_guesses must be given: neither the file nor"),
        ({"overlaps": OVERLAPS}, ("--num-guesses", 6), "num_groups must be given: neither the file nor"),
        ({"overlaps": OVERLAPS}, ("--num-groups", 4, "--num-guesses", 6), "between 2 and 4, got 6"),
        (
            {"overlaps": OVERLAPS, "num_groups": 8},
            ("--num-groups", 9, "--num-guesses", 6),
            "num_groups must be the same everywhere, got 8 in the file, 9 in the option",
        ),
        (
            guess_arrays(),
            ("--num-guesses", 4),
            "num_guesses must be the same everywhere, got 6 in the file, 4 in the declared rules",
        ),
        (guess_arrays(), ("--method", "soft"), "method must be direct, odds, theorem-4.2 for a file of gu"),
        (guess_arrays(), ("--variance", "global"), "variance is only used for scores, got global"),
        (guess_arrays(), ("--temperature", 2), "temperature is only used for scores and log-ratios, got 2.0"),
        (guess_arrays(), ("--out", "report"), "a report needs scores, evidence.npz has none"),
        (guess_arrays(), ("--statistic", "tail"), "threshold"),
        (guess_arrays(), ("--method", "odds", "--delta", 0.1), "delta must be 0 for method='odds', got 0.1"),
        (
            {"overlaps": OVERLAPS},  # refused before the sizes that are not there are asked for
            ("--method", "odds", "--claim-epsilon", 1, "--claim-delta", 0.1, "--num-groups", 8),
            "claim_delta must be 0 with method odds, got 0.1",
        ),
        (
            guess_arrays() | {"guesses": np.ones((8, 6), int)},
            (),
            "guesses must have as many +1 as -1 in every row, got 6 and 0 in row 0",
        ),
        (
            guess_arrays() | {"guesses": np.ones((8, 5), int)},
            (),
            "axis 1 (groups) of guesses must have length 6",
        ),
    ],
)
def test_bad_input_without_scores(cli, arrays, options, message):
    outcome = cli("bound", write_npz(arrays), *options)
    assert outcome.code == 2
    assert outcome.err.startswith("jaxaudit: error: ")
    assert message in outcome.err
    assert outcome.out == ""


# Registered designs


@pytest.fixture
def register(cli):
    """Writes design.npz and returns it."""

    def write(*options):
        sizes = ("--num-groups", 12, "--num-calibration-runs", 20, "--num-audit-runs", 6)
        assert cli("design", *sizes, *options, "--export", "design.npz").code == 0
        return read_design("design.npz")

    return write


def scores_of(design_file, order):
    """A score file of the registered runs, audited runs in another order."""
    rng = np.random.default_rng(1)
    arrays = {
        "calibration_signs": design_file.calibration_signs,
        "signs": design_file.signs,
        "calibration_run_ids": design_file.calibration_run_ids,
        "run_ids": design_file.run_ids,
    }
    # The earlier a run is, the weaker its scores: the order of the runs matters to the soft bound.
    strength = np.linspace(0.2, 4.0, 6)[:, None]
    arrays["calibration_scores"] = 2 * arrays["calibration_signs"] + rng.normal(size=(20, 12))
    arrays["scores"] = strength * arrays["signs"] + 0.1 * rng.normal(size=(6, 12))
    return arrays | {name: arrays[name][order] for name in ("signs", "scores", "run_ids")}


def test_registered_scores_follow_the_design_in_its_order(cli, register):
    design_file = register("--significance", 0.2, "--method", "soft", "--score-definition", "minus the loss")
    in_order = cli(
        "bound", write_npz(scores_of(design_file, np.arange(6))), "--design", "design.npz", "--json"
    ).document
    shuffled = cli(
        "bound", write_npz(scores_of(design_file, np.arange(6)[::-1])), "--design", "design.npz", "--json"
    ).document
    assert in_order["registered"]
    assert in_order["design"] == design_file.design.as_dict()
    assert in_order["provenance"]["score"] == "minus the loss"
    one, other = (document["methods"][0]["statistics"] for document in (shuffled, in_order))
    for name in ("soft", "soft_small_delta", "selection"):
        assert one[name] == other[name]
    assert one["direct"]["epsilon"] == other["direct"]["epsilon"]
    text = cli("bound", "evidence.npz", "--design", "design.npz", "--out", "report").out
    assert "not registered" not in text
    assert in_order["spec"]["design_sha256"] == design_file.sha256
    with open("report/report.md", encoding="utf-8") as page:
        assert f"A design file with the SHA-256 {design_file.sha256} was handed in" in page.read()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--significance", 0.1), "significance is fixed by the registered design, got 0.1"),
        (("--num-guesses", 4), "num_guesses is fixed by the registered design, got 4"),
        (("--method", "soft"), "method is fixed by the registered design, direct; got soft"),
    ],
)
def test_registered_rules_cannot_be_changed(cli, register, options, message):
    path = write_npz(scores_of(register(), np.arange(6)))
    outcome = cli("bound", path, "--design", "design.npz", *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_run_that_is_missing_from_a_registered_audit(cli, register):
    path = write_npz(scores_of(register(), np.arange(5)))
    outcome = cli("bound", path, "--design", "design.npz")
    assert outcome.code == 2
    assert "audited run 1000005 of the registered design is missing" in outcome.err


def registered_evidence(design_file, name="guesses"):
    """Perfect guesses (or log-ratios) of the registered runs."""
    return write_npz({name: design_file.signs, "signs": design_file.signs, "run_ids": design_file.run_ids})


def test_registered_guesses_and_what_the_design_left_open(cli, register):
    design_file = register("--statistic", "tail", "--threshold", 11, "--significance", 0.2)
    path = registered_evidence(design_file)
    document = cli("bound", path, "--design", "design.npz", "--json").document
    assert document["registered"]
    assert (document["bound"]["significance"], document["bound"]["threshold"]) == (0.2, 11)
    assert any("the number of guesses was not registered" in note for note in document["notes"])
    refused = cli("bound", path, "--design", "design.npz", "--delta", 0.1)
    assert refused.code == 2
    assert "delta is fixed by the registered design, got 0.1" in refused.err


@pytest.mark.parametrize("name", ["guesses", "log_ratios"])
def test_tail_without_a_registered_threshold_is_refused(cli, register, name):
    path = registered_evidence(register("--statistic", "tail", "--num-guesses", 12), name)
    for options in ((), ("--threshold", 11)):
        outcome = cli("bound", path, "--design", "design.npz", *options)
        assert outcome.code == 2
        assert "statistic 'tail' needs a registered threshold" in outcome.err


def test_registered_log_ratios(cli, register):
    path = registered_evidence(register("--num-guesses", 12, "--temperature", 0.5), "log_ratios")
    document = cli("bound", path, "--design", "design.npz", "--json").document
    assert document["registered"]
    assert document["temperature"] == 0.5
    assert document["bounds"]["direct"]["overlaps"] == [12] * 6
    assert not any("registered" in note or "temperature" in note for note in document["notes"])
    changed = cli("bound", path, "--design", "design.npz", "--temperature", 1)
    assert "temperature is fixed by the registered design, got 1.0" in changed.err


def test_log_ratios_fill_what_the_design_left_open(cli, register):
    path = registered_evidence(register("--method", "soft"), "log_ratios")
    document = cli("bound", path, "--design", "design.npz", "--temperature", 2, "--json").document
    assert document["temperature"] == 2.0
    assert any("holds only if its temperature, 2, was fixed before" in note for note in document["notes"])


def test_registered_guesses_of_other_runs_are_refused(cli, register):
    design_file = register("--num-guesses", 12)
    signs = design_file.signs[:, ::-1]
    path = write_npz({"guesses": signs, "signs": signs, "run_ids": design_file.run_ids})
    outcome = cli("bound", path, "--design", "design.npz")
    assert outcome.code == 2
    assert "the registered design has" in outcome.err


def test_registered_number_of_guesses(cli, register):
    design_file = register("--num-guesses", 4)
    path = registered_evidence(design_file)
    outcome = cli("bound", path, "--design", "design.npz")
    assert outcome.code == 2
    assert (
        "num_guesses must be the same everywhere, got 12 in the file, 4 in the declared rules" in outcome.err
    )
