"""One audit from end to end: the stages in their order, as calls."""

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from jaxaudit.analysis import Claim, analyse
from jaxaudit.checks import check_choice
from jaxaudit.data import AuditData, Examples
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.evaluate import Evaluation, EvaluationRun, EvaluationShared, evaluation
from jaxaudit.keys import stream_key
from jaxaudit.models import Model
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.provenance import peak_memory_bytes, provenance
from jaxaudit.report import AuditReport, MethodResult
from jaxaudit.report.results import check_method_name
from jaxaudit.runs import DEFAULT_MEMORY_BUDGET, RunStats, map_runs, run_loops
from jaxaudit.scored import AuditedRuns, CalibrationRuns
from jaxaudit.scores import SCORES
from jaxaudit.signs import draw_order, draw_run_signs, forget_indices, member_indices
from jaxaudit.train import (
    Loop,
    Params,
    SgdSpec,
    TrainingRun,
    TrainingShared,
    cross_entropy_loss,
    training_loop,
)
from jaxaudit.unlearn.base import Recipe, Stages, Unlearner, as_stages
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop

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
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    initial_params: Params | None = None,
    reporter: Reporter | None = None,
) -> AuditReport:
    """Train, unlearn and attack many models; bound epsilon for each unlearning method.

    Base training is done once per run and shared by all methods.

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
        `TrainingRun` and what all runs share (`TrainingShared`), with a state that has ``.params``.
    seed
        Seeds the four streams of random keys: initialisation, order, sign vectors, noise.
    claim
        A claimed (epsilon, delta) to test.
    score
        Name of a score in `jaxaudit.scores.SCORES` that needs one label per record.
    memory_budget
        Bytes that one program over many runs may use; see `jaxaudit.runs.run_loops`.
    initial_params
        x0, if it is not to be drawn by ``model.init_fn``: for instance a checkpoint.
    reporter
        Where progress goes; default: nowhere.

    Returns
    -------
    An `AuditReport`; ``print(report.table())`` shows it, ``report.save(folder)`` writes it.

    Raises
    ------
    InputError
        If the arguments do not fit each other.
    """
    _check_arguments(data, methods, design, score)
    began = time.perf_counter()
    setup = _set_up(data, model, design, seed, initial_params)
    job = _Job(
        design=design,
        claim=claim,
        engine={"memory_budget": memory_budget, "reporter": reporter or SilentReporter()},
        evaluate=evaluation(model.logits_fn, score, data.num_retain),
        weights=data.groups.weights,
    )
    _rehearse(job, setup)
    trained, stats = _train(job, setup, training, model)
    results = tuple(
        _audit_method(job, setup, trained, name, _recipe(name, method)) for name, method in methods.items()
    )
    return AuditReport(
        methods=results,
        design=design,
        claim=claim,
        spec={
            "seed": seed,
            "model": model.description,
            "training": asdict(training) if isinstance(training, SgdSpec) else "user loop",
            "score": score,
            "initial_params": "drawn" if initial_params is None else "given",
        },
        data=_describe(data),
        provenance={**provenance(), "score": SCORES[score].definition},
        record_ids=data.group_ids,
        registered=False,
        timings={
            "training_seconds": stats.seconds,
            "total_seconds": time.perf_counter() - began,
            "runs_at_once": stats.chunk,
            "program_bytes": stats.program_bytes,
            "peak_memory_bytes": peak_memory_bytes(),
        },
    )


@dataclass(frozen=True)
class _Job:
    """What every stage of one audit needs."""

    design: AuditDesign
    claim: Claim | None
    engine: dict[str, Any]
    """Options of `run_loops`."""
    evaluate: Callable[[EvaluationRun, EvaluationShared], Evaluation]
    weights: Float[np.ndarray, "groups examples"]


class _Setup(NamedTuple):
    """Sign vectors, index tables and keys of all runs, calibration runs first."""

    signs: Int[np.ndarray, "runs groups"]
    members: Int[Array, "runs members"]
    forget: Int[Array, "runs forget"]
    keys: Key[Array, " runs"]
    shared: SharedInput
    holdout: Examples


def _set_up(
    data: AuditData, model: Model, design: AuditDesign, seed: int, initial_params: Params | None
) -> _Setup:
    signs = np.concatenate(draw_run_signs(design, seed))
    # x0 and the order do not depend on the sign vectors, and are the same for all runs.
    order = draw_order(seed, len(data.pool.y))
    if initial_params is None:
        initial_params = jax.jit(model.init_fn)(stream_key(seed, "init"))
    tables = (signs, data.num_retain, data.group_size, order)
    pool, holdout, retain, members, forget = jax.device_put(
        (
            data.pool,
            data.holdout,
            order[order < data.num_retain],
            member_indices(*tables),
            forget_indices(*tables),
        )
    )
    keys = jax.random.split(stream_key(seed, "noise"), len(signs))
    return _Setup(signs, members, forget, keys, SharedInput(pool, retain, initial_params), holdout)


