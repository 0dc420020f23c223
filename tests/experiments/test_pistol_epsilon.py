"""Epsilon of PISTOL's edges: the script runs on made-up models, and its page holds the numbers."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.train import num_batches
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
    assert "control: no unlearning, signs drawn anew" in page
    assert "With 4 runs to calibrate" in page
    for name in ("small", "small-joint"):
        point = document[name]
        assert point["updates"] == 4
        assert point["control"]["all"]["epsilon"] == 0
        rows = {row["method"]: row for row in point["rows"]}
        assert list(rows) == ["before", "retrained", *variants]
        assert rows["retrained"]["looks"]["all"]["epsilon"] == 0
        assert rows["before"]["looks"]["all"]["overlaps"]
        assert list(point["rates"]) == variants
        assert set(point["seconds"]) == {"fine-tuning", "choosing rates", *rows}
        assert rows["before"]["scores"]["learnt"] > rows["before"]["scores"]["others"]
        assert rows["before"]["share_of_ceiling"] <= 1
    assert "all, joint" in document["small-joint"]["rows"][0]["looks"]
    assert "all, joint" not in document["small"]["rows"][0]["looks"]


class StartedError(Exception):
    """Something is being made."""


def test_the_ceiling_is_printed_before_anything_is_made(fakes, monkeypatch, capsys):
    def start(*args):
        raise StartedError

    monkeypatch.setattr("jaxaudit.study.languagemodel._pretrain", start)
    with pytest.raises(StartedError):
        run("--preset", "smoke", "--quiet", "--store", "nowhere")
    printed = capsys.readouterr().out
    assert "small: 4 candidate and 2 retained edges" in printed
    assert "small-joint: 2 candidate and 2 retained edges, 4 + 2 runs" in printed
    assert fakes.trained == []


def test_a_dry_run_makes_nothing(fakes, capsys):
    assert run("--dry-run", "--points", "chain") == 0
    printed = capsys.readouterr().out
    assert "20 candidate and 8 retained edges, 50 + 10 runs, 3 looks: epsilon of at most 11.72" in printed
    assert "together about" in printed
    assert fakes.trained == []


def test_some_points_have_a_page_of_their_own_and_are_not_made_again(fakes, tmp_path, monkeypatch):
    unlearn = fakes.unlearn

    def diverging(models, method, reading, rates, *args):
        """Rates are found, but no run of one method comes to a result."""
        after, norms = unlearn(models, method, reading, rates, *args)
        return after, [np.inf] * len(norms) if method == "npo" and len(set(rates)) == 1 else norms

    monkeypatch.setattr("jaxaudit.study.edgemodels.EdgeModels.unlearn", diverging)
    assert smoke(tmp_path, "--points", "small", "--seeds", "3") == 0
    page = (tmp_path / "out" / "epsilon_smoke_seeds-3_small.md").read_text()
    assert "--seeds 3 --points small" in page
    assert "| chain, 6 edges | NPO | 0.001 | failed |" in page
    trained = len(fakes.trained)
    assert smoke(tmp_path, "--points", "small", "--seeds", "3") == 0
    assert len(fakes.trained) == trained > 0


def test_wrong_arguments_are_named(fakes, capsys):
    assert run("--points", "moon") == 2
    assert "points must be among" in capsys.readouterr().err
    assert run("--preset", "smoke", "--data", "published") == 2
    assert "data must be generated" in capsys.readouterr().err
    assert run("--preset", "smoke", "--seeds", "1", "2") == 2
    assert "seeds must be a single one, since an audit has one, got (1, 2)" in capsys.readouterr().err


@pytest.fixture
def points():
    return importlib.import_module("pistol_epsilon_points")


def test_graphs_of_equal_size_have_as_many_edges_and_candidates(points):
    sizes = {
        (len(point.data().edges), len(point.candidates(point.data())))
        for point in points.POINTS.values()
        if point.density
    }
    assert sizes == {(28, 20)}
    data = points.POINTS["half"].data()
    assert len(data.edges) == 10


def test_all_points_of_a_preset_are_unlearned_in_as_many_updates(points):
    for preset, size in points.SIZES.items():
        for name in size.points:
            point = points.POINTS[name]
            data = point.data()
            assert len(data.records) == len(data.edges) * points._QUESTIONS
            study = size.spec(point, size.study, 1).study
            assert study.epochs * num_batches(point.num_forgotten, study.batch_size) == size.num_updates, (
                preset,
                name,
            )


def test_no_two_graphs_or_purposes_share_a_seed(points):
    size = points.SIZES["cpu"]
    studies = [
        size.spec(point, size.study, seed).study for point in points.POINTS.values() for seed in (1, 2)
    ]
    seeds = [seed for study in studies for seed in (*study.seeds, study.tuning_seed)]
    assert len(set(seeds)) == len(seeds) == 4 * len(points.POINTS)
    chain, star = (points.POINTS[name].data().entities["0"].name for name in ("chain", "star"))
    assert chain != star


def test_a_reading_without_the_methods_is_refused(points):
    size, point = replace(points.SIZES["smoke"], methods=("npo",)), points.POINTS["small"]
    with pytest.raises(InputError, match=r"reading must have one of \('npo',\), got pistol_code"):
        size.spec(point, replace(size.study, reading="pistol_code"), 1)


def one(name="chain", row="npo", *, rate=1e-3, epsilon=1.0, score=20.0, distance=20.0):
    """A method of a graph, as far as a check looks at it."""
    point = SimpleNamespace(title=name, cluster=name)
    made = SimpleNamespace(
        row=row,
        rate=rate,
        epsilon=epsilon,
        share=epsilon / 10,
        all_failed=False,
        deviation=SimpleNamespace(score=score, distance=distance, retrained_score=18.0),
        ceiling=10.0,
        headline=SimpleNamespace(direct=SimpleNamespace(significance=0.01)),
    )
    return SimpleNamespace(name=name, point=point, methods=[made]), made


def test_two_rules_at_one_rate_are_one_pair(points):
    checks = importlib.import_module("pistol_epsilon_checks")
    result, first = one()
    _, second = one(row="npo (strong)")
    _, third = one(row="npo (strong)", rate=1e-2)
    failed = SimpleNamespace(**{**vars(third), "row": "kl", "all_failed": True})
    result.methods = [first, second, third, failed]
    assert [pair[1] for pair in checks.pairs_of([result])] == [first, third]


def test_a_relation_over_few_graphs_has_no_interval(points):
    checks = importlib.import_module("pistol_epsilon_checks")
    methods = ("npo", "kl", "idk", "gradient_ascent")
    graphs = [
        [
            one(name, row, epsilon=float(number + other), score=float(number))
            for other, row in enumerate(methods)
        ]
        for number, name in enumerate("abcd")
    ]
    found = checks.relations_of([pair for own in graphs for pair in own])["deviation score"]
    assert found.estimate > 0.6
    assert found.interval is not None
    assert "over 4 graphs and 4 methods" in found.text
    # Too few graphs, too few methods, and too few graphs though of many names.
    same = [[(replace_cluster(result), made) for result, made in own] for own in graphs]
    for few in (graphs[:3], [own[:3] for own in graphs], same):
        relation = checks.relations_of([pair for own in few for pair in own])["deviation score"]
        assert relation.interval is None
        assert "no interval" in relation.text


def replace_cluster(result):
    """The same graph as another."""
    cluster = "a" if result.point.cluster == "b" else result.point.cluster
    return SimpleNamespace(**{**vars(result), "point": SimpleNamespace(title="", cluster=cluster)})


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.1, 0.2, 0.3), "shows"),
        ((0.3, 0.2, 0.1), "reversed"),
        ((0.0, 0.0, 0.1), "does not show"),
        ((0.1, 0.3, 0.2), "does not show"),
        ((1.0, 1.0, 1.0), "at the ceiling everywhere: nothing could show"),
    ],
)
def test_an_order_of_graphs_is_strict(points, shares, verdict):
    assert importlib.import_module("pistol_epsilon_checks")._order(shares) == verdict


def test_over_forgetting_is_no_good_score(points):
    """A deviation score below that of retraining, far from it."""
    checks = importlib.import_module("pistol_epsilon_checks")
    pairs = [one("a", score=1.0, distance=17.0), one("b", score=18.5, distance=1.0)]
    sentence = checks.summary([pair[0] for pair in pairs], pairs)[1]
    assert "1 of 2 come within 5 of retraining" in sentence
