"""Table 2: the scripts run, say what is wrong with their input, and agree with the paper's cells."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jaxaudit.progress import SilentReporter

FOLDER = Path(__file__).parents[2] / "experiments"
RESULTS = FOLDER / "results" / "table2"
SCRIPTS = ["table2a_cubic", "table2b_output_perturbation", "table2_logistic"]
by_script = pytest.mark.parametrize("script", SCRIPTS)


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def run(script, *arguments):
    module = importlib.import_module(script)
    return importlib.import_module("table2").main(module.build, module.__doc__, list(arguments))


@by_script
def test_smoke_writes_table_page_and_figure(script, tmp_path, capsys):
    assert run(script, "--preset", "smoke", "--out", str(tmp_path), "--quiet") == 0
    printed = capsys.readouterr()
    (page,), (document,), (image,) = (list(tmp_path.glob(f"*.{kind}")) for kind in ("md", "json", "png"))
    result = json.loads(document.read_text())
    assert result["title"] in printed.out
    assert printed.err == ""
    for row in result["rows"]:
        assert f"{row['certified']:g}" in printed.out
        assert 0 <= row["joint"] <= row["direct"] <= row["accuracy"]
        assert row["baseline"] >= 0
        assert row["optimised"] <= row["ceiling"]
        assert row["limit"] <= row["certified"]
        assert f"| {row['certified']:g} |" in page.read_text()
    assert image.name in page.read_text()
    assert "nothing is halved" in page.read_text()
    assert image.read_bytes().startswith(b"\x89PNG")


@by_script
def test_smoke_leaves_the_kept_results_alone(script, capsys):
    assert run(script, "--preset", "smoke", "--quiet") == 0
    assert "written" not in capsys.readouterr().out


def test_wrong_arguments_are_named(capsys):
    assert run("table2a_cubic", "--preset", "smoke", "--seed", "-1") == 2
    assert "seed must be an integer of at least 0, got -1" in capsys.readouterr().err
    assert run("table2a_cubic", "--preset", "smoke", "--quiet", "--out", f"{FOLDER}/README.md") == 2
    assert "README.md" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        run("table2a_cubic", "--preset", "other")
    assert stop.value.code == 2


def test_a_row_of_each_half_agrees_with_the_paper(monkeypatch):
    table2 = importlib.import_module("table2")
    monkeypatch.setattr(table2, "NUM_REPEATS", 8)
    for script, certified in ((SCRIPTS[0], 100), (SCRIPTS[1], 2)):
        options = table2.Options(seed=3)
        experiment = importlib.import_module(script).build(options)
        experiment = replace(experiment, certified=(certified,))
        (row,) = table2.run_rows(experiment, options, SilentReporter())
        assert round(row.sigma, 4) == row.printed.sigma
        assert abs(row.pairwise_audits.mean - row.printed.pairwise) <= 3 * row.pairwise_audits.standard_error
        assert abs(row.joint_audits.mean - row.printed.joint) <= 3 * row.joint_audits.standard_error
        assert 2 * row.baseline < row.optimised < row.limit


def test_the_best_ratio_of_the_sweep():
    best, *others = importlib.import_module(SCRIPTS[0]).sweep()
    assert [best[name] for name in ("cubic", "radius", "distance", "regularisation")] == [0.001, 2.5, 10, 0.2]
    assert round(best["ratio"], 2) == 0.22
    assert all(row["ratio"] <= best["ratio"] for row in others)


@pytest.mark.parametrize("table", ["2a", "2b"])
def test_the_kept_results_agree_with_every_printed_cell(table):
    printed = json.loads((FOLDER / "paper_table2.json").read_text())[table]
    kept = json.loads((RESULTS / f"table{table}_paper.json").read_text())
    rows = {row["certified"]: row for row in kept["rows"]}
    for certified, sigma, pairwise, joint in printed:
        row = rows[certified]
        assert round(row["sigma"], 4) == sigma
        for audits, value in ((row["pairwise_audits"], pairwise), (row["joint_audits"], joint)):
            assert abs(audits["mean"] - value) <= 3 * audits["standard_error"] + 5e-5


def test_the_text_presets_parameters_do_not_give_the_printed_noise():
    table2, script = importlib.import_module("table2"), importlib.import_module(SCRIPTS[0])
    pair = script.build(table2.Options(preset="text")).pair
    printed = table2.printed_rows("2a")
    ratios = [pair.sigma(certified, 0.01) / row.sigma for certified, row in printed.items()]
    assert np.min(ratios) > 5
