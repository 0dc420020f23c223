"""Overlaps against the formula of Algorithm 1, and every malformed guess."""

import itertools
from collections import Counter

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.overlap import check_guesses, overlap


def balanced(num_groups: int) -> list[tuple[int, ...]]:
    return [s for s in itertools.product((-1, 1), repeat=num_groups) if s.count(1) == num_groups // 2]


@pytest.mark.parametrize("num_groups", [2, 3, 4, 5, 6])
def test_overlap_is_the_formula_for_every_guess_and_sign_vector(num_groups):
    for half in range(1, num_groups // 2 + 1):
        guesses = [
            g for g in itertools.product((-1, 0, 1), repeat=num_groups) if g.count(1) == g.count(-1) == half
        ]
        pairs = list(itertools.product(guesses, balanced(num_groups)))
        expected = [sum(max(0, a * b) for a, b in zip(g, s)) for g, s in pairs]
        found = overlap([g for g, _ in pairs], [s for _, s in pairs])
        assert found.dtype == np.int64
        assert found.tolist() == expected


def test_overlap_does_not_depend_on_which_guess_vector():
    counts = {
        guess: Counter(overlap([guess] * 20, balanced(6)).tolist())
        for guess in itertools.product((-1, 0, 1), repeat=6)
        if guess.count(1) == guess.count(-1) == 2
    }
    assert len(set(map(str, map(sorted, (c.items() for c in counts.values()))))) == 1


@pytest.mark.parametrize(
    ("guesses", "message"),
    [
        ([[1, -1, 0, 2]], "guesses must be -1, 0 or \\+1, got 2"),
        ([[1, -1, 0, 0.5]], "guesses must be -1, 0 or \\+1, got 0.5"),
        ([[1, -1, 0, np.nan]], "guesses must be -1, 0 or \\+1, got nan"),
        ([[1, 0, 0, 0]], r"as many \+1 as -1 in every row, got 1 and 0 in row 0"),
        ([[1, -1, 0, 0], [1, 1, -1, -1]], r"as many \+1 as in row 0 in every row, got 2 and 1 in row 1"),
        ([[0, 0, 0, 0]], r"at least one \+1 and one -1 in every row, got none"),
        ([1, -1, 0, 0], r"shape \(runs >= 1, groups\), got \(4,\)"),
        (np.zeros((0, 4)), r"shape \(runs >= 1, groups\), got \(0, 4\)"),
    ],
)
def test_malformed_guesses_are_errors(guesses, message):
    with pytest.raises(InputError, match=message):
        check_guesses(guesses)


def test_signs_and_shapes_are_checked():
    with pytest.raises(InputError, match="signs must have exactly 2 of 4 entries"):
        overlap([[1, -1, 0, 0]], [[1, 1, 1, -1]])
    with pytest.raises(InputError, match=r"guesses must have the shape \(2, 4\) of signs, got \(1, 4\)"):
        overlap([[1, -1, 0, 0]], [[1, 1, -1, -1]] * 2)
