"""From terms to an unlearner: gradient steps on the forget term plus a multiple of the retain term."""

import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.errors import InputError
from jaxaudit.train import Info, Params
from jaxaudit.unlearn.base import Batch, Trained, Unlearner
from jaxaudit.unlearn.preference.terms import Context, Term, term_sum, term_weight

Reference = Literal["fine-tuned", "base", "given"]
"""The model before unlearning, or the starting point of training: a pretrained model that never saw the data. Or what a
loss needs of it was computed beforehand: then it is no part of the state."""
REFERENCES: tuple[Reference, ...] = ("fine-tuned", "base", "given")


class PreferenceState(NamedTuple):
    """The parameters, what stays fixed beside them, and the optimiser's state."""

    params: Params
    context: Context
    optimizer_state: Any


class Objective(NamedTuple):
    """A loss: a term on the forget part, and a weighted one on the retain part."""

    forget: Term
    retain: Term
    retain_weight: float
    """0: the retain part is not looked at."""


class Steps(NamedTuple):
    """How the loss is minimised: the arguments that all methods share."""

    optimizer: optax.GradientTransformation
    num_updates: int
    batch_size: int
    micro_batches: int


def objective_unlearner(
    objective: Objective,
    steps: Steps,
    *,
    reference: Reference | None = None,
    num_features: int | None = None,
) -> Unlearner:
    """Minimise ``forget term + retain_weight * retain term``, from the trained parameters on.

    Parameters
    ----------
    objective
        The loss.
    steps
        Optimiser, number of updates, examples of each kind per update, and the pieces in which a batch is worked off.
    reference
        The model that the terms compare with, kept in the state; ``None``: they need none.
    num_features
        Length of a random unit vector that the terms need; its entries, before scaling, are uniform on [0, 1).

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    _check(objective, steps, reference)

    def init(key: Key[Array, ""], trained: Trained) -> PreferenceState:
        compared = {"fine-tuned": trained.params, "base": trained.initial_params}.get(reference or "")
        context = Context(compared, None if num_features is None else _random_direction(key, num_features))
        return PreferenceState(trained.params, context, steps.optimizer.init(trained.params))

    def update(key: Key[Array, ""], state: PreferenceState, batch: Batch) -> tuple[PreferenceState, Info]:
        loss, gradient = _loss_and_gradient(objective, steps.micro_batches, state, batch)
        updates, optimizer_state = steps.optimizer.update(gradient, state.optimizer_state, state.params)
        info = {"loss": loss, "gradient_norm": optax.tree.norm(gradient)}
        params = optax.apply_updates(state.params, updates)
        return PreferenceState(params, state.context, optimizer_state), info

    cost = objective.forget.cost + (objective.retain.cost if objective.retain_weight else 0.0)
    return Unlearner(init, update, steps.num_updates, steps.batch_size, gradients_per_example=cost)


def _loss_and_gradient(
    objective: Objective, micro_batches: int, state: PreferenceState, batch: Batch
) -> tuple[Float[Array, ""], Params]:
    """Of the whole batch, put together from its pieces: each is divided by the weight of the whole batch."""
    terms = {"forget": (objective.forget, 1.0)}
    if objective.retain_weight:
        terms["retain"] = (objective.retain, objective.retain_weight)
    factors = {part: scale / term_weight(term, getattr(batch, part)) for part, (term, scale) in terms.items()}

    def share(params: Params, piece: Batch) -> Float[Array, ""]:
        return sum(
            (
                factors[part] * term_sum(term, params, state.context, getattr(piece, part))
                for part, (term, _) in terms.items()
            ),
            jnp.zeros(()),
        )

    # A Python loop: a convolution inside a compiled one would be slow.
    pieces = [jax.value_and_grad(share)(state.params, piece) for piece in _split(batch, micro_batches)]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *pieces)


def _split(batch: Batch, micro_batches: int) -> list[Batch]:
    def piece(index: int) -> Batch:
        return jax.tree.map(lambda leaf: jnp.split(leaf, micro_batches)[index], batch)

    return [batch] if micro_batches == 1 else [piece(index) for index in range(micro_batches)]


def _random_direction(key: Key[Array, ""], num_features: int) -> Float[Array, " features"]:
    entries = jax.random.uniform(key, (num_features,))
    return entries / jnp.linalg.norm(entries)


def _check(objective: Objective, steps: Steps, reference: str | None) -> None:
    check_integer("num_updates", steps.num_updates, low=0)
    check_integer("batch_size", steps.batch_size, low=1)
    check_integer("micro_batches", steps.micro_batches, low=1)
    if steps.batch_size % steps.micro_batches:
        raise InputError(
            f"micro_batches must divide batch_size = {steps.batch_size}, got {steps.micro_batches}"
        )
    if check_real("retain_weight", objective.retain_weight) < 0:
        raise InputError(f"retain_weight must not be negative, got {objective.retain_weight}")
    if reference is not None:
        check_choice("reference", reference, REFERENCES)


def check_positive(name: str, value: float) -> float:
    """A finite number above 0.

    Examples
    --------
    >>> check_positive("beta", 0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: beta must be positive, got 0
    """
    if not 0 < check_real(name, value) < math.inf:
        raise InputError(f"{name} must be positive, got {value}")
    return value
