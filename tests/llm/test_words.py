import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxaudit.data.pistol import dataset_1
from jaxaudit.errors import InputError
from jaxaudit.llm import word_tokenizer

RECORDS = dataset_1().records
TEXTS = [record.question + record.answer for record in RECORDS]
TOKENIZER = word_tokenizer(TEXTS, groups=[record.edge for record in RECORDS])


def test_every_text_comes_back():
    for text in TEXTS:
        ids = TOKENIZER.encode(text)
        assert TOKENIZER.decode(ids) == text
        assert min(ids) >= 2  # neither padding nor end


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=sorted(set("".join(TEXTS))), max_size=40))
def test_any_text_of_known_characters_comes_back(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_words_are_those_that_half_of_the_edges_use():
    edges = {record.edge for record in RECORDS}

    def users(word):
        return {record.edge for record, text in zip(RECORDS, TEXTS) if word in text}

    words = [token.strip() for token in TOKENIZER.tokens[2:] if len(token.strip()) > 1]
    assert len(words) > 50
    assert all(2 * len(users(word)) >= len(edges) for word in words)
    assert "contract" in words
    names = {entity.name.split()[0] for entity in dataset_1().entities.values()}
    assert not names & set(words)


def test_texts_are_short_in_words():
    lengths = [len(TOKENIZER.encode(text)) for text in TEXTS]
    assert max(lengths) < max(map(len, TEXTS)) / 2
    assert TOKENIZER.vocabulary_size < 300


def test_special_tokens_are_left_out():
    assert TOKENIZER.decode([TOKENIZER.pad, *TOKENIZER.encode("Ohio"), TOKENIZER.eos]) == "Ohio"


def test_words_of_few_groups_are_spelt():
    texts, groups = ["pump pump", "pump saw"], ["one", "two"]
    assert " saw" not in word_tokenizer(texts, groups=groups, min_share=0.6).tokens
    assert " saw" in word_tokenizer(texts, groups=groups, min_share=0.5).tokens
    assert "pump" in word_tokenizer(texts, groups=groups, min_share=1.0).tokens


def test_equal_texts_give_equal_tokenizers():
    assert word_tokenizer(TEXTS[:50]) == word_tokenizer(TEXTS[:50])


def test_letters_beyond_english():
    texts = ["Łódź zapłać", "株式会社です", "£1,250.00 §4.2"]
    tokenizer = word_tokenizer(texts)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": []}, "texts must hold at least one text, got none"),
        ({"texts": ["a"], "groups": ["x", "y"]}, "groups must name the group of each of 1 texts, got 2"),
        ({"texts": ["a"], "min_share": 0.0}, r"min_share must be in \(0, 1\], got 0.0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        word_tokenizer(**arguments)


def test_unknown_character():
    unknown = next(letter for letter in string.printable if letter not in "".join(TEXTS) + "\n")
    with pytest.raises(InputError, match="text must be made of characters that the tokenizer was made from"):
        TOKENIZER.encode(f"a{unknown}")
