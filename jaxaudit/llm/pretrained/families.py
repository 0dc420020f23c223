"""Which decoder a published configuration describes, and what its tensors are called in the files.

The names and meanings are those of Hugging Face's ``config.json``; the tables below are all that is known of a family.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxaudit.border import check_is_file
from jaxaudit.errors import InputError
from jaxaudit.llm.spec import DecoderSpec, RopeScaling

Config = Mapping[str, Any]

# What a family's configuration means where it says nothing.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"tie_word_embeddings": False},
    "mistral": {"tie_word_embeddings": False, "sliding_window": 4096},
    "gemma": {"tie_word_embeddings": True, "head_dim": 256},
}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}
_ATTENTION, _MLP = ("q", "k", "v", "o"), ("gate", "up", "down")
_BIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "llama": {"attention_bias": _ATTENTION, "mlp_bias": _MLP},
    "mistral": {},
    "gemma": {"attention_bias": _ATTENTION},
}
_SCALING = {
    "linear": {"factor": "factor"},
    "llama3": {
        "factor": "factor",
        "low_freq_factor": "low_frequency_factor",
        "high_freq_factor": "high_frequency_factor",
        "original_max_position_embeddings": "original_length",
    },
}
_REFUSED = {
    "quantization_config": None,
    "use_bidirectional_attention": None,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "partial_rotary_factor": 1.0,
}
"""Settings that change the function, with the value that does not."""

LEAVES: dict[tuple[str, ...], str] = {
    ("embedding",): "model.embed_tokens.weight",
    ("norm", "weight"): "model.norm.weight",
    ("head",): "lm_head.weight",
    ("layers", "attention_norm", "weight"): "model.layers.{}.input_layernorm.weight",
    ("layers", "mlp_norm", "weight"): "model.layers.{}.post_attention_layernorm.weight",
    **{
        ("layers", name, leaf): f"model.layers.{{}}.{part}.{name}_proj.{suffix}"
        for part, names in (("self_attn", _ATTENTION), ("mlp", _MLP))
        for name in names
        for leaf, suffix in (("kernel", "weight"), ("bias", "bias"))
    },
}
"""Names of the tensors by the place of their values in the decoder's parameters; ``{}`` is the layer."""