def _keys_for(keys: Key[Array, " runs"], purpose: str) -> Key[Array, " runs"]:
    """Keys of all runs for one purpose: training and every method have noise of their own."""
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, zlib.crc32(purpose.encode()))


def _rehearse(job: _Job, setup: _Setup) -> None:
    """Analyse empty scores, so that a design that cannot be analysed is found before anything is trained."""
    scores = np.zeros((*setup.signs.shape, job.weights.shape[1]))
    empty = analyse(job.design, *_split(job, setup, scores, np.zeros(len(scores), bool)), job.claim)
    if empty.ceiling == 0:
        job.engine["reporter"].say("note: this design cannot show any epsilon above 0")


def _train(job: _Job, setup: _Setup, training: SgdSpec | Loop, model: Model) -> tuple[Params, RunStats]:
    if isinstance(training, SgdSpec):
        training = training_loop(cross_entropy_loss(model.logits_fn), training, setup.members.shape[1])
    runs = TrainingRun(setup.members, _keys_for(setup.keys, "training"))
    shared = TrainingShared(setup.shared.pool, setup.shared.initial_params)
    state, stats = run_loops(training, runs, shared, label="train", **job.engine)
    return state.params, stats


def _audit_method(job: _Job, setup: _Setup, trained: Params, name: str, recipe: Recipe) -> MethodResult:
    began = time.perf_counter()
    keys = _keys_for(setup.keys, f"method {name}")
    params = _unlearn(job, setup, trained, keys, name, as_stages(recipe.method))
    run = EvaluationRun(params, trained, setup.forget)
    shared = EvaluationShared(setup.shared.pool, setup.holdout)
    evaluated, _ = map_runs(job.evaluate, run, shared, label=f"{name}: score", **job.engine)
    evaluated = jax.tree.map(np.asarray, evaluated)
    scores = evaluated.scores.astype(np.float64).reshape(*setup.signs.shape, -1)
    # A run with a value that is not finite is flagged, never dropped.
    failed = ~(np.isfinite(scores).all(axis=(1, 2)) & np.isfinite(evaluated.moved))
    calibration, audited = _split(job, setup, scores, failed)
    return MethodResult(
        name=name,
        title=recipe.title,
        description=recipe.description,
        certified=None if recipe.certificate is None else recipe.certificate.certified,
        calibration=calibration,
        audited=audited,
        analysis=analyse(job.design, calibration, audited, job.claim),
        **_means(evaluated, audited, job.design.num_calibration_runs),
        noise_keys=np.asarray(jax.random.key_data(keys)),
        seconds=time.perf_counter() - began,
    )


def _unlearn(
    job: _Job, setup: _Setup, params: Params, keys: Key[Array, " runs"], name: str, method: Stages
) -> Params:
    for index, stage in enumerate(method.stages):
        # Equal stages of a composition must not share noise.
        stage_keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, index)
        run = RunInput(stage_keys, params, setup.forget)
        label = f"{name}: stage {index + 1} of {len(method.stages)}"
        params = run_loops(stage_loop(stage), run, setup.shared, label=label, **job.engine)[0].params
    return params


def _split(
    job: _Job,
    setup: _Setup,
    scores: Float[np.ndarray, "runs groups examples"],
    failed: Bool[np.ndarray, " runs"],
) -> tuple[CalibrationRuns, AuditedRuns]:
    run_ids = np.arange(len(scores))

    def part(kind: type, runs: slice) -> Any:
        return kind(setup.signs[runs], scores[runs], run_ids[runs], failed[runs], job.weights)

    count = job.design.num_calibration_runs
    return part(CalibrationRuns, slice(None, count)), part(AuditedRuns, slice(count, None))


def _means(evaluated: Evaluation, audited: AuditedRuns, first: int) -> dict[str, float | None]:
    """Means over the audited runs that did not fail; ``None`` if all of them did."""
    fields = ("retain_accuracy", "forget_accuracy", "test_accuracy", "moved")
    if audited.failed.all():
        return dict.fromkeys(fields)
    return {name: float(getattr(evaluated, name)[first:][~audited.failed].mean()) for name in fields}


def _recipe(name: str, method: Recipe | Unlearner | Stages) -> Recipe:
    return method if isinstance(method, Recipe) else Recipe(method, title=name)


def _describe(data: AuditData) -> dict[str, Any]:
    return {
        "name": data.name,
        "description": data.description,
        "fingerprint": data.fingerprint,
        "num_retain": data.num_retain,
        "num_groups": data.num_groups,
        "group_size": data.group_size,
        "num_holdout": len(data.holdout.y),
        "num_classes": data.num_classes,
    }


def _check_arguments(data: AuditData, methods: Methods, design: AuditDesign, score: str) -> None:
    if design.num_groups != data.num_groups:
        raise InputError(
            f"design.num_groups must be that of the data, {data.num_groups}, got {design.num_groups}"
        )
    if not methods:
        raise InputError("methods must name at least one unlearning method, got none")
    for name in methods:
        check_method_name(name)
    check_choice("score", score, [name for name, one in SCORES.items() if not one.per_token])
