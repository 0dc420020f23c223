"""What a report says."""

from dataclasses import replace

import pytest

from jaxaudit.report.blocks import Bullets, Code, Figure, Section, Table, Text, Warn
from jaxaudit.report.content import report_sections
from jaxaudit.report.document import PRIVACY_WARNING
from jaxaudit.report.figures import FIGURE_NAMES


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
        "groups are recognised at a false-discovery rate of 0.1",
        "The parameters did not move",
        "method leaky: with 95 % confidence the true epsilon is at least",
        "Falsified at level 0.05: the claim (epsilon 0.2, delta 0).",
        "A group after that number is not recognised, which does not mean that it was forgotten.",
        "method blind: this attack found nothing",
        "Not falsified: this attack found no evidence against (epsilon 0.2, delta 0); this is no",
    ],
)
def test_what_must_be_said_is_said(sections, sentence):
    assert sentence in words(sections)


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


def test_notes_are_warnings(report, sections):
    warnings = [block.text for block in blocks(sections, Warn)]
    assert report.methods[0].analysis.notes
    assert set(report.methods[0].analysis.notes) <= set(warnings)


def test_without_evidence_no_record_is_named(report):
    method = report.methods[1]
    nothing = replace(method, analysis=replace(method.analysis, no_evidence=True))
    assert "posterior log-odds" in words(report_sections(replace(report, methods=(method,)), ()))
    assert "posterior log-odds" not in words(report_sections(replace(report, methods=(nothing,)), ()))


def test_records_are_called_by_their_ids_or_by_their_group(report, sections):
    best = report.methods[0].analysis.leakage.records[0].group
    assert f"r{best}a, r{best}b" in words(sections)
    assert f"group {best} " in words(report_sections(replace(report, record_ids=None), ()))
