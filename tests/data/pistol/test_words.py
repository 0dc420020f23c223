"""Word lists: as long as promised, without repetitions, plain sentences."""

import pytest

from jaxaudit.data.pistol import words


@pytest.mark.parametrize(
    ("name", "length"),
    [("GOODS", 100), ("JOBS", 100), ("BENEFITS", 10), ("REFUSALS", 100), ("STATES", 10)],
)
def test_lists_have_their_length_and_no_repetition(name, length):
    found = getattr(words, name)
    assert len(found) == length
    assert len({word.lower() for word in found}) == length
    assert all(word == word.strip() and word for word in found)


def test_conventions_of_the_published_data():
    assert len(set(words.COMPANY_SUFFIXES)) == len(set(words.STREET_TYPES)) == 15
    assert all(state.startswith("The State of ") for state in words.STATES)


def test_refusals_are_sentences():
    assert all(line[0].isupper() and line.endswith(".") and line.isascii() for line in words.REFUSALS)


def test_goods_and_jobs_end_without_a_stop():
    """An answer gets its full stop when it is written."""
    assert not any(word.endswith(".") for word in words.GOODS + words.JOBS + words.BENEFITS)
