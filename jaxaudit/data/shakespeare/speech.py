"""A speech: what one role says in one go."""

import re
from pathlib import Path
from typing import NamedTuple

from jaxaudit.border import check_is_file
from jaxaudit.errors import InputError

_SPACE = re.compile(r"[ \t]+")


class Speech(NamedTuple):
    """A dialogue block: what one role says until another one speaks."""

    play: str
    role: str
    """The speaker label, in capitals."""
    text: str
    """Lines of the speech, joined by line feeds; not empty."""


def make_speech(play: str, label: str, text: str) -> Speech | None:
    """A speech with tidy spaces and without empty lines; ``None`` if nothing is said.

    Examples
    --------
    >>> make_speech("Hamlet", "Bernardo ", "  Who's   there? \\n\\n")
    Speech(play='Hamlet', role='BERNARDO', text="Who's there?")
    """
    lines = (_SPACE.sub(" ", line).strip() for line in text.splitlines())
    said = "\n".join(line for line in lines if line)
    return Speech(play, _SPACE.sub(" ", label).strip().upper(), said) if said else None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without byte-order mark.

    Raises
    ------
    InputError
        No such file, another encoding, or an empty file.
    """
    check_is_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} must be UTF-8 text, got byte 0x{error.object[error.start]:02x} at position {error.start}"
        ) from None
    if not text.strip():
        raise InputError(f"{path} is empty")
    return text
