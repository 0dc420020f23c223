"""One compiled program for all learning rates: a method whose steps are as long as the run's own rate says."""

from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Key

from jaxaudit.train import Info, Params
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


class RatedState(NamedTuple):
    """Parameters, the run's own rate, and the state of the method."""

    params: Params
    rate: Float[Array, ""]
    inner: Any


def at_own_rate(method: Unlearner) -> Unlearner:
    """The same method with steps that are ``trained.previous`` times as long: a rate that may differ between runs.

    For a method of rate 1 with an optimiser whose steps are proportional to the rate, as Adam's and decoupled weight
    decay's are, this is the method at that rate, up to rounding.

    Parameters
    ----------
    method
        Its state is a named tuple whose first field is ``params``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from jaxaudit.unlearn.ascent import gradient_ascent
    >>> inner = gradient_ascent(lambda params, examples: 3.0 * params, optimizer=optax.sgd(1.0), num_updates=1)
    >>> method = at_own_rate(inner)
    >>> state = method.init(jax.random.key(0), Trained(jnp.ones(()), jnp.ones(()), previous=jnp.array(0.5)))
    >>> float(method.update(jax.random.key(1), state, Batch(None, None))[0].params)
    2.5
    """

    def init(key: Key[Array, ""], trained: Trained) -> RatedState:
        state = method.init(key, trained._replace(previous=None))
        return RatedState(state.params, trained.previous, state)

    def update(key: Key[Array, ""], state: RatedState, batch: Batch) -> tuple[RatedState, Info]:
        moved, info = method.update(key, state.inner, batch)
        params = jax.tree.map(
            lambda old, new: old + state.rate * (new - old), state.inner.params, moved.params
        )
        return RatedState(params, state.rate, moved._replace(params=params)), info

    return method._replace(init=init, update=update, continues=True)
