"""What a report says."""

from dataclasses import replace

import pytest

from jaxaudit.report.blocks import Banner, Bullets, Code, Figure, Section, Table, Text, Warn
from jaxaudit.report.content import report_sections
from jaxaudit.report.document import PRIVACY_WARNING
from jaxaudit.report.figures import FIGURE_NAMES
from jaxaudit.unlearn.base import Certificate


def blocks(sections, kind):
    return [block for section in sections for block in section.blocks if isinstance(block, kind)]


def words(sections):
    """All text of the sections, as one string."""
    parts = []
    for section in sections:
        for block in section.blocks:
            match block:
                case Text(text) | Warn(text) | Code(text):
                    parts.append(text)
                case Banner(heading, text, _):
                    parts.append(f"{heading}: {text}")
                case Bullets(items):
                    parts += items
                case Table(header, rows):
                    parts += [" ".join(cells) for cells in (header, *rows)]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def sections(report) -> list[Section]:
    return report_sections(report, FIGURE_NAMES)


def test_every_figure_is_shown_once_if_it_was_drawn(report, sections):
    assert sorted(figure.name for figure in blocks(sections, Figure)) == sorted(FIGURE_NAMES)
    assert blocks(report_sections(report, ()), Figure) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Claim under test: epsilon = 0.2 at delta = 0, at significance 0.05 for each method.",
        "The bound measures what this attacker found.",
        "'Not falsified' is no certificate.",
        "For a deterministic pipeline the true epsilon at delta = 0 is 0 or infinite",
        "The verdict uses the declared method (direct) at the full significance; the other columns are",
        "jaxaudit verify DIR",
        "failed audited runs, counted as no evidence 17",
        "failed calibration runs, left out 2",
        "true-positive rate at 0.1 % false positives",
        "true-positive rate at 1 % false positives",
        "area under the ROC curve",
        "None of the 12 groups is recognised at a false-discovery rate of 0.1, which does not mean that they",
        "the parameters did not move",
        "method leaky: with 95 % confidence the true epsilon is at least",
        "method leaky: Falsified at level 0.05: the claim (epsilon 0.2, delta 0).",
        "1 of 5 audited runs failed and count as no evidence.",
        "Registration: The design is part of the specification",
        "Uncertified: a heuristic.",
        "method blind: this attack found nothing",
        "Not falsified: this attack found no evidence against (epsilon 0.2, delta 0); this is no",
    ],
)
def test_what_must_be_said_is_said(sections, sentence):
    assert sentence in words(sections)


def test_verdicts_come_first_and_only_a_falsified_claim_is_an_alarm(sections):
    assert sections[0].title == "In short"
    assert [block.alarm for block in sections[0].blocks[:2] if isinstance(block, Banner)] == [True, False]
    assert [block.heading for block in blocks(sections, Banner)] == ["method leaky", "method blind"]


def test_failed_runs_are_told_in_short_of_the_method_that_has_them(sections):
    (found,) = blocks(sections[:1], Bullets)
    assert ["audited runs failed" in item for item in found.items] == [True, False]


def test_registration_is_told_in_short(report):
    elsewhere = replace(report, methods=tuple(replace(method, noise_keys=None) for method in report.methods))
    assert "Registration: The design was NOT registered" in words(report_sections(elsewhere, ())[:1])
    registered = replace(elsewhere, registered=True, spec={"design_sha256": "ab12"})
    assert "Registration: A design file with the SHA-256 ab12" in words(report_sections(registered, ())[:1])


@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        (Certificate(1.0, 1e-5, "Theorem 3.1"), " Certified (1, 1e-5): Theorem 3.1."),
        (Certificate.none("no theorem"), " Uncertified: no theorem."),
        (None, ""),
    ],
)
def test_the_certificate_is_told_where_it_is_known(report, certificate, sentence):
    method = replace(report.methods[0], certificate=certificate)
    texts = [block.text for block in blocks(report_sections(replace(report, methods=(method,)), ()), Text)]
    assert f"{method.description}{sentence}" in texts


@pytest.mark.parametrize(("epsilon", "loud"), [(0.05, True), (50.0, False)])
def test_a_certificate_that_the_evidence_contradicts_is_shouted_first(report, epsilon, loud):
    method = replace(report.methods[0], certificate=Certificate(epsilon, 0.0, "Theorem 3.1"))
    assert (method.analysis.epsilon > epsilon) is loud
    sections = report_sections(replace(report, methods=(method,)), ())
    banner = sections[0].blocks[0]
    assert (banner.alarm and banner.heading == "method leaky: certificate contradicted") is loud
    warnings = [block.text for block in blocks(sections, Warn)]
    assert any("THE CERTIFICATE IS CONTRADICTED" in text for text in warnings) is loud


