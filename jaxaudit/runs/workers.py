"""Blocks of runs side by side on a CPU: one thread per core, each inside its own call of the compiled program.

XLA cuts every single operation into pieces for all cores, which for small matrix products costs more than it brings.
A core that has a block of runs to itself never waits for the others. The results are the same bits, since every block
is computed by the same program.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import jax

from jaxaudit.runs.devices import Devices

Result = TypeVar("Result")


def num_workers(devices: Devices) -> int:
    """How many blocks are worth working on at the same time.

    Parameters
    ----------
    devices
        Those that the program runs on. Other devices than a single CPU are kept busy by one call.

    Examples
    --------
    >>> num_workers(tuple(jax.devices()[:1])) >= 1
    True
    """
    if len(devices) > 1 or devices[0].platform != "cpu":
        return 1
    return max(1, _num_cores() // len(jax.local_devices()))


def side_by_side(calls: Sequence[Callable[[], Result]], workers: int) -> list[Result]:
    """Results of the calls, in their order.

    Parameters
    ----------
    calls
        Functions without arguments that wait for what they compute.
    workers
        How many of them may be under way at once.

    Examples
    --------
    >>> side_by_side([lambda: 1, lambda: 2, lambda: 3], workers=2)
    [1, 2, 3]
    """
    if workers == 1 or len(calls) == 1:
        return [call() for call in calls]
    return list(_pool(workers).map(lambda call: call(), calls))


@lru_cache(maxsize=1)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="runs")


def _num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
