"""Table 1a: the script runs on a made-up text, resumes, says what is wrong with its input; its results are kept."""

import importlib
import json
import re
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from jaxaudit.train import cross_entropy_loss
from jaxaudit.unlearn import as_stages
from tests.data.shakespeare import texts

FOLDER = Path(__file__).parents[2] / "experiments"
RESULTS = FOLDER / "results" / "table1a"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    path = tmp_path_factory.mktemp("plays") / "pg100.txt"
    path.write_text(texts.modern(["THE TALE OF ANN", "KING BOB"], count=8), encoding="utf-8")
    return path


def module(name):
    return importlib.import_module(name)


def run(*arguments):
    return module("table1a_shakespeare").main(list(arguments))


def smoke_data(play):
    presets = module("shakespeare_presets")
    text = module("jaxaudit.data.shakespeare").load_shakespeare(play, seed=0, **presets.PRESETS["smoke"].text)
    return presets, presets.PRESETS["smoke"], text.data


@pytest.mark.slow
def test_smoke_writes_its_pages_and_resumes(play, tmp_path, capsys):
    out, store = tmp_path / "out", tmp_path / "store"
    arguments = (
        "--preset",
        "smoke",
        "--text",
        str(play),
        "--quiet",
        "--store",
        str(store),
        "--out",
        str(out),
    )
    assert run(*arguments) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    document = json.loads((out / "table1a_smoke.json").read_text())
    names = [row["name"] for row in document["rows"]]
    presets = module("shakespeare_presets")
    paper = [row for row in presets.paper_rows() if row.name in presets.PRESETS["smoke"].methods]
    assert names == ["none", *(row.name for row in paper)]
    assert len(paper) == 4
    page, leaks = ((out / name).read_text() for name in ("table1a_smoke.md", "leaks.md"))
    for row, expected in zip(document["rows"][1:], paper):
        assert row["title"] in page
        assert row["title"] in printed.out
        assert row["paper"] == expected.epsilon
        assert 0 <= row["theorem"] <= row["direct"] <= row["ceiling"]
        assert row["num_failed"] == 0
        assert f"## {row['title']}" in leaks
    assert "what news, what news?" in leaks
    assert (out / "table1a_smoke.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "report" / "report.md").exists()
    again = tmp_path / "again"
    assert run(*arguments[:-1], str(again)) == 0
    rows = [json.loads((folder / "table1a_smoke.json").read_text())["rows"] for folder in (out, again)]
    assert rows[0] == rows[1]


def test_dry_run_counts_updates_and_operations(play, capsys):
    assert run("--preset", "smoke", "--text", str(play), "--dry-run") == 0
    printed = capsys.readouterr().out
    presets, _, data = smoke_data(play)
    members = data.num_retain + data.num_groups // 2 * data.group_size
    assert f"{2 * -(-members // 32):,}" in re.search(r"^training +(\S+)", printed, re.M).group(1)
    assert "8 runs (6 to calibrate)" in printed
    for name in presets.PRESETS["smoke"].methods:
        assert re.search(rf"^{name} ", printed, re.M)


def test_operations_are_counted_as_the_compiler_counts_a_pass(play):
    """The matrix products of one pass forward, from JAX's own program, at a size where they are nearly everything."""
    presets = module("shakespeare_presets")
    preset = presets.PRESETS["paper"]
    params = jax.eval_shape(preset.model.init_fn, jax.random.key(0))
    window = jax.ShapeDtypeStruct((1, preset.text["window"]), "int32")
    program = jax.make_jaxpr(preset.model.logits_fn)(params, window)
    assert module("shakespeare_cost").flops_per_gradient(preset) == pytest.approx(3 * products(program.jaxpr))


def products(jaxpr, times=1):
    """Floating-point operations of all matrix products, loops included."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            ((contracted, _), _) = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            inner = [left[axis] for axis in contracted]
            total += 2 * times * size(equation.outvars[0].aval.shape) * size(inner)
        for value in equation.params.values():
            inside = getattr(value, "jaxpr", None)
            if inside is not None:
                total += products(inside, times * equation.params.get("length", 1))
    return total


def size(shape):
    result = 1
    for length in shape:
        result *= length
    return result


def test_methods_take_the_passes_of_the_paper(play):
    presets, preset, data = smoke_data(play)
    methods = presets.methods_of(replace(preset, methods=()), data)
    assert list(methods) == ["none", *(row.name for row in presets.paper_rows())]
    retain, forget = (-(-count // 32) for count in (data.num_retain, data.num_groups // 2 * data.group_size))
    updates = {
        name: [stage.num_updates for stage in as_stages(one.method).stages] for name, one in methods.items()
    }
    assert updates["ida-1-0.5-4"] == updates["ida-9-0.5-4"] == [4 * retain, 4 * retain]
    assert updates["ida-1-1.5-7"] == [7 * retain, retain]
    assert updates["retain-finetune"] == [8 * retain]
    assert updates["ascent"] == [2 * forget, 6 * retain]
    finetunes = {
        as_stages(methods[name].method).stages[-1] for name in ("ida-1-0.5-4", "ida-4-0.5-4", "ida-1-1.5-4")
    }
    assert len(finetunes) == 1  # one object, compiled once


def test_the_loss_is_the_mean_over_characters(play):
    """Ascent climbs the forget windows: the loss that it is given is that of the model, by hand."""
    _, preset, data = smoke_data(play)
    params = preset.model.init_fn(jax.random.key(0))
    batch = jax.tree.map(lambda leaf: leaf[0, :3], data.groups)
    log_p = jax.nn.log_softmax(preset.model.logits_fn(params, batch.x))
    by_hand = [
        -log_p[i, t, batch.y[i, t]] for i in range(3) for t in range(batch.y.shape[1]) if batch.weights[i]
    ]
    loss = cross_entropy_loss(preset.model.logits_fn)(params, batch)
    assert float(loss) == pytest.approx(sum(map(float, by_hand)) / len(by_hand), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seed", "-1"), "seed must be an integer of at least 0, got -1"),
        (("--text", "nowhere.txt"), "no such file: nowhere.txt"),
    ],
)
def test_wrong_arguments_are_named(play, arguments, message, capsys):
    given = arguments if "--text" in arguments else (*arguments, "--text", str(play))
    assert run("--preset", "smoke", "--quiet", *given) == 2
    assert message in capsys.readouterr().err


def test_kept_results_are_those_of_the_script():
    """The committed page, JSON and paper's numbers belong together."""
    document = json.loads((RESULTS / "table1a_cpu.json").read_text())
    page = (RESULTS / "table1a_cpu.md").read_text()
    paper = {row.name: row.epsilon for row in module("shakespeare_presets").paper_rows()}
    for row in document["rows"]:
        assert row["paper"] == paper.get(row["name"])
        assert f"| {row['title']} | {row['direct']:.2f} | {row['theorem']:.2f} |" in page
    assert (RESULTS / "table1a_cpu.png").exists()
    assert (RESULTS / "leaks.md").exists()
