"""Comparing stored numbers with recomputed ones."""

import math
from typing import Any

import numpy as np

RELATIVE_TOLERANCE = 1e-9
# Log-likelihoods and bounds are differences of larger numbers: near 0 only their absolute error is small.
ABSOLUTE_TOLERANCE = 1e-9


def differences(stored: Any, computed: Any, path: str = "") -> list[str]:
    """Where two JSON documents differ, one sentence each.

    Numbers may differ by rounding: by 1e-9 of their size, and, unless they are p- or q-values, by 1e-9.

    Examples
    --------
    >>> differences({"direct": {"epsilon": 3.5}}, {"direct": {"epsilon": 2.5}})
    ['direct.epsilon is 3.5, recomputed 2.5']
    """
    if isinstance(stored, dict) and isinstance(computed, dict):
        paths = {key: f"{path}.{key}" if path else str(key) for key in stored.keys() | computed.keys()}
        lacking = [f"{paths[key]} is missing" for key in computed if key not in stored]
        unknown = [f"{paths[key]} is not a number of the report" for key in stored if key not in computed]
        shared = [key for key in computed if key in stored]
        return (
            lacking
            + unknown
            + [text for key in shared for text in differences(stored[key], computed[key], paths[key])]
        )
    if isinstance(stored, list) and isinstance(computed, list):
        if len(stored) != len(computed):
            return [f"{path} has {len(stored)} entries, recomputed {len(computed)}"]
        pairs = enumerate(zip(stored, computed))
        return [text for index, (old, new) in pairs for text in differences(old, new, f"{path}[{index}]")]
    return [] if _same(stored, computed, path) else [f"{path} is {stored!r}, recomputed {computed!r}"]


def _same(stored: Any, computed: Any, path: str) -> bool:
    exact = isinstance(stored, bool | str | None) or isinstance(computed, bool | str | None)
    if exact or not isinstance(stored, float | int) or not isinstance(computed, float | int):
        return type(stored) is type(computed) and stored == computed
    absolute = 0.0 if "p_value" in path or "q_value" in path else ABSOLUTE_TOLERANCE
    return math.isclose(stored, computed, rel_tol=RELATIVE_TOLERANCE, abs_tol=absolute)


def same_array(stored: np.ndarray, computed: np.ndarray) -> bool:
    """Whether an array is the recomputed one: integers exactly, floats up to rounding, NaN where NaN was.

    Examples
    --------
    >>> same_array(np.array([0.1 + 0.2, np.nan]), np.array([0.3, np.nan])), same_array(np.ones(2), np.ones(3))
    (True, False)
    """
    if stored.shape != computed.shape or stored.dtype.kind != computed.dtype.kind:
        return False
    if stored.dtype.kind != "f":
        return bool(np.array_equal(stored, computed))
    return bool(np.allclose(stored, computed, RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE, equal_nan=True))
