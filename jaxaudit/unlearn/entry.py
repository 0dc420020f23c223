"""What the registry knows about a method, and what a method is told about the problem it is built for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import LogitsFn, LossFn, SgdSpec
from jaxaudit.unlearn.base import Recipe
from jaxaudit.unlearn.settings import UnlearningSpec

Suite = Literal["heuristic", "certified", "convex"]
Start = Literal["trained", "initial", "checkpoint"]
SUITES: tuple[Suite, ...] = get_args(Suite)


class Problem(NamedTuple):
    """What a method needs to know to be built."""

    loss_fn: LossFn
    logits_fn: LogitsFn
    num_classes: int
    training: SgdSpec
    spec: UnlearningSpec
    num_retain: int
    num_forget: int
    """Examples that each run forgets."""
    constants: ConvexConstants | None = None
    """Of the loss, if it is convex."""


@dataclass(frozen=True)
class MethodEntry:
    """A method that can be audited by name."""

    name: str
    title: str
    description: str
    reference: str
    build: Callable[[Problem], Recipe]
    reads: frozenset[str]
    """Parts of a batch that may change the result at the default settings: ``retain``, ``forget``."""
    noisy: bool = False
    """Whether the result depends on the key."""
    starts_from: Start = "trained"
    """Parameters that the first stage starts from."""
    suites: tuple[Suite, ...] = ("heuristic",)
    """The audits that it can be part of: model and design that suit it."""
