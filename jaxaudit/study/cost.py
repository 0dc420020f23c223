"""What a study would do, and what it would cost on this machine: tokens, operations per token, and a measured speed."""

from typing import NamedTuple

import numpy as np

from jaxaudit.data.pistol import GroupedRecords
from jaxaudit.llm import PRESETS, DecoderSpec, TokenizedRecords
from jaxaudit.runs import measured_matmul_peak
from jaxaudit.study.candidates import Candidates
from jaxaudit.study.edgespec import EdgeAuditSpec, method_of
from jaxaudit.study.languagemodel import PRETRAINING, LanguageModel, make_background, make_tokenizer
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import StudySpec, is_big

_SHARE_OF_PEAK = 0.3
"""Of this machine's speed at a matrix product that training reaches."""
_AUDIT_SHARE = {False: 0.15, True: 0.6}
"""The same in an audit of edges, by whether the model is big: a small one keeps one of two cores busy."""
_GRADIENTS = {
    "gradient_ascent": 1.0,
    "gradient_difference": 2.0,
    "kl": 2.5,
    "idk": 2.0,
    "dpo": 2.0,
    "npo": 1.0,
}
"""Of an update, per example of the forget set: every other set and every forward pass of a reference counts as well."""
_SMALL_BATCHES = 2.0
"""How much longer a token takes a small decoder in the small batches of unlearning."""
_OPEN_SHARE = 0.1
"""Of the questions: those that an unlearned or retrained model does not know, so that it answers by generation."""


class Load(NamedTuple):
    """Models that have to be made."""

    trained: int
    """Fine-tuned on everything, or retrained without an edge."""
    unlearned: int
    tried: int
    """Unlearned to choose learning rates."""


def planned_models(spec: StudySpec, num_edges: int, num_tuning_edges: int) -> Load:
    """Models that the outcomes of some edges need, each by itself.

    Parameters
    ----------
    spec
        Seeds, methods, rates.
    num_edges
        Edges that are reported.
    num_tuning_edges
        Edges on which rates are chosen; 0: the rates are known.

    Examples
    --------
    >>> planned_models(StudySpec(seeds=(1, 2), rates=(1e-3,)), num_edges=3, num_tuning_edges=1)
    Load(trained=9, unlearned=30, tried=5)
    """
    seeds, methods = len(spec.seeds), len(spec.methods)
    return Load(
        seeds * (1 + num_edges) + bool(num_tuning_edges),
        methods * num_edges * seeds,
        methods * num_tuning_edges * len(spec.rates),
    )


def token_operations(spec: DecoderSpec, *, gradient: bool, adapters: bool = False) -> float:
    """Floating-point operations per token: two per parameter forward, as many for gradients by inputs, and by weights.

    Attention over the few tokens of a question is left out; so are gradients by weights if there are adapters.

    Examples
    --------
    >>> token_operations(DecoderSpec(420), gradient=True) / DecoderSpec(420).num_params
    6.0
    """
    return 2.0 * spec.num_params * (1 if not gradient else 2 if adapters else 3)


def estimated_seconds(
    spec: StudySpec,
    load: Load,
    data: GroupedRecords,
    model: DecoderSpec,
    tokens: TokenizedRecords,
    *,
    speed: float | None = None,
) -> float:
    """Seconds on this machine, roughly; what is in a store already is not subtracted, nor is pretraining of a model.

    Parameters
    ----------
    spec
        Passes and batches.
    load
        See `planned_models`.
    data
        Questions and edges.
    model
        Of the decoder.
    tokens
        Of all questions; padding costs nothing.
    speed
        Operations per second. ``None``: three tenths of what a matrix product reaches here, which takes a second to
        measure.
    """
    real, answer = (float(mask.sum(axis=1).mean()) for mask in (tokens.tokens.real, tokens.tokens.answer))
    count, per_edge = len(data.records), len(data.records) / len(data.edges)
    forward = token_operations(model, gradient=False)
    training, unlearning = (
        token_operations(model, gradient=True, adapters=lora is not None) * real
        for lora in (spec.fine_tuning_lora, spec.lora)
    )
    per_update = sum(_GRADIENTS[method] for method in spec.methods) / len(spec.methods)
    slower = 1.0 if is_big(model) else _SMALL_BATCHES
    models = 1 + sum(load)
    operations = load.trained * spec.fine_tuning.epochs * count * training
    operations += (load.unlearned + load.tried) * spec.epochs * per_edge * per_update * slower * unlearning
    operations += models * count * real * forward
    # The pretrained model knows nothing, and answers everything.
    operations += (1 + _OPEN_SHARE * (load.trained + load.unlearned)) * count * (real + answer) * forward
    return operations / (speed or _SHARE_OF_PEAK * measured_matmul_peak())


