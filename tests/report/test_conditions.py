"""The conditions of validity are told as they are."""

from dataclasses import replace

import pytest

from jaxaudit.report.conditions import AUDITOR, CONSTRUCTION, VERIFIED, condition_rows

COUNTED = "5. No audited run is dropped or drawn again"
SEEN = "3. The auditor sees the unlearned model, start, order and calibration runs, nothing else"
DISJOINT = "Calibration and audited runs are disjoint"
FIXED = "The design was fixed beforehand"
NOISE = "No noise key is used twice"


def by_condition(report):
    return {condition: (how, who) for condition, how, who in condition_rows(report)}


@pytest.fixture(scope="module")
def elsewhere(report):
    """The same runs, made elsewhere."""
    return replace(report, methods=tuple(replace(method, noise_keys=None) for method in report.methods))


def numbered(report):
    """The same runs with the ids that runs without ids are given."""

    def without_ids(runs):
        return replace(runs, run_ids=None)

    methods = tuple(
        replace(method, calibration=without_ids(method.calibration), audited=without_ids(method.audited))
        for method in report.methods
    )
    return replace(report, methods=methods)


def test_the_five_conditions_come_first(report):
    assert [row[0][:2] for row in condition_rows(report)[:5]] == ["1.", "2.", "3.", "4.", "5."]


def test_failed_runs_are_told(report):
    how, who = by_condition(report)[COUNTED]
    assert (
        how
        == "All 5 audited runs of each method are counted; 1 failed and count as overlap 0 and evidence 0."
    )
    assert who == VERIFIED
    blind = replace(report, methods=report.methods[1:])
    assert by_condition(blind)[COUNTED][0].endswith("none failed.")


def test_runs_made_elsewhere_are_the_auditors_duty(report, elsewhere):
    ours, theirs = by_condition(report), by_condition(elsewhere)
    changed = {name: (ours[name][1], theirs[name][1]) for name in ours if ours[name][1] != theirs[name][1]}
    assert {name[:2]: who for name, who in changed.items() if name[0].isdigit()} == {
        "2.": (CONSTRUCTION, AUDITOR),
        "3.": (VERIFIED, AUDITOR),
        "4.": (CONSTRUCTION, AUDITOR),
        "5.": (VERIFIED, AUDITOR),
    }
    assert changed.keys() - set(list(ours)[:5]) == {NOISE, FIXED}
    assert "made elsewhere" in theirs[SEEN][0]
    assert "made elsewhere" not in ours[SEEN][0]


def test_a_registered_design_vouches_for_the_number_of_runs_only(elsewhere):
    how, who = by_condition(replace(elsewhere, registered=True))[COUNTED]
    assert "Their number is verified against the registered design" in how
    assert who == AUDITOR
    assert "That there were no others" in by_condition(elsewhere)[COUNTED][0]


def test_ids_that_were_made_up_here_say_nothing(report, elsewhere):
    assert by_condition(elsewhere)[DISJOINT] == ("No run id is in both sets.", VERIFIED)
    how, who = by_condition(numbered(elsewhere))[DISJOINT]
    assert "without ids of their own" in how
    assert who == AUDITOR
    assert by_condition(numbered(report))[DISJOINT][1] == VERIFIED
    assert by_condition(replace(numbered(elsewhere), registered=True))[DISJOINT][1] == VERIFIED


def test_registration_is_told(report, elsewhere):
    how, who = by_condition(elsewhere)[FIXED]
    assert "NOT registered" in how
    assert who == AUDITOR
    sha256 = "ab" * 32
    registered = replace(elsewhere, registered=True, spec={"design_sha256": sha256})
    how, who = by_condition(registered)[FIXED]
    assert f"A design file with the SHA-256 {sha256} was handed in" in how
    assert "When it was written is the auditor's word." in how
    assert who == AUDITOR


def test_a_design_of_runs_trained_here_is_part_of_the_spec(report):
    how, who = by_condition(report)[FIXED]
    assert "fixed before the first run was trained" in how
    assert "Whether other designs were tried before, nobody can see." in how
    assert who == CONSTRUCTION


def test_order_of_soft_evidence_is_told(report):
    how, who = by_condition(report)["The order of the runs is no choice"]
    assert "order of their run ids" in how
    assert who == CONSTRUCTION


def test_choices_are_declared_or_calibrated(report):
    how = condition_rows(report)[2][1]
    assert "fixed on the calibration runs" in how
    declared = replace(report, design=report.design.replace(num_guesses=4, temperature=1.0))
    assert "declared in the design" in condition_rows(declared)[2][1]
