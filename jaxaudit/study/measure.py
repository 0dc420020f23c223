"""What a model still says and knows: numbers for every question, of one model or of many at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxaudit.llm import (
    Adapted,
    Decoder,
    Generation,
    LoraSpec,
    answer_texts,
    decoder,
    generate,
    packed_size,
    token_model,
)
from jaxaudit.metrics import (
    answer_probability,
    answers_first,
    exact_match,
    mean_reciprocal_rank,
    rouge1_recall,
    scaled_top,
    token_ranks,
    top_hit_ratio,
)
from jaxaudit.progress import Reporter
from jaxaudit.runs import map_runs, to_host
from jaxaudit.study.chunks import row_blocks
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import run_options
from jaxaudit.train import Params
from jaxaudit.unlearn.preference.model import pick_log_probs

MEASURES = ("recall", "exact", "probability", "reciprocal rank", "top hits", "first hits", "empty")
"""Per question: ROUGE-1 recall and exact match of the greedy answer; of the true answer's tokens, given those before:
geometric mean probability, mean reciprocal rank, share among the ``top`` likeliest and share of the likeliest; and
whether the greedy answer is empty. The end token counts for the probability and for the likeliest, since an answer is
right only if it ends; not for the two others, as in the paper, because it is the same for all answers."""
FREE_RUNNING = ("free reciprocal rank", "free top hits")
"""The two rank measures along the model's own greedy answer, as the paper's code has them."""


LOGITS = 2**25
"""Numbers in a block's logits: so many rows are asked at a time that there are at most about as many."""
_SPOKEN = 50
"""Rows that answer at the same time."""


def measure(
    questions: QuestionSet,
    params: PyTree,
    *,
    lora: LoraSpec | None = None,
    with_texts: bool = True,
    free_running: bool = False,
    label: str = "measuring",
    reporter: Reporter | None = None,
) -> list[dict[str, np.ndarray]]:
    """Ask some models all questions.

    An answer all of whose tokens come first, given those before, is what greedy generation gives; so only the other
    questions are answered by generation.

    Parameters
    ----------
    questions
        The data, and the decoder they are for.
    params
        Of the decoder, every leaf with a leading axis of models; or `Adapted`, of which only the adapters have it.
    lora
        Kind of the adapters, if there are some.
    with_texts
        Whether to answer. Without it ``recall``, ``exact``, ``empty`` and ``text`` are missing; that is much faster.
    free_running
        Also the measures of `FREE_RUNNING`.
    label, reporter
        For progress.

    Returns
    -------
    Per model an array per measure, (questions,), and ``text``, the greedy answers.
    """
    asked = _Asked.of(questions, params, lora, label, reporter)
    found = _forced_measures(asked)
    if with_texts or free_running:
        for arrays, said in zip(found, _answers(asked, found, free_running)):
            arrays |= _texts(questions, said)
            if free_running:
                arrays |= _free(questions, said, asked.top)
    return found


class _Asked(NamedTuple):
    """Models and questions, and how to put them together."""

    questions: QuestionSet
    model: Decoder
    base: Params | None
    """What all models share; ``None``: nothing."""
    per_run: PyTree
    label: str
    reporter: Reporter | None

    @classmethod
    def of(
        cls,
        questions: QuestionSet,
        params: PyTree,
        lora: LoraSpec | None,
        label: str,
        reporter: Reporter | None,
    ) -> "_Asked":
        base, per_run = params if isinstance(params, Adapted) else (None, params)
        return cls(questions, decoder(questions.model.spec, lora), base, per_run, label, reporter)

    @property
    def num_models(self) -> int:
        return len(jax.tree.leaves(self.per_run)[0])

    @property
    def top(self) -> int:
        return scaled_top(self.model.spec.vocabulary_size)

    @property
    def eos(self) -> int:
        return self.questions.model.tokenizer.eos

    def map(self, function: Callable[[Any, Any], Any], per_run: Any, shared: Any, what: str) -> Any:
        label, options = f"{self.label}, {what}", run_options(self.model.spec)
        found, _ = map_runs(
            function, per_run, (self.base, shared), label=label, reporter=self.reporter, options=options
        )
        return to_host(found)


def _whole(base: Params | None, own: Params) -> Params | Adapted:
    return own if base is None else Adapted(base, own)


def _forced_measures(asked: _Asked) -> list[dict[str, np.ndarray]]:
    """Block of rows after block, each of the same size; the last one is filled up."""
    tokens, spec = asked.questions.tokens, asked.model.spec
    count, per_row = asked.questions.num_questions, tokens.answer_length * spec.vocabulary_size
    blocks = row_blocks(count, per_row, LOGITS)
    size = len(blocks[0])
    packed = packed_size(tokens.tokens.real, np.arange(count)[None], size)
    function = _forced(asked.model, tokens.prompt_length, asked.top, asked.eos, packed)
    pieces = []
    for rows in blocks:
        examples: Any = jax.tree.map(lambda leaf, rows=rows: jnp.asarray(leaf[rows]), tokens.examples)
        what = f"ranks of questions {rows[0] + 1} to {rows[-1] + 1}"
        pieces.append(asked.map(function, asked.per_run, examples, what))
    return [
        {name: np.concatenate([piece[name][run] for piece in pieces])[:count] for name in pieces[0]}
        for run in range(asked.num_models)
    ]


