"""What a published model consists of, wherever it was found; and how it is found in a Hugging Face folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.checkpoint import Checkpoint, open_safetensors
from jaxaudit.llm.pretrained.families import read_json
from jaxaudit.llm.subwords import SubwordTokenizer, load_tokenizer, special_tokens

_TOKENIZER_CONFIG = "tokenizer_config.json"


@dataclass(frozen=True, eq=False)
class Published:
    """Parts of a model, before its weights are read.

    Parameters
    ----------
    name
        What it is called.
    config
        As in a ``config.json``; see `jaxaudit.llm.pretrained.families.spec_of`.
    checkpoint
        Its tensors.
    tokenizer
        With the special tokens that its files name.
    chat_template
        In Jinja, if it is a chat model.
    bos, eos
        Texts of the special tokens, for the template.
    """

    name: str
    config: Mapping[str, Any]
    checkpoint: Checkpoint
    tokenizer: SubwordTokenizer
    chat_template: str | None
    bos: str | None
    eos: str | None


def open_folder(folder: str | Path) -> Published:
    """A model in Hugging Face's layout: ``config.json``, ``tokenizer.json`` and safetensors.

    Parameters
    ----------
    folder
        May also hold ``tokenizer_config.json`` (special tokens, chat template) and ``chat_template.jinja``.

    Raises
    ------
    InputError
        A part is missing or damaged.
    """
    folder = Path(folder).resolve()
    config = read_json(folder / "config.json")
    names = special_tokens(folder)
    tokenizer = load_tokenizer(folder, eos=names.get("eos") or _text_of_end(folder, config))
    eos = tokenizer.inner.id_to_token(tokenizer.eos)
    template = _chat_template(folder)
    return Published(
        folder.name, config, open_safetensors(folder), tokenizer, template, names.get("bos"), eos
    )


def _text_of_end(folder: Path, config: Mapping[str, Any]) -> str | None:
    """By its number in ``config.json``, where no other file names the end token."""
    number = config.get("eos_token_id")
    number = number[0] if isinstance(number, list) and number else number
    vocabulary = read_json(folder / "tokenizer.json").get("added_tokens", [])
    return next((token["content"] for token in vocabulary if token["id"] == number), None)


def _chat_template(folder: Path) -> str | None:
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    if not (folder / _TOKENIZER_CONFIG).is_file():
        return None
    found = read_json(folder / _TOKENIZER_CONFIG).get("chat_template")
    if isinstance(found, list):  # several, by name
        found = {entry.get("name"): entry.get("template") for entry in found}.get("default")
    if found is not None and not isinstance(found, str):
        raise InputError(
            f"chat_template must be text in {folder / _TOKENIZER_CONFIG}, got {type(found).__name__}"
        )
    return found