def test_iterates_on_the_way_are_looks_along_one_set_of_runs(report):
    method = report.methods[0]
    early = replace(method, name="leaky@20", title="method leaky after 20 updates", recorded_at=20)
    text = words(report_sections(replace(report, methods=(method, early)), ()))
    assert "are looks along one set of runs" in text
    assert "the largest of several is not" in text
    assert "The iterate after 20 updates." in text
    assert "share its keys" in text
    assert "looks along one set" not in words(report_sections(report, ()))


def test_cost_and_what_a_method_measured_are_in_its_section(report):
    numbers = {"mean": 2.5, "min": 1.0, "max": 4.0, "not_finite": 3}
    method = replace(
        report.methods[0], cost=12800.0, measured={"largest eigenvalue": numbers, "rate": {"not_finite": 21}}
    )
    text = words(report_sections(replace(report, methods=(method,)), ()))
    assert "cost, gradient evaluations per run 12,800" in text
    assert "largest eigenvalue, over the runs mean 2.5, from 1 to 4; not finite in 3 runs" in text
    assert "rate, over the runs not finite in 21 runs" in text


def test_a_barely_moved_model_is_called_out(report):
    for moved, there in ((0.0, "did not move"), (1e-13, "moved by less than 1e-12"), (1e-11, None)):
        method = replace(report.methods[0], moved=moved)
        found = [note for note in method.notes if note.startswith("the parameters")]
        assert bool(found) is bool(there)
        assert there is None or there in found[0]


def test_how_each_phase_was_carried_out_is_a_table(report):
    phases = [
        {
            "name": "train",
            "from_store": 40,
            "runs": 20,
            "strategy": "scan",
            "runs_at_once": 20,
            "seconds": 1.25,
        }
    ]
    sections = report_sections(replace(report, timings={"total_seconds": 3.0, "phases": phases}), ())
    (table,) = [table for table in blocks(sections, Table) if table.header[0] == "computation"]
    assert table.rows == (("train", "40", "20", "scan", "20", "1.25", "-", "-", "-", "-"),)
    assert "phases" not in words(sections)


def test_two_deciding_methods_have_half_the_significance_each(report):
    both = replace(report, design=report.design.replace(method="both"))
    text = words(report_sections(both, ()))
    assert "The verdict uses the declared methods, direct and soft, each at half the significance;" in text
    assert "full significance" not in text


def test_the_privacy_warning_is_above_and_below(sections):
    warnings = [block.text for block in blocks(sections, Warn)]
    assert warnings.count(PRIVACY_WARNING) == 2


def test_without_a_claim_none_was_tested(report):
    methods = tuple(
        replace(method, analysis=replace(method.analysis, verdict=None)) for method in report.methods
    )
    text = words(report_sections(replace(report, claim=None, methods=methods), ()))
    assert "No claim was given" in text
    assert "p-value of the claim" not in text
    assert blocks(report_sections(replace(report, claim=None, methods=methods), ()), Banner) == []


def test_notes_are_warnings(report, sections):
    warnings = [block.text for block in blocks(sections, Warn)]
    assert report.methods[0].analysis.notes
    assert set(report.methods[0].analysis.notes) <= set(warnings)


def test_without_evidence_the_reason_is_told_and_nothing_that_guesses_happen_to_hit(silent):
    assert silent.methods[0].analysis.no_evidence
    sections = report_sections(silent, ())
    (found,) = blocks(sections[:1], Bullets)
    assert found.items == (
        "method silent: every score is the same in all runs, so nothing can be learned from them: epsilon is "
        "0; 1 of 5 audited runs failed and count as no evidence.",
    )
    text = words(sections)
    assert "overlaps of the audited runs guesses are arbitrary" in text
    assert "of at most" not in text
    assert "at a false-discovery rate" not in text


def test_records_are_called_by_their_ids_or_by_their_group(clear):
    leakage = clear.methods[0].analysis.leakage
    assert leakage.num_recognised > 0
    text, best = words(report_sections(clear, ())), leakage.records[0].group
    assert f"{leakage.num_recognised} of 12 groups are recognised at a false-discovery rate of 0.1." in text
    assert "A group after that number is not recognised, which does not mean that it was forgotten." in text
    assert "record posterior log-odds p-value q-value" in text
    assert f"r{best}a, r{best}b" in text
    assert f"group {best} " in words(report_sections(replace(clear, record_ids=None), ()))


def test_without_a_recognised_group_there_is_no_table_of_records(sections):
    assert "posterior log-odds" not in words(sections)
