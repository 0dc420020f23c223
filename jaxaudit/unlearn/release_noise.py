"""Gaussian noise on the released parameters."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Key

from jaxaudit.checks import check_real
from jaxaudit.errors import InputError
from jaxaudit.train import Info, Params
from jaxaudit.unlearn.base import Batch, Trained, Unlearner
from jaxaudit.unlearn.vectors import add_gaussian_noise


class _Released(NamedTuple):
    params: Params


def release_noise(*, sigma: float) -> Unlearner:
    """Add independent Gaussian noise to every parameter, once: the last stage of output perturbation.

        params <- params + sigma * N(0, I)

    Never looks at its batch. Certified only behind a stage of known sensitivity; see `jaxaudit.bound.gaussian_sigma`.

    Parameters
    ----------
    sigma
        Standard deviation, in units of the parameters; not negative. 0 changes nothing.

    Raises
    ------
    InputError
        If sigma is negative or not finite.

    Examples
    --------
    >>> import jax
    >>> method = release_noise(sigma=0.1)
    >>> state = method.init(jax.random.key(0), Trained(jnp.zeros(10_000), jnp.zeros(10_000)))
    >>> state, info = method.update(jax.random.key(1), state, batch=None)
    >>> print(f"{state.params.std():.2f}")
    0.10
    """
    if check_real("sigma", sigma) < 0:
        raise InputError(f"sigma must not be negative, got {sigma}")

    def init(key: Key[Array, ""], trained: Trained) -> _Released:
        return _Released(trained.params)

    def update(key: Key[Array, ""], state: _Released, batch: Batch) -> tuple[_Released, Info]:
        return _Released(add_gaussian_noise(key, state.params, sigma)), {"sigma": jnp.asarray(sigma)}

    return Unlearner(init, update, num_updates=1, gradients_per_example=0.0)
