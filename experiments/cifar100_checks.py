"""What was expected of a table, tested on its numbers: every sentence is written by the numbers themselves."""

from collections.abc import Mapping, Sequence

import numpy as np
from cifar100_cells import Cell
from cifar100_page import Check


def shape_check(expected: str, series: Mapping[str, Sequence[Cell]], shape: str) -> Check:
    """Whether the mean direct bounds of every series rise, fall, or rise and then fall ("peak inside").

    Parameters
    ----------
    expected
        The sentence to test.
    series
        Cells in their order, by name. Series of fewer than 2 cells (3 for a peak) say nothing.
    shape
        ``rises``, ``falls`` or ``peaks``; equal neighbours are allowed, but not a series that is constant.
    """
    least = 3 if shape == "peaks" else 2
    usable = {
        name: [cell.direct.mean for cell in cells] for name, cells in series.items() if len(cells) >= least
    }
    shown = {name: _has_shape(values, shape) for name, values in usable.items()}
    found = "; ".join(f"{name}: {_list(values)}" for name, values in usable.items())
    return Check(expected, all(shown.values()) if shown else None, _counted(shown, found))


def pairs_check(expected: str, pairs: Mapping[str, tuple[float, float]], share: float = 1.0) -> Check:
    """Whether the first number is at least the second, in at least this share of the pairs."""
    shown = {name: first >= second for name, (first, second) in pairs.items()}
    found = "; ".join(f"{name}: {first:.2f} against {second:.2f}" for name, (first, second) in pairs.items())
    return Check(
        expected, float(np.mean(list(shown.values()))) >= share if shown else None, _counted(shown, found)
    )


def ratio_check(expected: str, pairs: Mapping[str, tuple[float, float]], tolerance: float) -> Check:
    """Whether two numbers agree up to a relative tolerance in most pairs; pairs of two zeros agree."""
    gaps = [abs(a - b) / max(abs(a), abs(b), 1e-9) for a, b in pairs.values()]
    if not gaps:
        return Check(expected, None, "no pair")
    within = int(np.sum(np.array(gaps) <= tolerance))
    found = f"{within} of {len(gaps)} pairs within {tolerance:.0%}; median gap {np.median(gaps):.1%}"
    return Check(expected, 2 * within > len(gaps), f"{found}, largest {max(gaps):.0%}")


def _has_shape(values: Sequence[float], shape: str) -> bool:
    steps = np.diff(values)
    if shape == "rises":
        return bool((steps >= 0).all() and values[-1] > values[0])
    if shape == "falls":
        return bool((steps <= 0).all() and values[-1] < values[0])
    top = int(np.argmax(values))
    return 0 < top < len(values) - 1 and values[top] > max(values[0], values[-1])


def _counted(shown: Mapping[str, bool], found: str) -> str:
    if len(shown) < 2:
        return found
    return f"{sum(shown.values())} of {len(shown)}. {found}"


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
