import jax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import PRESETS, DecoderSpec, RopeScaling, decoder

LLAMA_2 = DecoderSpec(32000, 4096, 32, 32, 11008, tied_head=False)
MISTRAL = DecoderSpec(32000, 4096, 32, 32, 14336, num_kv_heads=8, tied_head=False)
GEMMA = DecoderSpec(256000, 3072, 28, 16, 24576, head_dim=256)
SMOLLM2 = DecoderSpec(49152, 576, 30, 9, 1536, num_kv_heads=3)


@pytest.mark.parametrize(
    ("spec", "published"),
    [(LLAMA_2, 6_738_415_616), (MISTRAL, 7_241_732_096), (GEMMA, 8_537_680_896), (SMOLLM2, 134_515_008)],
    ids=["Llama 2 7B", "Mistral 7B", "Gemma 7B", "SmolLM2 135M"],
)
def test_published_models_have_as_many_parameters(spec, published):
    assert spec.num_params == published


@pytest.mark.parametrize(
    "spec",
    [
        PRESETS["tiny"](215),
        PRESETS["small"](215),
        DecoderSpec(9, 12, 2, 6, 7, num_kv_heads=2, head_dim=4, tied_head=False),
        DecoderSpec(9, 12, 2, 6, 7, num_kv_heads=2, biased=("q", "k", "o", "down")),
    ],
)
def test_count_is_that_of_the_arrays(spec):
    params = jax.eval_shape(decoder(spec).init_fn, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == spec.num_params
    shapes = {name: params["layers"][name]["kernel"].shape[1:] for name in spec.projections}
    assert shapes == spec.projections


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 1}, "vocabulary_size must be an integer of at least 2, got 1"),
        ({"width": 0}, "width must be an integer of at least 1, got 0"),
        ({"num_kv_heads": 3}, "num_kv_heads must divide num_heads = 4, got 3"),
        ({"head_dim": 7}, "head_dim must be even, got 7"),
        ({"activation": "gelu"}, "activation must be one of silu, gelu_tanh, got 'gelu'"),
        ({"rope_theta": 0}, "rope_theta must be positive, got 0"),
        ({"norm_epsilon": 0.0}, "norm_epsilon must be positive, got 0.0"),
        ({"biased": ("q", "x")}, "biased must be one of q, k, v, o, gate, up, down, got 'x'"),
        ({"sliding_window": 0}, "sliding_window must be an integer of at least 1, got 0"),
        ({"compute_dtype": "float16"}, "compute_dtype must be one of .*, got 'float16'"),
    ],
)
def test_bad_specs(changes, message):
    with pytest.raises(InputError, match=message):
        DecoderSpec(**{"vocabulary_size": 10} | changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yarn", 2.0), "kind must be one of linear, llama3, got 'yarn'"),
        (("linear", 0.5), "factor must be at least 1, got 0.5"),
        (("llama3", 8.0, 0.0), "low_frequency_factor must be positive, got 0.0"),
        (
            ("llama3", 8.0, 4.0, 4.0),
            "high_frequency_factor must be above low_frequency_factor = 4.0, got 4.0",
        ),
        (("llama3", 8.0, 1.0, 4.0, 0), "original_length must be an integer of at least 1, got 0"),
    ],
)
def test_bad_scalings(arguments, message):
    with pytest.raises(InputError, match=message):
        RopeScaling(*arguments)
