"""PISTOL: the scripts run on made-up models, their pages hold the numbers, and the paper's tables are as printed."""

import importlib
import json
from pathlib import Path

import pytest
from scipy import stats

from jaxaudit.metrics import deviation_score
from tests.cli.test_pistol_run import _params, write_published
from tests.study.conftest import Fakes

FOLDER = Path(__file__).parents[2] / "experiments"
TABLES = ["table2", "table3", "table4", "table5", "degrees", "appendix"]


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setattr("jaxaudit.study.languagemodel._pretrain", lambda spec, *args: _params(spec))
    return Fakes(monkeypatch)


def run(table, *arguments):
    module = importlib.import_module(f"pistol_{table}")
    return importlib.import_module("pistol").main(module.SCRIPT, module.__doc__, list(arguments))


@pytest.mark.parametrize("table", TABLES)
def test_smoke_writes_page_and_figures(table, fakes, tmp_path, capsys):
    out = tmp_path / "out"
    store = tmp_path / "store"
    assert run(table, "--preset", "smoke", "--quiet", "--out", str(out), "--store", str(store)) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    document = json.loads((out / f"{table}_smoke.json").read_text())
    page = (out / f"{table}_smoke.md").read_text()
    assert document["title"] in printed.out
    for check in document["checks"]:
        assert check["expected"] in printed.out
    assert "remembered" in page
    for image in out.glob("*.png"):
        assert image.read_bytes().startswith(b"\x89PNG")
        assert f"({image.name})" in page
    if table == "table4":
        names = {path.name for path in out.glob("*.png")}
        assert names == {"table4_smoke_domains_A_C.png", "table4_smoke_domains_A_n.png"}
    contents = [document[f"table{number}"] for number in (6, 7, 8, 9)] if table == "appendix" else [document]
    for content in contents:
        assert set(content["rates"]) >= {"gradient_ascent", "kl"}
        for outcomes in content["outcomes"].values():
            assert [one["method"] for one in outcomes][:3] == ["base", "before", "retrained"]
            assert all(set(one["deviation"]) >= {"distance", "distance_between_seeds"} for one in outcomes)


