"""One audit from end to end: the stages in their order, as calls."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Key

from jaxaudit.analysis import Claim, analyse
from jaxaudit.checks import check_choice
from jaxaudit.data import AuditData
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.evaluate import Evaluation, evaluation
from jaxaudit.models import Model
from jaxaudit.pipeline import (
    Evaluate,
    Executor,
    Look,
    Setup,
    TrainedRuns,
    Training,
    audit_key,
    check_records,
    keys_for,
    phases,
    plan_trainings,
    score_label,
    set_up,
    train_runs,
    unlearn_runs,
)
from jaxaudit.progress import Reporter
from jaxaudit.provenance import peak_memory_bytes, provenance
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.report.results import check_method_name, family_name, record_name
from jaxaudit.runs import RunOptions
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.scores import SCORES
from jaxaudit.store import Progress
from jaxaudit.train import Loop, Params, SgdSpec, cross_entropy_loss
from jaxaudit.unlearn.base import Certificate, Recipe, Stages, Unlearner

Methods = Mapping[str, Recipe | Unlearner | Stages]


def run_audit(
    data: AuditData,
    model: Model,
    methods: Methods,
    design: AuditDesign,
    *,
    training: SgdSpec | Loop,
    seed: int = 0,
    claim: Claim | None = None,
    score: str = "logit",
    options: RunOptions | None = None,
    initial_params: Params | None = None,
    store: str | Path | None = None,
    reporter: Reporter | None = None,
) -> AuditReport:
    """Train, unlearn and attack many models; bound epsilon for each unlearning method.

    Base training is done once per run (once per sign vector where it is deterministic) and shared by all methods that
    start from it.

    Parameters
    ----------
    data
        Retain records, candidate groups, held-out records.
    model
        Two pure functions; see `jaxaudit.models`.
    methods
        Unlearning methods by name.
    design
        What is decided beforehand. Its ``num_groups`` is that of the data.
    training
        Plain SGD, or a `Loop` of your own: ``init(run, shared)`` and ``body(step, state, run, shared)`` for one
        `TrainingRun` and what all runs share (`TrainingShared`), with a state that has ``.params``. Methods may bring
        a training of their own.
    seed
        Seeds the four streams of random keys: initialisation, order, sign vectors, noise.
    claim
        A claimed (epsilon, delta) to test.
    score
        Name of a score in `jaxaudit.scores.SCORES`; of text, one that needs a label per token.
    options
        How to carry runs out; see `jaxaudit.runs.RunOptions`.
    initial_params
        x0, if it is not to be drawn by ``model.init_fn``: for instance a checkpoint.
    store
        Folder for trained models, which later audits reuse, and for the audit's own progress: after an interruption
        the same call goes on where it was, and once finished it returns the same scores at once. Its ``audits`` folder
        can always be removed. Default: nothing is kept.
    reporter
        Where progress goes; default: nowhere.

    Returns
    -------
    An `AuditReport`; ``print(report.table())`` shows it, ``report.save(folder)`` writes it.

    Raises
    ------
    InputError
        If the arguments do not fit each other, or if the store cannot be written.
    """
    recipes = {name: _recipe(name, method) for name, method in methods.items()}
    _check_arguments(data, recipes, design, score)
    began = time.perf_counter()
    setup = set_up(data, model, design, seed, initial_params)
    loss = cross_entropy_loss(model.logits_fn)
    trainings = plan_trainings(recipes, training, loss, setup.members.shape[1])
    job = _Job(
        design=design,
        claim=claim,
        setup=setup,
        executor=Executor(options, reporter),
        evaluate=evaluation(
            model.logits_fn, score, data.num_retain, (data.group_size, data.score_weights.shape[1])
        ),
        weights=data.score_weights,
    )
    _rehearse(job)
    if store is not None:
        key = audit_key(job.executor, setup, trainings, recipes, job.evaluate, data.fingerprint)
        job.executor.progress = Progress(Path(store), key, job.executor.reporter.say)
    results: dict[str, list[MethodResult]] = {}
    for one in trainings:
        trained = train_runs(job.executor, setup, one, data.fingerprint)
        for name in one.methods:
            results[name] = _audit_method(job, trained, name, recipes[name])
    job.executor.finish()
    return AuditReport(
        methods=tuple(result for name in recipes for result in results[name]),
        design=design,
        claim=claim,
        spec={
            "seed": seed,
            "model": model.description,
            "training": _describe_trainings(trainings),
            "score": score,
            "initial_params": "drawn" if initial_params is None else "given",
        },
        data=_describe(data),
        provenance={**provenance(), "score": SCORES[score].definition},
        record_ids=data.group_ids,
        registered=False,
        timings=_timings(job.executor, trainings, time.perf_counter() - began),
    )


@dataclass(frozen=True)
class _Job:
    """What every method of one audit needs."""

    design: AuditDesign
    claim: Claim | None
    setup: Setup
    executor: Executor
    evaluate: Evaluate
    weights: Float[np.ndarray, "groups scored"]


def _rehearse(job: _Job) -> None:
    """Analyse empty scores, so that a design that cannot be analysed is found before anything is trained."""
    scores = np.zeros((*job.setup.signs.shape, job.weights.shape[1]))
    empty = analyse(job.design, *_split(job, scores, np.zeros(len(scores), bool)), job.claim)
    if empty.ceiling == 0:
        job.executor.reporter.say("note: this design cannot show any epsilon above 0")


def _audit_method(job: _Job, trained: TrainedRuns, name: str, recipe: Recipe) -> list[MethodResult]:
    """The iterates on the way, then the method's end; the time is told of the end, unless it was in the store."""
    began = time.perf_counter()
    keys = keys_for(job.setup.keys, f"method {name}")
    looks = unlearn_runs(job.executor, job.setup, trained, keys, name, recipe, job.evaluate)
    seconds = None if score_label(name) in job.executor.reused else time.perf_counter() - began
    return [_result(job, keys, name, recipe, look, seconds) for look in looks]


