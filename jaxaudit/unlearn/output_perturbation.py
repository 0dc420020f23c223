"""Output perturbation: project the trained model on a ball, then add noise (the paper, Appendix I.1).

    w_u = Pi_C0(w) + N(0, sigma^2 I)

**Certificate.** Any two trained models are at most 2 C0 apart after the projection, so sigma from the exact Gaussian
mechanism at that sensitivity certifies (epsilon, delta) whatever the training was. For a strongly convex loss trained
to its minimiser, `minimiser_distance` is another sensitivity, of order m/n; it is smaller for small forget sets.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import optax
from jaxtyping import Array, Key

from jaxaudit.bound.gaussian import gaussian_sigma
from jaxaudit.checks import check_real
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import Info, LossFn, Params
from jaxaudit.unlearn.base import Batch, Certificate, Recipe, Stages, Trained, Unlearner, then
from jaxaudit.unlearn.projected_descent import (
    DescentStep,
    largest_learning_rate,
    projected_descent_training,
    trained_distance,
)
from jaxaudit.unlearn.release_noise import release_noise
from jaxaudit.unlearn.vectors import project


class _Projected(NamedTuple):
    params: Params


@dataclass(frozen=True)
class OutputPerturbationSpec:
    """Settings of output perturbation.

    The noise is spread over all parameters, so small epsilon leaves nothing: softmax regression on the digits with
    l2 = 0.01 is down to guessing at epsilon = 10 with a fifth of the examples to forget, and keeps an accuracy of about
    0.7 (of 0.9) with 6 of 1,004.
    """

    epsilon: float = 1.0
    """To be certified, positive."""
    delta: float = 1e-5
    """In (0, 1)."""
    radius: float | None = None
    """C0, of the ball that the model is projected on. None: that of the problem's constants. A smaller one needs less
    noise in proportion, but shrinks the model as much."""
    sensitivity: float | None = None
    """Largest distance of the projected models. None: the smaller of 2 C0 and, for the training below,
    `trained_distance`. Any other number is an assumption of yours, and the certificate says so."""
    training_steps: int = 400
    """Steps of gradient descent on all data."""


@lru_cache(maxsize=64)
def project_params(*, radius: float) -> Unlearner:
    """Project the parameters, taken as one vector, on the L2 ball around 0. Never looks at its batch.

    Parameters
    ----------
    radius
        C0 > 0.

    Raises
    ------
    InputError
        If the radius is not positive and finite.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> method = project_params(radius=1.0)
    >>> state = method.init(jax.random.key(0), Trained(jnp.array([3.0, 4.0]), None))
    >>> print(method.update(jax.random.key(1), state, batch=None)[0].params)
    [0.6 0.8]
    """
    if not check_real("radius", radius) > 0:
        raise InputError(f"radius must be positive, got {radius}")

    def init(key: Key[Array, ""], trained: Trained) -> _Projected:
        return _Projected(trained.params)

    def update(key: Key[Array, ""], state: _Projected, batch: Batch) -> tuple[_Projected, Info]:
        return _Projected(project(state.params, radius)), {"norm": optax.tree.norm(state.params)}

    return Unlearner(init, update, num_updates=1, gradients_per_example=0.0)


def output_perturbation(*, radius: float, sigma: float) -> Stages:
    """Project on the ball, then add Gaussian noise to every parameter.

    Parameters
    ----------
    radius
        C0 > 0.
    sigma
        Standard deviation of the noise, not negative, in units of the parameters.

    Examples
    --------
    >>> len(output_perturbation(radius=1.0, sigma=0.1).stages)
    2
    """
    return then(project_params(radius=radius), release_noise(sigma=sigma))


def output_perturbation_recipe(
    loss_fn: LossFn,
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    spec: OutputPerturbationSpec | None = None,
) -> Recipe:
    """Output perturbation with the noise that its certificate needs, behind full-batch gradient descent.

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
    >>> model, constants = softmax_regression((64,), 10, l2=0.01)
    >>> loss = ridge_cross_entropy(model.logits_fn, 0.01)
    >>> output_perturbation_recipe(loss, constants, 998, 249).certificate.reason
    'Gaussian mechanism at sensitivity 30.3: the diameter of the ball, whatever the training was'
    """
    spec = spec or OutputPerturbationSpec()
    radius = constants.radius if spec.radius is None else spec.radius
    projection = project_params(radius=radius)
    rate = largest_learning_rate(constants)
    proved = min(
        2 * radius,
        trained_distance(
            constants, num_retain, num_forget, learning_rate=rate, num_steps=spec.training_steps
        ),
    )
    distance = proved if spec.sensitivity is None else spec.sensitivity
    if spec.sensitivity is not None and not 0 < spec.sensitivity < math.inf:
        raise InputError(f"sensitivity must be positive and finite, got {spec.sensitivity}")
    noise = release_noise(sigma=distance * gaussian_sigma(1.0, spec.epsilon, spec.delta))
    training = projected_descent_training(
        loss_fn,
        DescentStep(rate, constants.radius),
        num_steps=spec.training_steps,
        num_members=num_retain + num_forget,
    )
    return Recipe(
        then(projection, noise),
        _certificate(spec, distance, proved, radius),
        training,
        title="output perturbation",
        sizes=(num_retain, num_forget),
    )


def _certificate(spec: OutputPerturbationSpec, distance: float, proved: float, radius: float) -> Certificate:
    mechanism = f"Gaussian mechanism at sensitivity {distance:.3g}"
    if distance < proved:
        return Certificate.none(
            f"nominally ({spec.epsilon:g}, {spec.delta:g}), {mechanism}: an assumption, smaller than the "
            f"{proved:.3g} that is proved"
        )
    condition = "if training was full-batch gradient descent on the strongly convex loss"
    if distance >= 2 * radius:
        condition = "the diameter of the ball, whatever the training was"
    return Certificate(spec.epsilon, spec.delta, f"{mechanism}: {condition}")
