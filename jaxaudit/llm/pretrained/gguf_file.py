"""Models of the Llama family in one GGUF file: quantised weights are dequantised, names and orders are translated back.

References
----------
The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxaudit.border import check_is_file
from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.checkpoint import Checkpoint
from jaxaudit.llm.pretrained.published import Published
from jaxaudit.llm.subwords import SubwordTokenizer, byte_level_bpe

_TABLES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_TURNED = re.compile(r".*\.self_attn\.([qk])_proj\.weight")
_DIGITS = {"smollm": True, "gpt-2": False}
"""Ways to cut text into pieces before merging, by name: whether digits stay single."""
_CONTROL, _USER_DEFINED = 3, 4


class _Fields:
    """Values that the file states, by name."""

    def __init__(self, path: Path, fields: Any) -> None:
        self._path, self._fields = path, fields

    def get(self, key: str, default: Any = None) -> Any:
        return self._fields[key].contents() if key in self._fields else default

    def __getitem__(self, key: str) -> Any:
        if key not in self._fields:
            raise InputError(f"{self._path} must state {key}, got no such field")
        return self.get(key)


def open_gguf(path: str | Path) -> Published:
    """A model of the Llama family with a byte-level tokenizer.

    Parameters
    ----------
    path
        A ``.gguf`` file, of any quantisation that the package ``gguf`` can undo.

    Raises
    ------
    InputError
        No such file, a damaged one, another architecture or kind of tokenizer, or ``gguf`` is not installed.
    """
    path = Path(path)
    check_is_file(path)
    gguf = _package()
    try:
        reader = gguf.GGUFReader(path)
    except Exception as error:  # the package raises whatever comes up
        raise InputError(f"{path} is damaged or is not a GGUF file: {error}") from error
    fields = _Fields(path, reader.fields)
    tensors = {_published_name(tensor.name): tensor for tensor in reader.tensors}
    config = _config(fields, tied="lm_head.weight" not in tensors)
    tokens = fields["tokenizer.ggml.tokens"]
    bos, eos = (_text(tokens, fields.get(f"tokenizer.ggml.{name}_token_id")) for name in ("bos", "eos"))
    name = str(fields.get("general.name", path.stem))
    checkpoint = _checkpoint(gguf, tensors, config)
    return Published(
        name, config, checkpoint, _tokenizer(fields), fields.get("tokenizer.chat_template"), bos, eos
    )


def _published_name(name: str) -> str:
    found = _LAYER.fullmatch(name)
    if found and found[2] in _PARTS:
        return f"model.layers.{found[1]}.{_PARTS[found[2]]}.weight"
    return _TABLES.get(name, name)


def _config(fields: _Fields, tied: bool) -> dict[str, Any]:
    if fields["general.architecture"] != "llama":
        raise InputError(f"general.architecture must be 'llama', got {fields['general.architecture']!r}")
    width, heads = fields["llama.embedding_length"], fields["llama.attention.head_count"]
    size = fields.get("llama.attention.key_length", width // heads)
    if fields.get("llama.rope.dimension_count", size) != size:
        raise InputError(
            f"llama.rope.dimension_count must be the head's size {size}, got {fields['llama.rope.dimension_count']}"
        )
    scaling = fields.get("llama.rope.scaling.type", "none")
    factor = fields.get("llama.rope.scaling.factor", 1.0)
    return {
        "model_type": "llama",
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_size": width,
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields.get("llama.attention.head_count_kv", heads),
        "head_dim": size,
        "rms_norm_eps": _decimal(fields["llama.attention.layer_norm_rms_epsilon"]),
        "rope_theta": _decimal(fields.get("llama.rope.freq_base", 10_000.0)),
        "rope_scaling": None if scaling == "none" else {"rope_type": scaling, "factor": factor},
        "max_position_embeddings": fields.get("llama.context_length"),
        "tie_word_embeddings": tied,
    }


def _decimal(value: float) -> float:
    """The number that was meant: files hold 1e-5 in float32, as 9.999999747e-6."""
    return float(str(np.float32(value)))


def _checkpoint(gguf: ModuleType, tensors: dict[str, Any], config: dict[str, Any]) -> Checkpoint:
    heads = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}

    def read(name: str) -> np.ndarray:
        tensor = tensors[name]
        try:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        except Exception as error:
            raise InputError(f"tensor {name!r} has a type that is not read: {error}") from error
        turned = _TURNED.fullmatch(name)
        return halves_from_pairs(values, heads[turned[1]]) if turned else values

    shapes = {name: tuple(int(size) for size in tensor.shape[::-1]) for name, tensor in tensors.items()}
    return Checkpoint(shapes, read)


def halves_from_pairs(matrix: np.ndarray, num_heads: int) -> np.ndarray:
    """Rows of queries or keys, reordered within each head.

    In GGUF files the two coordinates that turn together are neighbours; here, as in Hugging Face's files, they are one
    in each half of the head.

    Examples
    --------
    >>> halves_from_pairs(np.arange(8)[:, None], num_heads=2)[:, 0].tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    pairs = matrix.reshape(num_heads, -1, 2, matrix.shape[1])
    return pairs.swapaxes(1, 2).reshape(matrix.shape)


def _tokenizer(fields: _Fields) -> SubwordTokenizer:
    kind, pre = fields["tokenizer.ggml.model"], fields.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in _DIGITS:
        raise InputError(
            f"tokenizer.ggml.model and .pre must be 'gpt2' and one of {', '.join(_DIGITS)}, got {kind!r} and {pre!r}; "
            "models with other tokenizers are read from Hugging Face folders"
        )
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, types) if kind in (_CONTROL, _USER_DEFINED)]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    inner = byte_level_bpe(tokens, merges, special, split_digits=_DIGITS[pre])
    eos = fields["tokenizer.ggml.eos_token_id"]
    bos = (
        fields.get("tokenizer.ggml.bos_token_id")
        if fields.get("tokenizer.ggml.add_bos_token", False)
        else None
    )
    return SubwordTokenizer(inner, eos=eos, pad=fields.get("tokenizer.ggml.padding_token_id", eos), bos=bos)


def _text(tokens: list[str], number: int | None) -> str | None:
    return None if number is None else tokens[number]


def _package() -> ModuleType:
    try:
        import gguf
        import gguf.quants
    except ImportError as error:
        raise InputError("GGUF files need the package gguf: pip install 'jaxaudit[llm]'") from error
    return gguf
