"""``jaxaudit validate``: the rates of `jaxaudit.bound.validate`."""

from dataclasses import replace

from jaxaudit.bound.validate import FalseAlarms
from jaxaudit.bound.validate import validate as measure
from jaxaudit.cli import validate

OPTIONS = ("--num-groups", 6, "--num-guesses", 4, "--num-audit-runs", 5, "--num-audits", 50, "--seed", 2)
EXPECTED = measure(num_groups=6, num_guesses=4, num_runs=5, epsilon=1.0, num_audits=50, seed=2)


def test_rates_are_those_of_the_library(cli):
    outcome = cli("validate", *OPTIONS, "--epsilon", 1, "--json")
    assert outcome.code == 0
    assert outcome.document["checks"] == [
        {**check, "interval": list(check["interval"])} for check in EXPECTED.as_dict()["checks"]
    ]
    assert cli("validate", *OPTIONS, "--epsilon", 1).out == EXPECTED.text() + "\n"


def test_too_many_false_alarms_are_a_mismatch(cli, monkeypatch):
    alarms = FalseAlarms("direct, mean", "worst case", 1.0, num_audits=100, num_alarms=50, significance=0.05)
    monkeypatch.setattr(validate, "validate", lambda **arguments: replace(EXPECTED, checks=(alarms,)))
    outcome = cli("validate")
    assert outcome.code == 4
    assert "NOT consistent" in outcome.out


def test_bad_input(cli):
    outcome = cli("validate", "--epsilon", -1)
    assert outcome.code == 2
    assert "epsilon must not be negative, got -1.0" in outcome.err
