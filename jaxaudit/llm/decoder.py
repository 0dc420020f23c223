"""A decoder of the Llama family in Flax: one scanned layer, adapters beside its matrices, a cache for generation."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from flax import linen
from jaxtyping import Array, Bool, Float, Int, Key

from jaxaudit.errors import InputError
from jaxaudit.llm.lora import LoraSpec
from jaxaudit.llm.packing import Packing, make_packing, pack, pack_ids, unpack
from jaxaudit.llm.rope import rope_angles, rotate
from jaxaudit.llm.spec import DecoderSpec
from jaxaudit.train import Params
from jaxaudit.unlearn.preference import Tokens

_ACTIVATIONS = {"silu": jax.nn.silu, "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True)}
_HIDDEN = (
    -1e30
)  # a finite stand-in for minus infinity: a row that sees nothing, as at padding, must not be NaN


class Cache(NamedTuple):
    """Keys and values of all layers, one column per token seen or still to come."""

    keys: Float[Array, "layers examples columns heads size"]
    values: Float[Array, "layers examples columns heads size"]


class Context(NamedTuple):
    """What all layers share."""

    cosine: Float[Array, "examples tokens half"]
    sine: Float[Array, "examples tokens half"]
    visible: Bool[Array, "examples tokens columns"]
    """Which columns each token attends to."""
    column: Int[Array, ""]
    """Where in the cache the first token goes."""
    packing: Packing | None = None
    """If there is one, layers see the real tokens only, in one row."""


class Output(NamedTuple):
    """What a pass through the network gives."""

    logits: Float[Array, "examples tokens vocabulary"]
    cache: Cache | None
    features: Float[Array, "layers examples tokens width"] | None
    """What leaves every layer, if asked for."""


class Adapted(NamedTuple):
    """Parameters of a model with adapters; only the adapters get gradients."""

    base: Params
    adapters: Params


class Norm(linen.Module):
    """``x / sqrt(mean(x^2) + epsilon) * w`` in float32; with an offset ``1 + w``."""

    epsilon: float
    offset: bool

    @linen.compact
    def __call__(self, x: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
        start = linen.initializers.zeros if self.offset else linen.initializers.ones
        weight = self.param("weight", start, (x.shape[-1],)).astype(jnp.float32)
        wide = x.astype(jnp.float32)
        scaled = wide * jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + self.epsilon)
        return (scaled * (weight + 1.0 if self.offset else weight)).astype(x.dtype)


class Projection(linen.Module):
    """``x W``, plus a bias, plus the adapter's part where there is one in the collection ``lora``."""

    features: int
    lora: LoraSpec | None
    biased: bool

    @linen.compact
    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        kernel = self.param("kernel", linen.initializers.lecun_normal(), (x.shape[-1], self.features))
        y = x @ kernel.astype(x.dtype)
        if self.biased:
            y = y + self.param("bias", linen.initializers.zeros, (self.features,)).astype(x.dtype)
        if self.lora is None or not self.has_variable("lora", "a"):
            return y
        a: Array = self.get_variable("lora", "a").astype(x.dtype)
        b: Array = self.get_variable("lora", "b").astype(x.dtype)
        dropped = linen.Dropout(self.lora.dropout, deterministic=not self.has_rng("dropout"))(x)
        return y + self.lora.scale * ((dropped @ a) @ b)


class Layer(linen.Module):
    """Attention and a gated feed-forward part, each after a norm and beside a shortcut."""

    spec: DecoderSpec
    lora: LoraSpec | None
    keep_features: bool

    @linen.compact
    def __call__(
        self, x: Float[Array, "examples tokens width"], cache: Cache | None, context: Context
    ) -> Any:
        spec = self.spec
        attended, cache = self._attend(self._norm("attention_norm")(x), cache, context)
        x = x + attended
        y = self._norm("mlp_norm")(x)
        gate = _ACTIVATIONS[spec.activation](self._project("gate", y))
        x = x + self._project("down", gate * self._project("up", y))
        return x, (cache, x if self.keep_features else None)

    def _norm(self, name: str) -> Norm:
        return Norm(self.spec.norm_epsilon, self.spec.norm_offset, name=name)

    def _project(self, name: str, x: Float[Array, "..."]) -> Float[Array, "..."]:
        outputs, biased = self.spec.projections[name][1], name in self.spec.biased
        return Projection(outputs, self.lora, biased, name=name)(x)

    def _attend(self, x: Float[Array, "examples tokens width"], cache: Cache | None, context: Context) -> Any:
        packing, num_examples = context.packing, len(context.visible)

        def heads(name: str) -> Float[Array, "examples tokens heads size"]:
            y = self._project(name, x)
            y = y if packing is None else unpack(y, packing, num_examples)
            return y.reshape(*y.shape[:2], -1, self.spec.head_size)

        queries, keys = (rotate(heads(name), context.cosine, context.sine) for name in ("q", "k"))
        seen = Cache(keys, heads("v"))
        if cache is not None:
            start = (0, context.column, 0, 0)
            seen = Cache(*(jax.lax.dynamic_update_slice(old, new, start) for old, new in zip(cache, seen)))
        out = attention(queries, *seen, context.visible)
        out = out.reshape(*out.shape[:2], -1)
        out = out if packing is None else pack(out, packing)
        return self._project("o", out), None if cache is None else seen


