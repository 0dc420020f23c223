"""The contract of every unlearning algorithm: a pair of pure functions, as in optax.

``init(key, trained) -> state`` and ``update(key, state, batch) -> (state, info)`` describe **one** run. The state's
first field is ``params``. One update consumes one mini-batch. There is no jit, vmap, printing or file access inside,
and every random number comes from the key of that call.

A method with several phases is a composition (`then`) of such pairs. A phase that goes on from the whole state of the
one before it, not only from its parameters, says so (``continues``) and finds it in ``trained.previous``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import optax
from jaxtyping import Array, Key

from jaxaudit.checks import check_integer
from jaxaudit.data import Examples
from jaxaudit.train import Info, Loop, LossFn, Params, SgdSpec, TrainState, start_training, training_step


class Trained(NamedTuple):
    """What training leaves behind for the unlearner."""

    params: Params
    initial_params: Params
    """The parameters that training started from, x0; the same for all runs."""
    checkpoint: Params | None = None
    """Parameters of an earlier step of training, for methods that rewind."""
    previous: Any = None
    """Last state of the stage before, for a stage that continues it."""


Sampling = Literal["in order", "random"]


class Batch(NamedTuple):
    """One mini-batch of each kind, of fixed shape. A method that must not see a part ignores it."""

    retain: Examples
    forget: Examples


class Unlearner(NamedTuple):
    """One stage of unlearning.

    ``init(key, trained) -> state`` and ``update(key, state, batch) -> (state, info)``; the driver calls ``update``
    ``num_updates`` times, with batches of ``batch_size`` examples of each kind.
    """

    init: Callable[[Key[Array, ""], Trained], Any]
    update: Callable[[Key[Array, ""], Any, Batch], tuple[Any, Info]]
    num_updates: int
    batch_size: int = 64
    sampling: Sampling = "in order"
    """Batches are read in the fixed order, again and again, or drawn uniformly with replacement by the noise key."""
    continues: bool = False
    """Whether ``init`` reads ``trained.previous``."""
    gradients_per_example: float = 1.0
    """Cost: gradient evaluations (or as expensive ones) per example of one kind; 0 if the batch is not looked at."""
    measure: Callable[[Any], Info] | None = None
    """``last state -> scalars`` worth reporting about a run, for instance an estimate of an eigenvalue."""

    @property
    def cost(self) -> float:
        """Gradient evaluations of single examples in all updates."""
        return self.num_updates * self.batch_size * self.gradients_per_example


class Stages(NamedTuple):
    """A composition: each stage starts from the parameters that the one before it left."""

    stages: tuple[Unlearner, ...]

    @property
    def cost(self) -> float:
        """Gradient evaluations of single examples in all stages."""
        return sum(stage.cost for stage in self.stages)


@dataclass(frozen=True)
class Certificate:
    """What is proved about a method, at the settings it was built with.

    Examples
    --------
    >>> Certificate(1.0, 1e-5, "Theorem 3.1").certified, Certificate.none("a heuristic").certified
    (True, False)
    """

    epsilon: float | None
    """Claimed unlearning parameter; ``None`` if nothing is proved."""
    delta: float
    reason: str
    """The theorem and what it assumes, or why there is no proof."""

    @classmethod
    def none(cls, reason: str) -> "Certificate":
        """No proof, and why."""
        return cls(None, 0.0, reason)

    @property
    def certified(self) -> bool:
        """Whether some (epsilon, delta) is proved."""
        return self.epsilon is not None


class Recipe(NamedTuple):
    """A method, and all that an audit must know about it."""

    method: Unlearner | Stages
    certificate: Certificate | None = None
    """``None``: nothing is known."""
    training: SgdSpec | Loop | None = None
    """Base training that the method needs; ``None``: that of the audit."""
    rewind_updates: int | None = None
    """How many updates before the end of training ``trained.checkpoint`` was taken."""
    record_at: tuple[int, ...] = ()
    """Update numbers of the whole method at which its iterate is audited as well, as if it had stopped there."""
    sizes: tuple[int, int] | None = None
    """Numbers of retain and forget examples that it was built for, if its noise or certificate depends on them."""
    same_for_all: bool = False
    """Whether every run gives the same model, whatever it had trained on and must forget: then one is carried out."""
    title: str = ""
    description: str = ""


def then(*parts: Unlearner | Stages) -> Stages:
    """Do one after the other.

    Every stage has its own state, so a composition has no switch inside a compiled loop.

    Examples
    --------
    >>> from jaxaudit import unlearn
    >>> len(then(unlearn.no_unlearning(), then(unlearn.no_unlearning(), unlearn.no_unlearning())).stages)
    3
    """
    return Stages(tuple(stage for part in parts for stage in as_stages(part).stages))


def repeat(part: Unlearner | Stages, times: int) -> Stages:
    """Do the same ``times`` times in a row; every time starts with a fresh state.

    Examples
    --------
    >>> from jaxaudit import unlearn
    >>> len(repeat(unlearn.no_unlearning(), 3).stages)
    3
    """
    return then(*[part] * check_integer("times", times, low=1))


def as_stages(method: Unlearner | Stages) -> Stages:
    """A single unlearner as a composition of one."""
    return method if isinstance(method, Stages) else Stages((method,))


def gradient_unlearner(
    loss_fn: LossFn,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int,
    *,
    examples: Callable[[Batch], Examples],
    start: Callable[[Trained], Params] = lambda trained: trained.params,
) -> Unlearner:
    """Gradient steps on one part of the batch: the common core of fine-tuning, ascent and retraining.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, minimised.
    optimizer
        Any optax optimiser that holds no random key.
    num_updates, batch_size
        How many steps, and how many examples the driver feeds to each.
    examples
        The part of the batch that the loss sees.
    start
        The parameters to start from.
    """
    check_integer("num_updates", num_updates, low=0)
    check_integer("batch_size", batch_size, low=1)

    def init(key: Key[Array, ""], trained: Trained) -> TrainState:
        return start_training(start(trained), optimizer)

    def update(key: Key[Array, ""], state: TrainState, batch: Batch) -> tuple[TrainState, Info]:
        return training_step(loss_fn, optimizer, state, examples(batch))

    return Unlearner(init, update, num_updates, batch_size)


def apply(
    method: Unlearner | Stages,
    key: Key[Array, ""],
    trained: Trained,
    batch_fn: Callable[[int], Batch],
) -> Params:
    """Unlearn one model in a plain Python loop: the reference for the many-run driver.

    Parameters
    ----------
    method
        An unlearner or a composition of several.
    key
        Noise key of this run.
    trained
        The trained model.
    batch_fn
        ``update number within the stage -> Batch``.

    Returns
    -------
    The unlearned parameters.
    """
    for index, stage in enumerate(as_stages(method).stages):
        stage_key = jax.random.fold_in(key, index)
        state = stage.init(jax.random.fold_in(stage_key, 0), trained)
        for step in range(stage.num_updates):
            state, _ = stage.update(jax.random.fold_in(stage_key, step + 1), state, batch_fn(step))
        trained = trained._replace(params=state.params, previous=state)
    return trained.params
