"""The audits behind the CIFAR-100 tables and figures: one per split, group size and seed, with all its methods.

Every script asks for the audits that it reads. The first one to ask does the work, the others find its scores in the
store; base training is shared by all methods, and by all audits with the same data and sign vectors.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from cifar100_noise import noise_ladder
from cifar100_presets import MAIN_RECORDS, Preset

from jaxaudit.audit import run_audit
from jaxaudit.data import AuditData
from jaxaudit.data.image_split import Split, image_audit_data
from jaxaudit.data.images import ImageSet, load_images, shrink, subset
from jaxaudit.design import AuditDesign
from jaxaudit.models import Model, mlp, tinynet
from jaxaudit.pipeline import fastest_model
from jaxaudit.progress import Reporter
from jaxaudit.report import AuditReport
from jaxaudit.signs import num_sign_vectors
from jaxaudit.train import LossFn, SgdSpec, cross_entropy_loss, num_batches
from jaxaudit.unlearn import Recipe, exact_retraining, no_unlearning, retain_finetune, then
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import Certificate, Stages, Unlearner, as_stages
from jaxaudit.unlearn.clipping import ClippingSpec, model_clipping, uncertified_clipping
from jaxaudit.unlearn.hessian import hessian_unlearning
from jaxaudit.unlearn.interleaved import interleaved_descent_ascent
from jaxaudit.unlearn.rewind import rewind_sigma, rewind_to_delete

Kind = Literal["heuristic", "group size", "clipping", "uncertified", "pairwise", "rewind"]
SPLITS: tuple[Split, ...] = ("uniform", "adversarial")
_HEURISTIC = Certificate.none("a heuristic: nothing is proved about it")


class JobKey(NamedTuple):
    """Which audit."""

    kind: Kind
    split: Split
    group_size: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.split} split, B = {self.group_size}, seed {self.seed}"


class Job(NamedTuple):
    """One audit before it is carried out."""

    key: JobKey
    data: AuditData
    model: Model
    methods: dict[str, Recipe]
    design: AuditDesign
    training: SgdSpec


class Lab:
    """The images, the store, and every audit that was asked for so far.

    Parameters
    ----------
    preset
        Sizes and hyper-parameters.
    source
        ``digits``, ``cifar100`` or a path; see `jaxaudit.data.images.load_images`.
    store
        Folder for trained models and scores.
    reporter
        Where progress goes.
    """

    def __init__(self, preset: Preset, source: str, store: Path | None, reporter: Reporter) -> None:
        self.preset = preset
        self.images = _images(preset, source)
        self.store = store
        self.reporter = reporter
        self._reports: dict[JobKey, AuditReport] = {}

    def job(self, key: JobKey) -> Job:
        """What an audit consists of."""
        preset = self.preset
        data = image_audit_data(
            self.images,
            split=key.split,
            num_candidates=preset.num_candidates,
            group_size=key.group_size,
            seed=key.seed,
        )
        model = self._model(data)
        methods = methods_of(preset, key, model, data.num_retain)
        return Job(key, data, model, methods, design_of(preset, key), preset.training)

    def audit(self, key: JobKey) -> AuditReport:
        """The result of an audit; carried out if it is not in the store."""
        if key not in self._reports:
            job = self.job(key)
            self.reporter.say(f"{key}: {job.data.num_groups} groups, {len(job.methods)} methods")
            self._reports[key] = run_audit(
                job.data,
                job.model,
                job.methods,
                job.design,
                training=job.training,
                seed=key.seed,
                store=self.store,
                reporter=self.reporter,
            )
        return self._reports[key]

    def _model(self, data: AuditData) -> Model:
        preset = self.preset
        model = network(preset, data.retain.x.shape[1:], data.num_classes)
        num_runs = preset.num_calibration_runs + preset.num_audit_runs
        return fastest_model(model, data, preset.training, num_runs, store=self.store, reporter=self.reporter)


def network(preset: Preset, shape: tuple[int, ...], num_classes: int) -> Model:
    """The model of a preset."""
    if preset.widths is None:
        return mlp(shape, num_classes, ())
    return tinynet(shape, num_classes, preset.widths)


def _images(preset: Preset, source: str) -> ImageSet:
    images = load_images(source)
    images = subset(
        images, num_classes=preset.num_classes, num_train=preset.num_train, num_test=preset.num_test
    )
    return images if preset.image_size is None else shrink(images, preset.image_size)


def heuristic_key(preset: Preset, split: Split, seed: int) -> JobKey:
    """The audit of all heuristics."""
    return JobKey("heuristic", split, preset.group_sizes[0], seed)


def joint_key(preset: Preset, kind: Kind, split: Split, seed: int) -> JobKey:
    """An audit with the joint predictor."""
    num_groups = 2 if kind == "pairwise" else preset.joint_groups
    return JobKey(kind, split, preset.num_candidates // num_groups, seed)


def methods_of(preset: Preset, key: JobKey, model: Model, num_retain: int) -> dict[str, Recipe]:
    """The methods of an audit, for so many retained images."""
    num_forget = preset.num_groups(key.group_size) // 2 * key.group_size
    return _METHODS[key.kind](_Problem(preset, cross_entropy_loss(model.logits_fn), num_retain, num_forget))


def design_of(preset: Preset, key: JobKey) -> AuditDesign:
    """The design of an audit."""
    num_groups = preset.num_groups(key.group_size)
    # The soft evidence is not shown, so its temperature need not be chosen.
    common = {"num_groups": num_groups, "temperature": 1.0}
    if key.kind in ("heuristic", "group size"):
        return AuditDesign(
            **common,
            num_guesses=preset.guesses(MAIN_RECORDS, key.group_size) or 2,
            num_calibration_runs=preset.num_calibration_runs,
            num_audit_runs=preset.num_audit_runs,
        )
    certified = key.kind == "clipping"
    return AuditDesign(
        **common,
        predictor="joint",
        num_calibration_runs=preset.joint_calibrations * num_sign_vectors(num_groups),
        num_audit_runs=preset.certified_audit_runs if certified else preset.figure_audit_runs,
    )


class _Problem(NamedTuple):
    """What the methods of one audit are built for."""

    preset: Preset
    loss_fn: LossFn
    num_retain: int
    num_forget: int

    def finetune(self, num_updates: int) -> Unlearner:
        return _finetune(self.loss_fn, self.preset.finetune, num_updates)

    def finetune_epochs(self, num_epochs: int) -> Unlearner:
        return self.finetune(num_epochs * num_batches(self.num_retain, self.preset.finetune.batch_size))


@lru_cache(maxsize=16)  # one object for all methods that end with it, so that it is compiled once
def _finetune(loss_fn: LossFn, spec: SgdSpec, num_updates: int) -> Unlearner:
    optimizer = spec.optimizer(num_updates)
    return retain_finetune(loss_fn, optimizer=optimizer, num_updates=num_updates, batch_size=spec.batch_size)


def _heuristics(problem: _Problem) -> dict[str, Recipe]:
    preset = problem.preset
    interleaved = {
        f"ida-{q}": Recipe(_interleaved(problem, q), _HEURISTIC) for q in preset.interleaving.descents
    }
    return {
        "none": Recipe(no_unlearning(), Certificate.none("nothing is unlearned")),
        "retain-finetune": Recipe(problem.finetune_epochs(preset.finetune.epochs), _HEURISTIC),
        **_ascent(problem),
        **interleaved,
        "hessian": _hessian(problem),
        "retrain": _retrain(problem),
    }


def _ascent(problem: _Problem) -> dict[str, Recipe]:
    spec = problem.preset.ascent
    num_updates = spec.num_updates(problem.num_forget)
    climb = _climb(problem.loss_fn, spec, num_updates)
    finetune = problem.finetune_epochs(problem.preset.finetune.epochs - spec.epochs)
    return {"ascent": Recipe(then(climb, finetune), _HEURISTIC)}


@lru_cache(maxsize=16)
def _climb(loss_fn: LossFn, spec: SgdSpec, num_updates: int) -> Unlearner:
    optimizer = spec.optimizer(num_updates)
    return gradient_ascent(loss_fn, optimizer=optimizer, num_updates=num_updates, batch_size=spec.batch_size)


def _interleaved(problem: _Problem, num_descents: int) -> Stages:
    settings = problem.preset.interleaving
    finetune = problem.finetune_epochs(problem.preset.finetune.epochs - settings.sgd.epochs)
    phase = _interleaved_phase(
        problem.loss_fn,
        settings.sgd,
        settings.forget_weight,
        num_descents,
        problem.num_retain,
        problem.num_forget,
    )
    return then(phase, finetune)


@lru_cache(maxsize=16)
def _interleaved_phase(
    loss_fn: LossFn, sgd: SgdSpec, forget_weight: float, num_descents: int, num_retain: int, num_forget: int
) -> Unlearner:
    num_updates = sgd.num_updates(num_retain)
    return interleaved_descent_ascent(
        loss_fn,
        optimizer=sgd.optimizer(num_updates),
        num_updates=num_updates,
        num_descents=num_descents,
        forget_weight=forget_weight,
        batch_size=sgd.batch_size,
        num_forget_batches=num_batches(num_forget, sgd.batch_size),
    )


def _hessian(problem: _Problem) -> Recipe:
    """One Newton step, then noise that is added little by little, so that one run shows every amount of it."""
    preset = problem.preset
    step = hessian_unlearning(
        problem.loss_fn, num_retain=problem.num_retain, num_forget=problem.num_forget, spec=preset.hessian
    )
    return _with_noise(
        step, preset.hessian_sigmas, Recipe(step, _HEURISTIC, training=preset.hessian_training)
    )


def _with_noise(before: Stages, sigmas: tuple[float, ...], recipe: Recipe) -> Recipe:
    """The method with several amounts of noise, each of them looked at."""
    return recipe._replace(
        method=then(before, noise_ladder(sigmas)), record_at=noise_looks(before, len(sigmas))[:-1]
    )


def noise_looks(before: Stages, count: int) -> tuple[int, ...]:
    """Update numbers after each of so many noises; the last is the method's end."""
    first = sum(stage.num_updates for stage in before.stages)
    return tuple(first + index for index in range(1, count + 1))


