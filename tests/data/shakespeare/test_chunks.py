from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxaudit.data.shakespeare.chunks import (
    Chunk,
    cut_windows,
    make_chunks,
    split_speech,
    window_starts,
)
from jaxaudit.data.shakespeare.roles import Role
from jaxaudit.data.shakespeare.speech import Speech
from jaxaudit.errors import InputError


def role_of(lengths, name="HAMLET"):
    speeches = [
        Speech("Hamlet", name, chr(97 + number % 26) * length) for number, length in enumerate(lengths)
    ]
    # A role is trained on the first 80 %: those after them are never forgotten.
    return Role("Hamlet", name, (*speeches, *[Speech("Hamlet", name, "TEST")] * (len(speeches) // 4 + 1)))


@settings(deadline=None)
@given(st.lists(st.integers(1, 200), min_size=60, max_size=120), st.integers(2, 8), st.integers(0, 5))
def test_chunks_hold_every_training_speech_once_and_whole(lengths, num_chunks, seed):
    role = role_of(lengths)
    chunks = make_chunks(np.random.default_rng(seed), [role], num_chunks, least=30)
    assert [chunk.number for chunk in chunks] == list(range(num_chunks))
    found = Counter(speech for chunk in chunks for speech in chunk.speeches)
    assert found == Counter(role.train)
    assert min(len(chunk.text) for chunk in chunks) >= 30
    # No chunk is further from an equal share than two speeches.
    share = sum(map(len, (speech.text for speech in role.train))) / num_chunks
    assert max(len(chunk.text) for chunk in chunks) < share + 2 * max(lengths) + len(lengths)


def test_what_is_left_over_does_not_pile_up_in_one_chunk():
    # Chunks of two of the 57 speeches would be too few, chunks of one are 17 too many.
    chunks = make_chunks(np.random.default_rng(0), [role_of([50] * 57)], 40, 50)
    assert sorted({len(chunk.speeches) for chunk in chunks}) == [1, 2]


def test_speeches_are_shuffled():
    role = role_of([50] * 100)
    orders = [
        [
            speech.text
            for chunk in make_chunks(np.random.default_rng(seed), [role], 5, 30)
            for speech in chunk.speeches
        ]
        for seed in (0, 1)
    ]
    assert orders[0] != orders[1]
    assert orders[0] != [speech.text for speech in role.train]


def test_too_little_text():
    with pytest.raises(
        InputError, match=r"num_groups must be smaller: .* do not fill 40 chunks of at least 81"
    ):
        make_chunks(np.random.default_rng(0), [role_of([40] * 50)], 40, 81)


def test_a_chunk_knows_its_roles_and_text():
    speeches = (Speech("A", "ANN", "Ay."), Speech("B", "BOB", "No, my lord."), Speech("A", "ANN", "O!"))
    chunk = Chunk(3, speeches)
    assert chunk.name == "chunk 3"
    assert chunk.text == "Ay.\nNo, my lord.\nO!"
    assert chunk.roles == (("B", "BOB"), ("A", "ANN"))
    assert chunk.snippet() == "Ay. / No, my lord. / O!"
    assert len(chunk.snippet(10)) <= 10


@given(st.integers(1, 300), st.integers(2, 40), st.integers(1, 40))
def test_windows_are_all_that_fit(length, window, stride):
    text = np.arange(length)
    brute = [text[start : start + window + 1] for start in range(0, length, stride)]
    brute = [piece for piece in brute if len(piece) == window + 1]
    starts = window_starts(length, window, stride)
    assert len(starts) == len(brute)
    if brute:
        x, y = cut_windows(text, starts, window)
        np.testing.assert_array_equal(x, [piece[:-1] for piece in brute])
        np.testing.assert_array_equal(y, [piece[1:] for piece in brute])


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=8), min_size=1, max_size=12), st.integers(9, 60)
)
def test_long_speeches_are_cut_between_lines_or_words(lines, longest):
    speech = Speech(
        "Hamlet", "HAMLET", "\n".join(" ".join("x" * length for length in line) for line in lines)
    )
    parts = split_speech(speech, longest)
    assert " ".join(part.text for part in parts).split() == speech.text.split()
    for part, following in zip(parts, [*parts[1:], None]):
        assert len(part.text) <= longest
        if following:  # no word more would have fitted, or no line
            first = following.text.split("\n")[0]
            assert len(part.text) + 1 + len(first) > longest


def test_cut_speeches_make_chunks_nearly_equal():
    role = role_of([60])._replace(
        speeches=tuple(
            Speech("Hamlet", "HAMLET", "\n".join(["x" * 40] * count)) for count in [1, 40, 2, 3] * 10
        )
    )
    whole, cut = (
        [len(chunk.text) for chunk in make_chunks(np.random.default_rng(0), [role], 20, 41, longest)]
        for longest in (None, 100)
    )
    assert max(cut) < 1.3 * min(cut)
    assert max(whole) > 2 * min(whole)
