"""The methods that can be audited by name, with the settings of the main job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jaxaudit.errors import InputError
from jaxaudit.train import LogitsFn, LossFn, SgdSpec
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import Certificate, Recipe, Stages, Unlearner, then
from jaxaudit.unlearn.retain_finetune import retain_finetune
from jaxaudit.unlearn.retrain import exact_retraining, no_unlearning


@dataclass(frozen=True)
class UnlearningSpec:
    """Settings of the methods that are audited by name."""

    finetune: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=10, learning_rate=0.1))
    """Fine-tuning on the retain set, alone or after ascent."""
    ascent: SgdSpec = field(
        default_factory=lambda: SgdSpec(epochs=2, learning_rate=0.02, end_learning_rate=0.02)
    )
    """Ascent on the run's own forget set."""


class Problem(NamedTuple):
    """What a method needs to know to be built."""

    loss_fn: LossFn
    logits_fn: LogitsFn
    num_classes: int
    training: SgdSpec
    spec: UnlearningSpec
    num_retain: int
    num_forget: int


Suite = Literal["heuristic", "certified", "convex"]


@dataclass(frozen=True)
class MethodEntry:
    """A method that can be audited by name."""

    name: str
    title: str
    description: str
    reference: str
    build: Callable[[Problem], Recipe]
    reads: frozenset[str]
    """Parts of a batch that may change the result: ``retain``, ``forget``."""
    noisy: bool = False
    """Whether the result depends on the key."""
    restarts: bool = False
    """Whether ``init`` moves the parameters, so that zero updates are not the identity."""
    suite: Suite = "heuristic"
    """The audit that it is part of: model and design that suit it."""


def _settings(sgd: SgdSpec, num_examples: int) -> dict[str, Any]:
    num_updates = sgd.num_updates(num_examples)
    return {
        "optimizer": sgd.optimizer(num_updates),
        "num_updates": num_updates,
        "batch_size": sgd.batch_size,
    }


@lru_cache(maxsize=16)  # one object for all methods that end with it, so that it is compiled once
def _finetune(problem: Problem) -> Unlearner:
    return retain_finetune(problem.loss_fn, **_settings(problem.spec.finetune, problem.num_retain))


@lru_cache(maxsize=16)
def _ascent_then_finetune(problem: Problem) -> Stages:
    ascent = gradient_ascent(problem.loss_fn, **_settings(problem.spec.ascent, problem.num_forget))
    return then(ascent, _finetune(problem))


@lru_cache(maxsize=16)
def _retraining(problem: Problem) -> Unlearner:
    return exact_retraining(problem.loss_fn, **_settings(problem.training, problem.num_retain))


_HEURISTIC = Certificate.none("a heuristic: nothing is proved about it")


def _heuristic(build: Callable[[Problem], Unlearner | Stages]) -> Callable[[Problem], Recipe]:
    return lambda problem: Recipe(build(problem), _HEURISTIC)


_ENTRIES = (
    MethodEntry(
        "none",
        "no unlearning",
        "The trained model is released as it is.",
        "baseline",
        lambda problem: Recipe(no_unlearning(), Certificate.none("nothing is unlearned")),
        reads=frozenset(),
    ),
    MethodEntry(
        "retain-finetune",
        "retain fine-tuning",
        "Training goes on for some epochs on the retain set only.",
        "paper, Appendix G.7",
        _heuristic(_finetune),
        reads=frozenset({"retain"}),
    ),
    MethodEntry(
        "ascent",
        "ascent, then fine-tuning",
        "Gradient ascent on the run's own forget set, then retain fine-tuning.",
        "paper, Appendix G.6",
        _heuristic(_ascent_then_finetune),
        reads=frozenset({"retain", "forget"}),
    ),
    MethodEntry(
        "retrain",
        "exact retraining",
        "The model is trained again from the same start on the retain set only.",
        "definition of unlearning",
        lambda problem: Recipe(_retraining(problem), Certificate(0.0, 0.0, "by definition")),
        reads=frozenset({"retain"}),
        restarts=True,
    ),
)
METHODS: Mapping[str, MethodEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def select_methods(names: tuple[str, ...]) -> tuple[MethodEntry, ...]:
    """Entries by name, in the given order; ``("all",)`` means every one.

    Examples
    --------
    >>> [entry.name for entry in select_methods(("all",))]
    ['none', 'retain-finetune', 'ascent', 'retrain']
    >>> select_methods(("forget",))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: methods must be all, or some of none, retain-finetune, ascent, retrain; got forget
    """
    names = tuple(METHODS) if names == ("all",) else names
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise InputError(
            f"methods must be all, or some of {', '.join(METHODS)}; got {', '.join(unknown) or 'no name'}"
        )
    if len(set(names)) < len(names):
        raise InputError(f"methods must not repeat, got {', '.join(names)}")
    return tuple(METHODS[name] for name in names)


def build_methods(entries: tuple[MethodEntry, ...], problem: Problem) -> dict[str, Recipe]:
    """The methods for a problem, by name."""
    return {
        entry.name: entry.build(problem)._replace(title=entry.title, description=entry.description)
        for entry in entries
    }
