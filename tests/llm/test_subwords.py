import json

import pytest

from jaxaudit.data.pistol import dataset_1
from jaxaudit.errors import InputError
from jaxaudit.llm import SubwordTokenizer, load_tokenizer, train_bpe
from jaxaudit.llm.subwords import byte_level_bpe
from tests.llm.published import write_llama_tokenizer

pytest.importorskip("tokenizers")

TEXTS = [f"{record.question} {record.answer}" for record in dataset_1().records]
BPE = train_bpe(TEXTS, 400)


@pytest.mark.parametrize("text", [*TEXTS[:40], "Łódź, 株式会社 £1,250.00 §4.2", "  two  spaces\n", "🙂"])
def test_every_text_comes_back(text):
    ids = BPE.encode(text)
    assert BPE.decode(ids) == text
    assert not {BPE.pad, BPE.eos} & set(ids)


def test_size_and_special_tokens():
    assert BPE.vocabulary_size == 400
    assert BPE.pad != BPE.eos
    assert BPE.decode([BPE.pad, *BPE.encode("Ohio"), BPE.eos]) == "Ohio"


def test_it_learns_from_the_texts():
    assert len(BPE.encode(TEXTS[0])) < len(TEXTS[0]) / 2
    assert len(BPE.encode(" 2019")) >= 4  # digits stay single


def test_saved_and_loaded(tmp_path):
    BPE.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path, eos="<eos>", pad="<pad>")
    assert (loaded.eos, loaded.pad, loaded.bos) == (BPE.eos, BPE.pad, None)
    assert loaded.encode(TEXTS[0]) == BPE.encode(TEXTS[0])


def test_a_published_folder_tells_its_special_tokens(tmp_path):
    write_llama_tokenizer(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.eos == loaded.inner.token_to_id("</s>")
    assert loaded.bos == loaded.inner.token_to_id("<s>")
    assert loaded.pad == loaded.eos  # it has none
    # Encoding adds no special token by itself.
    assert loaded.bos not in loaded.encode("the pump")


def test_settings_of_whoever_saved_it_do_not_cut_texts(tmp_path):
    inner = BPE.inner.from_str(BPE.inner.to_str())
    inner.enable_truncation(3)
    inner.enable_padding(length=50)
    inner.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path, eos="<eos>").encode(TEXTS[0]) == BPE.encode(TEXTS[0])


def test_known_tokens_and_merges():
    tokens = ["<end>", "a", "b", "1", "2", "Ġ", "ab", "Ġab", "12"]
    merges = [("a", "b"), ("Ġ", "ab"), ("1", "2")]
    for split, digits in ((True, [3, 4]), (False, [8])):
        inner = byte_level_bpe(tokens, merges, ["<end>"], split_digits=split)
        tokenizer = SubwordTokenizer(inner, eos=0, pad=0)
        assert tokenizer.encode("ab ab12<end>") == [6, 7, *digits, 0]
        assert tokenizer.decode([6, 7, *digits, 0]) == "ab ab12"
    with pytest.raises(InputError, match="merges must be of tokens"):
        byte_level_bpe(["a"], [("a", "b")], [], split_digits=True)


@pytest.mark.parametrize("add", [True, False])
def test_begin_only_where_the_model_wants_it(tmp_path, add):
    write_llama_tokenizer(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"add_bos_token": add, "eos_token": {"content": "</s>"}}))
    assert (load_tokenizer(tmp_path).bos is not None) == add


@pytest.mark.parametrize("adds", [True, False])
def test_begin_as_the_tokenizer_itself_does_where_nothing_is_said(tmp_path, adds):
    from tokenizers.processors import TemplateProcessing

    write_llama_tokenizer(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    content = json.loads(file.read_text())
    del content["add_bos_token"]
    file.write_text(json.dumps(content))
    if adds:
        inner = load_tokenizer(tmp_path).inner
        inner.post_processor = TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", inner.token_to_id("<s>"))]
        )
        inner.save(str(tmp_path / "tokenizer.json"))
    assert (load_tokenizer(tmp_path).bos is not None) == adds


def test_bad_arguments(tmp_path):
    with pytest.raises(InputError, match="vocabulary_size must be an integer of at least 258, got 100"):
        train_bpe(TEXTS, 100)
    with pytest.raises(InputError, match="texts must hold at least one text, got none"):
        train_bpe([])
    with pytest.raises(InputError, match=r"tokenizer.json"):
        load_tokenizer(tmp_path)
    BPE.save(tmp_path / "tokenizer.json")
    with pytest.raises(InputError, match="eos must be the text of the token that ends an answer"):
        load_tokenizer(tmp_path)
    with pytest.raises(InputError, match="pad must be one of the tokenizer's tokens, got '<nothing>'"):
        load_tokenizer(tmp_path, eos="<eos>", pad="<nothing>")
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"is not a tokenizer.json"):
        load_tokenizer(tmp_path, eos="<eos>")
