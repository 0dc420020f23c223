"""Kinds of attribute values: each draws a value as text, and says whether a text is one of its values.

A contract type is a table of these, see `jaxaudit.data.pistol.contracts`. Values are written without the
full stop that ends every answer.
"""

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jaxaudit.checks import check_integer
from jaxaudit.data.pistol.words import STREET_TYPES
from jaxaudit.errors import InputError

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ADDRESS = re.compile(rf"\d{{3}} [A-Z][a-z]{{5}} ({'|'.join(STREET_TYPES)})")


class Source(Protocol):
    """What a value is drawn from: the randomness of one contract and what is already known about it."""

    rng: np.random.Generator
    values: dict[str, str]

    def address(self) -> str:
        """An address that nothing else in the data has."""

    def next_word(self, words: tuple[str, ...]) -> str:
        """The word of this contract: contracts of one type use up the list in a shuffled order."""


class Value(Protocol):
    """One kind of value."""

    def draw(self, source: Source) -> str:
        """A random value."""

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` can be drawn in a contract with these other values."""


@dataclass(frozen=True)
class Integer:
    """A whole number, uniform on ``low, low + step, ..., high``, then ``suffix`` (such as ``%``).

    Examples
    --------
    >>> Integer(5, 30, step=5).accepts("25", {}), Integer(1, 5, suffix="%").accepts("6%", {})
    (True, False)
    """

    low: int
    high: int
    step: int = 1
    suffix: str = ""

    def __post_init__(self) -> None:
        check_integer("low", self.low, low=0)
        check_integer("high", self.high, low=self.low)
        check_integer("step", self.step, low=1)

    def draw(self, source: Source) -> str:
        """A random value."""
        steps = (self.high - self.low) // self.step
        return f"{self.low + self.step * int(source.rng.integers(steps + 1))}{self.suffix}"

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` is one of these numbers, with its suffix."""
        digits = text.removesuffix(self.suffix)
        return (
            text.endswith(self.suffix)
            and re.fullmatch(r"\d+", digits, re.ASCII) is not None
            and int(digits) in range(self.low, self.high + 1, self.step)
        )


@dataclass(frozen=True)
class Date:
    """A day as ``dd-mm-yyyy``: a uniform year, then a uniform month, then a uniform day of it.

    Examples
    --------
    >>> Date().accepts("29-02-2000", {}), Date().accepts("29-02-2001", {})
    (True, False)
    """

    first_year: int = 1980
    last_year: int = 2019

    def __post_init__(self) -> None:
        check_integer("first_year", self.first_year, low=1000)
        check_integer("last_year", self.last_year, low=self.first_year, high=9999)

    def draw(self, source: Source) -> str:
        """A random value."""
        year = int(source.rng.integers(self.first_year, self.last_year + 1))
        month = int(source.rng.integers(1, 13))
        day = int(source.rng.integers(1, calendar.monthrange(year, month)[1] + 1))
        return f"{day:02}-{month:02}-{year}"

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` is a day of these years."""
        if not re.fullmatch(r"\d\d-\d\d-\d{4}", text, re.ASCII):
            return False
        day, month, year = map(int, text.split("-"))
        return (
            self.first_year <= year <= self.last_year
            and 1 <= month <= 12
            and 1 <= day <= calendar.monthrange(year, month)[1]
        )


@dataclass(frozen=True)
class Choice:
    """One of a few options, uniform."""

    options: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_words("options", self.options)

    def draw(self, source: Source) -> str:
        """A random value."""
        return str(self.options[int(source.rng.integers(len(self.options)))])

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` is one of the options."""
        return text in self.options


@dataclass(frozen=True)
class Word:
    """A word of an open list: drawn from ``words``, but other data may use other words.

    With ``unique``, contracts of one type use up the list in an order that depends on the seed, so that the
    word is unique while the list lasts; then it starts again.
    """

    words: tuple[str, ...]
    unique: bool = False

    def __post_init__(self) -> None:
        _check_words("words", self.words)

    def draw(self, source: Source) -> str:
        """A random value."""
        return source.next_word(self.words) if self.unique else Choice(self.words).draw(source)

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` is a word at all."""
        return bool(text.strip())


@dataclass(frozen=True)
class Address:
    """An address of its own: three digits, six letters, a street type."""

    def draw(self, source: Source) -> str:
        """A random value."""
        return source.address()

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` has the form of an address."""
        return _ADDRESS.fullmatch(text) is not None


@dataclass(frozen=True)
class Product:
    """The product of two attributes of the same contract that are whole numbers.

    Examples
    --------
    >>> Product("quantity", "price").accepts("12", {"quantity": "3", "price": "4"})
    True
    """

    first: str
    second: str

    def draw(self, source: Source) -> str:
        """The product of the two values drawn before."""
        return str(int(source.values[self.first]) * int(source.values[self.second]))

    def accepts(self, text: str, values: Mapping[str, str]) -> bool:
        """Whether ``text`` is the product."""
        factors = values[self.first], values[self.second]
        if not all(re.fullmatch(r"\d+", factor, re.ASCII) for factor in factors):
            return False
        return text == str(int(factors[0]) * int(factors[1]))


def draw_word(rng: np.random.Generator, length: int) -> str:
    """Random letters, the first in upper case."""
    return "".join(_LETTERS[index] for index in rng.integers(len(_LETTERS), size=length)).capitalize()


def draw_address(rng: np.random.Generator) -> str:
    """Three digits, six letters, a street type, such as ``044 Rcvvyy Court``.

    Examples
    --------
    >>> Address().accepts(draw_address(np.random.default_rng(0)), {})
    True
    """
    number, street = int(rng.integers(1000)), draw_word(rng, 6)
    return f"{number:03} {street} {STREET_TYPES[int(rng.integers(len(STREET_TYPES)))]}"


def _check_words(name: str, words: tuple[str, ...]) -> None:
    if not words or not all(isinstance(word, str) and word.strip() for word in words):
        raise InputError(f"{name} must be at least one text, none of them empty, got {words!r}")
    if len(set(words)) < len(words):
        raise InputError(f"{name} must not repeat a text, got {words!r}")
