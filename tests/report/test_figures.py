"""Figures are PNG, drawn without global state, and show what they should."""

import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxaudit.bound import null_law
from jaxaudit.report import figures
from jaxaudit.report.figures import BOUNDS, CAPTIONS, FIGURE_NAMES, GUESSES, OVERLAPS, draw_figures


@pytest.fixture(scope="module")
def drawn(report):
    return draw_figures(report)


@pytest.fixture
def axes():
    return Figure().subplots()


def test_all_are_readable_png(drawn):
    assert set(drawn) == set(FIGURE_NAMES) == set(CAPTIONS)
    for png in drawn.values():
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        assert width >= 700
        assert height >= 300


def test_drawing_is_deterministic(report, drawn):
    assert draw_figures(report) == drawn


def test_no_curve_over_r_where_r_was_declared(report):
    method = report.methods[0]
    selection = replace(method.analysis.selection, candidate_guesses=(), predicted_epsilon=())
    declared = replace(method, analysis=replace(method.analysis, selection=selection))
    assert set(draw_figures(replace(report, methods=(declared,)))) == {BOUNDS, OVERLAPS}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_methods_and_no_claim(report, count):
    methods = tuple(replace(report.methods[0], name=f"m{i}", title=f"costs ${i}$") for i in range(count))
    assert GUESSES in draw_figures(replace(report, methods=methods, claim=None))


def test_overlap_panel_shows_observed_shares_and_the_chance_law(report, axes):
    method = report.methods[0]
    figures._draw_overlap_panel(axes, method, report)
    num_guesses = method.analysis.selection.num_guesses
    bars = {
        round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches[: num_guesses + 1]
    }
    expected = np.bincount(method.analysis.overlaps, minlength=num_guesses + 1) / 5
    assert bars == pytest.approx(dict(enumerate(expected)))
    chance, edges, _ = axes.patches[-1].get_data()
    np.testing.assert_allclose(chance, np.exp(null_law(12, num_guesses).log_pmf))
    np.testing.assert_allclose(edges, np.arange(num_guesses + 2) - 0.5)


def test_many_overlaps_are_binned_without_losing_any(report, axes):
    method = report.methods[0]
    selection = replace(method.analysis.selection, num_guesses=1000)
    overlaps = np.array([0, 499, 500, 1000, 1000])
    wide = replace(method, analysis=replace(method.analysis, selection=selection, overlaps=overlaps))
    figures._draw_overlap_panel(
        axes, wide, replace(report, design=report.design.replace(num_groups=1500), record_ids=None)
    )
    shares = [bar.get_height() for bar in axes.patches[:-1]]
    chance, edges, _ = axes.patches[-1].get_data()
    assert len(shares) <= 61
    assert sum(shares) == pytest.approx(1)
    assert chance.sum() == pytest.approx(1)
    assert edges[0] < 0
    assert edges[-1] > 1000


def test_guesses_panel_marks_the_chosen_one(report, axes):
    selection = report.methods[0].analysis.selection
    figures._draw_guesses_panel(axes, report.methods[0], report)
    curve, mark = axes.get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), selection.candidate_guesses)
    np.testing.assert_array_equal(curve.get_ydata(), selection.predicted_epsilon)
    assert mark.get_xdata()[0] == selection.num_guesses
    assert axes.get_legend().get_texts()[0].get_text() == f"chosen: r = {selection.num_guesses}"


def test_a_ceiling_outside_is_written_in_words(report, axes):
    bound = replace(report.methods[0].analysis.soft, epsilon=2.0, ceiling=50.0)
    figures._draw_bound(axes, bound, "soft", 0.0, limit=10.0)
    assert [text.get_text() for text in axes.texts] == ["ceiling 50.0 \N{RIGHTWARDS ARROW}"]
    figures._draw_bound(axes, replace(bound, ceiling=9.0), "soft", 0.0, limit=10.0)
    assert len(axes.texts) == 1
    assert axes.get_lines()[-1].get_xdata()[0] == 9.0


def test_matplotlib_and_jax_are_not_imported_with_the_report():
    code = "import jaxaudit.report, sys; assert not {'matplotlib', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
