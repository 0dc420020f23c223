"""Convex losses of Appendices H and I of the paper, with the constants that certificates are made of.

A loss is a few methods on weights and points; every gradient and Hessian is exact. NumPy, float64.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from jaxaudit.checks import check_positive
from jaxaudit.errors import InputError

Weights = Float[np.ndarray, " parameters"]
# The largest slope of the curvature of log(1 + e^-t), at t = log(2 + sqrt 3).
_LARGEST_THIRD_DERIVATIVE = 1 / (6 * math.sqrt(3))


class Points(NamedTuple):
    """Records: one row of features and one label each."""

    features: Float[np.ndarray, "records parameters"]
    labels: Float[np.ndarray, " records"]


class Constants(NamedTuple):
    """What a loss satisfies for each of the points it was asked about, on a ball of weights."""

    strong_convexity: float
    """mu > 0: smallest curvature (for `SquaredLoss` of the mean loss, as that of one point is 0)."""
    smoothness: float
    """Largest curvature."""
    lipschitz: float
    """L: largest norm of a gradient; infinite on an unbounded set."""
    hessian_lipschitz: float
    """M: largest change of the Hessian (operator norm) per unit of weight."""


class Loss(Protocol):
    """A convex loss, twice differentiable, on weights of any dimension."""

    def values(self, weights: Weights, points: Points) -> Float[np.ndarray, " records"]:
        """Loss of each point."""

    def gradients(self, weights: Weights, points: Points) -> Float[np.ndarray, "records parameters"]:
        """Gradient of the loss of each point."""

    def hessian(self, weights: Weights, points: Points) -> Float[np.ndarray, "parameters parameters"]:
        """Hessian of the mean loss."""

    def constants(self, points: Points, radius: float) -> Constants:
        """Constants on the ball of norm at most ``radius`` (may be infinite)."""


@dataclass(frozen=True)
class CubicLoss:
    """lambda/2 |w|^2 + M/6 sum_i w_i^3 - z.w with the point z; equation (18) of the paper.

    Convex only where every w_i > -lambda/M, hence used on a ball; labels play no part.

    Parameters
    ----------
    regularisation
        The paper's lambda_0, positive.
    cubic
        The paper's M, positive.

    Examples
    --------
    >>> loss = CubicLoss(regularisation=0.2, cubic=0.001)
    >>> loss.constants(Points(np.array([[-10.0]]), np.zeros(1)), radius=2.5).lipschitz
    10.503125
    """

    regularisation: float
    cubic: float

    def __post_init__(self) -> None:
        """Check the two numbers."""
        check_positive(regularisation=self.regularisation, cubic=self.cubic)

    def values(self, weights: Weights, points: Points) -> Float[np.ndarray, " records"]:
        """See `Loss`."""
        own = self.regularisation / 2 * (weights**2).sum() + self.cubic / 6 * (weights**3).sum()
        return own - points.features @ weights

    def gradients(self, weights: Weights, points: Points) -> Float[np.ndarray, "records parameters"]:
        """See `Loss`."""
        return self.regularisation * weights + self.cubic / 2 * weights**2 - points.features

    def hessian(self, weights: Weights, points: Points) -> Float[np.ndarray, "parameters parameters"]:
        """See `Loss`."""
        return np.diag(self.regularisation + self.cubic * weights)

    def constants(self, points: Points, radius: float) -> Constants:
        """See `Loss`; raises InputError where the loss is not convex on the ball."""
        strong_convexity = self.regularisation - self.cubic * radius
        if not strong_convexity > 0:
            limit = self.regularisation / self.cubic
            raise InputError(f"radius must be below regularisation / cubic = {limit:g}, got {radius}")
        own = self.regularisation * radius + self.cubic / 2 * radius**2
        return Constants(
            strong_convexity,
            smoothness=self.regularisation + self.cubic * radius,
            lipschitz=own + _largest_norm(points),
            hessian_lipschitz=self.cubic,
        )


@dataclass(frozen=True)
class LogisticLoss:
    """log(1 + e^(-y x.w)) + lambda/2 |w|^2 with labels y of -1 or +1.

    Parameters
    ----------
    regularisation
        lambda, positive.

    Examples
    --------
    >>> points = Points(np.array([[3.0, 4.0]]), np.ones(1))
    >>> LogisticLoss(0.15).constants(points, radius=2.0).smoothness
    6.4
    """

    regularisation: float

    def __post_init__(self) -> None:
        """Check the number."""
        check_positive(regularisation=self.regularisation)

    @property
    def minimiser_radius(self) -> float:
        """Every minimiser has at most this norm: there the loss is at most log 2, its value at 0."""
        return math.sqrt(2 * math.log(2) / self.regularisation)

    def values(self, weights: Weights, points: Points) -> Float[np.ndarray, " records"]:
        """See `Loss`."""
        margins = points.labels * (points.features @ weights)
        return np.logaddexp(0.0, -margins) + self.regularisation / 2 * (weights**2).sum()

    def gradients(self, weights: Weights, points: Points) -> Float[np.ndarray, "records parameters"]:
        """See `Loss`."""
        slopes = -points.labels * expit(-points.labels * (points.features @ weights))
        return slopes[:, None] * points.features + self.regularisation * weights

    def hessian(self, weights: Weights, points: Points) -> Float[np.ndarray, "parameters parameters"]:
        """See `Loss`."""
        margins = points.features @ weights
        curvatures = expit(margins) * expit(-margins)
        return _mean_outer(points.features, curvatures) + self.regularisation * np.eye(len(weights))

    def constants(self, points: Points, radius: float) -> Constants:
        """See `Loss`."""
        largest = _largest_norm(points)
        return Constants(
            strong_convexity=self.regularisation,
            smoothness=largest**2 / 4 + self.regularisation,
            lipschitz=largest + self.regularisation * radius,
            hessian_lipschitz=largest**3 * _LARGEST_THIRD_DERIVATIVE,
        )


@dataclass(frozen=True)
class SquaredLoss:
    """(x.w - y)^2 / 2: linear regression; its Hessian does not depend on w.

    Examples
    --------
    >>> points = Points(np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros(2))
    >>> SquaredLoss().constants(points, radius=1.0).strong_convexity
    0.5
    """

    def values(self, weights: Weights, points: Points) -> Float[np.ndarray, " records"]:
        """See `Loss`."""
        return (points.features @ weights - points.labels) ** 2 / 2

    def gradients(self, weights: Weights, points: Points) -> Float[np.ndarray, "records parameters"]:
        """See `Loss`."""
        return (points.features @ weights - points.labels)[:, None] * points.features

    def hessian(self, weights: Weights, points: Points) -> Float[np.ndarray, "parameters parameters"]:
        """See `Loss`."""
        return _mean_outer(points.features, np.ones(len(points.features)))

    def constants(self, points: Points, radius: float) -> Constants:
        """See `Loss`; raises InputError if the points do not determine the weights."""
        norms = np.linalg.norm(points.features, axis=1)
        least, *_ = np.linalg.eigvalsh(self.hessian(np.zeros(points.features.shape[1]), points))
        if not least > 1e-12 * norms.max() ** 2:
            raise InputError(
                f"features must have linearly independent columns, got smallest curvature {least:g}"
            )
        slopes = norms * (norms * radius + np.abs(points.labels)) if math.isfinite(radius) else math.inf
        return Constants(float(least), float(norms.max() ** 2), float(np.max(slopes)), 0.0)


def _largest_norm(points: Points) -> float:
    return float(np.linalg.norm(points.features, axis=1).max())


def _mean_outer(features: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return (features * factors[:, None]).T @ features / len(features)
