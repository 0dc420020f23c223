"""SCRUB: a student that obeys its teacher, the trained model, on the retain set and disobeys it on the forget set."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LogitsFn, Params, SgdSpec, TrainState, training_step
from jaxaudit.unlearn.base import Batch, Stages, Trained, Unlearner, then

_COST = 4 / 3
"""Gradient of the student, and a forward pass of the teacher, about a third of a gradient."""


@dataclass(frozen=True)
class ScrubSpec:
    """Settings of SCRUB."""

    ascent: SgdSpec = field(
        default_factory=lambda: SgdSpec(epochs=3, learning_rate=0.2, schedule="constant", clip_norm=1.0)
    )
    """Max-steps: passes over the forget set, each after one pass over the retain set. They need a limit on the norm of
    the gradient: the divergence has none, and the steps speed up as they go."""
    descent: SgdSpec = field(default_factory=lambda: SgdSpec(epochs=6, learning_rate=0.1))
    """Min-steps: passes over the retain set, more than over the forget set; the last ones restore accuracy."""
    distillation_weight: float = 0.1
    """Weight of the divergence from the teacher on the retain set, Kurmanji et al.'s alpha."""
    loss_weight: float = 1.0
    """Weight of the cross-entropy on the retain set, Kurmanji et al.'s gamma."""
    temperature: float = 4.0
    """Both models' logits are divided by it in the divergence."""


class ScrubState(NamedTuple):
    """The student, its teacher, and the optimisers of the two kinds of steps: each goes on where it stopped."""

    params: Params
    teacher: Params
    ascent_state: Any
    descent_state: Any


def distillation_divergence(
    student_logits: Float[Array, "examples classes"],
    teacher_logits: Float[Array, "examples classes"],
    weights: Float[Array, " examples"],
    temperature: float = 1.0,
) -> Float[Array, ""]:
    """``T^2`` times the weighted mean of ``KL(softmax(teacher / T) || softmax(student / T))``, in nats.

    The factor keeps the size of the gradient comparable over temperatures (Hinton, Vinyals and Dean, 2015).

    Parameters
    ----------
    student_logits, teacher_logits
        One row per example.
    weights
        0 for padding.
    temperature
        T, positive.

    Returns
    -------
    A number of at least 0 (up to rounding), without upper limit; 0 if all weights are 0.

    Examples
    --------
    >>> certain, undecided = jnp.array([[20.0, 0.0]]), jnp.zeros((1, 2))
    >>> print(f"{distillation_divergence(undecided, certain, jnp.ones(1)):.4f}")
    0.6931
    """
    student, teacher = (
        jax.nn.log_softmax(logits / temperature) for logits in (student_logits, teacher_logits)
    )
    divergences = jnp.sum(jnp.exp(teacher) * (teacher - student), axis=-1)
    return temperature**2 * _weighted_mean(divergences, weights)