@lru_cache(maxsize=16)  # the same function for the same model, so that it is compiled once
def _forced(
    model: Decoder, prompt_length: int, top: int, eos: int, packed: int | None
) -> Callable[[Any, Any], dict[str, Array]]:
    tokens_of = token_model(model, prompt_length, packed=packed)
    assert tokens_of.logits_fn is not None
    logits_fn = tokens_of.logits_fn

    def measures(own: Any, shared: Any) -> dict[str, Float[Array, " questions"]]:
        base, examples = shared
        logits = logits_fn(_whole(base, own), examples)
        ids, answer = examples.x.ids[:, prompt_length:], examples.x.answer[:, prompt_length:]
        ranks, spelt = token_ranks(logits, ids), answer * (ids != eos)
        log_probs = pick_log_probs(logits, ids)
        return {
            # A model that diverged knows nothing.
            "probability": jnp.nan_to_num(answer_probability(log_probs, answer)),
            "reciprocal rank": mean_reciprocal_rank(ranks, spelt),
            "top hits": top_hit_ratio(ranks, spelt, top),
            "first hits": top_hit_ratio(ranks, answer, 1),
        }

    return measures


@lru_cache(maxsize=16)
def _speaker(model: Decoder, num_tokens: int, eos: int) -> Callable[[Any, Any], Generation]:
    def speak(asked: tuple[Any, Array], shared: Any) -> Generation:
        (own, rows), (base, (prompts, targets)) = asked, shared
        prompts, targets = jax.tree.map(lambda leaf: leaf[rows], (prompts, targets))
        observe = None if targets is None else token_ranks
        options: dict[str, Any] = {"num_tokens": num_tokens, "eos": eos, "observe": observe}
        return generate(model, _whole(base, own), prompts, targets=targets, **options)

    return speak


def _answers(asked: _Asked, found: Sequence[Mapping[str, np.ndarray]], ranked: bool) -> list[Generation]:
    """What every model says: the true answer where it is known to the last token, elsewhere by generation."""
    tokens = asked.questions.tokens
    ids, answer = (np.asarray(leaf) for leaf in _true_answers(asked.questions))
    known: tuple[Any, ...] = (ids, answer, np.ones(ids.shape, int))
    said = [Generation(*(leaf.copy() for leaf in known)) for _ in found]
    open_rows = [np.flatnonzero(arrays["first hits"] < 1) for arrays in found]
    speak = _speaker(asked.model, tokens.answer_length, asked.eos)
    prompts: Any = jax.tree.map(jnp.asarray, (tokens.prompts, ids if ranked else None))
    size, most = min(_SPOKEN, len(ids)), max(map(len, open_rows))
    for first in range(0, most, size):
        rows = [own[first : first + size] for own in open_rows]
        filled = jnp.asarray(np.stack([np.resize(own if len(own) else [0], size) for own in rows]))
        what = f"answers {first + 1} to {min(first + size, most)}"
        new = asked.map(speak, (asked.per_run, filled), prompts, what)
        for run, own in enumerate(rows):
            for name, values in new._asdict().items():
                if values is not None:
                    getattr(said[run], name)[own] = values[run][: len(own)]
    return said


def _texts(questions: QuestionSet, said: Generation) -> dict[str, np.ndarray]:
    texts = answer_texts(questions.model.tokenizer, said.ids, said.taken)
    return {"text": np.array(texts), **text_measures(texts, questions.answers)}


def text_measures(texts: Sequence[str], answers: Sequence[str]) -> dict[str, np.ndarray]:
    """``recall``, ``exact`` and ``empty`` of answers given beside the true ones.

    Examples
    --------
    >>> {name: array.tolist() for name, array in text_measures(["8.", " "], ["8.", "9."]).items()}
    {'recall': [1.0, 0.0], 'exact': [1.0, 0.0], 'empty': [0.0, 1.0]}
    """
    pairs = list(zip(texts, answers))
    return {
        "recall": np.array(
            [1.0 if text == answer else rouge1_recall(text, answer) for text, answer in pairs]
        ),
        "exact": np.array([exact_match(*pair) for pair in pairs]),
        "empty": np.array([float(not text.strip()) for text in texts]),
    }


def _true_answers(questions: QuestionSet) -> tuple[Array, Array]:
    """The true answers' tokens from the first step of a generation on, and which columns they take."""
    tokens, start = questions.tokens.tokens, questions.tokens.prompt_length
    ids, answer = answers_first(tokens.ids[:, start:], tokens.answer[:, start:])
    return ids, answer


def _free(questions: QuestionSet, said: Generation, top: int) -> dict[str, np.ndarray]:
    ids, answer = _true_answers(questions)
    spelt = answer * (ids != questions.model.tokenizer.eos)  # the end does not count
    assert said.observed is not None
    measures = (
        mean_reciprocal_rank(said.observed, spelt, said.taken),
        top_hit_ratio(said.observed, spelt, top, said.taken),
    )
    return {name: np.asarray(value) for name, value in zip(FREE_RUNNING, measures)}