def _retrain(problem: _Problem) -> Recipe:
    training = problem.preset.training
    num_updates = training.num_updates(problem.num_retain)
    retraining = exact_retraining(
        problem.loss_fn,
        optimizer=training.optimizer(num_updates),
        num_updates=num_updates,
        batch_size=training.batch_size,
    )
    return Recipe(retraining, Certificate(0.0, 0.0, "by definition"), same_for_all=True)


def _clipping(problem: _Problem) -> dict[str, Recipe]:
    return {
        f"clipping-{row}": _one_clipping(problem, spec) for row, spec in enumerate(problem.preset.clipping, 1)
    }


def _one_clipping(problem: _Problem, spec: ClippingSpec) -> Recipe:
    """Noisy steps, looked at after the first; then fine-tuning with what is left of the budget."""
    noisy = as_stages(model_clipping(problem.loss_fn, spec=spec).method).stages[0].num_updates
    spec_left = replace(problem.preset.finetune, epochs=problem.preset.clipping_epochs)
    left = spec_left.num_updates(problem.num_retain) - noisy
    finetune = problem.finetune(left) if left > 0 else None
    return model_clipping(problem.loss_fn, spec=spec, finetune=finetune)._replace(record_at=(1,))


def _uncertified(problem: _Problem) -> dict[str, Recipe]:
    preset = problem.preset
    recipe = uncertified_clipping(
        problem.loss_fn,
        num_retain=problem.num_retain,
        finetune=problem.finetune_epochs(preset.finetune.epochs - preset.uncertified_epochs),
        spec=preset.uncertified,
        num_epochs=preset.uncertified_epochs,
        record_at=preset.uncertified_looks,
    )
    return {"uncertified": recipe}


