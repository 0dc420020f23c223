import json

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm.pretrained.checkpoint import open_safetensors, read_params, split_params
from jaxaudit.llm.pretrained.families import spec_of
from jaxaudit.unlearn.preference import Tokens
from tests.llm.golden import make_golden
from tests.llm.pretrained.files import GOLDEN, golden_folder, golden_tensors, rounded, write_folder
from tests.llm.reference import logits_fn

pytest.importorskip("safetensors")
CONFIG = GOLDEN["gemma"]["config"]  # tied
IDS = jnp.array([make_golden.IDS])
TOKENS = Tokens(IDS, jnp.zeros(IDS.shape), jnp.ones(IDS.shape))


def load(folder, config=CONFIG, **options):
    return read_params(spec_of(config), open_safetensors(folder), **options)


@pytest.mark.parametrize("case", GOLDEN)
def test_logits_are_those_of_transformers(case, tmp_path):
    config = GOLDEN[case]["config"]
    params = load(golden_folder(tmp_path, case), config)
    logits = logits_fn(spec_of(config))(params, TOKENS)[0]
    wanted = np.array(GOLDEN[case]["logits"])
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(logits, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize("case", GOLDEN)
def test_stored_logits_are_what_transformers_gives_now(case):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    again = make_golden.make(case)
    assert again["shapes"] == GOLDEN[case]["shapes"]
    np.testing.assert_allclose(again["logits"], GOLDEN[case]["logits"], rtol=0, atol=1e-5)


def test_shards_and_types_do_not_matter(tmp_path):
    tensors = rounded(golden_tensors("gemma"))
    whole = load(write_folder(tmp_path / "whole", CONFIG, tensors))
    half = {name: value.astype(ml_dtypes.bfloat16) for name, value in tensors.items()}
    sharded = load(write_folder(tmp_path / "sharded", CONFIG, half, shards=3))
    short = load(tmp_path / "whole", dtype="bfloat16")
    assert {leaf.dtype.name for leaf in jax.tree.leaves(short)} == {"bfloat16"}
    for one, other, third in zip(*map(jax.tree.leaves, (whole, sharded, short))):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third.astype(np.float32))


@pytest.mark.parametrize("case", ["gemma", "llama with biases"])
def test_split_undoes_reading(case, tmp_path):
    tensors = golden_tensors(case)
    found = split_params(load(golden_folder(tmp_path, case), GOLDEN[case]["config"]))
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        np.testing.assert_array_equal(found[name], value)


def test_missing_extra_and_wrong_tensors_are_named(tmp_path):
    tensors = golden_tensors("gemma")
    tensors["visual.weight"] = np.ones(3, np.float32)
    tensors["model.norm.weight"] = np.ones(25, np.float32)
    del tensors["model.layers.1.mlp.up_proj.weight"], tensors["model.embed_tokens.weight"]
    with pytest.raises(InputError) as caught:
        load(write_folder(tmp_path, CONFIG, tensors))
    message = str(caught.value)
    assert "2 missing: model.embed_tokens.weight, model.layers.1.mlp.up_proj.weight" in message
    assert "1 not of this decoder: visual.weight" in message
    assert "1 of the wrong shape: model.norm.weight (25,) instead of (24,)" in message


def test_tensors_of_one_layer_more(tmp_path):
    with pytest.raises(InputError, match=r"9 not of this decoder: model.layers.1.\S+, \S+, \S+, \.\.\."):
        load(golden_folder(tmp_path, "gemma"), CONFIG | {"num_hidden_layers": 1})


def test_rotary_frequencies_and_a_repeated_head_are_left_out(tmp_path):
    tensors = golden_tensors("gemma")
    known = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(8, np.float32),
        "lm_head.weight": tensors["model.embed_tokens.weight"],
    }
    params = load(write_folder(tmp_path / "a", CONFIG, tensors | known))
    assert sorted(params) == ["embedding", "layers", "norm"]
    known["lm_head.weight"] = known["lm_head.weight"] + 1
    with pytest.raises(InputError, match=r"lm_head.weight must repeat the embeddings"):
        load(write_folder(tmp_path / "b", CONFIG, tensors | known))


def test_bad_values_and_types(tmp_path):
    tensors = golden_tensors("gemma")
    for bad, message in (
        (np.full(24, np.nan, np.float32), "tensor 'model.norm.weight' must be finite"),
        (np.ones(24, np.int8), "tensor 'model.norm.weight' must be of type F32, F16 or BF16, got I8"),
    ):
        with pytest.raises(InputError, match=message):
            load(write_folder(tmp_path, CONFIG, tensors | {"model.norm.weight": bad}))


def test_bad_folders(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"must hold model.safetensors .*pickles above all, are not read"):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"model.safetensors is damaged"):
        load(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    for content, message in (
        ({}, "must have a weight_map, got None"),
        (
            {"weight_map": {"a": "../part.safetensors"}},
            "must name files of its own folder, got '../part.safetensors'",
        ),
        (
            {"weight_map": {"a": "part.safetensors"}},
            "must name files of its own folder, got 'part.safetensors'",
        ),
    ):
        index.write_text(json.dumps(content))
        with pytest.raises(InputError, match=message):
            load(tmp_path)
