import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.checkpoint import read_params, split_params
from jaxaudit.llm.pretrained.families import spec_of
from jaxaudit.llm.pretrained.gguf_file import open_gguf
from tests.llm.pretrained.files import CHAT, GGUF_CONFIG, TOKENS, drawn_tensors, write_gguf

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
TENSORS = drawn_tensors(GGUF_CONFIG)


def load(path):
    published = open_gguf(path)
    spec = spec_of(published.config)
    return spec, split_params(read_params(spec, published.checkpoint))


def test_names_orders_and_configuration_come_back(tmp_path):
    spec, found = load(write_gguf(tmp_path / "model.gguf", TENSORS))
    assert spec == spec_of(GGUF_CONFIG)
    assert found.keys() == TENSORS.keys()
    for name, values in TENSORS.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_quantised_weights_are_within_half_a_step(tmp_path):
    _, found = load(write_gguf(tmp_path / "model.gguf", TENSORS, quantised=True))
    for name, values in TENSORS.items():
        if values.ndim == 1:
            np.testing.assert_array_equal(found[name], values)
            continue
        blocks = values.reshape(-1, 32)
        steps = abs(blocks).max(1, keepdims=True) / 127
        errors = abs(found[name].reshape(-1, 32) - blocks)
        # A step is stored in half precision, which adds up to 127 times its rounding.
        assert (errors <= steps * (0.5 + 127 * 2.0**-11 + 1e-3)).all(), name
        assert errors.max() > 0


def test_an_output_layer_unties_the_embeddings(tmp_path):
    head = {"lm_head.weight": TENSORS["model.embed_tokens.weight"] + 1}
    spec, found = load(write_gguf(tmp_path / "model.gguf", TENSORS | head))
    assert not spec.tied_head
    np.testing.assert_array_equal(found["lm_head.weight"], head["lm_head.weight"])


def test_tokenizer_template_and_special_tokens(tmp_path):
    published = open_gguf(write_gguf(tmp_path / "a.gguf", TENSORS))
    names = [TOKENS[number] for number in published.tokenizer.encode("ab ab\n12<|im_end|>b")]
    assert names == ["ab", "Ġab", "Ċ", "1", "2", "<|im_end|>", "b"]
    assert published.tokenizer.decode([9, 10, 8, 5, 2, 4]) == "ab ab\n1b"
    assert (published.tokenizer.bos, published.tokenizer.eos, published.tokenizer.pad) == (None, 0, 0)
    assert (published.bos, published.eos, published.chat_template) == ("<|im_start|>", "<|end|>", CHAT)
    assert published.name == "a"
    whole = open_gguf(write_gguf(tmp_path / "b.gguf", TENSORS, pre="gpt-2"))
    assert [TOKENS[number] for number in whole.tokenizer.encode("12")] == ["12"]


def test_linear_scaling(tmp_path):
    scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4}
    spec, _ = load(write_gguf(tmp_path / "model.gguf", TENSORS, fields=scaling))
    assert spec.rope_scaling is not None
    assert (spec.rope_scaling.kind, spec.rope_scaling.factor) == ("linear", 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arch": "gemma"}, "general.architecture must be 'llama', got 'gemma'"),
        ({"kind": "llama"}, "must be 'gpt2' and one of smollm, gpt-2, got 'llama' and 'smollm'"),
        ({"pre": "qwen2"}, "must be 'gpt2' and one of smollm, gpt-2, got 'gpt2' and 'qwen2'"),
        ({"fields": {"llama.rope.dimension_count": 8}}, "dimension_count must be the head's size 16, got 8"),
        ({"fields": {"llama.rope.scaling.type": "yarn"}}, "rope_type must be one of .*, got 'yarn'"),
        ({"omit": ["llama.block_count"]}, "must state llama.block_count, got no such field"),
    ],
)
def test_what_is_not_read_is_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load(write_gguf(tmp_path / "model.gguf", TENSORS, **changes))


def test_unknown_tensors_are_named(tmp_path):
    extra = {"rope_freqs.weight": np.ones(8, np.float32)}
    with pytest.raises(InputError, match=r"1 not of this decoder: rope_freqs.weight"):
        load(write_gguf(tmp_path / "model.gguf", TENSORS | extra))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        open_gguf(tmp_path / "model.gguf")
    (tmp_path / "model.gguf").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"model.gguf is damaged or is not a GGUF file"):
        open_gguf(tmp_path / "model.gguf")
