"""What a model still says and knows: numbers for every question, of one model or of many at once."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxaudit.llm import Decoder, Generation, Prompts, answer_texts, decoder, generate, token_model
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
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import RUN_OPTIONS
from jaxaudit.unlearn.preference.model import pick_log_probs

MEASURES = ("recall", "exact", "probability", "reciprocal rank", "top hits", "first hits", "empty")
"""Per question: ROUGE-1 recall and exact match of the greedy answer; of the true answer's tokens, given those before:
geometric mean probability, mean reciprocal rank, share among the ``top`` likeliest and share of the likeliest; and
whether the greedy answer is empty. The end token counts for the probability and for the likeliest, since an answer is
right only if it ends; not for the two others, as in the paper, because it is the same for all answers."""
FREE_RUNNING = ("free reciprocal rank", "free top hits")
"""The two rank measures along the model's own greedy answer, as the paper's code has them."""


def measure(
    questions: QuestionSet,
    params: PyTree,
    *,
    with_texts: bool = True,
    free_running: bool = False,
    label: str = "measuring",
    reporter: Reporter | None = None,
) -> list[dict[str, np.ndarray]]:
    """Ask some models all questions.

    Parameters
    ----------
    questions
        The data, and the decoder they are for.
    params
        Of the decoder, every leaf with a leading axis of models.
    with_texts
        Whether to generate. Without it ``recall``, ``exact``, ``empty`` and ``text`` are missing; that is much faster.
    free_running
        Also the measures of `FREE_RUNNING`.
    label, reporter
        For progress.

    Returns
    -------
    Per model an array per measure, (questions,), and ``text``, the greedy answers.
    """
    model, tokens = decoder(questions.model.spec), questions.tokens
    top = scaled_top(questions.model.spec.vocabulary_size)
    forced = _forced(model, tokens.prompt_length, top, questions.model.tokenizer.eos)
    examples: Any = jax.tree.map(jnp.asarray, tokens.examples)
    values, _ = map_runs(
        forced, params, examples, label=f"{label}, ranks", reporter=reporter, options=RUN_OPTIONS
    )
    found = [
        {name: array[run] for name, array in to_host(values).items()} for run in range(_num_models(params))
    ]
    if with_texts or free_running:
        said = _generate(questions, model, params, free_running, label, reporter)
        for arrays, one in zip(found, said):
            arrays |= _texts(questions, one)
            if free_running:
                arrays |= _free(questions, one, top)
    return found


def _num_models(params: PyTree) -> int:
    return len(jax.tree.leaves(params)[0])


@lru_cache(maxsize=16)  # the same function for the same model, so that it is compiled once
def _forced(model: Decoder, prompt_length: int, top: int, eos: int) -> Callable[[Any, Any], dict[str, Array]]:
    tokens_of = token_model(model, prompt_length)
    assert tokens_of.logits_fn is not None
    logits_fn = tokens_of.logits_fn

    def measures(params: Any, examples: Any) -> dict[str, Float[Array, " questions"]]:
        logits = logits_fn(params, examples)
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
    def speak(params: Any, asked: tuple[Prompts, Any]) -> Generation:
        prompts, targets = asked
        observe = None if targets is None else token_ranks
        return generate(
            model, params, prompts, num_tokens=num_tokens, eos=eos, observe=observe, targets=targets
        )

    return speak


def _generate(
    questions: QuestionSet,
    model: Decoder,
    params: PyTree,
    ranked: bool,
    label: str,
    reporter: Reporter | None,
) -> list[Generation]:
    tokens = questions.tokens
    speak = _speaker(model, tokens.answer_length, questions.model.tokenizer.eos)
    targets = _spelt_answers(questions)[0] if ranked else None
    asked: Any = jax.tree.map(jnp.asarray, (tokens.prompts, targets))
    said, _ = map_runs(
        speak, params, asked, label=f"{label}, answers", reporter=reporter, options=RUN_OPTIONS
    )
    said = to_host(said)
    return [
        jax.tree.map(lambda leaf, run=run: np.asarray(leaf[run]), said) for run in range(_num_models(params))
    ]


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


def _spelt_answers(questions: QuestionSet) -> tuple[Array, Array]:
    """The true answers' tokens from the first step of a generation on, and which of them count: not the end."""
    tokens, start = questions.tokens.tokens, questions.tokens.prompt_length
    ids, answer = answers_first(tokens.ids[:, start:], tokens.answer[:, start:])
    return ids, answer * (ids != questions.model.tokenizer.eos)


def _free(questions: QuestionSet, said: Generation, top: int) -> dict[str, np.ndarray]:
    spelt, ranks = _spelt_answers(questions)[1], said.observed
    assert ranks is not None
    measures = (
        mean_reciprocal_rank(ranks, spelt, said.taken),
        top_hit_ratio(ranks, spelt, top, said.taken),
    )
    return {name: np.asarray(value) for name, value in zip(FREE_RUNNING, measures)}
