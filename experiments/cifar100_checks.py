"""What was expected of a table, tested on its numbers: every sentence is written by the numbers themselves."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from cifar100_cells import Cell
from cifar100_page import Check


def shape_check(expected: str, series: Mapping[str, Sequence[Cell]], shape: str, reason: str = "") -> Check:
    """Whether the mean direct bounds of every series rise, fall, or rise and then fall ("peak inside").

    Parameters
    ----------
    expected
        The sentence to test.
    series
        Cells in their order, by name. Series of fewer than 2 cells (3 for a peak) say nothing.
    shape
        ``rises``, ``falls`` or ``peaks``; equal neighbours are allowed, but not a series that is constant.
    reason
        Why it may not show; printed only then.
    """
    least = 3 if shape == "peaks" else 2
    usable = {
        name: [cell.direct.mean for cell in cells] for name, cells in series.items() if len(cells) >= least
    }
    shown = {name: _has_shape(values, shape) for name, values in usable.items()}
    found = "; ".join(f"{name}: {_list(values)}" for name, values in usable.items())
    counted = found if len(shown) < 2 else f"{sum(shown.values())} of {len(shown)}. {found}"
    return Check(expected, all(shown.values()) if shown else None, counted, reason)


def pairs_check(
    expected: str, pairs: Mapping[str, tuple[float, float]], share: float = 1.0, reason: str = ""
) -> Check:
    """Whether the first number is above the second: in all pairs, or in more than a share of them.

    Parameters
    ----------
    expected
        The sentence to test.
    pairs
        Two numbers by name. Pairs of equal numbers, such as two zeros, decide nothing and are left out.
    share
        In [0, 1]: 1 asks for all pairs, 0.5 for most of them.
    reason
        Why it may not show; printed only then.
    """
    decided = {name: first > second for name, (first, second) in pairs.items() if first != second}
    ties = len(pairs) - len(decided)
    above = sum(decided.values())
    shows = None if not decided else above == len(decided) if share == 1 else above > share * len(decided)
    found = "; ".join(f"{name}: {first:.2f} against {second:.2f}" for name, (first, second) in pairs.items())
    counted = f"{above} of {len(decided)} decided" + (f", {ties} equal" if ties else "")
    return Check(expected, shows, f"{counted}. {found}" if pairs else "no pair", reason)


def ratio_check(
    expected: str, pairs: Mapping[str, tuple[float, float]], tolerance: float, reason: str = ""
) -> Check:
    """Whether two numbers that are not negative agree up to a relative tolerance in most pairs.

    Parameters
    ----------
    expected
        The sentence to test.
    pairs
        Two numbers by name. Pairs of two zeros say nothing and are left out.
    tolerance
        Largest difference, as a share of the larger number.
    reason
        Why it may not show; printed only then.
    """
    gaps = [abs(a - b) / max(a, b) for a, b in pairs.values() if max(a, b) > 0]
    if not gaps:
        return Check(expected, None, "no pair above 0", reason)
    within = int(np.sum(np.array(gaps) <= tolerance))
    zeros = len(pairs) - len(gaps)
    found = f"{within} of {len(gaps)} pairs within {tolerance:.0%}" + (f", {zeros} both 0" if zeros else "")
    found += f"; median gap {np.median(gaps):.1%}, largest {max(gaps):.0%}"
    return Check(expected, 2 * within > len(gaps), found, reason)


def _has_shape(values: Sequence[float], shape: str) -> bool:
    if shape == "rises":
        return all(a <= b for a, b in pairwise(values)) and values[-1] > values[0]
    if shape == "falls":
        return all(a >= b for a, b in pairwise(values)) and values[-1] < values[0]
    top = int(np.argmax(values))
    return 0 < top < len(values) - 1 and values[top] > max(values[0], values[-1])


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
