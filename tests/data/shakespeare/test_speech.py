import pytest

from jaxaudit.data.shakespeare.speech import make_speech, read_text
from jaxaudit.errors import InputError


def test_spaces_and_empty_lines_are_tidied():
    assert make_speech("Play", " first  Lord ", "\n  a \t b\n\n\n c\n").role == "FIRST LORD"
    assert make_speech("Play", "LORD", "\n  a \t b\n\n\n c\n").text == "a b\nc"
    assert make_speech("Play", "LORD", " \n\t\n") is None


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"\xef\xbb\xbfAy.")
    assert read_text(path) == "Ay."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "play.txt is empty"),
        (b" \n\n", "play.txt is empty"),
        (b"HAMLET.\nTo b\xe9", "must be UTF-8 text, got byte 0xe9 at position 12"),
        ("HAMLET.".encode("utf-16"), "must be UTF-8 text, got byte 0xff at position 0"),
    ],
)
def test_unreadable_files_are_named(tmp_path, content, message):
    path = tmp_path / "play.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_text(path)


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_text(tmp_path / "play.txt")
