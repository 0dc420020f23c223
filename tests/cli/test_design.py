"""``jaxaudit design``: a file that trains elsewhere and comes back as a registered audit."""

import numpy as np
import pytest

from jaxaudit.designfile import read_design

SIZES = ("--num-groups", 8, "--num-calibration-runs", 12, "--num-audit-runs", 5)


def test_file_has_the_declared_rules(cli):
    outcome = cli(
        *("design", *SIZES, "--export", "design.npz", "--num-retain", 9, "--group-size", 2, "--seed", 4),
        *(
            "--num-guesses",
            6,
            "--significance",
            0.01,
            "--method",
            "both",
            "--score-definition",
            "minus the loss",
        ),
        "--json",
    )
    design_file = read_design("design.npz")
    assert outcome.code == 0
    assert outcome.document["sha256"] == design_file.sha256
    assert outcome.document["design"] == design_file.design.as_dict()
    assert (design_file.design.num_guesses, design_file.design.method) == (6, "both")
    assert design_file.score_definition == "minus the loss"
    assert design_file.signs.shape == (5, 8)
    # 9 retain records and 2 records in each of 4 groups
    assert design_file.member_indices.shape == (5, 17)
    assert (np.sort(design_file.member_indices)[:, :9] == np.arange(9)).all()


def test_next_steps_in_words(cli):
    outcome = cli("design", *SIZES, "--export", "design.npz")
    assert "12 calibration and 5 audited runs of 8 groups" in outcome.out
    assert "jaxaudit bound scores.npz --design design.npz" in outcome.out
    assert "one fixed order" in outcome.out
    assert "member_indices" in cli("design", *SIZES, "--export", "more.npz", "--num-retain", 9).out


def test_existing_file_is_kept(cli):
    assert cli("design", *SIZES, "--export", "design.npz").code == 0
    before = read_design("design.npz").sha256
    outcome = cli("design", *SIZES, "--export", "design.npz", "--seed", 1)
    assert outcome.code == 2
    assert "design.npz already exists" in outcome.err
    assert read_design("design.npz").sha256 == before
    assert cli("design", *SIZES, "--export", "design.npz", "--seed", 1, "--overwrite").code == 0
    assert read_design("design.npz").sha256 != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--num-guesses", 10), "num_guesses must be an integer between 2 and 8, got 10"),
        (("--num-retain", 0), "num_retain must be an integer of at least 1, got 0"),
        (("--threshold", 3), "threshold is only used by statistic='tail', got 3"),
        (("--predictor", "joint"), "num_calibration_runs must be an integer of at least 140, got"),
        (("--export", "design.csv"), "export must be a .npz file, got design.csv"),
        (("--export", "nowhere/design.npz"), "folder nowhere does not exist"),
    ],
)
def test_bad_input(cli, options, message):
    arguments = ("--export", "design.npz", *options) if "--export" not in options else options
    outcome = cli("design", *SIZES, *arguments)
    assert outcome.code == 2
    assert message in outcome.err