def read_json(path: str | Path) -> dict[str, Any]:
    """A JSON object.

    Raises
    ------
    InputError
        No such file, or it holds something else.
    """
    check_is_file(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object, got {type(content).__name__}")
    return content


def spec_of(config: Config) -> DecoderSpec:
    """The decoder that a configuration describes.

    Parameters
    ----------
    config
        Content of a ``config.json`` of the families ``llama`` (1 to 3; SmolLM), ``mistral`` or ``gemma`` (the first).

    Raises
    ------
    InputError
        Another family, or a setting that this decoder does not have; named.

    Examples
    --------
    >>> sizes = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
    >>> spec_of({"model_type": "llama", "num_attention_heads": 32, **sizes}).num_params  # Llama 2 7B
    6738415616
    """
    family = config.get("model_type")
    if family not in _DEFAULTS:
        raise InputError(f"model_type must be one of {', '.join(_DEFAULTS)}, got {family!r}")
    config = (
        _DEFAULTS[family]
        | {key: value for key, value in config.items() if value is not None}
        | _kept_nulls(config)
    )
    _refuse(config)
    heads = _size(config, "num_attention_heads")
    head_dim = config.get("head_dim") or _size(config, "hidden_size") // heads
    theta, scaling = _rope(config)
    return DecoderSpec(
        vocabulary_size=_size(config, "vocab_size"),
        width=_size(config, "hidden_size"),
        num_layers=_size(config, "num_hidden_layers"),
        num_heads=heads,
        hidden=_size(config, "intermediate_size"),
        num_kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        activation=_activation(config),
        norm_epsilon=config.get("rms_norm_eps", 1e-6),
        norm_offset=family == "gemma",
        scale_embedding=family == "gemma",
        tied_head=bool(config["tie_word_embeddings"]),
        rope_theta=theta,
        rope_scaling=scaling,
        biased=tuple(name for key, names in _BIASES[family].items() if config.get(key) for name in names),
        sliding_window=config.get("sliding_window") if family == "mistral" else None,
    )


def _kept_nulls(config: Config) -> dict[str, None]:
    """Where ``null`` does not mean the family's default: a window that is said to be none."""
    return {"sliding_window": None} if config.get("sliding_window", 0) is None else {}


def _size(config: Config, key: str) -> int:
    if not isinstance(config.get(key), int):
        raise InputError(f"{key} must be an integer in the model's configuration, got {config.get(key)!r}")
    return int(config[key])


def _refuse(config: Config) -> None:
    for key, harmless in _REFUSED.items():
        value = config.get(key)
        if value and value != harmless:
            raise InputError(
                f"{key} must be {harmless}, as this decoder has nothing of the kind, got {value!r}"
            )


def _activation(config: Config) -> Any:
    # The first configurations of Gemma say "gelu" and mean its approximation by tanh.
    given = config.get("hidden_activation") or config.get("hidden_act", "silu")
    if config["model_type"] == "gemma":
        given = "gelu_pytorch_tanh" if given == "gelu" else given
    if given not in _ACTIVATIONS:
        raise InputError(f"hidden_act must be one of {', '.join(_ACTIVATIONS)}, got {given!r}")
    return _ACTIVATIONS[given]


def _rope(config: Config) -> tuple[float, RopeScaling | None]:
    """Base and scaling; both in ``rope_parameters``, or in older files in ``rope_theta`` and ``rope_scaling``."""
    given = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = float(given.get("rope_theta") or config.get("rope_theta") or 10_000.0)
    kind = given.get("rope_type", given.get("type", "default"))
    _refuse(given)
    if kind == "default":
        return theta, None
    if kind not in _SCALING:
        raise InputError(f"rope_type must be one of default, {', '.join(_SCALING)}, got {kind!r}")
    for key in _SCALING[kind]:
        if key not in given:
            raise InputError(f"{key} must be given for rope_type {kind!r}, got none")
    return theta, RopeScaling(kind, **{name: given[key] for key, name in _SCALING[kind].items()})


def config_of(spec: DecoderSpec) -> dict[str, Any]:
    """A configuration that `spec_of` reads as this decoder.

    Raises
    ------
    InputError
        If no family has such a decoder.

    Examples
    --------
    >>> config_of(DecoderSpec(300, scale_embedding=True))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: spec must be a decoder of the families llama, mistral, gemma, got one that none can hold
    """
    family = "gemma" if spec.norm_offset else "llama" if spec.sliding_window is None else "mistral"
    config = {
        "model_type": family,
        "architectures": [f"{family.capitalize()}ForCausalLM"],
        "vocab_size": spec.vocabulary_size,
        "hidden_size": spec.width,
        "num_hidden_layers": spec.num_layers,
        "num_attention_heads": spec.num_heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_size,
        "intermediate_size": spec.hidden,
        "hidden_act": {"silu": "silu", "gelu_tanh": "gelu_pytorch_tanh"}[spec.activation],
        "rms_norm_eps": spec.norm_epsilon,
        "tie_word_embeddings": spec.tied_head,
        "rope_theta": spec.rope_theta,
        "rope_scaling": _scaling_config(spec.rope_scaling),
        "sliding_window": spec.sliding_window,
        **{key: set(names) <= set(spec.biased) for key, names in _BIASES[family].items()},
    }
    same = replace(
        spec, num_kv_heads=spec.kv_heads, head_dim=spec.head_size, compute_dtype="float32", remat=False
    )
    if spec_of(config) != same:
        raise InputError(
            f"spec must be a decoder of the families {', '.join(_DEFAULTS)}, got one that none can hold"
        )
    return config


def _scaling_config(scaling: RopeScaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    values = {key: getattr(scaling, name) for key, name in _SCALING[scaling.kind].items()}
    return {"rope_type": scaling.kind, **values}
