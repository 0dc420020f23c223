"""The methods that can be audited by name, with the settings of the main job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from jaxaudit.errors import InputError
from jaxaudit.train import LossFn, SgdSpec
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import NamedMethod, Stages, Unlearner, as_stages, then
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
    training: SgdSpec
    spec: UnlearningSpec
    num_retain: int
    num_forget: int


@dataclass(frozen=True)
class MethodEntry:
    """A method that can be audited by name."""

    name: str
    title: str
    description: str
    reference: str
    certified: bool
    build: Callable[[Problem], Unlearner | Stages]
    reads: frozenset[str]
    """Parts of a batch that may change the result: ``retain``, ``forget``."""
    noisy: bool = False
    """Whether the result depends on the key."""
    restarts: bool = False
    """Whether ``init`` moves the parameters, so that zero updates are not the identity."""


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


_ENTRIES = (
    MethodEntry(
        "none",
        "no unlearning",
        "The trained model is released as it is.",
        "baseline",
        False,
        lambda problem: no_unlearning(),
        reads=frozenset(),
    ),
    MethodEntry(
        "retain-finetune",
        "retain fine-tuning",
        "Training goes on for some epochs on the retain set only.",
        "paper, Appendix G.7",
        False,
        _finetune,
        reads=frozenset({"retain"}),
    ),
    MethodEntry(
        "ascent",
        "ascent, then fine-tuning",
        "Gradient ascent on the run's own forget set, then retain fine-tuning.",
        "paper, Appendix G.6",
        False,
        _ascent_then_finetune,
        reads=frozenset({"retain", "forget"}),
    ),
    MethodEntry(
        "retrain",
        "exact retraining",
        "The model is trained again from the same start on the retain set only.",
        "definition of unlearning",
        True,
        _retraining,
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


def build_methods(entries: tuple[MethodEntry, ...], problem: Problem) -> dict[str, NamedMethod]:
    """The methods for a problem, by name."""
    return {
        entry.name: NamedMethod(
            as_stages(entry.build(problem)), entry.title, entry.description, entry.certified
        )
        for entry in entries
    }
