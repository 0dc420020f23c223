import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import DecoderSpec, RopeScaling
from jaxaudit.llm.pretrained.families import config_of, read_json, spec_of

# Facts of the published models: their configurations, and how many parameters their pages state.
LLAMA_2_7B = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
LLAMA_31_8B = LLAMA_2_7B | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "vocab_size": 128256,
    "attention_bias": False,
    "mlp_bias": False,
}
MISTRAL_7B = {
    "model_type": "mistral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
GEMMA_7B = {
    "model_type": "gemma",
    "head_dim": 256,
    "hidden_act": "gelu",
    "hidden_activation": None,
    "hidden_size": 3072,
    "intermediate_size": 24576,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 16,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0,
    "vocab_size": 256000,
}
GEMMA_2B = GEMMA_7B | {
    "hidden_size": 2048,
    "intermediate_size": 16384,
    "num_attention_heads": 8,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
}
SMOLLM2 = LLAMA_2_7B | {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
}
PUBLISHED = {
    "Llama 2 7B": (LLAMA_2_7B, 6_738_415_616),
    "Llama 3.1 8B": (LLAMA_31_8B, 8_030_261_248),
    "Mistral 7B": (MISTRAL_7B, 7_241_732_096),
    "Gemma 7B": (GEMMA_7B, 8_537_680_896),
    "Gemma 2B": (GEMMA_2B, 2_506_172_416),
    "SmolLM2 135M": (SMOLLM2, 134_515_008),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_their_number_of_parameters(name):
    config, count = PUBLISHED[name]
    assert spec_of(config).num_params == count


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_spec_is_written_as_a_configuration_that_says_the_same(name):
    spec = spec_of(PUBLISHED[name][0])
    assert spec_of(config_of(spec)) == spec


def test_switches():
    llama, mistral, gemma = spec_of(LLAMA_31_8B), spec_of(MISTRAL_7B), spec_of(GEMMA_7B)
    assert llama.rope_scaling == RopeScaling("llama3", 8.0, 1.0, 4.0, 8192)
    assert (llama.rope_theta, llama.activation, llama.biased, llama.sliding_window) == (5e5, "silu", (), None)
    assert (mistral.sliding_window, mistral.kv_heads, mistral.tied_head) == (4096, 8, False)
    assert (gemma.activation, gemma.norm_offset, gemma.scale_embedding) == ("gelu_tanh", True, True)
    assert (gemma.tied_head, gemma.head_size) == (True, 256)
    assert spec_of(LLAMA_2_7B | {"attention_bias": True}).biased == ("q", "k", "v", "o")


def test_what_is_not_said_means_the_default_of_the_family():
    def without(config, *keys):
        return spec_of({key: value for key, value in config.items() if key not in keys})

    assert without(LLAMA_2_7B, "num_key_value_heads", "hidden_act", "tie_word_embeddings") == spec_of(
        LLAMA_2_7B
    )
    assert without(MISTRAL_7B, "sliding_window") == spec_of(MISTRAL_7B)
    assert without(GEMMA_7B, "head_dim", "rope_theta") == spec_of(GEMMA_7B)
    assert without(LLAMA_2_7B, "rms_norm_eps").norm_epsilon == 1e-6
    # Mistral from v0.2 on: null is an answer.
    assert spec_of(MISTRAL_7B | {"sliding_window": None}).sliding_window is None


def test_old_and_new_names_of_rotary_settings():
    old = {key: value for key, value in LLAMA_31_8B.items() if not key.startswith("rope")}
    new = {"rope_parameters": LLAMA_31_8B["rope_scaling"] | {"rope_theta": 500000.0}}
    assert spec_of(old | new) == spec_of(LLAMA_31_8B)
    linear = LLAMA_2_7B | {"rope_scaling": {"type": "linear", "factor": 2.0}}
    assert spec_of(linear).rope_scaling == RopeScaling("linear", 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gemma2"}, "model_type must be one of llama, mistral, gemma, got 'gemma2'"),
        ({"hidden_act": "gelu"}, "hidden_act must be one of .*, got 'gelu'"),
        ({"hidden_size": None}, "hidden_size must be an integer in the model's configuration, got None"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_type must be one of .*, got 'yarn'"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor must be given for rope_type 'linear'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config must be None"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be 1.0"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping must be None"),
    ],
)
def test_what_the_decoder_cannot_do_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        spec_of(LLAMA_2_7B | changes)


def test_specs_of_no_family():
    for changes in (
        {"scale_embedding": True},
        {"biased": ("q",)},
        {"sliding_window": 3, "biased": ("q", "k", "v", "o")},
    ):
        with pytest.raises(InputError, match="none can hold"):
            config_of(DecoderSpec(20, **changes))


def test_json(tmp_path):
    file = tmp_path / "config.json"
    with pytest.raises(InputError, match="no such file"):
        read_json(file)
    for content, message in (("{", "is not JSON"), ("[1]", "must hold a JSON object, got list")):
        file.write_text(content)
        with pytest.raises(InputError, match=message):
            read_json(file)
