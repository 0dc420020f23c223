"""Questions and answers as rows of tokens: questions end at one column, answers begin at the next.

    padding ... question | answer <eos> padding ...

So all answers lie in the same columns, a model's head is needed only there, and generation starts at one column for all
rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import jax
import numpy as np
from jaxtyping import Array, Int

from jaxaudit.checks import check_integer
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.llm.generation import Prompts
from jaxaudit.llm.words import Tokenizer
from jaxaudit.unlearn.preference import Questions, Tokens

_ANCHOR = "\n"


@dataclass(frozen=True, eq=False)
class TokenizedRecords:
    """Rows of tokens, and what had to be cut off.

    Parameters
    ----------
    tokens
        ``ids``, ``answer`` and ``real``, each (records, columns), as NumPy arrays.
    prompt_length
        Columns of the questions; answers begin at this column.
    truncated_questions, truncated_answers
        Numbers of the records whose beginning of the question, or end of the answer, did not fit.
    """

    tokens: Tokens
    prompt_length: int
    truncated_questions: tuple[int, ...]
    truncated_answers: tuple[int, ...]

    @property
    def examples(self) -> Examples:
        """For training and scores: ``x`` is the tokens, ``y`` is unused, all weights are 1."""
        count = len(self.tokens.ids)
        return Examples(self.tokens, np.zeros(count, np.int32), np.ones(count, np.float32))

    @property
    def prompts(self) -> Prompts:
        """The questions, for generation."""
        return Prompts(self.tokens.ids[:, : self.prompt_length], self.tokens.real[:, : self.prompt_length])

    @property
    def answer_length(self) -> int:
        """Columns of the answers, the end token's included."""
        return self.tokens.ids.shape[1] - self.prompt_length

    def take(self, rows: Sequence[int] | Int[np.ndarray, " rows"]) -> "TokenizedRecords":
        """Some of the records, in this order; columns stay as they are.

        Raises
        ------
        InputError
            If a number is no record's.
        """
        count, index = len(self.tokens.ids), np.asarray(rows, np.int64)
        if index.size and (index.min() < 0 or index.max() >= count):
            raise InputError(f"rows must be between 0 and {count - 1}, got {index.min()} to {index.max()}")

        def of(cut: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(int(place) for place in np.flatnonzero(np.isin(index, cut)))

        tokens = jax.tree.map(lambda leaf: leaf[index], self.tokens)
        questions, answers = of(self.truncated_questions), of(self.truncated_answers)
        return TokenizedRecords(tokens, self.prompt_length, questions, answers)


def tokenize(
    tokenizer: Tokenizer,
    questions: Sequence[str],
    answers: Sequence[str],
    *,
    template: str = "{question}\n",
    prompt_length: int | None = None,
    answer_length: int | None = None,
) -> TokenizedRecords:
    """Turn questions and answers into rows of tokens.

    The scored tokens spell the answer and nothing else, also where the tokenizer would merge the end of the question
    with the beginning of the answer: both sides are then encoded apart, as they are when an answer is generated.

    Parameters
    ----------
    tokenizer
        See `Tokenizer`.
    questions, answers
        One of each per record.
    template
        Text of a prompt, with ``{question}``; for Llama 2 ``[INST] {question} [/INST]``.
    prompt_length, answer_length
        Columns of either side; the answer's hold its end token. ``None``: what the longest needs. Of a question that is
        longer the beginning is cut off (not the token that begins prompts), of an answer the end; both are reported.

    Raises
    ------
    InputError
        No records, different numbers of questions and answers, an empty answer, a template without the question, or a
        tokenizer that cannot give an answer back.

    Examples
    --------
    >>> from jaxaudit.llm.words import word_tokenizer
    >>> tokenizer = word_tokenizer(["who", "Al"], min_share=1.0)
    >>> records = tokenize(tokenizer, ["who"], ["Al"], answer_length=4)
    >>> records.tokens.ids.tolist(), records.tokens.answer.tolist(), records.prompt_length
    ([[8, 5, 7, 2, 4, 6, 1, 0]], [[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]], 4)
    """
    pairs = _encode_all(tokenizer, questions, answers, template)
    prompt_length = _length("prompt_length", prompt_length, [len(prompt) for prompt, _ in pairs])
    answer_length = _length("answer_length", answer_length, [len(answer) for _, answer in pairs])
    shape = (len(pairs), prompt_length + answer_length)
    ids = np.full(shape, tokenizer.pad, np.int32)
    answer_mask, real = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for row, (prompt, answer) in enumerate(pairs):
        prompt, answer = _cut(prompt, prompt_length, tokenizer.bos), answer[:answer_length]
        begin, end = prompt_length - len(prompt), prompt_length + len(answer)
        ids[row, begin:end] = prompt + answer
        real[row, begin:end] = 1
        answer_mask[row, prompt_length:end] = 1
    long_questions, long_answers = (
        tuple(row for row, pair in enumerate(pairs) if len(pair[side]) > limit)
        for side, limit in enumerate((prompt_length, answer_length))
    )
    tokens = Tokens(*(cast(Array, part) for part in (ids, answer_mask, real)))  # NumPy at the border
    return TokenizedRecords(tokens, prompt_length, long_questions, long_answers)


def tokenize_alternatives(
    tokenizer: Tokenizer,
    questions: Sequence[str],
    answers: Sequence[str],
    alternatives: Sequence[str],
    *,
    template: str = "{question}\n",
) -> tuple[Examples, int]:
    """Examples whose ``x`` is `Questions`: true answers and others to the same questions.

    Parameters
    ----------
    tokenizer, questions, answers, template
        As for `tokenize`.
    alternatives
        One per record, for instance refusals; a list that is shorter is read again and again.

    Returns
    -------
    The examples, and the prompt length of both parts.

    Raises
    ------
    InputError
        As `tokenize`, or no alternatives.
    """
    if not alternatives:
        raise InputError("alternatives must hold at least one answer, got none")
    others = [alternatives[row % len(alternatives)] for row in range(len(questions))]
    true = tokenize(tokenizer, questions, answers, template=template)
    other = tokenize(tokenizer, questions, others, template=template, prompt_length=true.prompt_length)
    return true.examples._replace(x=Questions(true.tokens, other.tokens)), true.prompt_length


def encode_pair(tokenizer: Tokenizer, prompt: str, answer: str) -> tuple[list[int], list[int]]:
    """Tokens of a prompt and of its answer, such that the latter spell the answer and nothing else.

    Tried in this order: the tokens of the whole text, if some of them end where the prompt does; the answer on its own;
    the answer after a line break, for tokenizers that put a space before everything.

    Raises
    ------
    InputError
        If none of these gives the answer back.
    """
    before, whole = tokenizer.encode(prompt), tokenizer.encode(prompt + answer)
    anchored, anchor = tokenizer.encode(_ANCHOR + answer), tokenizer.encode(_ANCHOR)
    candidates = [
        whole[len(before) :] if whole[: len(before)] == before else [],
        tokenizer.encode(answer),
        anchored[len(anchor) :] if anchored[: len(anchor)] == anchor else [],
    ]
    wanted = tokenizer.decode(before) + answer
    for ids in candidates:
        if ids and tokenizer.decode([*before, *ids]) == wanted:
            return before, ids
    raise InputError(f"tokenizer must give back the answer it encodes, got another text for {answer!r}")


def _encode_all(
    tokenizer: Tokenizer, questions: Sequence[str], answers: Sequence[str], template: str
) -> list[tuple[list[int], list[int]]]:
    if not questions or len(questions) != len(answers):
        raise InputError(
            f"questions and answers must be equally many and at least one, got {len(questions)} and {len(answers)}"
        )
    if "{question}" not in template:
        raise InputError(f"template must contain {{question}}, got {template!r}")
    begin = [] if tokenizer.bos is None else [tokenizer.bos]
    pairs = []
    for row, (question, answer) in enumerate(zip(questions, answers)):
        if not answer:
            raise InputError(f"answers must not be empty, got '' for record {row}")
        prompt, spelt = encode_pair(tokenizer, template.replace("{question}", question), answer)
        pairs.append((begin + prompt, [*spelt, tokenizer.eos]))
    return pairs


def _length(name: str, given: int | None, needed: list[int]) -> int:
    return max(needed) if given is None else check_integer(name, given, low=1)


def _cut(prompt: list[int], length: int, bos: int | None) -> list[int]:
    """The last tokens of a prompt that is too long, after the token that begins it."""
    if len(prompt) <= length:
        return prompt
    kept = prompt[-length:]
    return kept if bos is None else [bos, *kept[1:]]
