"""Sums over a whole data set, one mini-batch at a time: what methods that take one big step are built on."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data import Examples
from jaxaudit.train import Info, LossFn, Params, num_batches
from jaxaudit.unlearn.base import Batch, Trained, Unlearner

Part = Literal["retain", "forget"]
Statistic = Callable[[Params, Examples], Params]
"""``(params, examples) -> sum over the examples, each times its weight``, in the shape of the parameters."""


class WeightedSum(NamedTuple):
    """A sum over examples, each times its weight."""

    total: Params
    weight: Float[Array, ""]
    """Sum of the weights: the number of examples without padding."""


class Accumulated(NamedTuple):
    """State of a pass over the data: the parameters do not move."""

    params: Params
    sums: dict[str, WeightedSum]
    """By part of the data, ``retain`` or ``forget``: the sums of this pass and of those that it continues."""


def accumulate(
    statistic: Statistic,
    *,
    part: Part,
    num_examples: int,
    batch_size: int = 64,
    continues: bool = False,
    gradients_per_example: float = 1.0,
) -> Unlearner:
    """Sum a statistic over one pass through the retain or the forget examples, at fixed parameters.

    The last state's ``sums[part]`` is exact: every example counts once whatever the batch size, padding never.

    Parameters
    ----------
    statistic
        For instance `gradient_sum` or `squared_gradient_sum`.
    part
        The part of the batch that is read; the other one is ignored.
    num_examples
        Examples of that part, padding included: the pass takes ``ceil(num_examples / batch_size)`` updates.
    batch_size
        Examples per update.
    continues
        Whether the stage before is also such a pass, whose sums are to be kept.
    gradients_per_example
        Cost of the statistic.

    Raises
    ------
    InputError
        If ``part`` is neither ``retain`` nor ``forget``, or a count is below 1.

    Examples
    --------
    >>> statistic = lambda params, examples: examples.weights @ examples.x
    >>> method = accumulate(statistic, part="forget", num_examples=3)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(2), jnp.zeros(2)))
    >>> forget = Examples(jnp.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]), None, jnp.array([1.0, 1.0, 0.0]))
    >>> state, info = method.update(jax.random.key(1), state, Batch(retain=None, forget=forget))
    >>> weighted_mean(state.sums["forget"]).tolist()
    [2.0, 3.0]
    """
    check_choice("part", part, ["retain", "forget"])
    check_integer("num_examples", num_examples, low=1)
    check_integer("batch_size", batch_size, low=1)

    def init(key: Key[Array, ""], trained: Trained) -> Accumulated:
        before = trained.previous.sums if continues else {}
        nothing = WeightedSum(optax.tree.zeros_like(trained.params), jnp.zeros(()))
        return Accumulated(trained.params, {**before, part: nothing})

    def update(key: Key[Array, ""], state: Accumulated, batch: Batch) -> tuple[Accumulated, Info]:
        examples = getattr(batch, part)
        added = statistic(state.params, examples)
        before = state.sums[part]
        total = jax.tree.map(lambda old, new: old + new.astype(old.dtype), before.total, added)
        weight = before.weight + examples.weights.sum().astype(before.weight.dtype)
        return state._replace(sums={**state.sums, part: WeightedSum(total, weight)}), {"weight": weight}

    return Unlearner(
        init,
        update,
        num_batches(num_examples, batch_size),
        batch_size,
        continues=continues,
        gradients_per_example=gradients_per_example,
    )


def weighted_mean(total: WeightedSum) -> Params:
    """The mean over the examples; 0 if there was none.

    Examples
    --------
    >>> weighted_mean(WeightedSum(jnp.array([2.0, 4.0]), jnp.array(4.0))).tolist()
    [0.5, 1.0]
    >>> weighted_mean(WeightedSum(jnp.zeros(2), jnp.zeros(()))).tolist()
    [0.0, 0.0]
    """
    # Weights are 0 or 1, so the sum of no example is the only one below 1.
    weight = jnp.maximum(total.weight, 1.0)
    return jax.tree.map(lambda leaf: (leaf / weight).astype(leaf.dtype), total.total)


@lru_cache(maxsize=64)
def gradient_sum(loss_fn: LossFn) -> Statistic:
    """Sum of the gradients of the examples' losses.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a weighted mean over the examples, as `cross_entropy_loss`.

    Examples
    --------
    >>> loss = lambda params, examples: jnp.mean(params * examples.x)
    >>> float(gradient_sum(loss)(jnp.array(0.0), Examples(jnp.array([1.0, 2.0]), None, jnp.ones(2))))
    3.0
    """

    def statistic(params: Params, examples: Examples) -> Params:
        weight = examples.weights.sum()
        return jax.tree.map(lambda leaf: weight * leaf, jax.grad(loss_fn)(params, examples))

    return statistic


@lru_cache(maxsize=64)
def squared_gradient_sum(loss_fn: LossFn) -> Statistic:
    """Sum of the elementwise squares of the examples' own gradients.

    Divided by their number it is the diagonal of the empirical Fisher information, if the loss is a negative
    log-likelihood. Squares are taken example by example: the square of a batch's mean gradient is something else.

    Parameters
    ----------
    loss_fn
        ``(params, examples) -> scalar``, a weighted mean over the examples.

    Examples
    --------
    >>> loss = lambda params, examples: jnp.mean(params * examples.x)
    >>> float(squared_gradient_sum(loss)(jnp.array(0.0), Examples(jnp.array([1.0, 2.0]), jnp.zeros(2), jnp.ones(2))))
    5.0
    """

    def statistic(params: Params, examples: Examples) -> Params:
        def gradient(example: Examples) -> Params:
            return jax.grad(loss_fn)(params, jax.tree.map(lambda leaf: leaf[None], example))

        def weighted_squares(leaf: Array) -> Array:
            return jnp.tensordot(examples.weights, jnp.square(leaf), 1)

        return jax.tree.map(weighted_squares, jax.vmap(gradient)(examples))

    return statistic
