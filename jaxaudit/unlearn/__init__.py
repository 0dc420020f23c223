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
from jaxaudit.unlearn.registry import (
    METHODS,
    MethodEntry,
    Problem,
    UnlearningSpec,
    build_methods,
    select_methods,
)
from jaxaudit.unlearn.release_noise import release_noise
from jaxaudit.unlearn.retain_finetune import retain_finetune
from jaxaudit.unlearn.retrain import exact_retraining, no_unlearning

__all__ = [
    "METHODS",
    "Batch",
    "Certificate",
    "MethodEntry",
    "Problem",
    "Recipe",
    "Stages",
    "Trained",
    "Unlearner",
    "UnlearningSpec",
    "apply",
    "as_stages",
    "build_methods",
    "exact_retraining",
    "gradient_ascent",
    "no_unlearning",
    "release_noise",
    "repeat",
    "retain_finetune",
    "select_methods",
    "then",
]
