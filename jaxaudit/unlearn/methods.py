"""The built-in methods: how each is built for a problem, and what the registry says about it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import Certificate, Recipe, Stages, Unlearner, then
from jaxaudit.unlearn.clipping import model_clipping, uncertified_clipping
from jaxaudit.unlearn.dampening import selective_dampening
from jaxaudit.unlearn.descent_to_delete import descent_to_delete_recipe
from jaxaudit.unlearn.entry import SUITES, MethodEntry, Problem
from jaxaudit.unlearn.gradient_difference import gradient_difference
from jaxaudit.unlearn.hessian import hessian_unlearning
from jaxaudit.unlearn.interleaved import interleaved_descent_ascent
from jaxaudit.unlearn.langevin import langevin_recipe
from jaxaudit.unlearn.newton import newton_recipe
from jaxaudit.unlearn.output_perturbation import output_perturbation_recipe
from jaxaudit.unlearn.random_labels import random_labels
from jaxaudit.unlearn.retain_finetune import retain_finetune
from jaxaudit.unlearn.retrain import exact_retraining, no_unlearning
from jaxaudit.unlearn.rewind import rewind_to_delete
from jaxaudit.unlearn.scrub import scrub

_HEURISTIC = Certificate.none("a heuristic: nothing is proved about it")
_RETAIN, _BOTH = frozenset({"retain"}), frozenset({"retain", "forget"})


def _settings(sgd: SgdSpec, num_examples: int) -> dict[str, Any]:
    num_updates = sgd.num_updates(num_examples)
    return {
        "optimizer": sgd.optimizer(num_updates),
        "num_updates": num_updates,
        "batch_size": sgd.batch_size,
    }


def _sizes(problem: Problem) -> dict[str, int]:
    return {"num_retain": problem.num_retain, "num_forget": problem.num_forget}


@lru_cache(maxsize=16)  # one object for all methods that end with it, so that it is compiled once
def _finetune(problem: Problem) -> Unlearner:
    return retain_finetune(problem.loss_fn, **_settings(problem.spec.finetune, problem.num_retain))


@lru_cache(maxsize=16)
def _clipping_finetune(problem: Problem) -> Unlearner:
    return retain_finetune(problem.loss_fn, **_settings(problem.spec.clipping_finetune, problem.num_retain))


@lru_cache(maxsize=16)
def _ascent(problem: Problem) -> Stages:
    ascent = gradient_ascent(problem.loss_fn, **_settings(problem.spec.ascent, problem.num_forget))
    return then(ascent, _finetune(problem))


@lru_cache(maxsize=16)
def _interleaved(problem: Problem) -> Stages:
    spec = problem.spec.interleaved
    interleaved = interleaved_descent_ascent(
        problem.loss_fn,
        num_descents=spec.num_descents,
        forget_weight=spec.forget_weight,
        num_forget_batches=-(-problem.num_forget // spec.sgd.batch_size),
        **_settings(spec.sgd, problem.num_retain),
    )
    return then(interleaved, _finetune(problem))


@lru_cache(maxsize=16)
def _difference(problem: Problem) -> Unlearner:
    spec = problem.spec.difference
    settings = _settings(spec.sgd, problem.num_retain)
    return gradient_difference(problem.loss_fn, retain_weight=spec.retain_weight, **settings)


@lru_cache(maxsize=16)
def _scrub(problem: Problem) -> Stages:
    return scrub(
        problem.logits_fn,
        num_retain=problem.num_retain,
        num_forget=problem.num_forget,
        **vars(problem.spec.scrub),
    )


@lru_cache(maxsize=16)
def _random_labels(problem: Problem) -> Unlearner:
    spec = problem.spec.random_labels
    return random_labels(
        problem.loss_fn,
        num_classes=problem.num_classes,
        num_forget=problem.num_forget,
        forget_weight=spec.forget_weight,
        **_settings(spec.sgd, problem.num_retain),
    )


@lru_cache(maxsize=16)
def _hessian(problem: Problem) -> Stages:
    return hessian_unlearning(problem.loss_fn, spec=problem.spec.hessian, **_sizes(problem))


@lru_cache(maxsize=16)
def _dampening(problem: Problem) -> Stages:
    return selective_dampening(problem.loss_fn, spec=problem.spec.dampening, **_sizes(problem))


@lru_cache(maxsize=16)
def _retraining(problem: Problem) -> Recipe:
    retraining = exact_retraining(problem.loss_fn, **_settings(problem.training, problem.num_retain))
    return Recipe(retraining, Certificate(0.0, 0.0, "by definition"), same_for_all=True)


@lru_cache(maxsize=16)
def _clipping(problem: Problem) -> Recipe:
    return model_clipping(problem.loss_fn, spec=problem.spec.clipping, finetune=_clipping_finetune(problem))


@lru_cache(maxsize=16)
def _uncertified_clipping(problem: Problem) -> Recipe:
    return uncertified_clipping(
        problem.loss_fn,
        num_retain=problem.num_retain,
        finetune=_clipping_finetune(problem),
        spec=problem.spec.uncertified_clipping,
        num_epochs=problem.spec.uncertified_epochs,
    )


@lru_cache(maxsize=16)
def _rewind(problem: Problem) -> Recipe:
    return rewind_to_delete(problem.loss_fn, spec=problem.spec.rewind, **_sizes(problem))


def _heuristic(build: Callable[[Problem], Unlearner | Stages]) -> Callable[[Problem], Recipe]:
    return lambda problem: Recipe(build(problem), _HEURISTIC)


def _convex(recipe: Callable[..., Recipe], setting: str) -> Callable[[Problem], Recipe]:
    def build(problem: Problem) -> Recipe:
        spec = getattr(problem.spec, setting)
        return recipe(problem.loss_fn, _constants(problem), problem.num_retain, problem.num_forget, spec)

    return lru_cache(maxsize=16)(build)


def _constants(problem: Problem) -> ConvexConstants:
    if problem.constants is None:
        raise InputError("constants of the problem are needed by a convex method, got none")
    return problem.constants


BUILT_IN = (
    MethodEntry(
        "none",
        "no unlearning",
        "The trained model is released as it is.",
        "baseline",
        lambda problem: Recipe(no_unlearning(), Certificate.none("nothing is unlearned")),
        reads=frozenset(),
        suites=SUITES,
    ),
    MethodEntry(
        "retain-finetune",
        "retain fine-tuning",
        "Training goes on for some epochs on the retain set only.",
        "paper, Appendix G.7",
        _heuristic(_finetune),
        reads=_RETAIN,
    ),
    MethodEntry(
        "ascent",
        "ascent, then fine-tuning",
        "Gradient ascent on the run's own forget set, then retain fine-tuning.",
        "paper, Appendix G.6",
        _heuristic(_ascent),
        reads=_BOTH,
    ),
    MethodEntry(
        "interleaved",
        "interleaved descent-ascent",
        "Retain steps with a combined step (retain descent, forget ascent) now and then; then retain fine-tuning.",
        "paper, Appendix G.5",
        _heuristic(_interleaved),
        reads=_BOTH,
    ),
    MethodEntry(
        "gradient-difference",
        "gradient difference",
        "Every step descends on retain data and ascends on forget data (NegGrad+).",
        "Kurmanji et al. 2023",
        _heuristic(_difference),
        reads=_BOTH,
    ),
    MethodEntry(
        "scrub",
        "SCRUB",
        "A student leaves the trained model on forget data and stays with it on retain data, in turns.",
        "Kurmanji et al. 2023",
        _heuristic(_scrub),
        reads=_BOTH,
    ),
    MethodEntry(
        "random-labels",
        "random labels",
        "Fine-tuning on retain data and on forget data with wrong labels, drawn at random.",
        "Graves et al. 2021",
        _heuristic(_random_labels),
        reads=_BOTH,
        noisy=True,
    ),
    MethodEntry(
        "hessian",
        "Hessian (LiSSA)",
        "One Newton step towards the retain optimum, by a stochastic Neumann series, and a little noise.",
        "paper, Appendix G.4; Zhang et al. 2025",
        _heuristic(_hessian),
        reads=_RETAIN,
        noisy=True,
    ),
    MethodEntry(
        "dampening",
        "synaptic dampening",
        "Parameters that matter more for the forget set than for all data are made smaller (SSD).",
        "Foster et al. 2024",
        _heuristic(_dampening),
        reads=_BOTH,
    ),
    MethodEntry(
        "clipping",
        "model clipping",
        "Noisy, projected fine-tuning until the certificate holds, then retain fine-tuning without noise.",
        "paper, Appendix G.1; Koloskova et al. 2025",
        _clipping,
        reads=_RETAIN,
        noisy=True,
        suites=("certified",),
    ),
    MethodEntry(
        "clipping-uncertified",
        "clipping, uncertified",
        "Model clipping in a large ball with little noise, then retain fine-tuning.",
        "paper, Appendix G.1.3",
        _uncertified_clipping,
        reads=_RETAIN,
        noisy=True,
        suites=("certified",),
    ),
    MethodEntry(
        "rewind",
        "rewind-to-delete",
        "Full-batch training is rewound a few steps, which are made again on the retain set; then noise.",
        "paper, Appendix G.2; Mu and Klabjan 2025",
        _rewind,
        reads=_RETAIN,
        noisy=True,
        starts_from="checkpoint",
        suites=("certified",),
    ),
    MethodEntry(
        "newton",
        "perturbed Newton",
        "One exact Newton step that removes the forget set, then noise.",
        "paper, Appendix H; Sekhari et al. 2021",
        _convex(newton_recipe, "newton"),
        reads=_BOTH,
        noisy=True,
        suites=("convex",),
    ),
    MethodEntry(
        "output-perturbation",
        "output perturbation",
        "The trained model is projected on a ball, then noise.",
        "paper, Appendix I",
        _convex(output_perturbation_recipe, "output_perturbation"),
        reads=frozenset(),
        noisy=True,
        suites=("convex",),
    ),
    MethodEntry(
        "descent-to-delete",
        "Descent-to-Delete",
        "A few full-batch steps on the retain set, then noise.",
        "Neel et al. 2021",
        _convex(descent_to_delete_recipe, "descent_to_delete"),
        reads=_RETAIN,
        noisy=True,
        suites=("convex",),
    ),
    MethodEntry(
        "langevin",
        "Langevin unlearning",
        "Training by noisy gradient descent, and a few more of its steps on the retain set.",
        "Chien et al. 2024",
        _convex(langevin_recipe, "langevin"),
        reads=_RETAIN,
        noisy=True,
        suites=("convex",),
    ),
    MethodEntry(
        "retrain",
        "exact retraining",
        "The model is trained again from the same start on the retain set only.",
        "definition of unlearning",
        _retraining,
        reads=_RETAIN,
        starts_from="initial",
        suites=SUITES,
    ),
)
