"""The unlearning methods of the CIFAR-100 audits, with the hyper-parameters of a preset."""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from cifar100_noise import noise_ladder
from cifar100_presets import Preset

from jaxaudit.train import LossFn, SgdSpec, num_batches
from jaxaudit.unlearn import Recipe, exact_retraining, no_unlearning, retain_finetune, then
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import Certificate, Stages, Unlearner, as_stages
from jaxaudit.unlearn.clipping import ClippingSpec, model_clipping, uncertified_clipping
from jaxaudit.unlearn.hessian import hessian_unlearning
from jaxaudit.unlearn.interleaved import interleaved_descent_ascent
from jaxaudit.unlearn.rewind import rewind_sigma, rewind_to_delete

_HEURISTIC = Certificate.none("a heuristic: nothing is proved about it")


class Problem(NamedTuple):
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


def _heuristics(problem: Problem) -> dict[str, Recipe]:
    preset = problem.preset
    interleaved = {
        name: Recipe(_interleaved(problem, q), _HEURISTIC)
        for name, q in zip(preset.interleaved_names, preset.interleaving.descents)
    }
    return {
        "none": _untouched(),
        "retain-finetune": Recipe(problem.finetune_epochs(preset.finetune.epochs), _HEURISTIC),
        **_ascent(problem),
        **interleaved,
        "hessian": _hessian(problem),
        "retrain": _retrain(problem),
    }


def _ascent(problem: Problem) -> dict[str, Recipe]:
    spec = problem.preset.ascent
    num_updates = spec.num_updates(problem.num_forget)
    climb = _climb(problem.loss_fn, spec, num_updates)
    finetune = problem.finetune_epochs(problem.preset.finetune.epochs - spec.epochs)
    return {"ascent": Recipe(then(climb, finetune), _HEURISTIC)}


@lru_cache(maxsize=16)
def _climb(loss_fn: LossFn, spec: SgdSpec, num_updates: int) -> Unlearner:
    optimizer = spec.optimizer(num_updates)
    return gradient_ascent(loss_fn, optimizer=optimizer, num_updates=num_updates, batch_size=spec.batch_size)


def _interleaved(problem: Problem, num_descents: int) -> Stages:
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


def _hessian(problem: Problem) -> Recipe:
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


def _retrain(problem: Problem) -> Recipe:
    retraining = _retraining(problem.loss_fn, problem.preset.training, problem.num_retain)
    return Recipe(retraining, Certificate(0.0, 0.0, "by definition"), same_for_all=True)


@lru_cache(maxsize=16)
def _retraining(loss_fn: LossFn, training: SgdSpec, num_retain: int) -> Unlearner:
    num_updates = training.num_updates(num_retain)
    optimizer = training.optimizer(num_updates)
    return exact_retraining(
        loss_fn, optimizer=optimizer, num_updates=num_updates, batch_size=training.batch_size
    )


def _clipping(problem: Problem) -> dict[str, Recipe]:
    """Certified rows, and what the same design finds without unlearning and with fine-tuning alone."""
    preset = problem.preset
    certified = {f"clipping-{row}": _one_clipping(problem, one) for row, one in enumerate(preset.clipping, 1)}
    return {
        "none": _untouched(),
        "retain-finetune": Recipe(problem.finetune_epochs(preset.clipping_epochs), _HEURISTIC),
        **certified,
    }


def _untouched() -> Recipe:
    return Recipe(no_unlearning(), Certificate.none("nothing is unlearned"))


def _one_clipping(problem: Problem, spec: ClippingSpec) -> Recipe:
    """Noisy steps, looked at after the first; then fine-tuning with what is left of the budget."""
    noisy = as_stages(model_clipping(problem.loss_fn, spec=spec).method).stages[0].num_updates
    spec_left = replace(problem.preset.finetune, epochs=problem.preset.clipping_epochs)
    left = spec_left.num_updates(problem.num_retain) - noisy
    finetune = problem.finetune(left) if left > 0 else None
    return model_clipping(problem.loss_fn, spec=spec, finetune=finetune)._replace(record_at=(1,))


def _uncertified(problem: Problem) -> dict[str, Recipe]:
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


def _rewind(problem: Problem) -> dict[str, Recipe]:
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


METHODS = {
    "heuristic": _heuristics,
    "group size": _ascent,
    "clipping": _clipping,
    "uncertified": _uncertified,
    "pairwise": _uncertified,
    "rewind": _rewind,
}
