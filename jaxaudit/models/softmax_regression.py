"""Softmax regression on bounded features: a convex problem whose constants are known, for certified unlearning."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer, check_not_negative, check_positive, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.models.base import Model
from jaxaudit.train import LogitsFn, LossFn, Params, cross_entropy_loss


@dataclass(frozen=True)
class ConvexConstants:
    """What proofs about convex unlearning need to know of the loss of one example, regulariser included.

    Raises
    ------
    InputError
        If the strong convexity, the smoothness or the radius is not positive and finite, another constant is
        negative, or the smoothness is below the strong convexity.
    """

    strong_convexity: float
    """mu: smallest eigenvalue of the Hessian, everywhere."""
    smoothness: float
    """Largest eigenvalue of the Hessian, everywhere."""
    lipschitz: float
    """L: largest norm of the gradient in the ball."""
    gradient_spread: float
    """Largest distance between the gradients of two examples at one point of the ball."""
    hessian_lipschitz: float
    """M: the Hessian changes by at most M times the distance, in the spectral norm."""
    radius: float
    """Of the ball around 0 that parameters are kept in."""
    dim: int
    """Number of parameters."""
    minimisers_inside: bool = True
    """Whether the ball holds the minimiser of the mean loss of any examples."""

    def __post_init__(self) -> None:
        for name in ("strong_convexity", "smoothness", "radius"):
            check_positive(**{name: getattr(self, name)})
        for name in ("lipschitz", "gradient_spread", "hessian_lipschitz"):
            check_not_negative(**{name: getattr(self, name)})
        if self.smoothness < self.strong_convexity:
            raise InputError(
                "smoothness must be at least strong_convexity, "
                f"got {self.smoothness} and {self.strong_convexity}"
            )
        check_integer("dim", self.dim, low=1)


def softmax_regression(
    input_shape: Sequence[int],
    num_classes: int,
    l2: float,
    radius: float | None = None,
    *,
    center: float = 0.5,
    feature_bound: float = 3.0,
    constant_feature: float = 0.3,
) -> tuple[Model, ConvexConstants]:
    """Linear logits of features of norm at most 1, with the constants of its regularised cross-entropy.

        logits = phi(x) W,    phi(x) = (u, c) / sqrt(1 + c^2),
        u = (x - center) / max(||x - center||, feature_bound)

    The loss is `ridge_cross_entropy`. Nothing of the features depends on the data, so that nothing leaks through
    them. The only parameter W has the shape (features + 1, classes) and starts at 0. The defaults suit pixels in
    [0, 1], such as the digits'.

    Parameters
    ----------
    input_shape
        Shape of one example; it is flattened.
    num_classes
        K, at least 2.
    l2
        lambda > 0, of the term ``lambda / 2 ||W||^2`` in the loss of every example.
    radius
        Of the ball that W is kept in. None: the smallest that is known to hold every minimiser.
    center
        Subtracted from every feature.
    feature_bound
        Feature vectors longer than this, after centring, are shortened to it. Positive.
    constant_feature
        c > 0, the weight of the constant feature.

    Raises
    ------
    InputError
        A size or a constant is outside its range.

    Notes
    -----
    With p = softmax(logits), the gradient of the cross-entropy is ``phi (p - e_y)^T`` and its second derivative in
    the direction V is ``Var_p(z)``, its third ``E_p (z - E_p z)^3``, where ``z = V^T phi`` and ``||z|| <= ||V||``.

    * ``||phi|| <= 1`` and ``||p - e_y|| <= sqrt(2)``, so gradients of two examples are at most ``2 sqrt(2)`` apart
      (the regulariser cancels), and ``L = sqrt(2) + lambda radius``.
    * The entries of z are at most ``sqrt(2) ||V||`` apart. A variable of that range has at most the variance 1/2
      (Popoviciu), so the smoothness is ``1/2 + lambda``, and at most the third central moment
      ``range^3 / (6 sqrt(3))``, so ``M = 2 sqrt(2) / (6 sqrt(3))``: a symmetric trilinear form takes its largest value
      on unit vectors where they are equal (Banach).
    * mu = lambda: the cross-entropy has no curvature along directions that shift all logits alike.
    * Let W minimise the mean loss F of some examples. ``F(0) - F(W) >= lambda/2 ||W||^2``, ``F(0) = log K`` and
      ``F(W) >= lambda/2 ||W||^2`` give ``||W|| <= sqrt(log K / lambda)``. Strong convexity gives
      ``lambda ||W|| <= ||grad F(0)|| <= sqrt(1 - 1/K)``. The radius is the smaller of the two.

    Examples
    --------
    >>> model, constants = softmax_regression((64,), 10, l2=0.01)
    >>> constants.dim, round(constants.radius, 2), round(constants.smoothness, 2), constants.minimisers_inside
    (650, 15.17, 0.51, True)
    """
    check_integer("num_classes", num_classes, low=2)
    for name, value in {
        "l2": l2,
        "feature_bound": feature_bound,
        "constant_feature": constant_feature,
    }.items():
        check_positive(**{name: value})
    check_real("center", center)
    if radius is not None:
        check_positive(radius=radius)
    num_features = math.prod(check_integer("input_shape", size, low=1) for size in input_shape) + 1
    enough = min(math.sqrt(math.log(num_classes) / l2), math.sqrt(1 - 1 / num_classes) / l2)
    ball = enough if radius is None else float(radius)
    constants = ConvexConstants(
        strong_convexity=l2,
        smoothness=0.5 + l2,
        lipschitz=math.sqrt(2) + l2 * ball,
        gradient_spread=2 * math.sqrt(2),
        hessian_lipschitz=math.sqrt(2 / 27),
        radius=ball,
        dim=num_features * num_classes,
        minimisers_inside=ball >= enough,
    )
    return _model(num_features, num_classes, center, feature_bound, constant_feature), constants


@lru_cache(maxsize=64)
def ridge_cross_entropy(logits_fn: LogitsFn, l2: float) -> LossFn:
    """Mean cross-entropy in nats over the examples of weight 1, plus ``l2 / 2`` times the squared parameters.

    Parameters
    ----------
    logits_fn
        ``(params, x) -> logits``.
    l2
        lambda >= 0.

    Examples
    --------
    >>> loss = ridge_cross_entropy(lambda params, x: x @ params, 0.5)
    >>> print(f"{loss(jnp.ones((2, 2)), Examples(jnp.eye(2), jnp.array([0, 1]), jnp.ones(2))):.4f}")
    1.6931
    """
    check_not_negative(l2=l2)
    data_term = cross_entropy_loss(logits_fn)

    def loss(params: Params, examples: Examples) -> Float[Array, ""]:
        return data_term(params, examples) + l2 / 2 * optax.tree.norm(params, squared=True)

    return loss


def _features(
    x: Float[Array, "examples ..."], center: float, feature_bound: float, constant_feature: float
) -> Float[Array, "examples features"]:
    """phi(x), of norm at most 1."""
    flat = x.reshape(len(x), -1) - center
    # The norm of the largest of both is differentiable everywhere, which that of a zero vector is not.
    norm = jnp.sqrt(jnp.maximum(jnp.sum(flat * flat, axis=1, keepdims=True), feature_bound**2))
    constant = jnp.full((len(x), 1), constant_feature, flat.dtype)
    return jnp.concatenate([flat / norm, constant], axis=1) / math.sqrt(1 + constant_feature**2)


@lru_cache(maxsize=16)  # the same functions for the same arguments, so that programs are compiled once
def _model(
    num_features: int, num_classes: int, center: float, feature_bound: float, constant_feature: float
) -> Model:
    def init_fn(key: Key[Array, ""]) -> Params:
        return jnp.zeros((num_features, num_classes))

    def logits_fn(params: Params, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        # Rounded factors could move models further apart than the proofs allow for.
        return jnp.matmul(_features(x, center, feature_bound, constant_feature), params, precision="highest")

    return Model(init_fn, logits_fn, f"softmax regression, {num_features} features, {num_classes} classes")
