"""Both layouts of Project Gutenberg's text, on a made-up one: its own text cannot be part of the tests."""

import pytest

from jaxaudit.data.shakespeare.gutenberg import read_gutenberg
from jaxaudit.errors import InputError
from tests.data.shakespeare import texts

PLAYS = ["THE TALE OF ANN", "KING BOB"]
LAYOUTS = {
    "modern": texts.modern,
    "1994": texts.layout_1994,
    "1994 without indentation": lambda plays: texts.layout_1994(plays, indent=""),
}


def expected():
    return [
        (play, role, f"{first}\n{second}")
        for play in PLAYS
        for role, first, second in texts.speeches(play, 5)
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_speech_is_found_with_its_play_and_role(tmp_path, layout):
    path = tmp_path / "pg100.txt"
    path.write_text(LAYOUTS[layout](PLAYS), encoding="utf-8")
    assert [tuple(speech) for speech in read_gutenberg(path)] == expected()


def test_line_ends_of_other_systems(tmp_path):
    path = tmp_path / "pg100.txt"
    path.write_bytes(texts.modern(PLAYS).replace("\n", "\r\n").encode())
    assert [tuple(speech) for speech in read_gutenberg(path)] == expected()


def test_a_single_play_is_called_by_its_file(tmp_path):
    path = tmp_path / "hamlet.txt"
    path.write_text("BERNARDO.\nWho's there?\n\nFRANCISCO.\nNay, answer me.\nSCENE II.\n")
    assert [tuple(speech) for speech in read_gutenberg(path)] == [
        ("hamlet", "BERNARDO", "Who's there?"),
        ("hamlet", "FRANCISCO", "Nay, answer me."),
    ]


@pytest.mark.parametrize(
    "text", ["To be, or not to be.\n", "ACT I.\n\nSCENE 1.\nA street.\n", "HAMLET.\n\nOTHELLO.\n"]
)
def test_a_text_without_speakers_is_refused(tmp_path, text):
    path = tmp_path / "poem.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"poem\.txt has no speakers: expected lines such as 'HAMLET\.'"):
        read_gutenberg(path)
