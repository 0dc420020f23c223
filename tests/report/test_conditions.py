"""The conditions of validity are told as they are."""

from dataclasses import replace

from jaxaudit.report.conditions import AUDITOR, CONSTRUCTION, VERIFIED, condition_rows


def by_condition(report):
    return {condition: (how, who) for condition, how, who in condition_rows(report)}


def test_the_five_conditions_come_first(report):
    assert [row[0][:2] for row in condition_rows(report)[:5]] == ["1.", "2.", "3.", "4.", "5."]


def test_failed_runs_are_told(report):
    how, who = by_condition(report)["5. No audited run is dropped or drawn again"]
    assert (
        how
        == "All 5 audited runs of each method are counted; 1 failed and count as overlap 0 and evidence 0."
    )
    assert who == VERIFIED
    blind = replace(report, methods=report.methods[1:])
    assert by_condition(blind)["5. No audited run is dropped or drawn again"][0].endswith("none failed.")


def test_runs_made_elsewhere_are_the_auditors_duty(report):
    elsewhere = replace(report, methods=tuple(replace(method, noise_keys=None) for method in report.methods))
    noise = "No noise key is used twice"
    assert by_condition(report)[noise][1] == VERIFIED
    assert by_condition(elsewhere)[noise][1] == AUDITOR
    changed = [
        ours[2] for ours, theirs in zip(condition_rows(report), condition_rows(elsewhere)) if ours != theirs
    ]
    assert changed == [CONSTRUCTION, CONSTRUCTION, VERIFIED]


def test_registration_is_told(report):
    condition = "The design was fixed beforehand"
    assert "NOT registered" in by_condition(report)[condition][0]
    assert by_condition(replace(report, registered=True))[condition][1] == CONSTRUCTION


def test_choices_are_declared_or_calibrated(report):
    how = condition_rows(report)[2][1]
    assert "fixed on the calibration runs" in how
    declared = replace(report, design=report.design.replace(num_guesses=4, temperature=1.0))
    assert "declared in the design" in condition_rows(declared)[2][1]
