"""Folders as they are published: of the small models whose logits are known, or of any decoder."""

import json

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from tests.llm.golden.make_golden import FILE, drawn

GOLDEN = json.loads(FILE.read_text())


def golden_tensors(case):
    return {name: drawn(name, shape) for name, shape in GOLDEN[case]["shapes"].items()}


def write_folder(folder, config, tensors, shards=1):
    """``config.json`` and the tensors, in one file or dealt out to several."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    places = {name: f"part-{number % shards}.safetensors" for number, name in enumerate(tensors)}
    for part in set(places.values()):
        save_file({name: tensors[name] for name in places if places[name] == part}, folder / part)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def golden_folder(folder, case, shards=1):
    return write_folder(folder, GOLDEN[case]["config"], golden_tensors(case), shards)


def rounded(tensors):
    """To bfloat16 and back: values that both types can hold."""
    return {name: value.astype(ml_dtypes.bfloat16).astype(np.float32) for name, value in tensors.items()}


GGUF_CONFIG = {
    "model_type": "llama",
    "vocab_size": 13,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 5000.0,
    "tie_word_embeddings": True,
}
TOKENS = ["<|end|>", "<|im_start|>", "<|im_end|>", "a", "b", "1", "2", "Ġ", "Ċ", "ab", "Ġab", "12", ":"]
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}"
)
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def drawn_tensors(config):
    """Of a model with this configuration, by published names."""
    from jaxaudit.llm.pretrained.checkpoint import split_params
    from jaxaudit.llm.pretrained.families import spec_of
    from tests.llm.reference import random_params

    return split_params(random_params(spec_of(config)))


def interleaved(matrix, heads, size):
    """Rows as GGUF has them: coordinate i of either half of a head become neighbours 2 i and 2 i + 1."""
    result = np.empty_like(matrix)
    for head in range(heads):
        for half in range(2):
            for i in range(size // 2):
                result[head * size + 2 * i + half] = matrix[head * size + half * (size // 2) + i]
    return result


def write_gguf(
    path, tensors, *, quantised=False, fields=(), omit=(), pre="smollm", kind="gpt2", arch="llama"
):
    """The tensors as a GGUF file; matrices in blocks of 8 bits if they shall be quantised."""
    import gguf

    config, writer = GGUF_CONFIG, gguf.GGUFWriter(path, arch)
    facts = {
        f"{arch}.embedding_length": config["hidden_size"],
        f"{arch}.feed_forward_length": config["intermediate_size"],
        f"{arch}.block_count": config["num_hidden_layers"],
        f"{arch}.attention.head_count": config["num_attention_heads"],
        f"{arch}.attention.head_count_kv": config["num_key_value_heads"],
        f"{arch}.attention.key_length": config["head_dim"],
        f"{arch}.rope.dimension_count": config["head_dim"],
        f"{arch}.context_length": 256,
    } | dict(fields)
    for name, value in facts.items():
        if name not in omit:
            (writer.add_string if isinstance(value, str) else writer.add_uint32)(name, value)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in TOKENS])
    writer.add_token_merges(["a b", "Ġ ab", "1 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, value in tensors.items():
        stem, suffix = name.removeprefix("model.layers.").rsplit(".", 1)
        layer, _, part = stem.partition(".")
        short = _NAMES.get(stem) or _NAMES.get(part) or part or stem
        if short in heads:
            value = interleaved(value, heads[short], config["head_dim"])
        whole = (
            f"{short}.{suffix}" if stem in _NAMES or not layer.isdigit() else f"blk.{layer}.{short}.{suffix}"
        )
        if quantised and value.ndim == 2:
            kind8 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(whole, gguf.quants.quantize(value, kind8), raw_dtype=kind8)
        else:
            writer.add_tensor(whole, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
