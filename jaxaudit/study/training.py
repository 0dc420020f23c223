"""Fine-tuning and retraining: one compiled program for all seeds and all edges that are left out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree

from jaxaudit.keys import stream_key
from jaxaudit.llm import (
    Adapted,
    DecoderSpec,
    LoraShared,
    LoraSpec,
    decoder,
    fine_tuning_loop,
    init_adapters,
    lora_tuning_loop,
    packed_size,
    token_model,
)
from jaxaudit.progress import Reporter
from jaxaudit.runs import run_loops
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.settings import StudySpec, run_options
from jaxaudit.train import Params, TrainingRun, TrainingShared


class Training(NamedTuple):
    """One model: what it is trained without, and its seed."""

    edge: str | None
    """``None``: it sees all questions."""
    seed: int


def fine_tune(
    questions: QuestionSet,
    spec: StudySpec,
    trainings: Sequence[Training],
    *,
    label: str = "fine-tuning",
    reporter: Reporter | None = None,
) -> PyTree:
    """Train models from the pretrained one, each on all questions but those of its edge.

    The seed decides on the order of the questions (and on dropout), in the same way whatever is left out: questions of
    the edge stay in their places, with weight 0. So models with and without an edge differ in nothing else. All seeds
    start from the same parameters, and from the same draw of adapters if there are some.

    Parameters
    ----------
    questions
        The data and the pretrained model.
    spec
        ``fine_tuning`` and ``fine_tuning_lora`` of it are used.
    trainings
        The models.
    label, reporter
        For progress.

    Returns
    -------
    Parameters, with a leading axis of models; with adapters `Adapted`, of which only the adapters have that axis: the
    pretrained model is the same for all.
    """
    orders = np.stack([_members(questions, training) for training in trainings])
    keys = jnp.stack([stream_key(training.seed, "noise") for training in trainings])
    return train_on(questions, spec, TrainingRun(jnp.asarray(orders), keys), label=label, reporter=reporter)


def train_on(
    questions: QuestionSet,
    spec: StudySpec,
    run: TrainingRun,
    *,
    alike: Int[np.ndarray, "runs members"] | None = None,
    label: str = "fine-tuning",
    reporter: Reporter | None = None,
) -> PyTree:
    """Train models from the pretrained one, each on its own questions in its own order.

    Parameters
    ----------
    questions, spec, label, reporter
        As for `fine_tune`.
    run
        Numbers of the questions, (models, members), and a key per model; see `QuestionSet.pool` for leaving some out.
    alike
        Members of all models that shall be served by one compiled program, if these are only some of them.

    Returns
    -------
    As of `fine_tune`.
    """
    model, tuning, base = (
        decoder(questions.model.spec, spec.fine_tuning_lora),
        spec.fine_tuning,
        questions.base,
    )
    pool: Any = questions.pool
    orders = np.asarray(run.members if alike is None else alike)
    packed = packed_size(pool.x.truth.real, orders, tuning.batch_size)
    options: dict[str, Any] = {"label": label, "reporter": reporter, "options": run_options(model.spec)}
    length, count = questions.tokens.prompt_length, orders.shape[1]
    if spec.fine_tuning_lora is None:
        loop = fine_tuning_loop(token_model(model, length, packed=packed), tuning, count)
        return run_loops(loop, run, TrainingShared(pool, base), **options)[0].params
    adapters = init_adapters(stream_key(0, "init"), model.spec, spec.fine_tuning_lora)
    loop = lora_tuning_loop(model, tuning, count, length, packed)
    return Adapted(base, run_loops(loop, run, LoraShared(pool, adapters, base), **options)[0].params)


def _members(questions: QuestionSet, training: Training) -> Int[np.ndarray, " questions"]:
    order = np.asarray(jax.random.permutation(stream_key(training.seed, "order"), questions.num_questions))
    if training.edge is None:
        return order
    return np.where(questions.of_edges([training.edge])[order], questions.num_questions, order)


def trained_shapes(model: DecoderSpec, lora: LoraSpec | None) -> Params:
    """Structure of what training leaves of one model: all parameters, or adapters.

    Parameters
    ----------
    model
        Of the decoder.
    lora
        Kind of the adapters, if these are trained.
    """
    key = jax.random.key(0)
    if lora is None:
        return jax.eval_shape(decoder(model).init_fn, key)
    return jax.eval_shape(lambda: init_adapters(key, model, lora))
