"""Descent-to-Delete: gradient descent on the retain set, then noise (Neel, Roth, Sharifi-Malvajerdi 2021).

The basic perturbed gradient descent for strongly convex losses, for one batch of deletions: the noise-free iterate is
the state that is kept secret, and what is published is that iterate plus Gaussian noise. The audit sees only what is
published.

**Certificate.** Compared are unlearning (T steps on all n examples, then K on the retain set) and the same with nothing
to forget (T + K steps on the retain set), as in the paper, Definition H.1. The last K steps are the same map for both,
and each brings points together by ``c = 1 - learning_rate mu``, so before the noise the two are at most

    D = c^K * trained_distance(T)

apart, and the exact Gaussian mechanism gives sigma. This is the argument of Neel et al. (their Section 3) with three
constants made sharper: the distance after training is the smallest of three bounds (see `trained_distance`), it need
not be doubled for a converged reference, and the noise is that of Balle and Wang (2018) instead of a tail bound.
Conditions: every example's loss is mu-strongly convex, beta-smooth and L-Lipschitz in the ball; full batches;
``learning_rate <= 2 / (mu + beta)``; both trainings start at the same point. Single precision adds errors
of about 1e-7 radius / (1 - c); the recipe adds them to D.
"""

from dataclasses import dataclass

from jaxaudit.bound.gaussian import gaussian_sigma
from jaxaudit.checks import check_integer
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import LossFn
from jaxaudit.unlearn.base import Certificate, Recipe, Stages, then
from jaxaudit.unlearn.projected_descent import (
    DescentStep,
    contraction,
    largest_learning_rate,
    projected_descent,
    projected_descent_training,
    rounding_error,
    trained_distance,
)
from jaxaudit.unlearn.release_noise import release_noise


@dataclass(frozen=True)
class DescentToDeleteSpec:
    """Settings of Descent-to-Delete. The defaults suit softmax regression on the digits with l2 = 0.01."""

    epsilon: float = 1.0
    """To be certified, positive."""
    delta: float = 1e-5
    """In (0, 1)."""
    training_steps: int = 400
    """T: steps of gradient descent on all data."""
    unlearning_steps: int = 200
    """K: steps on the retain set; more steps need less noise."""
    batch_size: int | None = None
    """Examples whose gradients are computed at once. None: all."""


def descent_to_delete(
    loss_fn: LossFn,
    step: DescentStep,
    *,
    num_steps: int,
    num_retain: int,
    sigma: float,
    batch_size: int | None = None,
) -> Stages:
    """Noise-free projected descent on the retain set, then Gaussian noise on the result.

    Parameters
    ----------
    loss_fn, num_steps, num_retain, batch_size
        See `projected_descent`.
    step
        Learning rate and radius; its own sigma is the noise within the descent, normally 0.
    sigma
        Noise of the release, in units of the parameters.

    Examples
    --------
    >>> stages = descent_to_delete(max, DescentStep(0.5, 9.0), num_steps=7, num_retain=10, sigma=0.1).stages
    >>> [stage.num_updates for stage in stages]
    [7, 1]
    """
    descent = projected_descent(
        loss_fn, step, num_steps=num_steps, num_retain=num_retain, batch_size=batch_size
    )
    return then(descent, release_noise(sigma=sigma))


def descent_sensitivity(
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    *,
    learning_rate: float,
    training_steps: int,
    unlearning_steps: int,
) -> float:
    """D: how far unlearning and its reference are apart before the noise, at most.

    Parameters
    ----------
    constants
        Of the loss.
    num_retain, num_forget
        n - m and m.
    learning_rate
        Of both phases, at most 2 / (mu + beta).
    training_steps, unlearning_steps
        T and K.

    Raises
    ------
    InputError
        An argument is outside its range.

    Examples
    --------
    >>> constants = ConvexConstants(0.5, 1.5, 2.0, 3.0, 0.0, radius=9.0, dim=1)
    >>> descent_sensitivity(constants, 75, 25, learning_rate=1.0, training_steps=100, unlearning_steps=3)
    0.125
    """
    check_integer("unlearning_steps", unlearning_steps, low=0)
    start = trained_distance(
        constants, num_retain, num_forget, learning_rate=learning_rate, num_steps=training_steps
    )
    return start * contraction(constants, learning_rate) ** unlearning_steps


def descent_to_delete_recipe(
    loss_fn: LossFn,
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    spec: DescentToDeleteSpec | None = None,
) -> Recipe:
    """Descent-to-Delete with the noise that its certificate needs, and the training that it assumes.

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
    >>> recipe = descent_to_delete_recipe(ridge_cross_entropy(model.logits_fn, 0.01), constants, 998, 249)
    >>> recipe.certificate.epsilon, recipe.training.num_steps
    (1.0, 400)
    """
    spec = spec or DescentToDeleteSpec()
    step = DescentStep(largest_learning_rate(constants), constants.radius)
    distance = descent_sensitivity(
        constants,
        num_retain,
        num_forget,
        learning_rate=step.learning_rate,
        training_steps=spec.training_steps,
        unlearning_steps=spec.unlearning_steps,
    ) + rounding_error(constants, step.learning_rate)
    method = descent_to_delete(
        loss_fn,
        step,
        num_steps=spec.unlearning_steps,
        num_retain=num_retain,
        sigma=distance * gaussian_sigma(1.0, spec.epsilon, spec.delta),
        batch_size=spec.batch_size,
    )
    reason = (
        f"contraction of gradient descent (Neel et al. 2021): sensitivity {distance:.3g} after "
        f"{spec.unlearning_steps} full-batch steps, if training was {spec.training_steps} steps of the same descent"
    )
    training = projected_descent_training(
        loss_fn,
        step,
        num_steps=spec.training_steps,
        num_members=num_retain + num_forget,
        batch_size=spec.batch_size,
    )
    return Recipe(
        method,
        Certificate(spec.epsilon, spec.delta, reason),
        training,
        title="descent-to-delete",
        sizes=(num_retain, num_forget),
    )
