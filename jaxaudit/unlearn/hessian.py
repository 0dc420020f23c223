"""Hessian-based unlearning: one Newton step towards the retain optimum, with LiSSA for the inverse Hessian."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LossFn, Params
from jaxaudit.unlearn.accumulate import accumulate, gradient_sum, weighted_mean
from jaxaudit.unlearn.base import Batch, Stages, Trained, Unlearner, then
from jaxaudit.unlearn.release_noise import release_noise

NewtonGradient = Literal["retain", "forget"]


@dataclass(frozen=True)
class HessianSpec:
    """Settings of Hessian-based unlearning.

    Examples
    --------
    >>> HessianSpec(scale=0.0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: scale must be positive, got 0.0
    """

    num_recursions: int = 2
    """Independent LiSSA recursions, the paper's s1. Their mean is the step."""
    depth: int = 400
    """Updates of each recursion, the paper's s2. Directions of curvature below ``scale / depth`` are not resolved."""
    scale: float = 5.0
    """Must be above half the largest eigenvalue of the damped Hessian; the paper's rule is above all of it.
    Mini-batches scatter, and need more: see ``converging_scale`` of `hessian_unlearning`."""
    batch_size: int = 32
    """Examples of each random retain mini-batch, and of the pass that sums the gradient."""
    damping: float = 5e-4
    """The paper's weight decay lambda, not negative: lambda times the identity is added to the Hessian, as by a squared
    penalty ``lambda / 2 |params|^2``, and nothing to the gradient. (The reference code for images penalises the norms
    themselves, not their squares, in the gradient too.)"""
    sigma: float = 1e-3
    """Standard deviation of the noise added to every parameter at last, not negative."""
    gradient: NewtonGradient = "retain"
    """Which gradient the step is made of; see `hessian_unlearning`."""
    num_eigenvalue_updates: int = 40
    """Updates of the power iteration that estimates the largest eigenvalue; 0 leaves it out."""

    def __post_init__(self) -> None:
        for name in ("num_recursions", "depth", "batch_size"):
            check_integer(name, getattr(self, name), low=1)
        check_integer("num_eigenvalue_updates", self.num_eigenvalue_updates, low=0)
        if not check_real("scale", self.scale) > 0:
            raise InputError(f"scale must be positive, got {self.scale}")
        for name in ("damping", "sigma"):
            if check_real(name, getattr(self, name)) < 0:
                raise InputError(f"{name} must not be negative, got {getattr(self, name)}")
        check_choice("gradient", self.gradient, get_args(NewtonGradient))


@lru_cache(maxsize=64)  # the same stages for the same settings, so that they are compiled once
def hessian_unlearning(
    loss_fn: LossFn, *, num_retain: int, num_forget: int, spec: HessianSpec | None = None
) -> Stages:
    """Take one approximate Newton step towards the optimum of the retain set, then add noise.

    Equation 15 and Appendix G.4 of the paper, after Zhang et al. 2025 ("Towards certified unlearning for deep neural
    networks"):

        params <- params - A^{-1} g + N(0, sigma^2 I),        A = H + damping I

    with the Hessian H of the mean retain loss, at the parameters. ``A^{-1} g`` comes from LiSSA (Agarwal, Bullins and
    Hazan 2017): s1 times, from ``h = g``, s2 updates with fresh random retain mini-batches of Hessian A_b,

        h <- g + h - A_b h / scale,

    whose fixed point is ``scale A^{-1} g``; the mean of ``h / scale`` is the step.

    Which gradient: the Newton step towards the retain optimum has g = the mean gradient of the retain set (``gradient =
    "retain"``, the default, and what the reference code does). If the parameters are an optimum of all the training
    data, ``n_r g_r + n_f g_f = 0``, and it is the same to take ``g = -(n_f / n_r) g_f`` (``gradient = "forget"``, which
    costs fewer gradients and ignores how far training was from its optimum). Equation 15 prints ``g_f`` with the
    opposite sign and without that factor; that would step *towards* the forget set.

    Convergence: along an eigenvector of A with eigenvalue mu, the error is multiplied by ``1 - mu / scale`` in every
    update. So it converges if 0 < mu < 2 scale for all of them, and without oscillation if mu <= scale, the paper's
    rule. Small eigenvalues converge slowly, in ``scale / mu`` updates: until then the step along them is only
    ``(depth + 1) / scale`` times the gradient. Networks have negative eigenvalues as well, unless ``damping`` outweighs
    them: there ``A^{-1} g`` points uphill, nothing converges, and h grows slowly, like ``(1 + |mu| / scale)^depth``;
    a finite depth is what keeps the step small.

    While all eigenvalues are in [0, 2 scale], ``|h| <= (k + 1) |g|`` after k updates. A recursion that is beyond twice
    that, or not finite, has certainly diverged: then the step is replaced by 0 (only the noise is added) and the run is
    flagged. Smaller excesses are not seen by that test; the eigenvalue shows them.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a weighted mean over the examples.
    num_retain, num_forget
        Examples of a run, padding included.
    spec
        All other settings; ``None``: the defaults.

    Returns
    -------
    Stages: power iteration, gradient, LiSSA, step, noise. They measure

    ``largest_eigenvalue``
        Rayleigh quotient of A reached by power iteration over mini-batches: on average not above the true value.
        Negative if the curvature of largest modulus is negative.
    ``converging_scale``
        Estimate of a scale that is twice what convergence (in mean square over mini-batches) needs; with full
        batches, the largest eigenvalue. 0 if there is none because the curvature found is not positive.
    ``residual``
        ``|g - A_b h / scale| / |g|`` in the last update of a recursion, mean over the recursions. With full batches 0
        is an exact solution and 1 no better than no step; small batches add their sampling error, often above 1.
    ``diverged``
        1 if a recursion diverged, else 0.

    Notes
    -----
    Zhang et al. prove a certificate for sigma above a bound that needs the Lipschitz constants of the gradient and the
    Hessian, and the smallest eigenvalue; these are unknown for networks, so the method counts as uncertified.
    A Hessian-vector product is the derivative of the gradient along h (forward over reverse) and costs about two
    gradients.

    Examples
    --------
    >>> from jaxaudit.data import Examples
    >>> from jaxaudit.unlearn import apply
    >>> loss = lambda params, examples: jnp.mean((params - examples.x) ** 2)  # optimum: the mean
    >>> batch = Batch(*(Examples(jnp.array([x]), jnp.zeros(1), jnp.ones(1)) for x in (3.0, 9.0)))
    >>> spec = HessianSpec(scale=4.0, depth=30, num_recursions=1, damping=0.0, sigma=0.0)
    >>> method = hessian_unlearning(loss, num_retain=1, num_forget=1, spec=spec)
    >>> trained = Trained(jnp.array(6.0), jnp.zeros(()))
    >>> print(f"{apply(method, jax.random.key(0), trained, lambda step: batch):.4f}")
    3.0000
    """
    spec = spec or HessianSpec()
    size = num_retain if spec.gradient == "retain" else num_forget
    gradient = accumulate(
        gradient_sum(loss_fn), part=spec.gradient, num_examples=size, batch_size=spec.batch_size
    )
    # Equation 15's forget gradient, turned into the retain gradient at an optimum of all data.
    share = -1.0 / num_retain if spec.gradient == "forget" else None
    power = (_power_iteration(loss_fn, spec),) if spec.num_eigenvalue_updates else ()
    noise = (release_noise(sigma=spec.sigma),) if spec.sigma else ()
    return then(*power, gradient, _lissa(loss_fn, spec, share), _newton_step(), *noise)


def hessian_vector_product(
    loss_fn: LossFn, params: Params, examples: Examples, vector: Params, damping: float = 0.0
) -> Params:
    """``(H + damping I) vector`` with the Hessian H of the loss, without forming H.

    Examples
    --------
    >>> loss = lambda params, examples: params[0] ** 2 + 3.0 * params[0] * params[1]
    >>> hessian_vector_product(loss, jnp.zeros(2), None, jnp.array([1.0, 2.0]), damping=1.0).tolist()
    [9.0, 5.0]
    """
    gradient = jax.grad(loss_fn)
    _, product = jax.jvp(lambda point: gradient(point, examples), (params,), (vector,))
    return optax.tree.add_scale(product, damping, vector)


class _Power(NamedTuple):
    params: Params
    vector: Params
    """Of norm 1."""
    step: Int[Array, ""]
    curvature: Float[Array, ""]
    """Sum of v . A_b v over the second half of the updates."""
    square: Float[Array, ""]
    """Sum of |A_b v|^2 over the same updates."""


def _power_iteration(loss_fn: LossFn, spec: HessianSpec) -> Unlearner:
    """Estimate the largest eigenvalue of A from random mini-batches; the parameters do not move.

    v does not depend on the batch that it is multiplied with, so ``v . A_b v`` has mean ``v . A v``, at most the
    largest eigenvalue. In mean square, ``v - A_b v / s`` is shorter than v if ``s > E|A_b v|^2 / (2 E v . A_b v)``.
    """

    def init(key: Key[Array, ""], trained: Trained) -> _Power:
        vector = optax.tree.random_like(key, trained.params, jax.random.normal)
        unit = optax.tree.scale(1.0 / optax.tree.norm(vector), vector)
        zero = jnp.zeros(())
        return _Power(trained.params, unit, jnp.zeros((), jnp.int32), zero, zero)

    def update(key: Key[Array, ""], state: _Power, batch: Batch) -> tuple[_Power, Info]:
        product = hessian_vector_product(loss_fn, state.params, batch.retain, state.vector, spec.damping)
        norm = optax.tree.norm(product)
        usable = jnp.isfinite(norm) & (norm > 0)
        late = usable & (state.step >= spec.num_eigenvalue_updates // 2)
        curvature = jnp.where(late, optax.tree.vdot(state.vector, product), 0.0)
        square = jnp.where(late, norm**2, 0.0)
        unit = optax.tree.scale(1.0 / jnp.where(usable, norm, 1.0), product)
        state = state._replace(
            vector=optax.tree.where(usable, unit, state.vector),
            step=state.step + 1,
            curvature=state.curvature + curvature.astype(state.curvature.dtype),
            square=state.square + square.astype(state.square.dtype),
        )
        return state, {"curvature": curvature}

    def measure(state: _Power) -> Info:
        positive = state.curvature > 0
        ratio = state.square / jnp.where(positive, state.curvature, 1.0)
        return {
            "largest_eigenvalue": state.curvature
            / (spec.num_eigenvalue_updates - spec.num_eigenvalue_updates // 2),
            "converging_scale": jnp.where(positive, ratio, 0.0),
        }

    return Unlearner(
        init,
        update,
        spec.num_eigenvalue_updates,
        spec.batch_size,
        "random",
        gradients_per_example=2.0,
        measure=measure,
    )


class _Lissa(NamedTuple):
    params: Params
    gradient: Params
    product: Params
    """h of the recursion under way; at its end about ``scale A^{-1} g``."""
    step: Int[Array, ""]
    newton_step: Params
    """Sum of ``h / (scale s1)`` over the recursions that are finished."""
    residual: Float[Array, ""]
    diverged: Bool[Array, ""]


def _lissa(loss_fn: LossFn, spec: HessianSpec, forget_share: float | None) -> Unlearner:
    """Inverse-Hessian-vector product with the gradient that the stage before summed; the parameters do not move."""

    def init(key: Key[Array, ""], trained: Trained) -> _Lissa:
        summed = trained.previous.sums[spec.gradient]
        mean = forget_share is None
        gradient = weighted_mean(summed) if mean else optax.tree.scale(forget_share, summed.total)
        nothing = optax.tree.zeros_like(gradient)
        return _Lissa(
            trained.params,
            gradient,
            gradient,
            jnp.zeros((), jnp.int32),
            nothing,
            jnp.zeros(()),
            jnp.zeros((), bool),
        )

    def update(key: Key[Array, ""], state: _Lissa, batch: Batch) -> tuple[_Lissa, Info]:
        # Restarting by selection, not by control flow: a model inside a branch is slow.
        place = state.step % spec.depth
        before = optax.tree.where(place == 0, state.gradient, state.product)
        curved = hessian_vector_product(loss_fn, state.params, batch.retain, before, spec.damping)
        residual = optax.tree.add_scale(state.gradient, -1.0 / spec.scale, curved)
        product = optax.tree.add(before, residual)
        good, ratio = _judge(product, residual, state.gradient, place + 1)
        # After a failure h starts again from 0, so everything stays finite; 0 has residual 1.
        product = optax.tree.where(good, product, optax.tree.zeros_like(product))
        part = jnp.where(place == spec.depth - 1, 1.0 / spec.num_recursions, 0.0)
        state = state._replace(
            product=product,
            step=state.step + 1,
            newton_step=jax.tree.map(
                lambda old, h: old + (part / spec.scale * h).astype(old.dtype), state.newton_step, product
            ),
            residual=state.residual + (part * ratio).astype(state.residual.dtype),
            diverged=state.diverged | ~good,
        )
        return state, {"residual": ratio}

    def measure(state: _Lissa) -> Info:
        return {"residual": state.residual, "diverged": state.diverged.astype(state.residual.dtype)}

    return Unlearner(
        init,
        update,
        spec.num_recursions * spec.depth,
        spec.batch_size,
        "random",
        continues=True,
        gradients_per_example=2.0,
        measure=measure,
    )


def _judge(
    product: Params, residual: Params, gradient: Params, updates: Int[Array, ""]
) -> tuple[Bool[Array, ""], Float[Array, ""]]:
    """Whether h may still be converging after so many updates, and the residual relative to the gradient."""
    norm = optax.tree.norm(gradient)
    limit = 2.0 * (updates + 1) * norm
    good = optax.tree.norm(product) <= limit  # False for NaN
    ratio = optax.tree.norm(residual) / jnp.where(norm > 0, norm, 1.0)
    return good, jnp.where(good, ratio, 1.0)


class _Stepped(NamedTuple):
    params: Params
    newton_step: Params


def _newton_step() -> Unlearner:
    """Subtract what LiSSA found, or nothing if it diverged; no batch is looked at."""

    def init(key: Key[Array, ""], trained: Trained) -> _Stepped:
        found: Any = trained.previous
        step = optax.tree.where(found.diverged, optax.tree.zeros_like(found.newton_step), found.newton_step)
        return _Stepped(trained.params, step)

    def update(key: Key[Array, ""], state: _Stepped, batch: Batch) -> tuple[_Stepped, Info]:
        params = optax.tree.sub(state.params, state.newton_step)
        return state._replace(params=params), {"step_norm": optax.tree.norm(state.newton_step)}

    return Unlearner(init, update, num_updates=1, continues=True, gradients_per_example=0.0)
