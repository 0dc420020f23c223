"""Page, tables and figures of a study with made-up results: every number of the page is one of an outcome."""

import json
from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.report.blocks import Warn
from jaxaudit.study import Study
from jaxaudit.study.figures import draw_bars, draw_degrees, draw_graph
from jaxaudit.study.page import outcome_table, parts_table, ranks_table, rates_section, warnings
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


def test_ranks_along_own_answers_have_a_table(micro, micro_spec, fakes):
    ranked = make_report(Study(micro, replace(micro_spec, free_running=True)), ["0_1"])
    one = ranked.outcomes["0_1"][0]
    free = ranks_table(ranked.outcomes, free_running=True).rows[0]
    assert free[2] == f"{one.mean('forget', 'free reciprocal rank'):.3f}"


def test_hops_are_sorted_as_numbers(report):
    found = report.outcomes["0_1"]
    far = [
        replace(one, parts={f"{hops} hops": {"recall": np.ones(1)} for hops in (10, 9, 2)}) for one in found
    ]
    assert parts_table({"0_1": far}).header[2:5] == ("2 hops", "9 hops", "10 hops")


def test_rates_are_chosen_on_an_edge_that_is_not_reported(report, micro, micro_spec, fakes):
    assert report.tuning_edges == ("2_3",)
    assert "these flatter" not in report.markdown()
    everything = make_report(Study(micro, micro_spec), list(micro.data.edges))
    assert everything.tuning_edges == ("0_1",)
    assert "so these flatter: 0_1" in everything.markdown()


def test_a_model_that_never_knew_is_warned_of(report):
    """Made-up recalls of about one half."""
    assert "does not remember its answers" in report.markdown()
    assert "does not remember" in report.document()["warnings"][0]
    known = {
        edge: [replace(one, forget=np.ones((2, 20)), retain=np.ones((2, 60))) for one in found]
        for edge, found in report.outcomes.items()
    }
    assert warnings(known) == ()
    *others, last = known["0_1"]
    stuck = {"0_1": [*others, replace(last, moved=(0.0, 1.0))]}
    assert [one.text for one in warnings(stuck)] == ["Unlearning changed nothing at all: 0_1, NPO (1 of 2)."]
    lost = {"0_1": [*others, replace(last, moved=(float("nan"), 1.0))]}
    assert [one.text for one in warnings(lost)] == [
        "Unlearning ended in parameters that are not finite: 0_1, NPO (1 of 2)."
    ]


def test_data_without_a_floor_are_refused_before_anything_is_trained(micro, micro_spec, fakes, monkeypatch):
    def refuse(*args):
        raise InputError("no floor")

    monkeypatch.setattr("jaxaudit.study.report.guessing_floors", refuse)
    with pytest.raises(InputError, match="no floor"):
        make_report(Study(micro, micro_spec), ["0_1"])
    assert fakes.trained == []


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
    said = " ".join(block.text for block in section.blocks if isinstance(block, Warn))
    unmet = [choice for choice in strict.choices.values() if not choice.met]
    assert ("No rate keeps the retained answers" in said) == bool(unmet)
    assert "At an end of what was tried" in said


def test_the_document_is_plain_json(report):
    document = json.loads(json.dumps(report.document(), allow_nan=False))
    assert set(document["rates"]) == set(report.study.spec.methods)
    assert document["rates"]["npo"]["tried"][0]["rate"] == 1e-3
    assert document["tuning_edges"] == ["2_3"]
    assert set(document["guessing_floors"]) == {"0_1", "1_2"}


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
