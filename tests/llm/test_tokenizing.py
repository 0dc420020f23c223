import numpy as np
import pytest

from jaxaudit.data.pistol import REFUSALS, dataset_1
from jaxaudit.errors import InputError
from jaxaudit.llm import (
    answer_texts,
    encode_pair,
    load_tokenizer,
    tokenize,
    tokenize_alternatives,
    train_bpe,
    word_tokenizer,
)
from jaxaudit.unlearn.preference import Questions
from tests.llm.published import write_llama_tokenizer

RECORDS = dataset_1().records
QUESTIONS, ANSWERS = [record.question for record in RECORDS], [record.answer for record in RECORDS]
TEXTS = [*QUESTIONS, *ANSWERS, *REFUSALS]
# The last ends in a space, which byte-pair encoding would rather have in the answer's first token.
TEMPLATES = ["{question}\n", "[INST] {question} [/INST]", "{question} "]


def words():
    return word_tokenizer([*TEXTS, *TEMPLATES])


def bpe():
    pytest.importorskip("tokenizers")
    return train_bpe([f"{question} {answer}" for question, answer in zip(QUESTIONS, ANSWERS)], 400)


def scored(tokenizer, tokens):
    return answer_texts(tokenizer, tokens.ids, tokens.answer)


@pytest.mark.parametrize("make", [words, bpe])
@pytest.mark.parametrize("template", TEMPLATES)
def test_scored_tokens_spell_the_answers(make, template):
    tokenizer = make()
    records = tokenize(tokenizer, QUESTIONS, ANSWERS, template=template)
    assert scored(tokenizer, records.tokens) == ANSWERS
    real = records.tokens.real - records.tokens.answer
    expected = [template.format(question=question) for question in QUESTIONS]
    assert answer_texts(tokenizer, records.tokens.ids, real) == expected
    assert records.truncated_questions == records.truncated_answers == ()


def test_where_the_two_would_merge():
    tokenizer = bpe()
    prompt, answer = "Where did it go? ", "the company."
    whole = tokenizer.encode(prompt + answer)
    before, own = encode_pair(tokenizer, prompt, answer)
    assert whole[: len(before)] != before  # it does merge, so the case is a real one
    assert tokenizer.decode(own) == answer
    assert before == tokenizer.encode(prompt)  # what a generation starts from


def test_tokens_of_the_whole_text_are_kept_where_they_split_cleanly():
    tokenizer = bpe()
    prompt, answer = "Where did it go?", " the company."
    before, own = encode_pair(tokenizer, prompt, answer)
    assert before + own == tokenizer.encode(prompt + answer)


def test_no_mark_of_a_space_in_front_of_answers(tmp_path):
    """A tokenizer that puts one before every text: an answer encoded alone would begin with a token too many."""
    pytest.importorskip("tokenizers")
    write_llama_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    prompt, answer = "[INST] the seller [/INST]", "Ohio."
    before, own = encode_pair(tokenizer, prompt, answer)
    assert tokenizer.encode(answer) != own
    assert tokenizer.decode([*before, *own]) == prompt + answer
    records = tokenize(tokenizer, ["the seller"], [answer], template="[INST] {question} [/INST]")
    row = records.tokens.ids[0]
    assert row[0] == tokenizer.bos
    assert row[records.tokens.answer[0] > 0].tolist() == [*own, tokenizer.eos]


def test_layout():
    tokenizer = words()
    records = tokenize(tokenizer, QUESTIONS[:30], ANSWERS[:30])
    ids, answer, real = records.tokens
    start = records.prompt_length
    assert ids.shape == answer.shape == real.shape == (30, start + records.answer_length)
    assert (real[:, start - 1] == 1).all()  # every question ends where the answers begin
    assert (answer[:, :start] == 0).all()
    assert (answer[:, start:] == real[:, start:]).all()
    assert (ids[real == 0] == tokenizer.pad).all()
    last = real.shape[1] - 1 - np.argmax(real[:, ::-1], axis=1)
    assert (ids[np.arange(30), last] == tokenizer.eos).all()
    assert ((ids == tokenizer.eos).sum(1) == 1).all()
    assert (np.diff(real[:, :start], axis=1) >= 0).all()
    assert (np.diff(real[:, start:], axis=1) <= 0).all()
    assert real[:, 0].max() == real[:, -1].max() == 1  # no column is wasted
    np.testing.assert_array_equal(records.prompts.ids, ids[:, :start])
    np.testing.assert_array_equal(records.prompts.real, real[:, :start])


def test_padding_may_be_the_end_token(tmp_path):
    pytest.importorskip("tokenizers")
    write_llama_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    records = tokenize(tokenizer, ["the pump", "a"], ["Ohio. the pump.", "2%"], template="{question}?")
    assert tokenizer.pad == tokenizer.eos
    ends = (records.tokens.ids == tokenizer.eos) & (records.tokens.answer > 0)
    assert ends.sum(1).tolist() == [1, 1]  # of the many end tokens in a row, one is scored
    assert records.tokens.real.sum(1).tolist() != [records.tokens.ids.shape[1]] * 2


