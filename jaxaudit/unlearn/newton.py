"""Perturbed Newton: one Newton step that removes the forget examples, then noise (Sekhari et al. 2021, Algorithm 1).

    w_u = w + H^(-1) sum_(forget) grad l_i(w) / (n - m) + N(0, sigma^2 I)

where w minimises the mean loss of all n examples, m are forgotten, and H is the mean Hessian of the retain examples at
w. Were w the exact minimiser, the sum would be -(n - m) grad F_r(w), and this is Newton's step for the retain set.

**Certificate.** Compared are unlearning and the same with nothing to forget, which is the retain minimiser w_r plus
noise (the paper, Definition H.1). If every example's loss is mu-strongly convex, L-Lipschitz and its Hessian
M-Lipschitz, then before the noise

    ||w_u - w_r|| <= gamma = 2 M m^2 L^2 / (mu^3 n^2)          (Sekhari et al. 2021, Lemma 3; the paper, H.3)

and the exact Gaussian mechanism at gamma gives sigma. A Newton step from w ends within ``M / (2 mu) ||w - w_r||^2`` of
w_r, and ``||w - w_r|| <= m L / (mu n)``, which proves a quarter of that gamma; ``bound="sharp"`` takes it.

Training that stops early leaves ``||grad F(w)|| <= tau``, and the reference stops as early. Then

    ||w - w_full|| <= tau / mu,    ||w_u - (exact Newton step from w)|| <= n tau / ((n - m) mu),
    ||reference - w_r|| <= tau / mu,

so that the distance is at most ``M / (2 mu) (D + tau / mu)^2 + n tau / ((n - m) mu) + tau / mu`` with the distance D
of the minimisers; the excess over tau = 0 is added to gamma. T steps of gradient descent prove ``tau <= beta c^T 2
radius``; what a run really had is measured as ``gradient_norm``.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from jaxaudit.bound.gaussian import gaussian_sigma
from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import Info, LossFn, Params, num_batches
from jaxaudit.unlearn.base import Batch, Certificate, Recipe, Stages, Trained, Unlearner, then
from jaxaudit.unlearn.projected_descent import (
    DescentStep,
    forget_share,
    largest_learning_rate,
    minimiser_distance,
    projected_descent_training,
    rounding_error,
    training_error,
)
from jaxaudit.unlearn.release_noise import release_noise

NewtonBound = Literal["sekhari", "sharp"]


class NewtonState(NamedTuple):
    """Sums over the examples seen so far, all at the trained parameters."""

    params: Params
    retain_hessian: Float[Array, "dim dim"]
    retain_gradient: Float[Array, " dim"]
    num_retain: Float[Array, ""]
    forget_gradient: Float[Array, " dim"]
    num_forget: Float[Array, ""]
    step: Float[Array, " dim"]
    """The Newton step, 0 until it is done."""


@dataclass(frozen=True)
class NewtonSpec:
    """Settings of perturbed Newton.

    gamma grows as (m/n)^2 / mu^3, so useful models need few examples to forget and a large l2: softmax regression on
    the digits at epsilon = 1 keeps an accuracy of about 0.7 (of 0.8) with 6 of 1,004 examples to forget and l2 = 0.3,
    but is down to guessing with a fifth of the examples.
    """

    epsilon: float = 1.0
    """To be certified, positive."""
    delta: float = 1e-5
    """In (0, 1)."""
    bound: NewtonBound = "sekhari"
    """Sensitivity: as Sekhari et al. print it, or ``sharp``, at most a quarter of that."""
    training_steps: int = 400
    """Steps of gradient descent on all data; those that are missing for exact convergence are paid for in noise."""
    batch_size: int = 64
    """Examples whose Hessian is computed at once; limits the memory, changes nothing else."""


def newton_step(loss_fn: LossFn, *, num_retain: int, num_forget: int, batch_size: int = 64) -> Stages:
    """The noise-free Newton step: Hessian of the retain set, gradient of the forget set, solve.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``: a weighted mean over the examples, plus anything that depends on the
        parameters alone. It must be strongly convex; where the Hessian is not positive definite the result is NaN,
        and the run counts as failed.
    num_retain, num_forget
        Number of retain and forget examples that are fed.
    batch_size
        Examples per update.

    Returns
    -------
    Three stages, each of which continues the one before. The state holds a matrix of (number of parameters)^2.

    Examples
    --------
    >>> [stage.num_updates for stage in newton_step(max, num_retain=130, num_forget=30).stages]
    [3, 1, 1]
    """
    check_integer("batch_size", batch_size, low=1)
    retain = num_batches(check_integer("num_retain", num_retain, low=1), batch_size)
    forget = num_batches(check_integer("num_forget", num_forget, low=1), batch_size)
    return _newton_stages(loss_fn, retain, forget, batch_size)


@lru_cache(maxsize=16)
def _newton_stages(loss_fn: LossFn, retain_updates: int, forget_updates: int, batch_size: int) -> Stages:
    def init(key: Key[Array, ""], trained: Trained) -> NewtonState:
        flat, _ = ravel_pytree(trained.params)
        zeros, none = jnp.zeros_like(flat), jnp.zeros((), flat.dtype)
        hessian = jnp.zeros((flat.size, flat.size), flat.dtype)
        return NewtonState(trained.params, hessian, zeros, none, zeros, none, zeros)

    def add_retain(key: Key[Array, ""], state: NewtonState, batch: Batch) -> tuple[NewtonState, Info]:
        weight = jnp.sum(batch.retain.weights)
        hessian = weight * _flat_hessian(loss_fn, state.params, batch.retain)
        gradient = weight * _flat_gradient(loss_fn, state.params, batch.retain)
        following = state._replace(
            retain_hessian=state.retain_hessian + hessian,
            retain_gradient=state.retain_gradient + gradient,
            num_retain=state.num_retain + weight,
        )
        return following, {}

    def add_forget(key: Key[Array, ""], state: NewtonState, batch: Batch) -> tuple[NewtonState, Info]:
        weight = jnp.sum(batch.forget.weights)
        gradient = weight * _flat_gradient(loss_fn, state.params, batch.forget)
        following = state._replace(
            forget_gradient=state.forget_gradient + gradient, num_forget=state.num_forget + weight
        )
        return following, {}

    hessian = Unlearner(init, add_retain, retain_updates, batch_size, gradients_per_example=2.0)
    gradient = Unlearner(_continue, add_forget, forget_updates, batch_size, continues=True)
    solve = Unlearner(
        _continue, _solve, 1, batch_size, continues=True, gradients_per_example=0.0, measure=_measure
    )
    return then(hessian, gradient, solve)


def _continue(key: Key[Array, ""], trained: Trained) -> NewtonState:
    return trained.previous


def _solve(key: Key[Array, ""], state: NewtonState, batch: Batch) -> tuple[NewtonState, Info]:
    """The mean Hessian and sum / (n - m) share their divisor, so sums are enough."""
    flat, unravel = ravel_pytree(state.params)
    hessian = (state.retain_hessian + state.retain_hessian.T) / 2
    step = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(hessian), state.forget_gradient)
    return state._replace(params=unravel(flat + step), step=step), {"step_norm": jnp.linalg.norm(step)}


def _measure(state: NewtonState) -> Info:
    """The residual gradient of training, tau, and the length of the step."""
    residual = (state.retain_gradient + state.forget_gradient) / (state.num_retain + state.num_forget)
    return {"gradient_norm": jnp.linalg.norm(residual), "step_norm": jnp.linalg.norm(state.step)}


def _flat_gradient(loss_fn: LossFn, params: Params, examples: Examples) -> Float[Array, " dim"]:
    return ravel_pytree(jax.grad(loss_fn)(params, examples))[0]


def _flat_hessian(loss_fn: LossFn, params: Params, examples: Examples) -> Float[Array, "dim dim"]:
    flat, unravel = ravel_pytree(params)
    return jax.hessian(lambda vector: loss_fn(unravel(vector), examples))(flat)


def newton_sensitivity(
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    *,
    residual: float = 0.0,
    bound: NewtonBound = "sekhari",
) -> float:
    """Upper bound on the distance of the Newton step's end and the model trained on the retain set alone.

    Parameters
    ----------
    constants
        Of the loss.
    num_retain, num_forget
        n - m and m.
    residual
        tau >= 0: largest gradient norm that training leaves, of its own mean loss.
    bound
        ``"sekhari"``: gamma as printed; ``"sharp"``: the bound that is proved in the module's docstring. Both with
        the excess that the residual causes.

    Raises
    ------
    InputError
        An argument is outside its range, or the ball of the constants may not hold the minimisers.

    Examples
    --------
    >>> cubic = ConvexConstants(0.1975, 0.2025, 10.503125, 10.0, 0.001, radius=2.5, dim=1)
    >>> print(f"{newton_sensitivity(cubic, 1000, 50):.6f}")
    0.064942
    """
    check_choice("bound", bound, ["sekhari", "sharp"])
    if check_real("residual", residual) < 0:
        raise InputError(f"residual must not be negative, got {residual}")
    if not constants.minimisers_inside:
        raise InputError(
            f"radius must be large enough to hold every minimiser for a Newton step, got {constants.radius}"
        )
    share, mu = forget_share(num_retain, num_forget), constants.strong_convexity
    curvature = constants.hessian_lipschitz / (2 * mu)
    apart, error = minimiser_distance(constants, num_retain, num_forget), residual / mu
    excess = curvature * error * (2 * apart + error) + error / (1 - share) + error
    if bound == "sharp":
        return curvature * apart**2 + excess
    return 2 * constants.hessian_lipschitz * (share * constants.lipschitz) ** 2 / mu**3 + excess


def newton_recipe(
    loss_fn: LossFn,
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    spec: NewtonSpec | None = None,
) -> Recipe:
    """Perturbed Newton with the noise that its certificate needs, and the training that it assumes.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, the loss that the constants are of.
    constants
        Of the loss.
    num_retain, num_forget
        n - m and m.
    spec
        Settings.

    Examples
    --------
    >>> from jaxaudit.models.softmax_regression import ridge_cross_entropy, softmax_regression
    >>> model, constants = softmax_regression((64,), 10, l2=1.0)
    >>> recipe = newton_recipe(ridge_cross_entropy(model.logits_fn, 1.0), constants, 998, 249)
    >>> len(recipe.method.stages), recipe.certificate.certified
    (4, True)
    """
    spec = spec or NewtonSpec()
    rate = largest_learning_rate(constants)
    error = training_error(constants, rate, spec.training_steps) + rounding_error(constants, rate)
    residual = constants.smoothness * error
    distance = newton_sensitivity(constants, num_retain, num_forget, residual=residual, bound=spec.bound)
    step = newton_step(loss_fn, num_retain=num_retain, num_forget=num_forget, batch_size=spec.batch_size)
    noise = release_noise(sigma=distance * gaussian_sigma(1.0, spec.epsilon, spec.delta))
    reason = (
        f"Newton step (Sekhari et al. 2021, Lemma 3; {spec.bound} bound): sensitivity {distance:.3g}, if training was "
        f"{spec.training_steps} full-batch steps of gradient descent, which leave a gradient of at most {residual:.1g}"
    )
    training = projected_descent_training(
        loss_fn,
        DescentStep(rate, constants.radius),
        num_steps=spec.training_steps,
        num_members=num_retain + num_forget,
    )
    return Recipe(
        then(step, noise),
        Certificate(spec.epsilon, spec.delta, reason),
        training,
        title="perturbed Newton",
        sizes=(num_retain, num_forget),
    )
