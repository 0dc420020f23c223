"""Selective synaptic dampening: parameters that matter more to the forget set than overall are shrunk."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer, check_real
from jaxaudit.errors import InputError
from jaxaudit.train import Info, LossFn, Params
from jaxaudit.unlearn.accumulate import WeightedSum, accumulate, squared_gradient_sum, weighted_mean
from jaxaudit.unlearn.base import Batch, Stages, Trained, Unlearner, then


@dataclass(frozen=True)
class DampeningSpec:
    """Settings of selective synaptic dampening.

    Examples
    --------
    >>> DampeningSpec(strength=-1.0)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: strength must not be negative, got -1.0
    """

    threshold: float = 3.0
    """The paper's alpha, not negative: parameters are dampened whose importance for the forget set is more than this
    many times their importance for all training data. That ratio never exceeds (number of training examples) /
    (number of forget examples), so a threshold at or above it selects nothing."""
    strength: float = 1.0
    """The paper's lambda, not negative: the factor is ``strength`` times the inverse ratio, at most 1. Smaller
    is stronger; 0 sets selected parameters to 0."""
    batch_size: int = 32
    """Examples per update. The result does not depend on it; memory does: one gradient per example is held."""

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, low=1)
        for name in ("threshold", "strength"):
            if check_real(name, getattr(self, name)) < 0:
                raise InputError(f"{name} must not be negative, got {getattr(self, name)}")


class _Dampened(NamedTuple):
    params: Params
    sums: dict[str, WeightedSum]
    """Squared gradients of the retain and of the forget examples."""
    dampened: Float[Array, ""]
    """Share of the parameters that were shrunk."""


@lru_cache(maxsize=64)  # the same stages for the same settings, so that they are compiled once
def selective_dampening(
    loss_fn: LossFn, *, num_retain: int, num_forget: int, spec: DampeningSpec | None = None
) -> Stages:
    """Shrink the parameters that matter most to the forget set (Foster, Schoepf and Brintrup 2024, AAAI).

    The importance of a parameter for a set of examples is the diagonal of the empirical Fisher information, the mean
    of the squared gradients of single examples: I_D over all training data of the run (retain and forget examples),
    I_f over its forget examples. Where I_f > alpha I_D,

        params <- params * min(lambda I_D / I_f, 1)

    and elsewhere nothing changes. One pass over both sets, no training, no noise. A heuristic without guarantee.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a weighted mean over the examples.
    num_retain, num_forget
        Examples of a run, padding included.
    spec
        Threshold (alpha), strength (lambda) and batch size; ``None``: the defaults.

    Returns
    -------
    Three stages; the last one measures ``dampened``, the share of the parameters that were shrunk, in [0, 1].

    Notes
    -----
    The published code squares the gradient of a mini-batch's mean loss, which depends on the batch size and on the
    order; here the squares are those of single examples, as in the paper's equation for the Fisher information.
    Importances of a model that fits all its data come from the few examples that it fits worst.

    Examples
    --------
    >>> from jaxaudit.data import Examples
    >>> from jaxaudit.unlearn import apply
    >>> loss = lambda params, examples: jnp.mean(examples.x @ params)  # the gradient of an example is the example
    >>> one = lambda x: Examples(jnp.array([x]), jnp.zeros(1), jnp.ones(1))
    >>> batch = Batch(retain=one([2.0, 1.0, 0.0]), forget=one([1.0, 3.0, 0.0]))
    >>> method = selective_dampening(loss, num_retain=1, num_forget=1, spec=DampeningSpec(threshold=1.5))
    >>> params = jnp.ones(3)  # I_D = (2.5, 5, 0) and I_f = (1, 9, 0)
    >>> apply(method, jax.random.key(0), Trained(params, params), lambda step: batch)
    Array([1.       , 0.5555556, 1.       ], dtype=float32)
    """
    spec = spec or DampeningSpec()
    squares, size = squared_gradient_sum(loss_fn), spec.batch_size
    return then(
        accumulate(squares, part="retain", num_examples=num_retain, batch_size=size),
        accumulate(squares, part="forget", num_examples=num_forget, batch_size=size, continues=True),
        _dampen(spec),
    )


def dampening_factor(
    everywhere: Float[Array, "..."], forget: Float[Array, "..."], *, threshold: float, strength: float
) -> Float[Array, "..."]:
    """What each parameter is multiplied by, in [0, 1]: 1 where it is not selected.

    Parameters
    ----------
    everywhere, forget
        Importances for all training data (I_D) and for the forget set (I_f), not negative. A parameter whose
        importances are both 0 is not selected.
    threshold, strength
        alpha and lambda.

    Examples
    --------
    >>> importances = jnp.array([1.0, 1.0, 0.0]), jnp.array([2.0, 4.0, 0.0])
    >>> dampening_factor(*importances, threshold=2.0, strength=1.0).tolist()
    [1.0, 0.25, 1.0]
    """
    selected = forget > threshold * everywhere
    # Where nothing is selected, I_f may be 0.
    ratio = everywhere / jnp.where(selected, forget, 1.0)
    return jnp.where(selected, jnp.minimum(strength * ratio, 1.0), 1.0)


def _dampen(spec: DampeningSpec) -> Unlearner:
    """One update that multiplies by the factors; it looks at no batch."""

    def init(key: Key[Array, ""], trained: Trained) -> _Dampened:
        return _Dampened(trained.params, trained.previous.sums, jnp.zeros(()))

    def update(key: Key[Array, ""], state: _Dampened, batch: Batch) -> tuple[_Dampened, Info]:
        retain, forget = state.sums["retain"], state.sums["forget"]
        both = WeightedSum(
            jax.tree.map(jnp.add, retain.total, forget.total), jnp.add(retain.weight, forget.weight)
        )
        factors = jax.tree.map(
            lambda every, own: dampening_factor(every, own, threshold=spec.threshold, strength=spec.strength),
            weighted_mean(both),
            weighted_mean(forget),
        )
        params = jax.tree.map(jnp.multiply, state.params, factors)
        leaves = jax.tree.leaves(factors)
        share = sum(jnp.sum(leaf < 1) for leaf in leaves) / sum(leaf.size for leaf in leaves)
        dampened = jnp.asarray(share, state.dampened.dtype)
        return state._replace(params=params, dampened=dampened), {"dampened": dampened}

    def measure(state: _Dampened) -> Info:
        return {"dampened": state.dampened}

    return Unlearner(init, update, num_updates=1, continues=True, gradients_per_example=0.0, measure=measure)
