"""Page, tables and figures of a study with made-up results: every number of the page is one of an outcome."""

import json
from dataclasses import replace

import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.blocks import Warn
from jaxaudit.study import Study
from jaxaudit.study.figures import draw_bars, draw_degrees, draw_graph
from jaxaudit.study.page import outcome_table, parts_table, ranks_table, rates_section
from jaxaudit.study.report import figure_name, make_report


@pytest.fixture
def report(micro, micro_spec, fakes):
    return make_report(Study(micro, micro_spec), ["0_1", "1_2"])


def test_every_method_and_baseline_has_a_row(report):
    table = outcome_table(report.outcomes)
    assert len(table.rows) == 2 * (3 + 5)
    for row, one in zip(table.rows, [one for found in report.outcomes.values() for one in found]):
        assert row[2] == f"{one.mean('forget'):.3f}"
        assert row[6].startswith(f"{one.deviation.score:.1f} (")
        assert (row[7] == "") == (one.method == "retrained")


def test_retained_questions_are_broken_down(report):
    table = parts_table(report.outcomes)
    assert table.header == ("forgotten", "method", "1 hop", "2 hops", "3 hops", "retain sales", "first 200")
    one = report.outcomes["0_1"][0]
    assert table.rows[0][2:] == tuple(f"{one.mean(part):.3f}" for part in table.header[2:])
    free = ranks_table(report.outcomes, free_running=True).rows[0]
    assert free[2] == f"{one.mean('forget', 'free reciprocal rank'):.3f}"


def test_every_rate_that_was_tried_is_on_the_page(report):
    page = report.markdown()
    for choice in report.choices.values():
        for one in choice.tried:
            assert f"{one.forget:.3f}" in page
    assert "this is the goal, not 0" in page
    for edge in report.outcomes:
        assert f"]({figure_name(edge)})" in page


def test_unmet_thresholds_are_warned_of(micro, micro_spec, fakes):
    strict = make_report(Study(micro, replace(micro_spec, min_utility=1.0)), ["0_1"])
    section = rates_section(strict.study, strict.choices, ["0_1"])
    warnings = " ".join(block.text for block in section.blocks if isinstance(block, Warn))
    unmet = [choice for choice in strict.choices.values() if not choice.met]
    assert ("No rate keeps the retained answers" in warnings) == bool(unmet)
    assert "At an end of what was tried" in warnings


def test_the_document_is_plain_json(report):
    document = json.loads(json.dumps(report.document(), allow_nan=False))
    assert set(document["rates"]) == set(report.study.spec.methods)
    assert document["rates"]["npo"]["tried"][0]["rate"] == 1e-3
    assert document["tuning_edges"] == ["0_1"]


def test_figures_are_images(report, micro):
    images = [*report.figures().values()]
    bars = {"x": {"npo": (1.0, 0.5, 1.5)}, "y": {"npo": (2.0, 1.5, 2.5)}}
    images.append(draw_bars(bars, "score", {"x": 0.5, "y": 0.6}))
    images.append(draw_degrees([1, 2, 3], {"score": {"npo": [1.0, 2.0, 3.0]}}, ["score"]))
    images.append(draw_graph(micro.data, "1_2", {"npo": dict.fromkeys(micro.data.edges, 0.5)}))
    assert all(image.startswith(b"\x89PNG") for image in images)


def test_an_unknown_edge_is_named_before_anything_is_trained(micro, micro_spec, fakes):
    with pytest.raises(InputError, match="got 'A_B'"):
        make_report(Study(micro, micro_spec), ["0_1", "A_B"])
    assert fakes.trained == []
