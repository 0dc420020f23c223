"""The table of results."""

from dataclasses import replace

import pytest

from jaxaudit.report.table import footnote, header_rows, number, report_table, row, verdict_word, wrapped


def test_table_fits_a_terminal_and_has_one_row_per_method(report):
    long = replace(report.methods[0], title="a rather long name of a method that goes on")
    lines = report_table(replace(report, methods=(long, report.methods[1]))).splitlines()
    assert max(map(len, lines)) <= 110
    assert sum("100.0/75.0/50.0" in line for line in lines) == 2
    assert any(line == "  of a method that" for line in lines)


def test_cells_are_the_numbers_of_the_analysis(report):
    method = report.methods[0]
    analysis = method.analysis
    cells = dict(zip(header_rows(report)[0], row(method)))
    assert (
        cells["eps direct*"]
        == f"{number(analysis.direct.epsilon)} | {number(analysis.direct_small_delta.epsilon)}"
    )
    assert (
        cells["eps soft"] == f"{number(analysis.soft.epsilon)} | {number(analysis.soft_small_delta.epsilon)}"
    )
    assert cells["Thm 4.2"] == number(analysis.paper.epsilon)
    assert cells["overlap"] == f"{sum(analysis.overlaps) / 5:.1f}/{analysis.selection.num_guesses} #"
    assert cells["verdict"] == "FALSIFIED"
    assert row(replace(method, moved=None, test_accuracy=None))[6] == "-"


@pytest.mark.parametrize(("method", "marked"), [("direct", [1]), ("soft", [2]), ("both", [1, 2])])
def test_the_deciding_columns_are_marked(report, method, marked):
    titles = header_rows(replace(report, design=report.design.replace(method=method)))[0]
    assert [column for column, title in enumerate(titles) if title.endswith("*")] == marked


def test_failed_audited_runs_are_marked(report):
    overlap = header_rows(report)[0].index("overlap")
    assert [row(method)[overlap].endswith(" #") for method in report.methods] == [True, False]
    assert "# some audited runs failed and count as overlap 0." in footnote(report)
    assert "#" not in footnote(replace(report, methods=report.methods[1:]))


def test_without_evidence_there_is_no_overlap_and_no_ceiling(silent):
    cells = dict(zip(header_rows(silent)[0], row(silent.methods[0])))
    assert (cells["ceiling"], cells["overlap"]) == ("-", "- #")
    assert cells["eps direct*"] == "0 | 0"


def test_ceiling_is_that_of_the_deciding_bound(report):
    analysis = report.methods[0].analysis
    analysis = replace(
        analysis, direct=replace(analysis.direct, ceiling=3.0), soft=replace(analysis.soft, ceiling=5.0)
    )
    for method, expected in {"direct": 3.0, "soft": 5.0, "both": 5.0}.items():
        assert replace(analysis, design=analysis.design.replace(method=method)).ceiling == expected


def test_verdict_words(report):
    verdict = report.methods[1].analysis.verdict
    assert verdict_word(None) == "no claim"
    assert verdict_word(verdict) == "not falsified"
    assert verdict_word(replace(verdict, falsified=True)) == "FALSIFIED"
    assert verdict_word(replace(verdict, ceiling=0.1)) == "above ceiling"


def test_notes_are_below_the_table(report):
    text = report_table(report)
    assert report.methods[0].analysis.notes
    assert "method leaky: failed calibration runs, left out of the fit: 2" in text


def test_sentences_have_the_width_of_the_table_and_keep_their_words():
    text = "epsilon " * 40 + "a-very/long/" + "path" * 40
    lines = wrapped(text).splitlines()
    assert max(map(len, lines[:-1])) <= 106
    assert " ".join(wrapped(text).split()) == text
