"""How fast it went and where the time goes: a trace on request, and what this machine can do at best."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxaudit.runs.options import Precision
from jaxaudit.runs.programs import stated_precision


@contextmanager
def profile(folder: str | Path | None) -> Iterator[None]:
    """Write a JAX trace of what happens inside; nothing if no folder is given.

    Parameters
    ----------
    folder
        Where to; open it with ``xprof --logdir FOLDER``, TensorBoard's profile plugin, or the ``.trace.json.gz`` in it
        with Perfetto.

    Examples
    --------
    >>> with profile(None):
    ...     total = jnp.sum(jnp.ones(3))
    """
    if folder is None:
        yield
        return
    with jax.profiler.trace(str(folder)):
        yield


def measured_matmul_peak(precision: Precision = "highest") -> float:
    """FLOP/s of a large square float32 matrix product on JAX's default device: what a program can reach at best.

    Measured once per process and precision, in well under a second.

    Parameters
    ----------
    precision
        See `RunOptions.matmul_precision`.

    Examples
    --------
    >>> measured_matmul_peak() > 1e8
    True
    """
    return _measured_peak(stated_precision(precision))


@lru_cache(maxsize=8)
def _measured_peak(precision: str | None) -> float:
    size = 1536 if jax.default_backend() == "cpu" else 8192
    ones = jnp.ones((size, size), jnp.float32)
    with jax.default_matmul_precision(precision):
        multiply = jax.jit(jnp.matmul).lower(ones, ones).compile()
    jax.block_until_ready(multiply(ones, ones))
    fastest, spent = float("inf"), 0.0
    while spent < 0.3:
        began = time.perf_counter()
        jax.block_until_ready(multiply(ones, ones))
        seconds = time.perf_counter() - began
        fastest, spent = min(fastest, seconds), spent + seconds
    return 2 * size**3 / fastest
