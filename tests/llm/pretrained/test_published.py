import json

import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.published import open_folder
from tests.llm.pretrained.files import GOLDEN, golden_folder
from tests.llm.published import write_llama_tokenizer

pytest.importorskip("tokenizers")


@pytest.fixture
def folder(tmp_path):
    write_llama_tokenizer(tmp_path)
    return golden_folder(tmp_path, "gemma")


def add(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_parts_of_a_folder(folder):
    found = open_folder(folder)
    assert found.name == folder.name
    assert found.config == GOLDEN["gemma"]["config"]
    assert found.checkpoint.shapes["model.norm.weight"] == (24,)
    assert (found.bos, found.eos, found.chat_template) == ("<s>", "</s>", None)
    assert found.tokenizer.eos == found.tokenizer.inner.token_to_id("</s>")


def test_places_of_the_chat_template(folder):
    file = folder / "tokenizer_config.json"
    add(file, chat_template="one")
    assert open_folder(folder).chat_template == "one"
    add(file, chat_template=[{"name": "tools", "template": "two"}, {"name": "default", "template": "three"}])
    assert open_folder(folder).chat_template == "three"
    (folder / "chat_template.jinja").write_text("four")
    assert open_folder(folder).chat_template == "four"
    (folder / "chat_template.jinja").unlink()
    add(file, chat_template=5)
    with pytest.raises(InputError, match=r"chat_template must be text in .*, got int"):
        open_folder(folder)


@pytest.mark.parametrize("number", [2, [2, 1]])
def test_the_end_token_by_its_number(folder, number):
    add(folder / "tokenizer_config.json", eos_token=None)
    add(folder / "config.json", eos_token_id=number)
    assert open_folder(folder).eos == "</s>"
    add(folder / "config.json", eos_token_id=10_000)
    with pytest.raises(InputError, match="eos must be the text of the token that ends an answer"):
        open_folder(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_missing_parts(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"no such file: .*{name}"):
        open_folder(folder)
