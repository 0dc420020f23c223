"""Byte-pair encoding through the package ``tokenizers``: trained on the data, or the tokenizer of a published model."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxaudit.border import check_is_file
from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError

_PAD, _EOS = "<pad>", "<eos>"


@dataclass(frozen=True, eq=False)
class SubwordTokenizer:
    """A tokenizer of the package ``tokenizers`` with the special tokens that answers need.

    Parameters
    ----------
    inner
        A ``tokenizers.Tokenizer``.
    eos, pad, bos
        Numbers of the special tokens; ``bos`` is ``None`` if prompts begin without one.
    """

    inner: Any
    eos: int
    pad: int
    bos: int | None = None

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens, special ones included; numbers may have gaps, so this is one more than the largest."""
        return 1 + max(self.inner.get_vocab(with_added_tokens=True).values())

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, without special ones."""
        return self.inner.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of tokens; special ones are left out."""
        return self.inner.decode([int(number) for number in ids], skip_special_tokens=True)

    def save(self, path: str | Path) -> None:
        """Write ``tokenizer.json``, for `load_tokenizer`; give it ``eos`` and ``pad`` by name."""
        self.inner.save(str(path))


def train_bpe(texts: Sequence[str], vocabulary_size: int = 512) -> SubwordTokenizer:
    """Byte-pair encoding of the texts: bytes, digits one by one, and the most frequent merges.

    Parameters
    ----------
    texts
        Questions and answers.
    vocabulary_size
        At least 258: all bytes, padding ``<pad>`` and end ``<eos>``. The result is smaller if merges run out.

    Raises
    ------
    InputError
        No texts, a size that is too small, or ``tokenizers`` is not installed.

    References
    ----------
    Sennrich, Haddow and Birch (2016), Neural Machine Translation of Rare Words with Subword Units.
    """
    check_integer("vocabulary_size", vocabulary_size, low=258)
    if not texts:
        raise InputError("texts must hold at least one text, got none")
    package = _package()
    inner = _byte_level(package.models.BPE(), split_digits=True)
    trainer = package.trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[_PAD, _EOS],
        initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(list(texts), trainer)
    return SubwordTokenizer(inner, eos=inner.token_to_id(_EOS), pad=inner.token_to_id(_PAD))


def byte_level_bpe(
    tokens: Sequence[str], merges: Sequence[tuple[str, str]], special: Sequence[str], *, split_digits: bool
) -> Any:
    """A ``tokenizers.Tokenizer`` of known tokens: bytes are merged within words, as GPT-2's.

    Parameters
    ----------
    tokens
        By number, in the alphabet that GPT-2 has for bytes.
    merges
        Pairs of tokens, first to last.
    special
        Tokens that are found in a text as they stand, before anything else, and left out by decoding.
    split_digits
        Whether digits are words of their own.

    Raises
    ------
    InputError
        A merge of what is no token, or ``tokenizers`` is not installed.
    """
    package = _package()
    numbers = {token: number for number, token in enumerate(tokens)}
    try:
        inner = _byte_level(package.models.BPE(numbers, list(merges)), split_digits=split_digits)
    except Exception as error:  # the package raises plain exceptions
        raise InputError(f"merges must be of tokens, got others: {error}") from error
    inner.add_special_tokens(list(special))
    return inner


def _byte_level(model: Any, split_digits: bool) -> Any:
    package = _package()
    pre = package.pre_tokenizers
    words = pre.ByteLevel(add_prefix_space=False)
    inner = package.Tokenizer(model)
    inner.pre_tokenizer = pre.Sequence([pre.Digits(individual_digits=True), words]) if split_digits else words
    inner.decoder = package.decoders.ByteLevel()
    return inner


def load_tokenizer(
    path: str | Path, *, eos: str | None = None, pad: str | None = None, bos: str | None = None
) -> SubwordTokenizer:
    """The tokenizer of a published model.

    Parameters
    ----------
    path
        A ``tokenizer.json``, or the folder that holds it and perhaps a ``tokenizer_config.json``.
    eos, pad, bos
        Special tokens by their text; ``None``: what the configuration says. Without a padding token, rows are filled up
        with ``eos``. Without ``bos``, or where the model's own prompts have none, prompts begin with none.

    Raises
    ------
    InputError
        No such file, no end token, a name that is no token, or ``tokenizers`` is not installed.
    """
    path = Path(path)
    path = path / "tokenizer.json" if path.is_dir() else path
    check_is_file(path)
    package = _package()
    try:
        inner = package.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises plain exceptions
        raise InputError(f"{path} is not a tokenizer.json: {error}") from error
    inner.no_truncation()  # settings of whoever saved it, of which nobody here would know
    inner.no_padding()
    config = special_tokens(path.parent)
    names = {"eos": eos or config.get("eos"), "pad": pad or config.get("pad")}
    names["bos"] = bos or config.get("bos")
    ids = {name: _number(inner, name, text) for name, text in names.items()}
    if bos is None and not _adds_bos(inner, ids["bos"], config):
        ids["bos"] = None
    if ids["eos"] is None:
        raise InputError(
            f"eos must be the text of the token that ends an answer, as {path.parent} names none"
        )
    pad_id = ids["eos"] if ids["pad"] is None else ids["pad"]
    return SubwordTokenizer(inner, eos=ids["eos"], pad=pad_id, bos=ids["bos"])


def special_tokens(folder: str | Path) -> dict[str, Any]:
    """What a folder's ``tokenizer_config.json`` says: texts of ``eos``, ``pad`` and ``bos``, and ``add_bos``.

    Without the file, nothing.

    Raises
    ------
    InputError
        If the file is not JSON.
    """
    file = Path(folder) / "tokenizer_config.json"
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from error

    def text(token: Any) -> Any:
        return token.get("content") if isinstance(token, dict) else token

    names = {name: text(content.get(f"{name}_token")) for name in ("eos", "pad", "bos")}
    return {**names, "add_bos": content.get("add_bos_token")}


def _adds_bos(inner: Any, bos: int | None, config: dict[str, Any]) -> bool:
    """Whether prompts begin with the token: as the configuration says, or else as the tokenizer by itself does."""
    stated = config.get("add_bos")
    return bool(stated) if stated is not None else inner.encode("").ids[:1] == [bos]


def _number(inner: Any, name: str, text: str | None) -> int | None:
    if text is None:
        return None
    number = inner.token_to_id(text)
    if number is None:
        raise InputError(f"{name} must be one of the tokenizer's tokens, got {text!r}")
    return number


def _package() -> ModuleType:
    try:
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise InputError("this needs the package tokenizers: pip install 'jaxaudit[llm]'") from error
    return tokenizers
