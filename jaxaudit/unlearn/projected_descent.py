"""Full-batch projected gradient descent, with or without noise, as an unlearner and as base training.

    w <- Pi(w - learning_rate * grad F(w) + sigma * N(0, I))

F is the mean loss of all examples of the set, Pi the projection on the ball of a radius around 0. One step takes
several updates if the batch is smaller than the set: gradients are added up in the state, and the last batch of a pass
moves the parameters.

If F is mu-strongly convex and beta-smooth, and ``learning_rate <= 2 / (mu + beta)``, one step without its noise brings
any two points together by the factor ``c = 1 - learning_rate * mu`` at least: the Hessian's eigenvalues lie in
[mu, beta], and Pi never moves points apart. All distances below follow from that.
"""

from dataclasses import dataclass
from functools import lru_cache, partial

from jaxtyping import Array, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import Info, Loop, LossFn, Params
from jaxaudit.unlearn.base import Batch, Trained, Unlearner
from jaxaudit.unlearn.full_batch import (
    FullBatchState,
    Move,
    descend,
    full_batch_loop,
    full_batch_update,
    num_passes,
    start_full_batch,
)
from jaxaudit.unlearn.vectors import add_gaussian_noise, project


@dataclass(frozen=True)
class DescentStep:
    """One step of projected gradient descent.

    Raises
    ------
    InputError
        If the learning rate or the radius is not positive, or the noise is negative.
    """

    learning_rate: float
    radius: float
    """Of the ball around 0 that the parameters are projected on."""
    sigma: float = 0.0
    """Standard deviation of the noise of one step, in units of the parameters; it is added before the projection."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "radius"):
            if not check_real(name, getattr(self, name)) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)}")
        if check_real("sigma", self.sigma) < 0:
            raise InputError(f"sigma must not be negative, got {self.sigma}")


def projected_descent(
    loss_fn: LossFn, step: DescentStep, *, num_steps: int, num_retain: int, batch_size: int | None = None
) -> Unlearner:
    """Projected gradient descent on the retain set, from the trained model.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``: a weighted mean over the examples, plus anything that depends on the
        parameters alone.
    step
        Learning rate, radius and noise.
    num_steps
        Steps on all retain examples.
    num_retain
        How many there are.
    batch_size
        Examples per update; it changes the memory that is needed, not the result. None: all of them.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxaudit.data import Examples
    >>> def loss(params, examples):
    ...     return jnp.sum(examples.weights * (params - examples.x) ** 2) / 2 / jnp.sum(examples.weights)
    >>> method = projected_descent(loss, DescentStep(0.5, radius=9.0), num_steps=2, num_retain=2, batch_size=1)
    >>> batches = [Examples(jnp.array([x]), jnp.zeros(1), jnp.ones(1)) for x in (1.0, 3.0)]
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(()), jnp.zeros(())))
    >>> for update in range(method.num_updates):
    ...     state, _ = method.update(jax.random.key(update), state, Batch(batches[update % 2], batches[0]))
    ...     print(state.params)
    0.0
    1.0
    1.0
    1.5
    """
    return _unlearner(loss_fn, step, num_steps, num_retain, _batch_size(batch_size, num_retain))


@lru_cache(
    maxsize=64
)  # equal settings are one object, however they were given, so that they are compiled once
def _unlearner(
    loss_fn: LossFn, step: DescentStep, num_steps: int, num_retain: int, batch_size: int
) -> Unlearner:
    batches = num_passes(num_steps, batch_size, num_retain=num_retain)
    accumulate = full_batch_update(loss_fn, _move(step), batches)

    def init(key: Key[Array, ""], trained: Trained) -> FullBatchState:
        return start_full_batch(trained.params)

    def update(key: Key[Array, ""], state: FullBatchState, batch: Batch) -> tuple[FullBatchState, Info]:
        return accumulate(key, state, batch.retain)

    def measure(state: FullBatchState) -> Info:
        return {"gradient_norm": state.gradient_norm}

    return Unlearner(init, update, num_steps * batches, batch_size, measure=measure)


def projected_descent_training(
    loss_fn: LossFn, step: DescentStep, *, num_steps: int, num_members: int, batch_size: int | None = None
) -> Loop:
    """Base training by the same descent, on all members of a run, from the projection of x0 on the ball.

    Parameters
    ----------
    loss_fn, step, num_steps, batch_size
        As in `projected_descent`.
    num_members
        Examples that each run trains on.

    Returns
    -------
    A loop from `TrainingRun` and `TrainingShared` to a `FullBatchState`; deterministic if there is no noise.

    Examples
    --------
    >>> loop = projected_descent_training(max, DescentStep(0.5, radius=9.0), num_steps=10, num_members=8, batch_size=3)
    >>> loop.num_steps, loop.deterministic
    (30, True)
    """
    return _training(loss_fn, step, num_steps, num_members, _batch_size(batch_size, num_members))


@lru_cache(maxsize=64)
def _training(loss_fn: LossFn, step: DescentStep, num_steps: int, num_members: int, batch_size: int) -> Loop:
    return full_batch_loop(
        loss_fn,
        _move(step),
        partial(project, radius=step.radius),
        num_steps=num_steps,
        num_members=num_members,
        micro_batch=batch_size,
        deterministic=step.sigma == 0,
    )


def largest_learning_rate(constants: ConvexConstants) -> float:
    """2 / (mu + beta): of all steps the one that is known to contract most.

    Examples
    --------
    >>> largest_learning_rate(ConvexConstants(0.5, 1.5, 1.0, 1.0, 0.0, radius=1.0, dim=1))
    1.0
    """
    return 2 / (constants.strong_convexity + constants.smoothness)


def contraction(constants: ConvexConstants, learning_rate: float) -> float:
    """c = 1 - learning_rate * mu, in [0, 1): by how much one step brings two points together.

    Parameters
    ----------
    constants
        Of the loss.
    learning_rate
        In (0, 2 / (mu + beta)].

    Raises
    ------
    InputError
        If the learning rate is outside its range.

    Examples
    --------
    >>> contraction(ConvexConstants(0.5, 1.5, 1.0, 1.0, 0.0, radius=1.0, dim=1), learning_rate=0.5)
    0.75
    """
    largest = largest_learning_rate(constants)
    if not 0 < check_real("learning_rate", learning_rate) <= largest * (1 + 1e-12):
        raise InputError(
            f"learning_rate must be in (0, 2 / (mu + beta) = {largest:.6g}], got {learning_rate}"
        )
    return max(1 - learning_rate * constants.strong_convexity, 0.0)


def minimiser_distance(constants: ConvexConstants, num_retain: int, num_forget: int) -> float:
    """Upper bound on the distance of the minimisers of all data and of the retain set.

        ||w - w_r|| <= m / (n mu) * min(L, spread),    at most 2 radius

    Parameters
    ----------
    constants
        Of the loss.
    num_retain, num_forget
        n - m and m.

    Notes
    -----
    By strong convexity of F (mean loss of all n) and the variational inequalities of both minimisers in the ball,
    ``mu ||w - w_r||^2 <= <grad F(w_r) - grad F_r(w_r), w_r - w>``. The difference of the gradients is m/n times
    (mean gradient of the forget examples - mean gradient of the retain examples), hence the spread; if the
    minimisers are inside the ball, the second mean is 0, hence L.

    Examples
    --------
    >>> minimiser_distance(ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=9.0, dim=1), 75, 25)
    1.0
    """
    share = forget_share(num_retain, num_forget)
    steepest = min(
        constants.gradient_spread, constants.lipschitz if constants.minimisers_inside else float("inf")
    )
    return min(share * steepest / constants.strong_convexity, 2 * constants.radius)


def training_error(constants: ConvexConstants, learning_rate: float, num_steps: int) -> float:
    """Upper bound on the distance to the minimiser after training: c^T 2 radius.

    Examples
    --------
    >>> training_error(ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=4.0, dim=1), 1.0, num_steps=3)
    1.0
    """
    check_integer("num_steps", num_steps, low=0)
    return 2 * constants.radius * contraction(constants, learning_rate) ** num_steps


def rounding_error(constants: ConvexConstants, learning_rate: float) -> float:
    """How far apart two descents to the same point may end in single precision: 1e-7 radius / (1 - c).

    Rounding adds about that share of the radius in every step, and every step shrinks what was added before.

    Examples
    --------
    >>> print(f"{rounding_error(ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=4.0, dim=1), 1.0):.0e}")
    8e-07
    """
    return 1e-7 * constants.radius / (1 - contraction(constants, learning_rate))


def trained_distance(
    constants: ConvexConstants, num_retain: int, num_forget: int, *, learning_rate: float, num_steps: int
) -> float:
    """Upper bound on the distance of the models trained on all data and on the retain set, by the same descent.

    The smallest of three: the diameter 2 radius; the distance of the minimisers plus twice the `training_error`; and
    what builds up from a common start, where every step adds at most ``learning_rate m/n spread``:
    ``learning_rate m/n spread (1 - c^T) / (1 - c)``. The last one also holds for equal noise in both trainings.

    Parameters
    ----------
    constants
        Of the loss.
    num_retain, num_forget
        n - m and m.
    learning_rate, num_steps
        Of training, T steps.

    Examples
    --------
    >>> two = ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=9.0, dim=1)
    >>> [trained_distance(two, 75, 25, learning_rate=1.0, num_steps=steps) for steps in (0, 1, 100)]
    [0.0, 0.75, 1.0]
    """
    near_minimisers = minimiser_distance(constants, num_retain, num_forget) + 2 * training_error(
        constants, learning_rate, num_steps
    )
    apart = drift(constants, num_retain, num_forget, learning_rate=learning_rate, num_steps=num_steps)
    return min(2 * constants.radius, near_minimisers, apart)


def drift(
    constants: ConvexConstants, num_retain: int, num_forget: int, *, learning_rate: float, num_steps: int
) -> float:
    """How far training on all data and on the retain set drift apart from a common start, equal noise or none.

    Examples
    --------
    >>> drift(ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=9.0, dim=1), 75, 25, learning_rate=1.0, num_steps=2)
    1.125
    """
    check_integer("num_steps", num_steps, low=0)
    factor = contraction(constants, learning_rate)
    # (1 - c^T) / (1 - c), where 1 - c = learning_rate * mu does not cancel.
    per_step = forget_share(num_retain, num_forget) * constants.gradient_spread
    return per_step * (1 - factor**num_steps) / constants.strong_convexity


def forget_share(num_retain: int, num_forget: int) -> float:
    """m / n, the share of the data that is forgotten.

    Examples
    --------
    >>> forget_share(75, 25)
    0.25
    """
    check_integer("num_retain", num_retain, low=1)
    check_integer("num_forget", num_forget, low=1)
    return num_forget / (num_retain + num_forget)


def _batch_size(batch_size: int | None, num_examples: int) -> int:
    return num_examples if batch_size is None else check_integer("batch_size", batch_size, low=1)


def _move(step: DescentStep) -> Move:
    plain = descend(step.learning_rate)

    def move(key: Key[Array, ""], params: Params, gradient: Params) -> Params:
        moved = plain(key, params, gradient)
        if step.sigma > 0:
            moved = add_gaussian_noise(key, moved, step.sigma)
        return project(moved, step.radius)

    return move
