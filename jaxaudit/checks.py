"""Checks of the arguments that every bound takes: each message names the argument and the value it got."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from jaxaudit.errors import InputError


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int of at least `low` and at most `high`.

    Examples
    --------
    >>> check_integer("num_runs", 0, low=1)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: num_runs must be an integer of at least 1, got 0
    """
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name} must be an integer {limits}, got {value!r}")
    return int(value)


def check_groups(num_groups: Any) -> int:
    """The number of candidate groups (the paper's m): an integer of at least 2."""
    return check_integer("num_groups", num_groups, low=2)


def check_design(num_groups: Any, num_guesses: Any) -> tuple[int, int]:
    """The number of groups (m >= 2) and of guesses (r even, 2 <= r <= m).

    Examples
    --------
    >>> check_design(6, 3)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: num_guesses must be even, got 3
    """
    num_groups = check_groups(num_groups)
    num_guesses = check_integer("num_guesses", num_guesses, low=2, high=num_groups)
    if num_guesses % 2:
        raise InputError(f"num_guesses must be even, got {num_guesses}")
    return num_groups, num_guesses


def check_runs(num_runs: Any) -> int:
    """The number of audited runs (the paper's L): an integer of at least 1."""
    return check_integer("num_runs", num_runs, low=1)


def check_real(name: str, value: Any) -> float:
    """`value` as a finite float."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def check_positive(**arguments: Any) -> None:
    """Every argument is a finite number above 0.

    Examples
    --------
    >>> check_positive(clip=-0.1)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: clip must be positive, got -0.1
    """
    for name, value in arguments.items():
        if check_real(name, value) <= 0:
            raise InputError(f"{name} must be positive, got {value}")


def check_not_negative(**arguments: Any) -> None:
    """Every argument is a finite number of at least 0."""
    for name, value in arguments.items():
        if check_real(name, value) < 0:
            raise InputError(f"{name} must not be negative, got {value}")


def check_open_delta(delta: Any) -> None:
    """A delta in (0, 1)."""
    if not 0 < check_real("delta", delta) < 1:
        raise InputError(f"delta must be in (0, 1), got {delta}")


def check_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """A finite epsilon of at least 0."""
    epsilon = check_real(name, epsilon)
    if epsilon < 0:
        raise InputError(f"{name} must not be negative, got {epsilon}")
    return epsilon


def check_delta(delta: Any, name: str = "delta") -> float:
    """A delta in [0, 1)."""
    delta = check_real(name, delta)
    if not 0 <= delta < 1:
        raise InputError(f"{name} must be in [0, 1), got {delta}")
    return delta


def check_significance(significance: Any) -> float:
    """A level (the paper's zeta) in (0, 1)."""
    significance = check_real("significance", significance)
    if not 0 < significance < 1:
        raise InputError(f"significance must be in (0, 1), got {significance}")
    return significance


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """`value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_overlaps(overlaps: ArrayLike, num_guesses: int) -> Int[np.ndarray, " runs"]:
    """The overlaps of at least one run: whole numbers in 0..num_guesses (floats such as 3.0 pass).

    Examples
    --------
    >>> check_overlaps([4, 7], num_guesses=6)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: overlaps must be integers between 0 and num_guesses = 6, got 7
    """
    values = np.asarray(overlaps)
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"overlaps must be one number per run, at least one run, got shape {values.shape}")
    if values.dtype.kind not in "iuf":
        raise InputError(f"overlaps must be integers, got dtype {values.dtype}")
    # NaN fails every comparison, so it is caught here too.
    good = (values >= 0) & (values <= num_guesses) & (values == np.floor(values))
    if not good.all():
        raise InputError(
            f"overlaps must be integers between 0 and num_guesses = {num_guesses}, got {values[~good][0]}"
        )
    return values.astype(np.int64)