def audit_line(
    candidates: Candidates, spec: EdgeAuditSpec, *, speed: float | None = None
) -> tuple[str, float]:
    """A sentence about what an audit of edges would do and for how long, and the seconds.

    Parameters
    ----------
    candidates
        Their model may be an `untrained_model`, whose pretraining is then counted, too.
    spec
        Runs, methods, rates that are tried.
    speed
        Operations per second. ``None``: a share of what a matrix product reaches here.
    """
    questions, study = candidates.questions, spec.study
    model, tokens = questions.model, questions.tokens
    real = float(np.asarray(tokens.tokens.real).sum(axis=1).mean())
    forgotten = candidates.num_groups // 2 * candidates.group_size
    methods = [method_of(variant) for variant in spec.variants]
    learnt, tried = spec.num_runs + 2, len(study.rates) * len(set(methods))
    passes = learnt * study.fine_tuning.epochs * (len(candidates.retained_rows) + forgotten)
    gradients = spec.num_runs * sum(_GRADIENTS[name] for name in methods)
    gradients += len(study.rates) * sum(_GRADIENTS[name] for name in set(methods))
    gradients *= study.epochs * forgotten
    training, unlearning = (
        token_operations(model.spec, gradient=True, adapters=lora is not None)
        for lora in (study.fine_tuning_lora, study.lora)
    )
    slower = 1.0 if is_big(model.spec) else _SMALL_BATCHES
    scored = (spec.num_runs * (1 + len(methods)) + 1) * candidates.rows.size
    measured = (1 + len(methods)) * spec.num_measured + 1
    asked = (2 * measured + tried) * questions.num_questions  # with answers; without
    forward = token_operations(model.spec, gradient=False) * (scored + asked)
    operations = (passes * training + gradients * slower * unlearning + forward) * real
    speed = speed or _AUDIT_SHARE[is_big(model.spec)] * measured_matmul_peak()
    seconds = operations / speed + (0.0 if model.params else pretraining_seconds(model.spec, tokens))
    text = (
        f"{learnt} models fine-tuned, {spec.num_runs * len(methods)} unlearned, {tried} more to choose rates; "
        f"{passes:,} questions read in fine-tuning, {gradients:,.0f} gradients of a question in unlearning, {real:.0f} "
        f"tokens per question: about {duration(seconds)}"
    )
    return text, seconds


def pretraining_seconds(model: DecoderSpec, tokens: TokenizedRecords, num_questions: int = 600) -> float:
    """Seconds of `jaxaudit.study.small_model`, roughly."""
    operations = token_operations(model, gradient=True) * float(np.sum(tokens.tokens.real, axis=1).mean())
    return PRETRAINING.epochs * num_questions * operations / (_SHARE_OF_PEAK * measured_matmul_peak())


def untrained_model(data: GroupedRecords, size: str) -> LanguageModel:
    """The small decoder without parameters: enough to count its tokens.

    Parameters
    ----------
    data, size
        As for `jaxaudit.study.small_model`.
    """
    tokenizer = make_tokenizer(data, make_background(data, seed=0))
    return LanguageModel(f"{size} decoder", PRESETS[size](tokenizer.vocabulary_size), {}, tokenizer)


def cost_line(
    spec: StudySpec, data: GroupedRecords, model: LanguageModel, num_edges: int, num_tuning_edges: int
) -> tuple[str, float]:
    """A sentence about what would be done and for how long, and the seconds.

    Parameters
    ----------
    spec, data, model
        Of the study; the model may be an `untrained_model`, whose pretraining is then counted, too.
    num_edges, num_tuning_edges
        As for `planned_models`.
    """
    load, tokens = planned_models(spec, num_edges, num_tuning_edges), QuestionSet(data, model).tokens
    seconds = estimated_seconds(spec, load, data, model.spec, tokens)
    seconds += 0.0 if model.params else pretraining_seconds(model.spec, tokens)
    real, padded = tokens.tokens.real.sum(axis=1).mean(), tokens.tokens.ids.shape[1]
    text = (
        f"{load.trained} models fine-tuned or retrained, {load.unlearned} unlearned, {load.tried} more to choose "
        f"rates; {real:.0f} tokens per question ({padded} with padding): about {duration(seconds)}"
    )
    return text, seconds


def duration(seconds: float) -> str:
    """Seconds or minutes, for people.

    Examples
    --------
    >>> duration(90.2), duration(600)
    ('90 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