def scrub(
    logits_fn: LogitsFn,
    *,
    ascent: SgdSpec,
    descent: SgdSpec,
    num_retain: int,
    num_forget: int,
    distillation_weight: float,
    loss_weight: float,
    temperature: float = 4.0,
) -> Stages:
    """Alternate between obeying the teacher on the retain set and disobeying it on the forget set.

        min-step: minimise alpha KL(teacher || student) + gamma cross-entropy   on a retain batch
        max-step: maximise KL(teacher || student)                               on a forget batch

    Kurmanji et al. (2023), Algorithm 1: epochs of max-steps and of min-steps take turns, then min-steps alone go on.
    The algorithm begins with max-steps; but the student starts as its teacher, where the divergence has gradient 0,
    so that these enlarge rounding errors and nothing else. They are left out: the order is min, max, min, max, ...,
    min, min. Each kind of step has its own optimiser, whose schedule and momentum go on from epoch to epoch.
    Rewinding to an earlier epoch (SCRUB+R) needs a validation set and is not offered. A heuristic without guarantee.

    Settings in common use are T = 4 with alpha, gamma = 0.001, 0.99 (small problems) or 0.5, 1 (large), momentum 0.9,
    clipping and weight decay; see `jaxaudit.train.SgdSpec` for those. An update costs a gradient of the student and a
    forward pass of the teacher.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> logits``.
    ascent
        Max-steps; ``epochs`` is the number of passes over the forget set, fewer than those over the retain set.
    descent
        Min-steps; ``epochs`` is the number of passes over the retain set, at least 1.
    num_retain, num_forget
        Examples of a run.
    distillation_weight, loss_weight
        alpha and gamma, not negative, not both 0. With alpha = 0 and no max-steps it is retain fine-tuning.
    temperature
        T of `distillation_divergence`, positive.

    Returns
    -------
    A stage that remembers the teacher, then one stage per epoch.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Kurmanji, Triantafillou, Hayes and Triantafillou (2023), Towards Unbounded Machine Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn import as_stages
    >>> epochs = {"ascent": SgdSpec(1, 0.01, batch_size=2), "descent": SgdSpec(3, 0.1, batch_size=2)}
    >>> method = scrub(jnp.matmul, **epochs, num_retain=8, num_forget=4, distillation_weight=0.5, loss_weight=1.0)
    >>> [stage.num_updates for stage in method.stages]
    [0, 4, 2, 4, 4]
    """
    _check(ascent, descent, distillation_weight, loss_weight, temperature)
    check_integer("num_retain", num_retain, low=1)
    check_integer("num_forget", num_forget, low=1)
    climb, fall = (
        spec.optimizer(spec.num_updates(size)) for spec, size in ((ascent, num_forget), (descent, num_retain))
    )

    def start(key: Key[Array, ""], trained: Trained) -> ScrubState:
        student = trained.params
        return ScrubState(student, student, climb.init(student), fall.init(student))

    def stay(key: Key[Array, ""], state: ScrubState, batch: Batch) -> tuple[ScrubState, Info]:
        return state, {}

    def go_on(key: Key[Array, ""], trained: Trained) -> ScrubState:
        return trained.previous

    def divergence(params: Params, teacher: Params, examples: Examples) -> Float[Array, ""]:
        logits = (logits_fn(params, examples.x), logits_fn(teacher, examples.x))
        return distillation_divergence(*logits, examples.weights, temperature)

    def max_step(key: Key[Array, ""], state: ScrubState, batch: Batch) -> tuple[ScrubState, Info]:
        def objective(params: Params, forget: Examples) -> Float[Array, ""]:
            return jnp.negative(divergence(params, state.teacher, forget))

        before = TrainState(state.params, state.ascent_state)
        (params, ascent_state), info = training_step(objective, climb, before, batch.forget)
        return state._replace(params=params, ascent_state=ascent_state), info

    def min_step(key: Key[Array, ""], state: ScrubState, batch: Batch) -> tuple[ScrubState, Info]:
        def objective(params: Params, retain: Examples) -> Float[Array, ""]:
            logits = logits_fn(params, retain.x)  # once for both terms
            apart = distillation_divergence(
                logits, logits_fn(state.teacher, retain.x), retain.weights, temperature
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, retain.y)
            return distillation_weight * apart + loss_weight * _weighted_mean(losses, retain.weights)

        before = TrainState(state.params, state.descent_state)
        (params, descent_state), info = training_step(objective, fall, before, batch.retain)
        return state._replace(params=params, descent_state=descent_state), info

    def epoch(update: Any, spec: SgdSpec, size: int) -> Unlearner:
        num_updates = spec.num_updates(size) // spec.epochs
        return Unlearner(
            go_on, update, num_updates, spec.batch_size, continues=True, gradients_per_example=_COST
        )

    min_epoch = epoch(min_step, descent, num_retain)
    pairs = [epoch(max_step, ascent, num_forget), min_epoch] * ascent.epochs if ascent.epochs else []
    alone = [min_epoch] * (descent.epochs - 1 - ascent.epochs)
    return then(Unlearner(start, stay, 0, descent.batch_size), min_epoch, *pairs, *alone)


def _check(
    ascent: SgdSpec, descent: SgdSpec, distillation_weight: float, loss_weight: float, temperature: float
) -> None:
    if ascent.epochs >= descent.epochs:
        raise InputError(
            f"ascent.epochs must be less than descent.epochs, got {ascent.epochs} and {descent.epochs}"
        )
    for name, value in (("distillation_weight", distillation_weight), ("loss_weight", loss_weight)):
        if check_real(name, value) < 0:
            raise InputError(f"{name} must not be negative, got {value}")
    if distillation_weight == 0 and loss_weight == 0:
        raise InputError("distillation_weight and loss_weight must not both be 0")
    if check_real("temperature", temperature) <= 0:
        raise InputError(f"temperature must be positive, got {temperature}")


def _weighted_mean(values: Float[Array, " examples"], weights: Float[Array, " examples"]) -> Float[Array, ""]:
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1.0)
