"""``jaxaudit plan``: the numbers of `jaxaudit.bound.plan`, as text and as JSON."""

import pytest

from jaxaudit.bound.plan import plan

DESIGN = ("--num-groups", 400, "--num-guesses", 100)


def test_numbers_are_those_of_the_library(cli):
    options = ("--num-audit-runs", 5, "--significance", 0.01, "--delta", 1e-5, "--statistic", "median")
    outcome = cli("plan", *DESIGN, *options, "--true-epsilon", 10, "--claim-epsilon", 3, "--json")
    expected = plan(
        num_groups=400,
        num_guesses=100,
        num_runs=5,
        significance=0.01,
        delta=1e-5,
        statistic="median",
        true_epsilon=10.0,
        claim_epsilon=3.0,
    )
    assert outcome.code == 0
    assert outcome.document == expected.as_dict()
    assert outcome.document["power"]["falsification"] > 0


def test_text(cli):
    outcome = cli("plan", *DESIGN, "--statistic", "tail", "--threshold", 80, "--method", "odds")
    expected = plan(
        num_groups=400, num_guesses=100, num_runs=10, statistic="tail", threshold=80, method="odds"
    )
    assert outcome.out == expected.text() + "\n"
    assert "plan: done" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--num-groups", 6, "--num-guesses", 8), "num_guesses must be an integer between 2 and 6, got 8"),
        (("--num-groups", 6, "--num-guesses", 3), "num_guesses must be even, got 3"),
        ((*DESIGN, "--significance", 0), "significance must be in (0, 1), got 0.0"),
        ((*DESIGN, "--claim-epsilon", 1), "claim_epsilon = 1.0 needs true_epsilon"),
        ((*DESIGN, "--statistic", "tail"), "threshold"),
    ],
)
def test_bad_input(cli, options, message):
    outcome = cli("plan", *options, "--quiet")
    assert outcome.code == 2
    assert outcome.err.startswith("jaxaudit: error: ")
    assert message in outcome.err
    assert outcome.out == ""
