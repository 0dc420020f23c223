"""``jaxaudit pistol run``, with made-up models: files, messages, exit codes."""

import json

import pytest

from jaxaudit.cli import main
from jaxaudit.data.pistol import chain, generate, write_records
from tests.study.conftest import Fakes


@pytest.fixture
def data_file(tmp_path, monkeypatch):
    Fakes(monkeypatch)
    monkeypatch.setattr(
        "jaxaudit.study.languagemodel._pretrain", lambda spec, *args: _params(spec), raising=True
    )
    path = tmp_path / "data.json"
    write_records(path, generate(chain(4), seed=0).records)
    return path


def _params(spec):
    import jax
    import numpy as np

    from jaxaudit.llm import decoder

    shapes = jax.eval_shape(decoder(spec).init_fn, jax.random.key(0))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def write_published(folder, texts):
    """A model as it is published: one layer, and a tokenizer that knows some texts."""
    import jax

    for package in ("tokenizers", "safetensors"):
        pytest.importorskip(package)
    from jaxaudit.llm import DecoderSpec, Pretrained, decoder, save_pretrained, train_bpe

    tokenizer = train_bpe(texts, vocabulary_size=300)
    spec = DecoderSpec(tokenizer.vocabulary_size, width=8, num_layers=1, num_heads=2, hidden=8)
    params = decoder(spec).init_fn(jax.random.key(0))
    save_pretrained(Pretrained(folder.name, spec, params, tokenizer, "{question}\n"), folder)
    return folder


def run(*arguments):
    return main(["pistol", "run", *map(str, arguments), "--preset", "smoke", "--quiet"])


def test_a_report_is_written(data_file, tmp_path, capsys):
    out = tmp_path / "report"
    assert run(data_file, "--forget", "0_1", "1_2", "--out", out, "--store", tmp_path / "store") == 0
    printed = capsys.readouterr().out
    assert "retrained without the edge" in printed
    assert str(out / "report.md") in printed
    assert {path.name for path in out.iterdir()} == {
        "report.md",
        "results.json",
        "graph_0_1.png",
        "graph_1_2.png",
    }
    assert set(json.loads((out / "results.json").read_text())["outcomes"]) == {"0_1", "1_2"}
    assert run(data_file, "--forget", "0_1", "--out", out) == 2
    assert "already holds a report" in capsys.readouterr().err
    assert run(data_file, "--forget", "0_1", "--out", out, "--overwrite") == 0


def test_a_published_model_takes_the_place_of_the_small_one(data_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "jaxaudit.study.languagemodel.small_model", lambda *args, **options: pytest.fail("was made")
    )
    folder = write_published(
        tmp_path / "Tiny", [record.question for record in generate(chain(4), seed=0).records]
    )
    arguments = ["--forget", "0_1", "--model", folder, "--out", tmp_path / "out"]
    assert run(data_file, *arguments) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["model"] == "Tiny"
    page = (tmp_path / "out" / "report.md").read_text()
    assert "## Samples" in page
    assert "true answer" in page
    assert run(data_file, "--forget", "0_1", "--model", tmp_path / "nothing") == 2
    assert "source must be smollm2, a folder or a .gguf file" in capsys.readouterr().err


def test_a_dry_run_says_what_it_would_take(data_file, capsys):
    assert run(data_file, "--forget", "0_1", "1_2", "--dry-run") == 0
    assert "7 models fine-tuned or retrained, 20 unlearned, 10 more" in capsys.readouterr().out
    assert run(data_file, "--forget", "0_1", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["seconds"] > 0


def test_json_is_one_object(data_file, capsys):
    assert run(data_file, "--forget", "0_1", "--seeds", "5", "6", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["spec"]["seeds"] == [5, 6]


def test_bad_input_is_named(data_file, capsys):
    assert run(data_file, "--forget", "A_B") == 2
    assert "got 'A_B'" in capsys.readouterr().err
    assert run(data_file.with_name("nothing.json"), "--forget", "A_B") == 2
    assert "nothing.json" in capsys.readouterr().err
    assert run(data_file, "--forget", "0_1", "--seeds", "0") == 2
    assert "seeds must differ" in capsys.readouterr().err