def attention(
    queries: Float[Array, "examples tokens heads size"],
    keys: Float[Array, "examples columns kv_heads size"],
    values: Float[Array, "examples columns kv_heads size"],
    visible: Bool[Array, "examples tokens columns"],
) -> Float[Array, "examples tokens heads size"]:
    """Softmax attention; query head h reads key head ``h // (heads / kv_heads)``.

    Scores are divided by the square root of ``size``; the softmax is float32. A token that sees nothing gets the mean.

    Examples
    --------
    >>> one = jnp.ones((1, 2, 1, 4))
    >>> attention(one, one, one, jnp.ones((1, 2, 2), bool)).shape
    (1, 2, 1, 4)
    """
    grouped = queries.reshape(*queries.shape[:2], keys.shape[2], -1, queries.shape[3])
    scores = jnp.einsum("ntkgs,ncks->nkgtc", grouped, keys, preferred_element_type=jnp.float32)
    scores = jnp.where(visible[:, None, None], scores * queries.shape[3] ** -0.5, _HIDDEN)
    shares = jax.nn.softmax(scores, axis=-1).astype(values.dtype)
    return jnp.einsum("nkgtc,ncks->ntkgs", shares, values).reshape(queries.shape)


class Network(linen.Module):
    """Embedding, layers, norm, head."""

    spec: DecoderSpec
    lora: LoraSpec | None = None
    keep_features: bool = False

    @linen.compact
    def __call__(
        self,
        ids: Int[Array, "examples tokens"],
        context: Context,
        cache: Cache | None = None,
        first: int = 0,
    ) -> Output:
        """Logits of the tokens from number ``first`` on."""
        spec, dtype = self.spec, jnp.dtype(self.spec.compute_dtype)
        shape = (spec.vocabulary_size, spec.width)
        table = self.param("embedding", linen.initializers.normal(0.02), shape)
        packing = context.packing
        x = table.astype(dtype)[ids if packing is None else pack_ids(ids, packing)]
        if spec.scale_embedding:
            x = x * jnp.asarray(spec.width**0.5, dtype)
        x, (cache, features) = self._layers()(x, cache, context)
        x = x if packing is None else unpack(x, packing, len(ids))
        x = Norm(spec.norm_epsilon, spec.norm_offset, name="norm")(x[:, first:])
        head = table.T if spec.tied_head else self.param("head", linen.initializers.normal(0.02), shape[::-1])
        logits = jnp.matmul(x, head.astype(dtype), preferred_element_type=jnp.float32)
        return Output(logits, cache, features)

    def _layers(self) -> Any:
        """The layer, scanned over its stacked parameters: it is compiled once, however many there are."""
        layer = linen.remat(Layer, prevent_cse=False) if self.spec.remat else Layer
        scanned = linen.scan(
            layer,
            variable_axes={"params": 0, "lora": 0},
            split_rngs={"params": True, "dropout": True},
            in_axes=(0, linen.broadcast),
            length=self.spec.num_layers,
        )
        return scanned(self.spec, self.lora, self.keep_features, name="layers")


def token_positions(real: Float[Array, "examples tokens"]) -> Int[Array, "examples tokens"]:
    """Numbers of the real tokens of each row, from 0; padding before them has 0, padding after them the last number.

    Examples
    --------
    >>> token_positions(jnp.array([[0.0, 1.0, 1.0, 0.0]])).tolist()
    [[0, 0, 1, 1]]
    """
    return jnp.maximum(jnp.cumsum(real > 0, axis=1) - 1, 0)


def make_context(
    spec: DecoderSpec,
    real: Float[Array, "examples columns"],
    column: Int[Array, ""] | int = 0,
    num_tokens: int | None = None,
) -> Context:
    """Positions and visibility of the tokens in ``num_tokens`` columns from ``column`` on (``None``: all).

    A token sees the real tokens at its own and at earlier columns, of these at most ``spec.sliding_window``.
    """
    num_columns = real.shape[1]
    positions = token_positions(real)
    start = jnp.asarray(column, jnp.int32)
    own = jax.lax.dynamic_slice_in_dim(positions, start, num_tokens or num_columns, axis=1)
    rows = start + jnp.arange(num_tokens or num_columns)
    visible = (rows[:, None] >= jnp.arange(num_columns)) & (real[:, None] > 0)
    if spec.sliding_window is not None:
        visible &= own[:, :, None] - positions[:, None] < spec.sliding_window
    return Context(*rope_angles(spec, own), visible, start)


