"""The few kinds of blocks that a report is made of; `markdown` and `html` each know how to write them.

All strings are plain text: escaping is the writers' duty, so that no user string can become markup.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Warn:
    """A paragraph that must not be overlooked."""

    text: str


@dataclass(frozen=True)
class Banner:
    """What a reader must see first: a short heading and a sentence, as an alarm or in a neutral style."""

    heading: str
    text: str
    alarm: bool


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table; the first row is its header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A figure, by the name of its file."""

    name: str
    caption: str


@dataclass(frozen=True)
class Code:
    """Text to be shown as it is."""

    text: str


@dataclass(frozen=True)
class Link:
    """A link to another page of the same kind, by its path from this one without its suffix."""

    text: str
    target: str


Block = Text | Warn | Banner | Bullets | Table | Figure | Code | Link


@dataclass(frozen=True)
class Section:
    """A heading and what is below it. Level 2 is a chapter, level 3 a part of the chapter before it."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2
