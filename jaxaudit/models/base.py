"""The model contract, and how Flax modules meet it."""

from collections.abc import Callable
from typing import Literal, NamedTuple, cast, get_args

from flax import linen, nnx
from jaxtyping import Array, Float, Key

from jaxaudit.errors import InputError
from jaxaudit.train import LogitsFn, Params

ComputeDtype = Literal["float32", "bfloat16"]
"""Type of activations and products. Parameters, their gradients and logits are float32 in any case."""


class Model(NamedTuple):
    """A classifier: ``init_fn(key) -> params`` and ``logits_fn(params, x) -> (examples, classes)``, both pure."""

    init_fn: Callable[[Key[Array, ""]], Params]
    logits_fn: LogitsFn
    description: str = "user model"
    alternatives: tuple["Model", ...] = ()
    """Other implementations of the same function, with the same parameters; the fastest may be used instead."""


def check_compute_dtype(compute_dtype: str) -> None:
    """Raise `InputError` unless the name is one of `ComputeDtype`.

    Examples
    --------
    >>> check_compute_dtype("bfloat16")
    """
    if compute_dtype not in get_args(ComputeDtype):
        raise InputError(f"compute_dtype must be one of {get_args(ComputeDtype)}, got {compute_dtype!r}")


def from_linen(module: linen.Module, example_x: Float[Array, "examples ..."]) -> Model:
    """A Flax Linen module as a `Model`.

    Parameters
    ----------
    module
        Called with ``x`` only; it must have no state besides its parameters and need no random numbers.
    example_x
        Any inputs of the right shape.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> model = from_linen(linen.Dense(3), jnp.zeros((1, 2)))
    >>> model.logits_fn(model.init_fn(jax.random.key(0)), jnp.ones((5, 2))).shape
    (5, 3)
    """

    def init_fn(key: Key[Array, ""]) -> Params:
        return module.init(key, example_x)["params"]

    def logits_fn(params: Params, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        return cast(Array, module.apply({"params": params}, x))

    return Model(init_fn, logits_fn, f"Flax Linen {type(module).__name__}")


def from_nnx(make: Callable[[nnx.Rngs], nnx.Module]) -> Model:
    """A Flax NNX module as a `Model`, by splitting it into a graph and its parameters.

    Parameters
    ----------
    make
        ``rngs -> module``; the module is called with ``x`` only and has no state besides its parameters.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> model = from_nnx(lambda rngs: nnx.Linear(2, 3, rngs=rngs))
    >>> model.logits_fn(model.init_fn(jax.random.key(0)), jnp.ones((5, 2))).shape
    (5, 3)
    """
    graph, *_ = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))), nnx.Param, ...)

    def init_fn(key: Key[Array, ""]) -> Params:
        return nnx.to_pure_dict(nnx.state(make(nnx.Rngs(params=key)), nnx.Param))

    def logits_fn(params: Params, x: Float[Array, "examples ..."]) -> Float[Array, "examples classes"]:
        return nnx.merge(graph, nnx.State(params))(x)

    return Model(init_fn, logits_fn, "Flax NNX module")