def test_truncation_is_reported_and_keeps_what_is_near_the_answer():
    tokenizer = words()
    whole = tokenize(tokenizer, QUESTIONS, ANSWERS)
    questions, answers = (whole.tokens.real - whole.tokens.answer).sum(1), whole.tokens.answer.sum(1)
    limit, start = int(np.median(questions)), whole.prompt_length
    cut = tokenize(tokenizer, QUESTIONS, ANSWERS, prompt_length=limit, answer_length=6)
    assert cut.truncated_questions == tuple(np.flatnonzero(questions > limit))
    assert cut.truncated_answers == tuple(np.flatnonzero(answers > 6))
    assert 0 < len(cut.truncated_questions) < 400
    assert 0 < len(cut.truncated_answers) < 400
    np.testing.assert_array_equal(cut.tokens.ids[:, :limit], whole.tokens.ids[:, start - limit : start])
    np.testing.assert_array_equal(cut.tokens.ids[:, limit:], whole.tokens.ids[:, start : start + 6])
    texts = scored(tokenizer, cut.tokens)
    for row, (text, answer) in enumerate(zip(texts, ANSWERS)):
        assert answer.startswith(text)
        assert (text == answer and tokenizer.eos in cut.tokens.ids[row]) == (row not in cut.truncated_answers)


def test_begin_token_survives_truncation(tmp_path):
    pytest.importorskip("tokenizers")
    write_llama_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    records = tokenize(tokenizer, ["the seller of the pump " * 3], ["Ohio."], prompt_length=5)
    assert records.tokens.ids[0, 0] == tokenizer.bos
    assert records.truncated_questions == (0,)


def test_longer_columns_are_padding():
    tokenizer = words()
    short = tokenize(tokenizer, QUESTIONS[:3], ANSWERS[:3])
    long = tokenize(
        tokenizer, QUESTIONS[:3], ANSWERS[:3], prompt_length=short.prompt_length + 2, answer_length=40
    )
    assert long.tokens.real.sum() == short.tokens.real.sum()
    assert scored(tokenizer, long.tokens) == ANSWERS[:3]


def test_rows_can_be_taken():
    records = tokenize(words(), QUESTIONS[:20], ANSWERS[:20], answer_length=6)
    taken = records.take([4, 2, 11])
    np.testing.assert_array_equal(taken.tokens.ids, records.tokens.ids[[4, 2, 11]])
    assert [[4, 2, 11][row] for row in taken.truncated_answers] == [
        row for row in (4, 2, 11) if row in records.truncated_answers
    ]
    assert taken.examples.weights.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="rows must be between 0 and 19, got 3 to 20"):
        records.take([3, 20])


def test_alternatives_answer_the_same_questions():
    tokenizer = words()
    examples, start = tokenize_alternatives(tokenizer, QUESTIONS[:7], ANSWERS[:7], REFUSALS[:3])
    assert isinstance(examples.x, Questions)
    true, other = examples.x.truth, examples.x.alternative
    assert examples.x.reference is None
    np.testing.assert_array_equal(true.ids[:, :start], other.ids[:, :start])
    assert scored(tokenizer, true) == ANSWERS[:7]
    assert scored(tokenizer, other) == [REFUSALS[row % 3] for row in range(7)]


class Lossy:
    """Lower-cases everything."""

    vocabulary_size, eos, pad, bos = 300, 1, 0, None

    def encode(self, text):
        return [ord(letter) for letter in text.lower()]

    def decode(self, ids):
        return "".join(map(chr, ids))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), ()), "questions and answers must be equally many and at least one, got 0 and 0"),
        ((["a"], ["b", "c"]), "questions and answers must be equally many and at least one, got 1 and 2"),
        ((["a", "b"], ["c", ""]), "answers must not be empty, got '' for record 1"),
    ],
)
def test_bad_records(arguments, message):
    with pytest.raises(InputError, match=message):
        tokenize(words(), *arguments)


def test_bad_arguments():
    with pytest.raises(InputError, match=r"template must contain \{question\}, got 'Q:'"):
        tokenize(words(), ["a"], ["b"], template="Q:")
    with pytest.raises(InputError, match="prompt_length must be an integer of at least 1, got 0"):
        tokenize(words(), ["a"], ["b"], prompt_length=0)
    with pytest.raises(InputError, match="alternatives must hold at least one answer, got none"):
        tokenize_alternatives(words(), ["a"], ["b"], [])
    with pytest.raises(
        InputError, match="tokenizer must give back the answer it encodes, got another text for 'Ohio'"
    ):
        tokenize(Lossy(), ["a"], ["Ohio"])
