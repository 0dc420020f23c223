"""Exact minimisers of convex losses on a ball, and the Newton step that unlearns."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from jaxaudit.checks import check_integer
from jaxaudit.convex.losses import Constants, Loss, Points, Weights
from jaxaudit.convex.placements import ForgetRequest
from jaxaudit.errors import InputError

_TOLERANCE = 1e-12
_MAX_STEPS = 100_000


def project(weights: Weights, radius: float) -> Weights:
    """Nearest weights of Euclidean norm at most ``radius``.

    Examples
    --------
    >>> project(np.array([0.0, 4.0]), 0.5).tolist()
    [0.0, 0.5]
    """
    norm = float(np.linalg.norm(weights))
    return weights if norm <= radius else weights * (radius / norm)


def minimise(loss: Loss, points: Points, radius: float = math.inf) -> Float[np.ndarray, " parameters"]:
    """The weights of norm at most ``radius`` with the smallest mean loss: projected Newton.

    A Newton step, projected, is taken where it makes the projected gradient smaller, otherwise a projected
    gradient step, which converges from anywhere.

    Parameters
    ----------
    loss
        Convex on the ball.
    points
        At least one.
    radius
        Positive; infinite for no constraint.

    Returns
    -------
    Weights whose projected gradient step is shorter than 1e-12 of their size (at least 1).

    Raises
    ------
    InputError
        A radius that is not positive, or a loss that is not strictly convex on the ball.

    Examples
    --------
    >>> from jaxaudit.convex.losses import SquaredLoss
    >>> points = Points(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]), np.array([3.0, 5.0, 7.0]))
    >>> minimise(SquaredLoss(), points).round(9).tolist()
    [2.0, 1.0]
    """
    if not radius > 0:
        raise InputError(f"radius must be positive, got {radius}")
    step = 1 / loss.constants(points, radius).smoothness

    def gradient_step(weights: Weights) -> Weights:
        return project(weights - step * loss.gradients(weights, points).mean(axis=0), radius)

    def residual(weights: Weights) -> float:
        return float(np.linalg.norm(gradient_step(weights) - weights))

    weights = np.zeros(points.features.shape[1])
    error = residual(weights)
    for _ in range(_MAX_STEPS):
        gradient = loss.gradients(weights, points).mean(axis=0)
        newton = project(weights - np.linalg.solve(loss.hessian(weights, points), gradient), radius)
        candidate = newton if residual(newton) < error else gradient_step(weights)
        # The residual of projected gradient steps never grows, but for rounding: then nothing is left to gain.
        if (candidate_error := residual(candidate)) >= error:
            break
        weights, error = candidate, candidate_error
    if error > _TOLERANCE * max(1.0, float(np.linalg.norm(weights))):
        raise InputError(f"points must determine the minimum; after {_MAX_STEPS} steps it moves by {error:g}")
    return weights


def newton_unlearn(loss: Loss, data: ForgetRequest, trained: Weights) -> Float[np.ndarray, " parameters"]:
    """Weights after one Newton step towards the retain data: equation (8) of Sekhari et al. (2021).

    w + H^-1 sum over forget points of gradient / (n - m), with H the mean Hessian of the n - m retain points
    at the minimiser w of all n. For `SquaredLoss` this is retraining.

    Parameters
    ----------
    loss
        The loss that was minimised.
    data
        Retain and forget points.
    trained
        Minimiser of the mean loss of all points.

    Examples
    --------
    >>> from jaxaudit.convex.losses import CubicLoss
    >>> from jaxaudit.convex.placements import cubic_points
    >>> loss, data = CubicLoss(0.2, 0.001), cubic_points(1000, 50, distance=10.0)
    >>> newton_unlearn(loss, data, minimise(loss, data.everything, radius=2.5)).round(7).tolist()
    [0.0145175]
    """
    pull = loss.gradients(trained, data.forget).sum(axis=0) / len(data.retain.labels)
    return trained + np.linalg.solve(loss.hessian(trained, data.retain), pull)


def newton_distance_bound(constants: Constants, num_records: int, num_forgotten: int) -> float:
    """gamma = 2 M m^2 L^2 / (mu^3 n^2): Lemma 3 of Sekhari et al. (2021).

    Never less than the distance of the Newton-unlearned from the retrained weights; the noise of the
    mechanism is calibrated to it.

    Parameters
    ----------
    constants
        mu, L and M of the loss.
    num_records, num_forgotten
        n (forgotten ones included) and m.

    Examples
    --------
    >>> round(newton_distance_bound(Constants(0.1975, 0.2025, 10.503125, 0.001), 1050, 50), 6)
    0.064942
    """
    check_integer("num_records", num_records, low=1)
    check_integer("num_forgotten", num_forgotten, low=0, high=num_records)
    share = num_forgotten / num_records
    return (
        2 * constants.hessian_lipschitz * (share * constants.lipschitz) ** 2 / constants.strong_convexity**3
    )


@dataclass(frozen=True)
class NewtonUnlearning:
    """Training, unlearning by a Newton step and retraining, before any noise."""

    trained: Weights
    """Minimiser on all points."""
    unlearned: Weights
    """After the Newton step."""
    retrained: Weights
    """Minimiser on the retain points; what unlearning nothing returns."""
    distance_bound: float
    """gamma of Lemma 3 (`newton_distance_bound`)."""
    is_interior: bool
    """Whether both minimisers lie inside the ball, without which Lemma 3 says nothing."""

    @property
    def ratio(self) -> float:
        """rho of H.3: actual over guaranteed distance; 1 if the lemma is tight on this problem."""
        return float(np.linalg.norm(self.unlearned - self.retrained)) / self.distance_bound


def unlearn_by_newton(loss: Loss, data: ForgetRequest, radius: float) -> NewtonUnlearning:
    """Train on everything, unlearn the forget points by a Newton step, and retrain for comparison.

    Parameters
    ----------
    loss
        Strictly convex on the ball.
    data
        Retain and forget points.
    radius
        Positive: the ball of weights on which the constants hold.

    Examples
    --------
    >>> from jaxaudit.convex.losses import CubicLoss
    >>> from jaxaudit.convex.placements import cubic_points
    >>> result = unlearn_by_newton(CubicLoss(0.2, 0.001), cubic_points(1000, 50, 10.0), radius=2.5)
    >>> round(result.ratio, 4), result.is_interior
    (0.2235, True)
    """
    everything = data.everything
    trained, retrained = (minimise(loss, points, radius) for points in (everything, data.retain))
    bound = newton_distance_bound(
        loss.constants(everything, radius), len(everything.labels), len(data.forget.labels)
    )
    largest = max(float(np.linalg.norm(weights)) for weights in (trained, retrained))
    return NewtonUnlearning(
        trained, newton_unlearn(loss, data, trained), retrained, bound, largest < (1 - 1e-9) * radius
    )