class Decoder(NamedTuple):
    """A decoder as pure functions; see `decoder`. Their ``params`` may also be `Adapted`."""

    spec: DecoderSpec
    lora: LoraSpec | None
    init_fn: Callable[[Key[Array, ""]], Params]
    """``key -> params``, without adapters."""
    logits_fn: Callable[[Params, Tokens], Float[Array, "examples tokens vocabulary"]]
    """Position t predicts token t + 1."""
    forward: Callable[..., Output]
    """``(params, tokens, *, first=0, dropout_key=None, keep_features=False, packed=None) -> Output``: logits from
    token ``first`` on; with dropout of the adapters' inputs if there is a key. With ``packed``, see `packed_size`, the
    layers compute so many tokens and no padding: logits of real tokens are the same, and NaN if there are more of them.
    Features are then packed, too."""


def decoder(spec: DecoderSpec, lora: LoraSpec | None = None) -> Decoder:
    """The functions of a decoder.

    ``params`` is ``{"embedding": (vocabulary, width), "layers": {...}, "norm": {"weight": (width,)}, "head": (width,
    vocabulary)}``; the last only if the head is not tied. Arrays under ``layers`` have the layers as first axis:
    ``attention_norm`` and ``mlp_norm`` with ``weight``, and ``q, k, v, o, gate, up, down`` with ``kernel`` (layers,
    inputs, outputs) and, where the spec says so, ``bias`` (layers, outputs).

    Parameters
    ----------
    spec
        Sizes and switches.
    lora
        Kind of the adapters, if there will be some.

    Examples
    --------
    >>> model = decoder(DecoderSpec(10, width=8, num_heads=2, hidden=12))
    >>> params = jax.eval_shape(model.init_fn, jax.random.key(0))  # shapes only
    >>> tokens = Tokens(jnp.array([[1, 2, 3]]), jnp.array([[0.0, 0.0, 1.0]]), jnp.ones((1, 3)))
    >>> jax.eval_shape(model.logits_fn, params, tokens).shape, sorted(params)
    ((1, 3, 10), ['embedding', 'layers', 'norm'])
    """
    return _decoder(spec, lora)


@lru_cache(
    maxsize=32
)  # the same functions for the same spec, so that programs built on them are compiled once
def _decoder(spec: DecoderSpec, lora: LoraSpec | None) -> Decoder:
    def init_fn(key: Key[Array, ""]) -> Params:
        ids = jnp.zeros((1, 2), jnp.int32)
        return Network(spec).init(key, ids, make_context(spec, jnp.ones((1, 2))))["params"]

    def forward(
        params: Params | Adapted,
        tokens: Tokens,
        *,
        first: int = 0,
        dropout_key: Key[Array, ""] | None = None,
        keep_features: bool = False,
        packed: int | None = None,
    ) -> Output:
        rngs = None if dropout_key is None else {"dropout": dropout_key}
        network = Network(spec, lora, keep_features)
        context = make_context(spec, tokens.real)
        if packed is not None:
            context = context._replace(packing=make_packing(tokens.real, packed))
        variables = collections(params, lora)
        output = cast(Output, network.apply(variables, tokens.ids, context, first=first, rngs=rngs))
        return output if packed is None else _checked(output, tokens, packed)

    def logits_fn(params: Params, tokens: Tokens) -> Float[Array, "examples tokens vocabulary"]:
        return forward(params, tokens).logits

    return Decoder(spec, lora, init_fn, logits_fn, forward)


def _checked(output: Output, tokens: Tokens, packed: int) -> Output:
    """Tokens that did not fit must not go unnoticed."""
    fits = jnp.sum(tokens.real > 0) <= packed
    return output._replace(logits=jnp.where(fits, output.logits, jnp.nan))


def collections(params: Params | Adapted, lora: LoraSpec | None) -> dict[str, Params]:
    """Parameters as Flax wants them; no gradient reaches the base of an adapted model.

    Raises
    ------
    InputError
        If there are adapters and the decoder knows nothing of them.
    """
    if not isinstance(params, Adapted):
        return {"params": params}
    if lora is None:
        raise InputError("lora must be given to decoder() for parameters with adapters, got None")
    return {"params": jax.lax.stop_gradient(params.base), "lora": params.adapters}
