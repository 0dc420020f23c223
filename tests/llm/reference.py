"""The decoder written out for one text without padding, in NumPy and float64, token by token and head by head."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.llm import DecoderSpec, LoraSpec, decoder, init_adapters

BASE = {"width": 12, "num_layers": 3, "num_heads": 2, "hidden": 20}


def random_params(spec, seed=0):
    """Parameters of which none has its neutral value: norms near 1 (near 0 with an offset), kernels as at the start."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(decoder(spec).init_fn, jax.random.key(0))

    def draw(path, leaf):
        names = [entry.key for entry in path]
        if names[-1] == "weight":
            values = rng.normal(0.0 if spec.norm_offset else 1.0, 0.2, leaf.shape)
        else:
            scale = 1.0 if names[-1] == "bias" else 1 / math.sqrt(leaf.shape[-2])
            values = rng.normal(0, scale, leaf.shape)
        return jnp.asarray(values, jnp.float32)

    return jax.tree_util.tree_map_with_path(draw, shapes)


def random_adapters(spec, lora, seed=0):
    rng = np.random.default_rng(seed + 100)
    shapes = jax.eval_shape(lambda key: init_adapters(key, spec, lora), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(0, 0.2, leaf.shape), jnp.float32), shapes)


@lru_cache
def logits_fn(spec, lora=None):
    """Compiled once for all tests of a file."""
    return jax.jit(decoder(spec, lora).logits_fn)


def frequencies(spec):
    """One after the other, as the configurations of Llama 3 define them."""
    size, scaling, found = spec.head_size, spec.rope_scaling, []
    for i in range(size // 2):
        frequency = spec.rope_theta ** (-2 * i / size)
        if scaling is not None and scaling.kind == "linear":
            frequency /= scaling.factor
        if scaling is not None and scaling.kind == "llama3":
            wavelength = 2 * math.pi / frequency
            if wavelength > scaling.original_length / scaling.low_frequency_factor:
                frequency /= scaling.factor
            elif wavelength >= scaling.original_length / scaling.high_frequency_factor:
                smooth = (scaling.original_length / wavelength - scaling.low_frequency_factor) / (
                    scaling.high_frequency_factor - scaling.low_frequency_factor
                )
                frequency = (1 - smooth) * frequency / scaling.factor + smooth * frequency
        found.append(frequency)
    return np.array(found)


def turn(vector, position, spec):
    """Pairs (i, i + size / 2) as complex numbers, turned by position times frequency."""
    half = len(vector) // 2
    turned = (vector[:half] + 1j * vector[half:]) * np.exp(1j * position * frequencies(spec))
    return np.concatenate([turned.real, turned.imag])


def norm(x, weight, spec):
    weight = 1 + weight if spec.norm_offset else weight
    return x / math.sqrt(np.mean(x**2) + spec.norm_epsilon) * weight


def activation(spec, x):
    if spec.activation == "silu":
        return x / (1 + np.exp(-x))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attend(spec, queries, keys, values):
    """Lists over tokens of (heads, size)."""
    outputs = []
    for t, query in enumerate(queries):
        first = 0 if spec.sliding_window is None else max(0, t - spec.sliding_window + 1)
        row = []
        for head, own in enumerate(query):
            kv = head // (spec.num_heads // spec.kv_heads)
            scores = np.array([own @ keys[s][kv] / math.sqrt(spec.head_size) for s in range(first, t + 1)])
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            row.append(sum(share * values[s][kv] for share, s in zip(shares, range(first, t + 1))))
        outputs.append(np.concatenate(row))
    return outputs


def reference_logits(spec, params, ids, adapters=None, lora: LoraSpec | None = None):
    """(tokens, vocabulary)."""
    params, adapters = (
        jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), t) for t in (params, adapters)
    )

    def project(name, layer, x):
        y = x @ params["layers"][name]["kernel"][layer]
        if name in spec.biased:
            y = y + params["layers"][name]["bias"][layer]
        if adapters is not None and name in adapters["layers"]:
            one = adapters["layers"][name]
            y = y + lora.alpha / lora.rank * (x @ one["a"][layer] @ one["b"][layer])
        return y

    def heads(name, layer, x):
        return project(name, layer, x).reshape(-1, spec.head_size)

    xs = [params["embedding"][token] for token in ids]
    if spec.scale_embedding:
        xs = [x * math.sqrt(spec.width) for x in xs]
    for layer in range(spec.num_layers):
        normed = [norm(x, params["layers"]["attention_norm"]["weight"][layer], spec) for x in xs]
        queries, keys = (
            [np.array([turn(head, t, spec) for head in heads(name, layer, x)]) for t, x in enumerate(normed)]
            for name in ("q", "k")
        )
        values = [heads("v", layer, x) for x in normed]
        mixed = attend(spec, queries, keys, values)
        xs = [x + project("o", layer, one) for x, one in zip(xs, mixed)]
        normed = [norm(x, params["layers"]["mlp_norm"]["weight"][layer], spec) for x in xs]
        gated = [activation(spec, project("gate", layer, x)) * project("up", layer, x) for x in normed]
        xs = [x + project("down", layer, one) for x, one in zip(xs, gated)]
    head = params["embedding"].T if spec.tied_head else params["head"]
    return np.array([norm(x, params["norm"]["weight"], spec) @ head for x in xs])


def small_spec(**changes):
    return DecoderSpec(11, **BASE | changes)