def _rewind(problem: _Problem) -> dict[str, Recipe]:
    """Rewind once, then noise that is added little by little: every certified epsilon from one run."""
    preset = problem.preset
    recipe = rewind_to_delete(
        problem.loss_fn, num_retain=problem.num_retain, num_forget=problem.num_forget, spec=preset.rewind
    )
    before = Stages(as_stages(recipe.method).stages[:-1])
    sigmas = rewind_sigmas(preset, problem.num_retain, problem.num_forget)
    certificate = Certificate.none("G and L are estimates; nominally certified, see the page")
    return {"rewind": _with_noise(before, sigmas, recipe._replace(certificate=certificate))}


def rewind_sigmas(preset: Preset, num_retain: int, num_forget: int) -> tuple[float, ...]:
    """Noise of rewind-to-delete at every certified epsilon, increasing: the largest epsilon comes first."""
    sizes = {"num_members": num_retain + num_forget, "num_forget": num_forget}
    specs = [replace(preset.rewind, epsilon=epsilon) for epsilon in reversed(preset.rewind_epsilons)]
    return tuple(rewind_sigma(spec, **sizes) for spec in specs)


_METHODS = {
    "heuristic": _heuristics,
    "group size": _ascent,
    "clipping": _clipping,
    "uncertified": _uncertified,
    "pairwise": _uncertified,
    "rewind": _rewind,
}
