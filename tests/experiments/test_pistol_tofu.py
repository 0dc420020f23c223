"""Table 1: the script runs on a made-up file in TOFU's format, and its page holds the numbers."""

import importlib
import json
import shlex

import numpy as np
import pytest

from tests.cli.test_pistol_run import _params
from tests.data.pistol.test_tofu import NAMES, made_up
from tests.experiments.test_pistol import FOLDER
from tests.study.conftest import Fakes

AUTHORS = [*NAMES, "Hana Sól", "Ivo Prat", "Jin Park", "Kofi Mensah", "Lea Brand", "Mia Toth", "Nils Berg"]
CONNECTED, ALONE = ["0", "1", "2", "4", "5", "6", "7", "8"], ["9", "10", "11"]


@pytest.fixture(scope="module")
def patches():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module", autouse=True)
def fakes(patches):
    """Made-up models, and the scripts on the path."""
    patches.syspath_prepend(str(FOLDER))
    patches.setattr("jaxaudit.study.languagemodel._pretrain", lambda spec, *args: _params(spec))
    return Fakes(patches)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Of the command line: a file with eight connected authors, three who are alone, and three others."""
    file = tmp_path_factory.mktemp("tofu") / "made up.jsonl"
    rows = [{"question": pair.question, "answer": pair.answer} for pair in made_up(AUTHORS)]
    file.write_text("\n".join(map(json.dumps, rows)))
    return ["--tofu", str(file), "--connected", *CONNECTED, "--alone", *ALONE]


def run(*arguments):
    module = importlib.import_module("pistol_table1")
    return importlib.import_module("pistol").main(
        module.SCRIPT, module.__doc__, list(arguments), **module.TYPES
    )


def studies(*arguments):
    import tyro

    module = importlib.import_module("pistol_tofu")
    return module.TofuStudies(tyro.cli(module.TofuOptions, args=list(arguments)), None)


@pytest.fixture(scope="module")
def written(fakes, options, tmp_path_factory):
    """What a smoke test wrote, its document and its page, and the edges on which rates were chosen."""
    out, store = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("store")
    place = ["--preset", "smoke", "--quiet", "--out", str(out), "--store", str(store)]
    assert run(*place, *options) == 0
    tried = {request.edge for _, requests in fakes.unlearned for request in requests if request.seed == 0}
    return json.loads((out / "table1_smoke.json").read_text()), (out / "table1_smoke.md").read_text(), tried


def test_the_page_has_both_data_sets_beside_the_paper(written):
    document, page, _ = written
    assert "| TOFU | GA | 40.8 | 37.4 | 3.4 |" in page
    assert "| Structured TOFU | NPO | 45.5 | 42.1 | 3.3 |" in page
    for name in ("original", "structured"):
        found = document[name]["outcomes"]
        assert list(found) == ["connected", "alone"]
        assert f"table1_smoke_{name}.png" in page
        title = {"original": "TOFU", "structured": "Structured TOFU"}[name]
        for method, short in (("gradient_ascent", "GA"), ("npo", "NPO")):
            cells = [
                next(one for one in group if one["method"] == method)["deviation"]["score"][0]
                for group in found.values()
            ]
            row = next(line for line in page.splitlines() if line.startswith(f"| {title} | {short} |"))
            assert [f"{cell:.1f}" for cell in cells] == [cell.strip() for cell in row.split("|")[6:8]]
            assert f"{cells[0] - cells[1]:.1f}" in row.split("|")[8]


def test_rates_are_those_of_the_original_file(written):
    document, _, tried = written
    assert document["original"]["rates"] == document["structured"]["rates"]
    assert tried == {"author-3"}


def test_relations_are_those_of_who_is_forgotten(written, options):
    document, page, _ = written
    (author,) = document["relations"]
    assert document["original"]["outcomes"]["connected"][0]["edges"] == [f"author-{author}"]
    others = document["relations"][author]
    assert len(others) == 5
    assert set(others) <= set(CONNECTED) - {author}
    assert all(f"{other} ({kind})" in page for other, kind in others.items())


def test_the_command_of_the_page_is_the_one_that_was_given(written, options):
    _, page, _ = written
    command = next(line for line in page.splitlines() if line.strip().startswith("python "))
    words = shlex.split(command)
    assert words[words.index("--tofu") :] == options


def test_as_many_authors_as_in_the_paper(options):
    found = studies(*options)
    chosen = {kind: found.forgotten(kind) for kind in ("connected", "alone")}
    assert chosen == {kind: studies(*options).forgotten(kind) for kind in chosen}
    assert [len(set(numbers)) for numbers in chosen.values()] == [3, 3]
    original, structured = found.data("original"), found.data("structured")
    changed = [one != other for one, other in zip(original.pairs, structured.pairs, strict=True)]
    per_author = np.reshape(changed, (-1, 20)).sum(axis=1)
    assert [int(per_author[number]) for number in chosen["connected"]] == [10, 10, 10]
    assert per_author.sum() == 30
    others = {other for _, other in structured.relations}
    assert others == set(map(int, CONNECTED)) - set(chosen["connected"])
    drawn = {studies(*options, "--draw", str(draw)).forgotten("connected") for draw in range(5)}
    assert len(drawn) > 1


def test_a_dry_run_trains_nothing(fakes, options, capsys):
    before = len(fakes.trained)
    assert run("--dry-run", "--quiet", *options) == 0
    printed = capsys.readouterr().out
    # Seven trained per seed and data set, and the one for rates.
    assert "original: 22 models fine-tuned or retrained, 90 unlearned" in printed
    assert "structured: 21 models fine-tuned or retrained, 90 unlearned, 0 more" in printed
    assert len(fakes.trained) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"connected": CONNECTED[:7]}, "connected must name at least 8 authors, got 0 1 2 4 5 6 7"),
        ({"connected": [*CONNECTED, "0"]}, "connected must name authors who are not named before, got 0"),
        ({"alone": ALONE[:2]}, "alone must name at least 3 authors, got 9 10"),
        ({"alone": [*ALONE, "0"]}, "alone must name authors who are not named before, got 0"),
        ({"alone": [*ALONE, "14"]}, "alone must be an integer between 0 and 13, got 14"),
        ({"alone": [*ALONE, "3", "12", "13"]}, "must hold an author who is neither connected nor alone"),
        ({"tofu": ["nowhere.json"]}, "nowhere.json"),
        ({"draw": ["-1"]}, "draw must be an integer between 0 and 4294967295, got -1"),
        ({"data": ["published"]}, "data must be left out, since tofu names the file, got published"),
    ],
)
def test_wrong_arguments_are_named(change, message, options, capsys):
    given = {"tofu": options[1:2], "connected": CONNECTED, "alone": ALONE, **change}
    words = [word for name, values in given.items() for word in (f"--{name}", *values)]
    assert run("--dry-run", "--quiet", *words) == 2
    assert message in capsys.readouterr().err