def _result(
    job: _Job, keys: Key[jax.Array, " runs"], name: str, recipe: Recipe, look: Look, seconds: float | None
) -> MethodResult:
    scores = np.asarray(look.evaluation.scores, np.float64).reshape(*job.setup.signs.shape, -1)
    # A run with a value that is not finite is flagged, never dropped.
    failed = ~(np.isfinite(scores).all(axis=(1, 2)) & np.isfinite(np.asarray(look.evaluation.moved)))
    calibration, audited = _split(job, scores, failed)
    update = look.update
    return MethodResult(
        name=name if update is None else record_name(name, update),
        title=recipe.title if update is None else f"{recipe.title} after {update:,} updates",
        description=recipe.description,
        certificate=recipe.certificate if update is None else _unfinished(recipe),
        calibration=calibration,
        audited=audited,
        analysis=analyse(job.design, calibration, audited, job.claim),
        **_means(look.evaluation, audited, job.design.num_calibration_runs),
        noise_keys=np.asarray(jax.random.key_data(keys)),
        seconds=seconds if update is None else None,
        cost=look.cost,
        measured={label: _summary(values) for label, values in look.measured.items()},
        recorded_at=update,
    )


def _unfinished(recipe: Recipe) -> Certificate | None:
    """What is proved about an iterate on the way: nothing."""
    if recipe.certificate is None or not recipe.certificate.certified:
        return recipe.certificate
    return Certificate.none("an iterate on the way; what is proved is about the end")


def _summary(values: Float[np.ndarray, " runs"]) -> dict[str, float]:
    """Mean and range of what is finite, and how many runs are not."""
    finite = values[np.isfinite(values)].astype(np.float64)
    numbers: dict[str, float] = {"not_finite": len(values) - len(finite)}
    if not len(finite):
        return numbers
    return {"mean": float(finite.mean()), "min": float(finite.min()), "max": float(finite.max()), **numbers}


def _split(
    job: _Job, scores: Float[np.ndarray, "runs groups examples"], failed: Bool[np.ndarray, " runs"]
) -> tuple[CalibrationRuns, AuditedRuns]:
    run_ids = np.arange(len(scores))

    def part(kind: type, runs: slice) -> Any:
        return kind(job.setup.signs[runs], scores[runs], run_ids[runs], failed[runs], job.weights)

    count = job.design.num_calibration_runs
    return part(CalibrationRuns, slice(None, count)), part(AuditedRuns, slice(count, None))


def _means(evaluated: Evaluation, audited: AuditedRuns, first: int) -> dict[str, float | None]:
    """Means over the audited runs that did not fail; ``None`` if all of them did."""
    fields = ("retain_accuracy", "forget_accuracy", "test_accuracy", "moved")
    if audited.failed.all():
        return dict.fromkeys(fields)
    return {name: float(getattr(evaluated, name)[first:][~audited.failed].mean()) for name in fields}


def _recipe(name: str, method: Recipe | Unlearner | Stages) -> Recipe:
    recipe = method if isinstance(method, Recipe) else Recipe(method)
    return recipe if recipe.title else recipe._replace(title=name)


def _timings(executor: Executor, trainings: tuple[Training, ...], seconds: float) -> dict[str, Any]:
    stats = [one for training in trainings for one in executor.stats.get(training.label, [])]
    return {
        "training_seconds": sum(one.seconds for one in stats),
        "total_seconds": seconds,
        "runs_at_once": stats[0].chunk if stats else None,
        "program_bytes": max((one.program_bytes for one in stats), default=None),
        "peak_memory_bytes": peak_memory_bytes(),
        "phases": phases(executor, seconds),
    }


def _describe_trainings(trainings: tuple[Training, ...]) -> Any:
    """The only training, or each with its methods."""
    if len(trainings) == 1:
        return trainings[0].about
    return {one.name: {"methods": list(one.methods), "spec": one.about} for one in trainings}


def _describe(data: AuditData) -> dict[str, Any]:
    return {
        "name": data.name,
        "description": data.description,
        "fingerprint": data.fingerprint,
        "num_retain": data.num_retain,
        "num_groups": data.num_groups,
        "group_size": data.group_size,
        "num_scored": data.num_scored,
        "num_holdout": len(data.holdout.y),
        "num_classes": data.num_classes,
    }


def _check_arguments(data: AuditData, recipes: Mapping[str, Recipe], design: AuditDesign, score: str) -> None:
    if design.num_groups != data.num_groups:
        raise InputError(
            f"design.num_groups must be that of the data, {data.num_groups}, got {design.num_groups}"
        )
    if not recipes:
        raise InputError("methods must name at least one unlearning method, got none")
    for name, recipe in recipes.items():
        check_method_name(name)
        if family_name(name) != name:
            raise InputError(
                f"method name must be without '@', which marks iterates on the way, got {name!r}"
            )
        check_records(recipe)
        sizes = (data.num_retain, data.num_groups // 2 * data.group_size)
        if recipe.sizes not in (None, sizes):
            raise InputError(
                f"method {name!r} must be built for the data's {sizes[0]} retain and {sizes[1]} forget examples, "
                f"got one for {recipe.sizes[0]} and {recipe.sizes[1]}"
            )
    check_choice("score", score, [name for name, one in SCORES.items() if one.per_token == data.is_text])
