"""Guesses and overlaps: counted, agreed on, judged."""

from dataclasses import replace

import numpy as np
import pytest

from jaxaudit.analysis import Claim
from jaxaudit.bound import epsilon_lower_bound
from jaxaudit.cli.counting import agreed, count, count_notes, finish_count
from jaxaudit.errors import InputError
from jaxaudit.scorefile import GuessFile, OverlapFile

SIGNS = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [-1, -1, 1, 1]])
GUESSES = np.array([[1, 0, -1, 0], [0, 1, 0, -1], [1, 0, -1, 0]])


def guess_file(failed=(False, False, False)):
    return GuessFile(GUESSES, SIGNS, np.array(failed), np.array([7, 8, 9]))


def test_right_guesses_are_counted():
    counts = count(guess_file())
    assert counts.overlaps.tolist() == [2, 1, 0]
    assert (counts.num_groups, counts.num_guesses) == (4, 2)


def test_failed_run_counts_nothing_whatever_it_guessed():
    counts = count(guess_file(failed=(True, False, False)))
    assert counts.overlaps.tolist() == [0, 1, 0]
    assert counts.failed.tolist() == [True, False, False]


def test_nothing_is_known_about_guesses_if_every_run_failed():
    counts = count(guess_file(failed=(True, True, True)))
    assert (counts.overlaps.tolist(), counts.num_groups, counts.num_guesses) == ([0, 0, 0], 4, None)


def test_overlaps_are_taken_as_they_are():
    evidence = OverlapFile(np.array([2, 1]), None, 2, np.array([False, True]), np.array([0, 1]))
    counts = count(evidence)
    assert (counts.overlaps.tolist(), counts.num_groups, counts.num_guesses) == ([2, 0], None, 2)


def test_sources_must_agree():
    assert agreed("num_groups", {"the file": 4, "the option": None, "the design": 4}) == 4
    with pytest.raises(
        InputError, match="num_groups must be the same everywhere, got 4 in the file, 6 in the op"
    ):
        agreed("num_groups", {"the file": 4, "the option": 6})
    with pytest.raises(InputError, match="num_groups must be given: neither the file nor the option says it"):
        agreed("num_groups", {"the file": None, "the option": None})


NONE_FAILED = np.zeros(10, bool)


def test_failed_runs_do_not_look_like_wrong_guesses():
    failed = np.arange(10) < 6
    half_failed = epsilon_lower_bound([0] * 6 + [3] * 4, num_groups=6, num_guesses=6)
    assert half_failed.below_chance
    assert count_notes(half_failed, failed) == ()
    assert count_notes(replace(half_failed, overlaps=(0,) * 10), np.ones(10, bool)) == ()
    wrong = epsilon_lower_bound([0] * 10, num_groups=6, num_guesses=6)
    (note,) = count_notes(wrong, failed)
    four = epsilon_lower_bound([0] * 4, num_groups=6, num_guesses=6)
    assert f"significantly worse than chance (p = {four.below_chance_p_value:.1e})" in note
    assert "worse than chance" in count_notes(half_failed, NONE_FAILED)[0]


@pytest.mark.parametrize("excess", [-1e-6, 1e-6])
def test_claim_is_falsified_exactly_below_the_bound(capsys, excess):
    bound = epsilon_lower_bound([6] * 9 + [5], num_groups=6, num_guesses=6)
    rest = {"registered": True, "as_json": False}
    code = finish_count(bound, NONE_FAILED, Claim(bound.epsilon + excess), notes=("mine",), **rest)
    assert code == (3 if excess < 0 else 0)
    assert "note: mine" in capsys.readouterr().out
    assert finish_count(bound, NONE_FAILED, None, notes=(), **rest) == 0
