"""Unlearning algorithms as `(init, update)` pairs of pure functions; see `jaxaudit.unlearn.base` for the contract."""

from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import (
    Batch,
    Certificate,
    Recipe,
    Stages,
    Trained,
    Unlearner,
    apply,
    as_stages,
    repeat,
    then,
)
from jaxaudit.unlearn.clipping import ClippingSpec, model_clipping, noisy_descent, uncertified_clipping
from jaxaudit.unlearn.dampening import DampeningSpec, selective_dampening
from jaxaudit.unlearn.descent_to_delete import (
    DescentToDeleteSpec,
    descent_to_delete,
    descent_to_delete_recipe,
)
from jaxaudit.unlearn.entry import SUITES, MethodEntry, Problem, Suite
from jaxaudit.unlearn.gradient_difference import GradientDifferenceSpec, gradient_difference
from jaxaudit.unlearn.hessian import HessianSpec, hessian_unlearning
from jaxaudit.unlearn.interleaved import InterleavedSpec, interleaved_descent_ascent
from jaxaudit.unlearn.langevin import LangevinSpec, langevin_recipe
from jaxaudit.unlearn.newton import NewtonSpec, newton_recipe, newton_step
from jaxaudit.unlearn.output_perturbation import (
    OutputPerturbationSpec,
    output_perturbation,
    output_perturbation_recipe,
)
from jaxaudit.unlearn.projected_descent import DescentStep, projected_descent
from jaxaudit.unlearn.random_labels import RandomLabelsSpec, random_labels
from jaxaudit.unlearn.registry import METHODS, available_methods, build_methods, by_suite, select_methods
from jaxaudit.unlearn.release_noise import release_noise
from jaxaudit.unlearn.retain_finetune import retain_finetune
from jaxaudit.unlearn.retrain import exact_retraining, no_unlearning
from jaxaudit.unlearn.rewind import RewindSpec, rewind_to_delete, rewound_descent
from jaxaudit.unlearn.scrub import ScrubSpec, scrub
from jaxaudit.unlearn.settings import UnlearningSpec

__all__ = [
    "METHODS",
    "SUITES",
    "Batch",
    "Certificate",
    "ClippingSpec",
    "DampeningSpec",
    "DescentStep",
    "DescentToDeleteSpec",
    "GradientDifferenceSpec",
    "HessianSpec",
    "InterleavedSpec",
    "LangevinSpec",
    "MethodEntry",
    "NewtonSpec",
    "OutputPerturbationSpec",
    "Problem",
    "RandomLabelsSpec",
    "Recipe",
    "RewindSpec",
    "ScrubSpec",
    "Stages",
    "Suite",
    "Trained",
    "Unlearner",
    "UnlearningSpec",
    "apply",
    "as_stages",
    "available_methods",
    "build_methods",
    "by_suite",
    "descent_to_delete",
    "descent_to_delete_recipe",
    "exact_retraining",
    "gradient_ascent",
    "gradient_difference",
    "hessian_unlearning",
    "interleaved_descent_ascent",
    "langevin_recipe",
    "model_clipping",
    "newton_recipe",
    "newton_step",
    "no_unlearning",
    "noisy_descent",
    "output_perturbation",
    "output_perturbation_recipe",
    "projected_descent",
    "random_labels",
    "release_noise",
    "repeat",
    "retain_finetune",
    "rewind_to_delete",
    "rewound_descent",
    "scrub",
    "select_methods",
    "selective_dampening",
    "then",
    "uncertified_clipping",
]