def test_ranks_stand_beside_the_papers(fakes, tmp_path, capsys):
    assert run("appendix", "--preset", "smoke", "--quiet", "--store", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    paper = importlib.import_module("pistol_paper")
    for table, column in (("6", "forget_mrr"), ("7", "retain_thr"), ("8", "sales_mrr"), ("9", "forget_thr")):
        title = f"Beside Table {table}: {column.replace('_', ' ')}, ours along the model's own answer"
        section = printed.split(title)[1].split("\n\n")[0]
        for row in paper.rows(table):
            assert str(row[f"{column}_mean"]) in section


def test_the_distance_to_retraining_has_a_rank_correlation(fakes, tmp_path):
    out = tmp_path / "out"
    arguments = ["--preset", "smoke", "--quiet", "--store", str(tmp_path), "--out", str(out)]
    assert run("degrees", *arguments) == 0
    document = json.loads((out / "degrees_smoke.json").read_text())
    outcomes, degrees = document["outcomes"], document["degrees"]
    found = document["rank_correlations"]["npo"]["distance to retraining"]
    distances = [
        next(one["deviation"]["distance"][0] for one in outcomes[edge] if one["method"] == "npo")
        for edge in outcomes
    ]
    expected = stats.spearmanr([degrees[edge] for edge in outcomes], distances).statistic
    assert found[0] == pytest.approx(expected)
    page = (out / "degrees_smoke.md").read_text()
    for edge in outcomes:
        assert (f"| {edge} \\* |" in page or f"| {edge} * |" in page) == (edge in ("A_C2", "A_n2", "B_D"))


def test_what_is_in_the_store_is_not_made_again(fakes, tmp_path, capsys):
    arguments = ["--preset", "smoke", "--quiet", "--store", str(tmp_path)]
    assert run("table2", *arguments) == 0
    assert "written" not in capsys.readouterr().out  # a smoke test writes only where it is told to
    trained = len(fakes.trained)
    assert run("table2", *arguments) == 0
    assert len(fakes.trained) == trained > 0


def test_the_code_reading_has_other_methods_and_files(fakes, tmp_path, capsys):
    arguments = ["--preset", "smoke", "--quiet", "--store", str(tmp_path), "--out", str(tmp_path / "out")]
    assert run("table2", *arguments, "--reading", "pistol_code") == 0
    assert "DPO (dpo)" in capsys.readouterr().out
    assert (tmp_path / "out" / "table2_smoke_pistol_code.md").is_file()


def test_a_dry_run_trains_nothing(fakes, capsys):
    """On all data: this one needs what the other tables need."""
    assert run("appendix", "--dry-run") == 0
    assert "together about" in capsys.readouterr().out
    assert fakes.trained == []


@pytest.fixture
def published(tmp_path):
    data = importlib.import_module("pistol_data").load("dataset-1", "generated", small=True)
    return write_published(tmp_path / "Tiny", [record.question for record in data.records])


@pytest.mark.parametrize("table", ["table2", "appendix"])
def test_a_published_model_stands_beside_the_papers(table, fakes, published, tmp_path, capsys):
    """Tables of Dataset 1 only: nothing else is trained; rates are chosen on one edge."""
    out = tmp_path / "out"
    options = ["--preset", "smoke", "--quiet", "--store", str(tmp_path), "--out", str(out)]
    assert run(table, *options, "--model", str(published)) == 0
    page = (out / f"{table}_smoke_Tiny.md").read_text()
    assert "| Gemma-7B | Tiny |" in page
    assert f"--model {published}" in page
    titles = {"table2": ("Samples",), "appendix": ("Beside Table 6", "Beside Table 8")}
    assert all(title in page for title in titles[table])
    assert "Beside Table 7" not in page
    tuned = {request.edge for _, requests in fakes.unlearned for request in requests if request.seed == 0}
    assert tuned == {"A_C2"}


def test_the_cost_of_a_published_model_comes_from_its_tokens(fakes, published, capsys):
    assert run("table2", "--dry-run", "--model", str(published)) == 0
    printed = capsys.readouterr().out
    assert "tokens per question" in printed
    assert "4 models fine-tuned or retrained, 10 unlearned, 20 more" in printed  # seeds 0 and 1; two edges
    assert fakes.trained == []


def test_wrong_arguments_are_named(fakes, capsys, monkeypatch):
    monkeypatch.delenv("JAXAUDIT_DATA", raising=False)
    assert run("table2", "--preset", "smoke", "--seeds", "0") == 2
    assert "seeds must differ" in capsys.readouterr().err
    assert run("table2", "--preset", "smoke", "--data", "published") == 2
    assert "JAXAUDIT_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("small", [False, True])
def test_rates_are_chosen_on_edges_that_are_not_in_a_table(small):
    data = importlib.import_module("pistol_data")
    first, second = (data.load(name, "generated", small=small) for name in ("dataset-1", "dataset-2"))
    assert data.tuning_edges("dataset-1", first) == ("A_C2", "A_n2", "B_D")
    assert set(data.tuning_edges("dataset-1", first)) <= set(first.edges)
    tuned = data.tuning_edges("dataset-2", second)
    assert [int(edge.split("_")[0]) // 10 for edge in tuned] == [0, 1, 2]
    reported = {edge for edges in data.graph_edges(second).values() for edge in edges}
    reported |= set(data.known_edges(data.load("goldman-sachs", "generated", small=small)))
    assert not reported & set(tuned)


def test_edges_are_those_of_the_graphs_and_always_the_same():
    data = importlib.import_module("pistol_data")
    second = data.load("dataset-2", "generated", small=False)
    edges = data.graph_edges(second)
    assert edges == data.graph_edges(second)
    for number, graph in enumerate(("sparse", "semi-dense", "dense")):
        assert len(set(edges[graph])) == 3
        assert {int(node) // 10 for edge in edges[graph] for node in edge.split("_")} == {number}
    known = data.load("goldman-sachs", "generated", small=False)
    assert all("20" in edge.split("_") for edge in data.known_edges(known))
    assert known.entities["20"].name == "Goldman Sachs"


def test_printed_scores_are_those_of_the_printed_means_but_for_four():
    paper = importlib.import_module("pistol_paper")
    off = []
    for table in ("2", "3", "5"):
        for row in paper.rows(table):
            score = deviation_score(row["forget_rouge1_mean"], row["retain_rouge1_mean"])
            if abs(score - row["deviation_score"]) > 0.2:
                off.append((table, row["forget_data"], row["model"], row["method"], row["deviation_score"]))
    listed = [
        (one["table"], one["forget_data"], one["model"], one["method"], one["deviation_score"])
        for one in paper._document()["scores_not_of_the_means"]
    ]
    assert sorted(off) == sorted(listed)
    assert len(off) == 4


def test_the_slips_that_can_be_computed_are_there():
    paper = importlib.import_module("pistol_paper")
    scores = paper.printed("2", "deviation_score")
    assert scores["AB", "UKL", "Mistral-7B"] < scores["AC", "UKL", "Mistral-7B"]
    third = [row for row in paper.rows("3") if (row["model"], row["method"]) == ("Llama2-7B", "NPO")]
    dense, sparse = (
        [value for name, value in row.items() if name != "forget_data"]
        for row in third
        if row["forget_data"] in ("Dense", "Sparse")
    )
    assert dense == sparse
    ranks = paper.printed("7", "forget_mrr_mean")
    recalls = paper.printed("3", "forget_rouge1_mean")
    for method in ("GA", "GD", "DPO"):
        key = ("Semi-Dense", method, "Mistral-7B")
        assert ranks[key] == recalls[key]


def test_files_and_commands_say_what_is_not_the_default():
    options = importlib.import_module("pistol").Options
    assert (options(preset="cpu").stem, options(preset="cpu").command) == ("cpu", " --preset cpu")
    other = options(preset="cpu", size="small", seeds=(4, 5), reading="pistol_code")
    assert other.stem == "cpu_pistol_code_size-small_seeds-4-5"
    assert other.command == " --preset cpu --reading pistol_code --size small --seeds 4 5"


def test_a_claim_is_summarised_by_its_checks():
    page = importlib.import_module("pistol_page")
    verdicts = ["shows", "shows, but not beyond what retraining shows as well", "reversed", "does not show"]
    sentence = page.summarise("It rains", [page.Check("", verdict, "") for verdict in verdicts])
    assert "2 of 4 methods" in sentence
    assert "reversed for 1" in sentence
    assert "for 1 once the score of the retrained models is subtracted" in sentence


def test_the_larger_data_are_read_more_often():
    options = importlib.import_module("pistol").Options(preset="cpu")
    passes = {
        name: options.spec(name).fine_tuning.epochs for name in ("dataset-1", "dataset-2", "goldman-sachs")
    }
    assert passes == {"dataset-1": 40, "dataset-2": 50, "goldman-sachs": 50}
    assert (
        importlib.import_module("pistol").Options(preset="paper").spec("dataset-2").fine_tuning.epochs == 20
    )
