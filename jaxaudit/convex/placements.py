"""Where the paper puts the retain and forget points of its convex audits (Appendices H.4 and I.2)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxaudit.checks import check_integer, check_positive, check_real
from jaxaudit.convex.losses import Points
from jaxaudit.errors import InputError

# The older generator is accepted because published numbers were made with it; both have standard_normal.
Random = np.random.Generator | np.random.RandomState


class ForgetRequest(NamedTuple):
    """A data set D in two parts: the records to keep, D_r, and the records to forget, D_f."""

    retain: Points
    forget: Points

    @property
    def everything(self) -> Points:
        """D, retain points first."""
        return Points(*(np.concatenate(parts) for parts in zip(self.retain, self.forget)))


def cubic_points(num_retain: int, num_forget: int, distance: float) -> ForgetRequest:
    """Retain points at 0, forget points at -R, in one dimension (H.4.1).

    The retain optimum of `CubicLoss` is then 0, and all forget points pull the same way: towards -R.
    (The paper says "towards +B"; the loss term -z w with z = -R pulls towards -B.)

    Parameters
    ----------
    num_retain, num_forget
        At least 1 each.
    distance
        The paper's data radius R, positive.

    Examples
    --------
    >>> cubic_points(2, 1, distance=10.0).everything.features.ravel().tolist()
    [0.0, 0.0, -10.0]
    """
    _check_sizes(num_retain, num_forget)
    check_positive(distance=distance)
    return ForgetRequest(
        Points(np.zeros((num_retain, 1)), np.zeros(num_retain)),
        Points(np.full((num_forget, 1), -float(distance)), np.zeros(num_forget)),
    )


def boundary_points(
    rng: np.random.Generator,
    num_retain: int,
    num_forget: int,
    *,
    dimension: int,
    agreement: float,
    forget_norm: float,
) -> ForgetRequest:
    """Gaussian retain points with noisy labels; all forget points at one place, against them (H.4.2).

    Retain: x ~ N(0, I/d), label +1 with probability eta where x.theta* >= 0 and 1 - eta elsewhere, otherwise
    -1, for a random direction theta*. Forget: x = -rho_f theta*, label +1.

    Parameters
    ----------
    rng
        Source of randomness.
    num_retain, num_forget
        At least 1 each.
    dimension
        d, at least 1.
    agreement
        The paper's eta, in [0, 1].
    forget_norm
        The paper's rho_f, positive.

    Examples
    --------
    >>> data = boundary_points(
    ...     np.random.default_rng(0), 4, 2, dimension=2, agreement=0.8, forget_norm=5.0
    ... )
    >>> np.linalg.norm(data.forget.features, axis=1).round(6).tolist(), data.forget.labels.tolist()
    ([5.0, 5.0], [1.0, 1.0])
    """
    _check_sizes(num_retain, num_forget)
    check_positive(forget_norm=forget_norm)
    if not 0 <= check_real("agreement", agreement) <= 1:
        raise InputError(f"agreement must be in [0, 1], got {agreement}")
    direction = _direction(rng, dimension)
    features = _features(rng, num_retain, dimension)
    chance = np.where(features @ direction >= 0, agreement, 1 - agreement)
    labels = np.where(rng.random(num_retain) < chance, 1.0, -1.0)
    forget = np.tile(-forget_norm * direction, (num_forget, 1))
    return ForgetRequest(Points(features, labels), Points(forget, np.ones(num_forget)))


def opposed_points(
    rng: Random,
    num_retain: int,
    num_forget: int,
    *,
    dimension: int,
    slope: float,
    half_range: float,
    forget_norm: float,
    label_noise: float = 0.05,
) -> ForgetRequest:
    """Linear regression in which the forget points point against the retain points (I.2).

    x ~ N(0, I/d); y = clip(slope x.theta, -r, r) + noise, clipped to [-r, r]; theta = theta* with norm 1 for
    retain points and -rho_f theta* for forget points. (The paper writes the link as clip(1/2 + eta z,
    1/2 - r, 1/2 + r) - 1/2, which is the same.) A last column of ones gives the intercept.

    Parameters
    ----------
    rng
        Source of randomness; drawn in the order direction, retain features and noise, forget features and
        noise.
    num_retain, num_forget
        At least 1 each.
    dimension
        d, at least 1, without the intercept.
    slope, half_range
        The paper's eta and r, positive.
    forget_norm
        The paper's rho_f, positive: how much steeper the labels of the forget points are.
    label_noise
        Standard deviation of the label noise, positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = opposed_points(rng, 4, 2, dimension=2, slope=0.5, half_range=10.0, forget_norm=20.0)
    >>> data.everything.features.shape
    (6, 3)
    """
    _check_sizes(num_retain, num_forget)
    check_positive(slope=slope, half_range=half_range, forget_norm=forget_norm, label_noise=label_noise)
    direction = _direction(rng, dimension)

    def part(size: int, theta: Float[np.ndarray, " dimension"]) -> Points:
        features = _features(rng, size, dimension)
        clean = np.clip(slope * (features @ theta), -half_range, half_range)
        labels = np.clip(clean + label_noise * rng.standard_normal(size), -half_range, half_range)
        return Points(np.column_stack([features, np.ones(size)]), labels)

    return ForgetRequest(part(num_retain, direction), part(num_forget, -forget_norm * direction))


def _check_sizes(num_retain: int, num_forget: int) -> None:
    check_integer("num_retain", num_retain, low=1)
    check_integer("num_forget", num_forget, low=1)


def _direction(rng: Random, dimension: int) -> Float[np.ndarray, " dimension"]:
    """Uniform on the unit sphere."""
    vector = rng.standard_normal(check_integer("dimension", dimension, low=1))
    return vector / np.linalg.norm(vector)


def _features(rng: Random, size: int, dimension: int) -> Float[np.ndarray, "size dimension"]:
    return rng.standard_normal((size, dimension)) / np.sqrt(dimension)
