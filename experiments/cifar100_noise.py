"""Several amounts of release noise from one run."""

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from jaxaudit.errors import InputError
from jaxaudit.train import Info, Params
from jaxaudit.unlearn import Batch, Trained, Unlearner
from jaxaudit.unlearn.vectors import add_gaussian_noise


class _Step(NamedTuple):
    params: Params
    step: Int[Array, ""]


@lru_cache(maxsize=16)  # one object for the same amounts, so that it is compiled once
def noise_ladder(sigmas: tuple[float, ...]) -> Unlearner:
    """Gaussian noise on every parameter that is added little by little; no batch is looked at.

    Independent noises add up in squares, so after update t the noise has exactly the deviation ``sigmas[t - 1]``: a
    look at each update is one at each amount, all of them along the same run.

    Parameters
    ----------
    sigmas
        Standard deviations after each update, increasing.

    Raises
    ------
    InputError
        If they do not increase from above 0.

    Examples
    --------
    >>> noise_ladder((3.0, 5.0)).num_updates
    2
    """
    if not sigmas or not (np.diff(sigmas, prepend=0.0) > 0).all():
        raise InputError(f"sigmas must increase from above 0, got {list(sigmas)}")
    increments = np.sqrt(np.diff(np.square(sigmas), prepend=0.0)).astype(np.float32)

    def init(key: Key[Array, ""], trained: Trained) -> _Step:
        return _Step(trained.params, jnp.zeros((), jnp.int32))

    def update(key: Key[Array, ""], state: _Step, batch: Batch) -> tuple[_Step, Info]:
        sigma = jnp.asarray(increments)[state.step]
        return _Step(add_gaussian_noise(key, state.params, sigma), state.step + 1), {"sigma": sigma}

    return Unlearner(init, update, len(sigmas), gradients_per_example=0.0)
