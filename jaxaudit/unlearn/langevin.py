"""Langevin unlearning: training by noisy gradient descent, and unlearning by more of it on the retain set.

Chien, Wang, Chen and Li (2024), "Langevin unlearning"; Chourasia and Shah (2023), "Forget unlearning". Every step is

    w <- Pi(w - learning_rate * grad F(w) + sigma * N(0, I))

with full batches and Pi the projection on a ball; Chien et al. write ``sigma = sqrt(2 learning_rate) sigma_L``. The
last iterate is released as it is. T steps are done on all n examples, then K on the retain set; the reference is the
same with nothing to forget: T + K steps on the retain set (the paper, Definition H.1).

**Certificate.** Instead of the log-Sobolev argument of Chien et al., a bound by shifted divergences (Feldman et al.
2018, privacy amplification by iteration) in the exact form of Bok, Su and Altschuler (2024, "Shifted interpolation for
differential privacy"): the two outputs are as indistinguishable as two Gaussians of deviation sigma with means

    D = c^K z sqrt((1 - c^2) / (1 - c^(2 N)))

apart, where ``c = 1 - learning_rate mu``, ``z`` bounds how far apart the two processes are when unlearning begins, and
N is the number of steps that hide the shift. Two choices are valid, and the smaller D is taken:

* N = K and z = min(2 radius, drift(T)): only unlearning hides;
* N = T + K and z = drift(T) = learning_rate m/n spread (1 - c^T) / (1 - c): training hides as well.

Proof. Let X_t and Y_t be unlearning and its reference, driven by maps f_t and g_t (a gradient step each) that bring
points together by c, with ``||f_t(x) - g_t(x)|| <= s_t`` (learning_rate m/n spread in training, 0 afterwards). Start
at a step where some coupling has ``||X - Y|| <= z_0``. Define V = Y there, and onwards
``V' = Pi(g(V) + shift + noise)`` with the noise of X, where the shift moves g(V) by a_t towards f(X). Then
``||X - V||`` obeys ``z_t = c z_(t-1) + s_t - a_t``; if the a_t >= 0 make z_t = 0 at the last step and never negative
before, then V = X there. Y and V differ only by shifts of length at most a_t before each Gaussian noise, so by
composition of Gaussian mechanisms (joint convexity covers that the shift is random given V) and post-processing by Pi
and g they are as indistinguishable as Gaussians ``sqrt(sum a_t^2)`` apart. All shifts together must take up
``sum c^(last - t) a_t = S``, what is left at the end without any; Cauchy-Schwarz gives ``a_t`` proportional to
``c^(last - t)`` and ``S sqrt((1 - c^2) / (1 - c^(2 N)))``, with S = c^K z in both cases. In the first case z_t falls
from z to 0. In the second, with u = c^(last - t) and v = c^(T + K), ``u z_t`` in training is (u - v) times a factor
that is positive because ``c^(2 K) (1 - c^(2 T)) <= 1 - c^(2 (T + K))``; afterwards z_t falls to 0. QED

For quadratic losses with the largest spread the bound is attained. In Renyi form it reads
``divergence of order a <= a D^2 / (2 sigma^2)``, which is what the shifted-divergence papers print; converted to
(epsilon, delta) at the best order it claims a larger epsilon than the exact Gaussian form used here.
Conditions: every example's loss is mu-strongly convex and beta-smooth in the ball; full batches;
``learning_rate <= 2 / (mu + beta)``; both processes start at the same point; fresh noise in every step.
"""

import math
from dataclasses import dataclass

from jaxaudit.bound.gaussian import gaussian_sigma
from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError
from jaxaudit.models.softmax_regression import ConvexConstants
from jaxaudit.train import LossFn
from jaxaudit.unlearn.base import Certificate, Recipe
from jaxaudit.unlearn.projected_descent import (
    DescentStep,
    contraction,
    drift,
    largest_learning_rate,
    projected_descent,
    projected_descent_training,
    rounding_error,
)


