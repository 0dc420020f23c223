"""Epsilon of PISTOL's edges: the script runs on made-up models, and its page holds the numbers."""

import importlib
import json
from pathlib import Path

import pytest

from tests.cli.test_pistol_run import _params
from tests.study.conftest import FakeEdgeModels

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setattr("jaxaudit.study.languagemodel._pretrain", lambda spec, *args: _params(spec))
    return FakeEdgeModels(monkeypatch)


def run(*arguments):
    return importlib.import_module("pistol_epsilon").main(list(arguments))


def smoke(tmp_path, *arguments):
    out, store = str(tmp_path / "out"), str(tmp_path / "store")
    return run("--preset", "smoke", "--quiet", "--out", out, "--store", store, *arguments)


def test_smoke_writes_page_and_figure(fakes, tmp_path, capsys):
    assert smoke(tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    document = json.loads((tmp_path / "out" / "epsilon_smoke.json").read_text())
    page = (tmp_path / "out" / "epsilon_smoke.md").read_text()
    image = tmp_path / "out" / "epsilon_smoke_scores.png"
    assert image.read_bytes().startswith(b"\x89PNG")
    assert f"({image.name})" in page
    for check in document["checks"]:
        assert check["expected"] in printed.out
    variants = [f"{name}{end}" for name in ("gradient_difference", "npo") for end in ("", " (strong)")]
    for name in ("small", "small-joint"):
        point = document[name]
        rows = {row["method"]: row for row in point["rows"]}
        assert list(rows) == ["before", "retrained", *variants]
        assert rows["retrained"]["looks"]["all"]["epsilon"] == 0
        assert rows["before"]["looks"]["all"]["overlaps"]
        assert list(point["rates"]) == variants
        assert set(point["seconds"]) == {"fine-tuning", *rows}
        assert point["scores"]["before"]["learnt"] > point["scores"]["before"]["others"]
    assert "all, joint" in document["small-joint"]["rows"][0]["looks"]
    assert "all, joint" not in document["small"]["rows"][0]["looks"]


def test_the_ceiling_is_printed_before_anything_is_trained(fakes, capsys):
    assert run("--preset", "smoke", "--dry-run") == 0
    printed = capsys.readouterr().out
    assert "epsilon of at most" in printed
    assert "together about" in printed
    assert fakes.trained == 0
    assert run("--dry-run", "--points", "chain") == 0
    assert "20 candidate and 8 retained edges, 50 + 10 runs, 3 looks: epsilon of at most 11.72" in (
        capsys.readouterr().out
    )


def test_some_points_have_a_page_of_their_own_and_are_not_made_again(fakes, tmp_path, capsys):
    assert smoke(tmp_path, "--points", "small") == 0
    assert "--points small" in (tmp_path / "out" / "epsilon_smoke_small.md").read_text()
    trained = fakes.trained
    assert smoke(tmp_path, "--points", "small") == 0
    assert fakes.trained == trained > 0


def test_wrong_arguments_are_named(fakes, capsys):
    assert run("--points", "moon") == 2
    assert "points must be among" in capsys.readouterr().err
    assert run("--preset", "smoke", "--data", "published") == 2
    assert "data must be generated" in capsys.readouterr().err


def test_graphs_of_equal_size_have_as_many_edges_and_candidates():
    points = importlib.import_module("pistol_epsilon_points")
    sizes = {
        (len(point.data().edges), len(point.candidates(point.data())))
        for point in points.POINTS.values()
        if point.density
    }
    assert sizes == {(28, 20)}
    data = points.POINTS["half"].data()
    assert len(data.edges) == 10
