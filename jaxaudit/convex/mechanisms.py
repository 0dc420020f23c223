"""Two certified mechanisms whose outputs are Gaussians: perturbed Newton and output perturbation.

Definition H.1 of the paper compares the mechanism's output for a forget request with its output for an empty
request on the retain data alone. For both mechanisms these are two Gaussians with the same noise.
"""

from dataclasses import dataclass

import numpy as np

from jaxaudit.bound.gaussian import gaussian_epsilon, gaussian_sigma
from jaxaudit.checks import check_positive
from jaxaudit.convex.losses import Loss, Weights
from jaxaudit.convex.placements import ForgetRequest
from jaxaudit.convex.solve import NewtonUnlearning, minimise, project
from jaxaudit.errors import InputError


@dataclass(frozen=True)
class GaussianPair:
    """The two outputs of Definition H.1: Gaussians N(mean, sigma^2 I) with different means.

    Parameters
    ----------
    unlearned
        Mean after the forget request, before noise.
    reference
        Mean after an empty request on the retain data.
    sensitivity
        Distance that the certificate guarantees; the noise is calibrated to it. Positive, and not less than
        the actual distance.

    Examples
    --------
    >>> pair = GaussianPair(np.array([0.1]), np.array([-0.1]), sensitivity=0.4)
    >>> sigma = pair.sigma(epsilon=2.0, delta=0.01)
    >>> round(pair.limit(sigma, delta=0.01), 3)
    0.794
    """

    unlearned: Weights
    reference: Weights
    sensitivity: float

    def __post_init__(self) -> None:
        """Check that the certificate covers the two means."""
        check_positive(sensitivity=self.sensitivity)
        if not self.distance <= self.sensitivity * (1 + 1e-9):
            raise InputError(
                f"sensitivity must be at least the distance of the means, {self.distance:g}, "
                f"got {self.sensitivity:g}"
            )

    @property
    def distance(self) -> float:
        """Actual distance of the two means."""
        return float(np.linalg.norm(self.unlearned - self.reference))

    def sigma(self, epsilon: float, delta: float) -> float:
        """Standard deviation of the noise that certifies (epsilon, delta) at the guaranteed distance."""
        return gaussian_sigma(self.sensitivity, epsilon, delta)

    def limit(self, sigma: float, delta: float) -> float:
        """True epsilon at this delta of the two Gaussians as they are: no audit can show more."""
        return gaussian_epsilon(self.distance, sigma, delta) if self.distance > 0 else 0.0


def perturbed_newton(result: NewtonUnlearning) -> GaussianPair:
    """The pair of Algorithm 1 of Sekhari et al. (2021): Newton step plus noise calibrated to Lemma 3.

    Raises
    ------
    InputError
        A minimiser lies on the border of the ball, where Lemma 3 does not hold, or the Newton step is exact
        (`SquaredLoss`), where no noise is needed.

    Examples
    --------
    >>> from jaxaudit.convex import CubicLoss, cubic_points, unlearn_by_newton
    >>> result = unlearn_by_newton(CubicLoss(0.2, 0.001), cubic_points(1000, 50, 10.0), radius=2.5)
    >>> round(perturbed_newton(result).sigma(epsilon=5.0, delta=0.01), 6)
    0.036977
    """
    if not result.is_interior:
        norm = max(np.linalg.norm(result.trained), np.linalg.norm(result.retrained))
        raise InputError(f"radius must exceed the norm of both minimisers, got {norm:g} on the border")
    return GaussianPair(result.unlearned, result.retrained, result.distance_bound)


def output_perturbation(loss: Loss, data: ForgetRequest, clip: float) -> GaussianPair:
    """The pair of Appendix I.1: trained weights, projected on a ball of radius C_0, plus noise.

    The mechanism does not use the forget request at all; it hides it in noise. Two projected weight vectors
    are at most 2 C_0 apart, which is the sensitivity.

    Parameters
    ----------
    loss
        Strictly convex.
    data
        Retain and forget points.
    clip
        C_0, positive.

    Examples
    --------
    >>> from jaxaudit.convex import SquaredLoss, opposed_points
    >>> rng = np.random.default_rng(0)
    >>> data = opposed_points(rng, 70, 30, dimension=2, slope=0.5, half_range=10.0, forget_norm=20.0)
    >>> pair = output_perturbation(SquaredLoss(), data, clip=0.1)
    >>> pair.sensitivity, round(pair.distance, 4)
    (0.2, 0.1997)
    """
    check_positive(clip=clip)
    unlearned, reference = (
        project(minimise(loss, points), clip) for points in (data.everything, data.retain)
    )
    return GaussianPair(unlearned, reference, sensitivity=2 * clip)
