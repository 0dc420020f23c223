"""Independent arithmetic that several tests of the bound compare with: Python integers and mpmath."""

from collections.abc import Callable
from math import comb

import mpmath
import pytest


@pytest.fixture
def exact_counts() -> Callable[[int, int], list[int]]:
    """The numbers N_0..N_r as Python integers, with the ceiling that the paper prints."""

    def counts(num_groups: int, num_guesses: int) -> list[int]:
        half, rest = num_guesses // 2, num_groups - num_guesses
        result = [0] * (num_guesses + 1)
        for a1 in range(half + 1):
            for a2 in range(half + 1):
                others = -(-rest // 2) - (a1 - a2)
                if 0 <= others <= rest:
                    result[a1 + a2] += comb(rest, others) * comb(half, a1) * comb(half, a2)
        return result

    return counts


@pytest.fixture
def exact_worst_case(exact_counts) -> Callable[..., list[mpmath.mpf]]:
    """The tail W(0..r) of the direct bound in 400 digits, straight from its formula."""

    def tails(num_groups: int, num_guesses: int, epsilon: float, delta: float) -> list[mpmath.mpf]:
        mpmath.mp.dps = 400
        counts = exact_counts(num_groups, num_guesses)
        raised, atom = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(delta)
        chance = [mpmath.mpf(sum(counts[v:])) / sum(counts) for v in range(num_guesses + 1)]
        return [min(mpmath.mpf(1), raised * p + atom, 1 - 1 / raised + (p + atom) / raised) for p in chance]

    return tails
