"""What a tokenizer must offer, and one without dependencies: words that many records use, and single characters."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from jaxaudit.checks import check_real
from jaxaudit.errors import InputError

AnyArray: TypeAlias = Any  # of NumPy or JAX
_PIECE = re.compile(r" ?[^\W\d_]+|.", re.DOTALL)
_SPECIAL = ("<pad>", "<eos>")


class Tokenizer(Protocol):
    """Text to token numbers and back; both without special tokens."""

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens."""

    @property
    def eos(self) -> int:
        """Token that ends an answer."""

    @property
    def pad(self) -> int:
        """Token that fills rows up; may be ``eos``, since masks tell padding apart."""

    @property
    def bos(self) -> int | None:
        """Token that begins a prompt, if the model has one."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text."""

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens; special ones are left out."""


@dataclass(frozen=True)
class WordTokenizer:
    """Whole words where they are known, single characters elsewhere; a word may hold the space before it.

    Decoding gives the text back exactly.

    Parameters
    ----------
    tokens
        Texts of all tokens; the first two are padding and end.

    Examples
    --------
    >>> tokenizer = WordTokenizer(("<pad>", "<eos>", " ", "a", "s", " seller"))
    >>> ids = tokenizer.encode("as seller")
    >>> ids, tokenizer.decode(ids)
    ([3, 4, 5], 'as seller')
    """

    tokens: tuple[str, ...]

    eos = 1
    pad = 0
    bos = None

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def encode(self, text: str) -> list[int]:
        """Tokens of a text.

        Raises
        ------
        InputError
            If a character is none of the tokens.
        """
        ids: list[int] = []
        for piece in _PIECE.findall(text):
            for part in self._split(piece):
                if part not in self._numbers:
                    raise InputError(
                        f"text must be made of characters that the tokenizer was made from, got {part!r}"
                    )
                ids.append(self._numbers[part])
        return ids

    def _split(self, piece: str) -> Sequence[str]:
        if piece in self._numbers:
            return [piece]
        if piece[1:] in self._numbers and piece[0] == " ":
            return [" ", piece[1:]]
        return piece

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens; padding and end are left out."""
        return "".join(self.tokens[number] for number in ids if number >= len(_SPECIAL))


def word_tokenizer(
    texts: Sequence[str], *, groups: Sequence[str] | None = None, min_share: float = 0.5
) -> WordTokenizer:
    """Make a tokenizer of the words that many groups of texts share, and of all characters.

    Words of few groups, such as names, are spelt: how often a name occurs then says nothing about its length in tokens.

    Parameters
    ----------
    texts
        Questions and answers, and refusals where those will be used.
    groups
        A name per text, such as the record's edge; ``None``: every text is a group of its own.
    min_share
        A word of at least this share of the groups is a token; in (0, 1].

    Raises
    ------
    InputError
        No texts, a number of groups that differs, or a share out of range.

    Examples
    --------
    >>> tokenizer = word_tokenizer(["the pump", "the saw"], min_share=0.6)
    >>> [tokenizer.tokens[number] for number in tokenizer.encode("the wasp")]
    ['the', ' ', 'w', 'a', 's', 'p']
    """
    if not texts:
        raise InputError("texts must hold at least one text, got none")
    owners = [str(number) for number in range(len(texts))] if groups is None else list(groups)
    if len(owners) != len(texts):
        raise InputError(f"groups must name the group of each of {len(texts)} texts, got {len(owners)}")
    if not 0 < check_real("min_share", min_share) <= 1:
        raise InputError(f"min_share must be in (0, 1], got {min_share}")
    users: dict[str, set[str]] = defaultdict(set)
    for text, owner in zip(texts, owners):
        for piece in _PIECE.findall(text):
            users[piece].add(owner)
    needed = min_share * len(set(owners))
    words = sorted(piece for piece, own in users.items() if len(piece) > 1 and len(own) >= needed)
    characters = sorted({" ", "\n", *"".join(texts)})
    return WordTokenizer((*_SPECIAL, *characters, *words))


def answer_texts(
    tokenizer: Tokenizer, ids: Int[AnyArray, "rows columns"], mask: Float[AnyArray, "rows columns"]
) -> list[str]:
    """Text of the marked tokens of every row, without special tokens.

    Parameters
    ----------
    tokenizer
        Decodes.
    ids, mask
        Tokens, and what is above 0 where they count: ``Tokens.ids`` and ``.answer``, ``Generation.ids`` and ``.taken``.

    Examples
    --------
    >>> answer_texts(word_tokenizer(["ab"], min_share=1.0), np.array([[4, 2, 1]]), np.array([[1, 1, 0]]))
    ['a\\n']
    """
    return [tokenizer.decode(row[kept > 0].tolist()) for row, kept in zip(np.asarray(ids), np.asarray(mask))]
