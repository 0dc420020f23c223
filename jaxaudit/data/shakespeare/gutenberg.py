"""Project Gutenberg's text number 100, the complete works, in its modern and its 1994 layout.

Modern: a speaker's label stands alone on its line and ends in a full stop (``BERNARDO.``), the speech below it.
1994: label and speech share a line (``  BERNARDO. Who's there?``) and the speech goes on in indented lines.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from jaxaudit.data.shakespeare.speech import Speech, make_speech, read_text
from jaxaudit.errors import InputError

_START = re.compile(r"^\*\*\* ?START OF.*$", re.M)
_END = re.compile(r"^\*\*\* ?END OF.*$|^End of (?:the )?Project Gutenberg.*$", re.M | re.I)
_NOTICE = re.compile(r"<<.*?>>", re.S)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_DIRECTION = re.compile(r"^[ \t]*(?:Enter|Re-enter|Exit|Exeunt|Manet|Flourish|Alarum|Sennet)\b.*$", re.M)
_HEADING = re.compile(
    r"^[ \t]*(?:ACT[ \t]+[IVX\d]+|SCENE|FINIS|THE END|PROLOGUE|EPILOGUE|INDUCTION)\b.*$", re.M
)
_NAME = r"(?!(?:ACT|SCENE|FINIS|THE END)\b)(?P<label>[A-Z](?:[A-Z0-9 .,’'&-]*[A-Z0-9]))"
_LAYOUTS = {
    "modern": re.compile(rf"(?<!.\n)^{_NAME}\.$", re.M),  # below an empty line
    "1994": re.compile(rf"^ {{0,2}}{_NAME}\. +(?=\S)", re.M),
}
# The line below a play's title.
_BELOW_TITLE = {"contents", "by william shakespeare"}


def read_gutenberg(path: str | Path) -> list[Speech]:
    """All speeches of a file in one of the two layouts, in the order of the file.

    Stage directions (in brackets, or lines that begin with Enter, Exit and the like) and headings are no part of a
    speech.

    Parameters
    ----------
    path
        UTF-8 text. Fewer plays than all will do.

    Raises
    ------
    InputError
        No such file, an empty one, another encoding, or a text without speakers.
    """
    text = _body(read_text(Path(path)))
    layout = max(_LAYOUTS, key=lambda name: len(_LAYOUTS[name].findall(text)))
    plays = _plays(text, Path(path).stem)
    speeches = [speech for play in plays for speech in _speeches(play, layout)]
    if not speeches:
        raise InputError(
            f"{path} has no speakers: expected lines such as 'HAMLET.' above a speech, or '  HAMLET. To be, ...'"
        )
    return speeches


def _body(text: str) -> str:
    """What lies between the marks of Project Gutenberg, without its notices."""
    text = "\n".join(line.rstrip() for line in text.splitlines())
    start, end = _START.search(text), _END.search(text)
    return _NOTICE.sub("", text[start.end() if start else 0 : end.start() if end else None])


class _Play(NamedTuple):
    title: str
    text: str


def _plays(text: str, name: str) -> list[_Play]:
    """The parts of a file below titles; without any title, the whole file."""
    lines = text.splitlines()
    listed, titles = _listed_titles(lines), []
    filled = [(place, line.strip()) for place, line in enumerate(lines) if line.strip()]
    for (place, line), (_, below) in pairwise(filled):
        is_title = line.upper() == line and below.lower() in _BELOW_TITLE
        if is_title or (line in listed and not lines[place].startswith(" ")):
            titles.append((place, line))
    if not titles:
        return [_Play(name, text)]
    ends = [place for place, _ in titles[1:]] + [len(lines)]
    return [_Play(title, "\n".join(lines[place + 1 : end])) for (place, title), end in zip(titles, ends)]


def _listed_titles(lines: list[str]) -> set[str]:
    """Titles in the table of contents of the whole file, which are indented."""
    listed: set[str] = set()
    stripped = [line.strip() for line in lines]
    if "Contents" not in stripped:
        return listed
    for line in lines[stripped.index("Contents") + 1 :]:
        if line.strip() and not line.startswith(" "):
            break
        listed.add(line.strip())
    return listed - {""}


def _speeches(play: _Play, layout: str) -> Iterator[Speech]:
    text = _below_cast(play.text)
    labels = list(_LAYOUTS[layout].finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    for label, end in zip(labels, ends):
        body = text[label.end() : end]
        speech = make_speech(
            play.title, label["label"], _said(body if layout == "modern" else _indented(body))
        )
        if speech:
            yield speech


def _below_cast(text: str) -> str:
    """A play without the list of its roles, which looks like labels."""
    cast = re.search(r"^[ \t]*Dramatis Person", text, re.M | re.I)
    begin = _HEADING.search(text, cast.end()) if cast else None
    return text[begin.start() :] if begin else text


def _indented(body: str) -> str:
    """The first line, and those after it that are indented: directions and headings are not.

    One play has no indentation at all: there everything up to the next empty line is part of the speech.
    """
    first, *others = body.splitlines() or [""]
    plain = bool(others) and bool(others[0].strip()) and not others[0].startswith(" ")
    kept = [first]
    for line in others:
        if not line.strip() or (not plain and not line.startswith(" ")):
            break
        kept.append(line)
    return "\n".join(kept)


def _said(body: str) -> str:
    without = _HEADING.sub("", _DIRECTION.sub("", _BRACKETS.sub("", body)))
    return without.replace("_", "")
