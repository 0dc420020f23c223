"""Learning rates as functions of the update number: checked and named, carried out by optax.

All schedules step per update, also where the reference code steps per epoch (its cosine schedule does).
"""

from typing import Literal, get_args

import optax

from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.errors import InputError

ScheduleName = Literal["linear", "one-cycle", "cosine", "constant"]


def linear(peak: float, num_updates: int, end: float = 0.0) -> optax.Schedule:
    """From ``peak`` at update 0 along a line to ``end`` at ``num_updates``, which it keeps.

    Parameters
    ----------
    peak
        First value, positive.
    num_updates
        The paper's T, at least 1. Updates are numbered 0 to T - 1, so the last one is just short of ``end``.
    end
        Last value, not negative.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> [round(float(linear(0.4, 4)(step)), 6) for step in (0, 1, 3, 9)]
    [0.4, 0.3, 0.1, 0.0]
    """
    return optax.linear_schedule(_positive("peak", peak), _not_negative("end", end), _length(num_updates))


def constant(peak: float) -> optax.Schedule:
    """Always ``peak``, which is positive.

    Examples
    --------
    >>> constant(0.1)(1000)
    0.1
    """
    return optax.constant_schedule(_positive("peak", peak))


def cosine(peak: float, num_updates: int, end: float = 0.0) -> optax.Schedule:
    """Half a cosine wave: ``end + (peak - end) (1 + cos(pi t / T)) / 2`` at update ``t <= T``, then ``end``.

    The reference code of the paper keeps the value of an epoch for all its updates (``T`` epochs, ``end = 1e-4``);
    here it changes at every update.

    Parameters
    ----------
    peak
        First value, positive.
    num_updates
        The paper's T, at least 1.
    end
        Last value, not negative.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Loshchilov and Hutter (2017), SGDR: Stochastic Gradient Descent with Warm Restarts.

    Examples
    --------
    >>> [round(float(cosine(0.4, 4)(step)), 6) for step in (0, 2, 4, 9)]
    [0.4, 0.2, 0.0, 0.0]
    """
    peak, end = _positive("peak", peak), _not_negative("end", end)
    return optax.cosine_decay_schedule(peak, _length(num_updates), alpha=end / peak)


def one_cycle(
    peak: float,
    num_updates: int,
    *,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div: float = 25.0,
    final_div: float = 1e4,
) -> optax.Schedule:
    """Up to a peak, down again, and out: three straight lines, constant afterwards.

        peak / div at 0, peak at int(pct_start T), peak / div at int(pct_final T), peak / (div final_div) at T

    The schedule of the paper's CIFAR-100 trainings (peak 0.06) and of their fine-tuning (peak 0.1), Appendix G. A run
    so short that both inner points fall on the same update has no peak: the rate falls along one line.

    Parameters
    ----------
    peak
        Largest value, positive.
    num_updates
        The paper's T, at least 1.
    pct_start, pct_final
        Fractions of T at which the peak is reached and at which the descent from it ends; 0 < start < final < 1.
    div, final_div
        How many times smaller than the peak the first value is, and than the first value the last; at least 1.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Smith and Topin (2017), Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates.

    Examples
    --------
    >>> [round(float(one_cycle(0.5, 100)(step)), 6) for step in (0, 15, 30, 85, 100)]
    [0.02, 0.26, 0.5, 0.02, 2e-06]
    """
    peak, num_updates = _positive("peak", peak), _length(num_updates)
    if not 0 < pct_start < pct_final < 1:
        raise InputError(
            f"pct_start and pct_final must satisfy 0 < start < final < 1, got {pct_start} and {pct_final}"
        )
    for name, value in (("div", div), ("final_div", final_div)):
        if check_real(name, value) < 1:
            raise InputError(f"{name} must be at least 1, got {value}")
    if int(pct_start * num_updates) == int(pct_final * num_updates):
        # optax would multiply two scales that belong to the same update.
        return optax.linear_schedule(peak / div, peak / (div * final_div), num_updates)
    return optax.linear_onecycle_schedule(num_updates, peak, pct_start, pct_final, div, final_div)


def make_schedule(
    name: ScheduleName, learning_rate: float, num_updates: int, end_learning_rate: float = 0.0
) -> optax.Schedule:
    """The schedule of that name.

    Parameters
    ----------
    name
        ``linear``, ``one-cycle``, ``cosine`` or ``constant``.
    learning_rate
        First value; of ``one-cycle`` the largest.
    num_updates
        The paper's T, at least 1.
    end_learning_rate
        Last value of ``linear`` and ``cosine``. The others have no end of their own: 0 (or that of ``constant``).

    Raises
    ------
    InputError
        If the name is unknown, an argument is out of range, or the end would be ignored.

    Examples
    --------
    >>> make_schedule("constant", 0.1, 10)(3)
    0.1
    >>> make_schedule("step", 0.1, 10)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: schedule must be one of linear, one-cycle, cosine, constant, got 'step'
    """
    check_choice("schedule", name, get_args(ScheduleName))
    if name == "linear":
        return linear(learning_rate, num_updates, end_learning_rate)
    if name == "cosine":
        return cosine(learning_rate, num_updates, end_learning_rate)
    allowed = (0.0, learning_rate) if name == "constant" else (0.0,)
    if end_learning_rate not in allowed:
        raise InputError(f"end_learning_rate must be 0 with the schedule {name}, got {end_learning_rate}")
    return constant(learning_rate) if name == "constant" else one_cycle(learning_rate, num_updates)


def _positive(name: str, value: float) -> float:
    if check_real(name, value) <= 0:
        raise InputError(f"{name} must be positive, got {value}")
    return value


def _not_negative(name: str, value: float) -> float:
    if check_real(name, value) < 0:
        raise InputError(f"{name} must not be negative, got {value}")
    return value


def _length(num_updates: int) -> int:
    return check_integer("num_updates", num_updates, low=1)