@dataclass(frozen=True)
class LangevinSpec:
    """Settings of Langevin unlearning. The defaults suit softmax regression on the digits with l2 = 0.01."""

    epsilon: float = 1.0
    """To be certified, positive."""
    delta: float = 1e-5
    """In (0, 1)."""
    training_steps: int = 400
    """T: noisy steps on all data."""
    unlearning_steps: int = 200
    """K: noisy steps on the retain set; more steps need less noise. 0 leaves the privacy of training."""
    batch_size: int | None = None
    """Examples whose gradients are computed at once. None: all."""


def langevin_sensitivity(
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    *,
    learning_rate: float,
    training_steps: int,
    unlearning_steps: int,
) -> float:
    """D: the outputs are as indistinguishable as Gaussians this far apart, with the noise of a single step.

    ``gaussian_epsilon(D, sigma, delta)`` of `jaxaudit.bound` is the certified epsilon.

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

    Notes
    -----
    See the module's docstring for the formula and its proof.

    Examples
    --------
    >>> constants = ConvexConstants(0.5, 1.5, 2.0, 4.0, 0.0, radius=9.0, dim=1)
    >>> steps = {"learning_rate": 1.0, "training_steps": 100}
    >>> [round(langevin_sensitivity(constants, 75, 25, **steps, unlearning_steps=k), 4) for k in (0, 1, 5)]
    [1.7321, 0.866, 0.0541]
    """
    check_integer("training_steps", training_steps, low=0)
    check_integer("unlearning_steps", unlearning_steps, low=0)
    if training_steps + unlearning_steps == 0:
        raise InputError("training_steps + unlearning_steps must be at least 1, got 0")
    factor = contraction(constants, learning_rate)
    apart = drift(constants, num_retain, num_forget, learning_rate=learning_rate, num_steps=training_steps)
    candidates = [_smoothed(apart, factor, training_steps + unlearning_steps)]
    if unlearning_steps:
        candidates.append(_smoothed(min(apart, 2 * constants.radius), factor, unlearning_steps))
    return float(factor**unlearning_steps * min(candidates))


def _smoothed(distance: float, factor: float, num_steps: int) -> float:
    """distance * sqrt((1 - c^2) / (1 - c^(2 N))), without cancellation where c^(2 N) is near 1."""
    if factor == 0:
        return distance
    log_factor = 2 * math.log(factor)
    return distance * math.sqrt(math.expm1(log_factor) / math.expm1(num_steps * log_factor))


def langevin_recipe(
    loss_fn: LossFn,
    constants: ConvexConstants,
    num_retain: int,
    num_forget: int,
    spec: LangevinSpec | None = None,
) -> Recipe:
    """Langevin unlearning with the noise that its certificate needs, and the noisy training that belongs to it.

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
    >>> recipe = langevin_recipe(ridge_cross_entropy(model.logits_fn, 0.01), constants, 998, 249)
    >>> recipe.certificate.epsilon, recipe.training.deterministic
    (1.0, False)
    """
    spec = spec or LangevinSpec()
    rate = largest_learning_rate(constants)
    distance = langevin_sensitivity(
        constants,
        num_retain,
        num_forget,
        learning_rate=rate,
        training_steps=spec.training_steps,
        unlearning_steps=spec.unlearning_steps,
    )
    sigma = distance * gaussian_sigma(1.0, spec.epsilon, spec.delta)
    step = DescentStep(rate, constants.radius, sigma)
    method = projected_descent(
        loss_fn, step, num_steps=spec.unlearning_steps, num_retain=num_retain, batch_size=spec.batch_size
    )
    training = projected_descent_training(
        loss_fn,
        step,
        num_steps=spec.training_steps,
        num_members=num_retain + num_forget,
        batch_size=spec.batch_size,
    )
    reason = (
        f"shifted divergences: noise {sigma:.3g} in each of {spec.training_steps} training and "
        f"{spec.unlearning_steps} unlearning steps hides a difference of {distance:.3g}"
    )
    certificate = Certificate(spec.epsilon, spec.delta, reason)
    least = 10 * rounding_error(constants, rate)
    if sigma < least:
        certificate = Certificate.none(
            f"noise {sigma:.1g} is too small beside the rounding of single precision; at least {least:.1g} is asked for"
        )
    return Recipe(method, certificate, training, title="Langevin unlearning", sizes=(num_retain, num_forget))
