"""Sizes and switches of a decoder: one frozen description covers the Llama, Mistral and Gemma families."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from jaxaudit.checks import check_choice, check_integer, check_positive, check_real
from jaxaudit.errors import InputError
from jaxaudit.models.base import ComputeDtype, check_compute_dtype

Activation = Literal["silu", "gelu_tanh"]
RopeKind = Literal["linear", "llama3"]


@dataclass(frozen=True)
class RopeScaling:
    """How a model's rotary frequencies are stretched for longer texts than it was first trained on.

    Parameters
    ----------
    kind
        ``linear``: all frequencies are divided by ``factor``. ``llama3``: the slow ones are, the fast ones stay, and
        those between are mixed.
    factor
        At least 1.
    low_frequency_factor, high_frequency_factor, original_length
        Of ``llama3`` only: a wave is slow above ``original_length / low_frequency_factor`` tokens, and fast below
        ``original_length / high_frequency_factor``.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> RopeScaling("linear", 0.5)
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: factor must be at least 1, got 0.5
    """

    kind: RopeKind
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_length: int = 8192

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(RopeKind))
        if check_real("factor", self.factor) < 1:
            raise InputError(f"factor must be at least 1, got {self.factor}")
        check_positive(low_frequency_factor=self.low_frequency_factor)
        if check_real("high_frequency_factor", self.high_frequency_factor) <= self.low_frequency_factor:
            raise InputError(
                f"high_frequency_factor must be above low_frequency_factor = {self.low_frequency_factor}, "
                f"got {self.high_frequency_factor}"
            )
        check_integer("original_length", self.original_length, low=1)


@dataclass(frozen=True)
class DecoderSpec:
    """A decoder of the Llama family: RMS norms, rotary positions, grouped-query attention, gated feed-forward layers.

    Parameters
    ----------
    vocabulary_size
        Number of tokens, at least 2.
    width
        Length of the vector that stands for a token.
    num_layers, num_heads
        Layers, and heads of the queries in each.
    hidden
        Units of the feed-forward layers.
    num_kv_heads
        Heads of keys and values, each used by ``num_heads / num_kv_heads`` query heads. ``None``: as many.
    head_dim
        Length of a head's vectors, even. ``None``: ``width / num_heads``.
    activation
        Of the gate: ``silu`` (Llama, Mistral) or ``gelu_tanh`` (Gemma).
    norm_epsilon
        Added to the mean square in the norms.
    norm_offset
        Whether a norm scales by ``1 + w`` (Gemma) rather than ``w``.
    scale_embedding
        Whether embeddings are multiplied by the square root of the width (Gemma).
    tied_head
        Whether the output layer is the table of embeddings; otherwise it has a kernel of its own.
    rope_theta
        Base of the rotary frequencies.
    rope_scaling
        ``None``, or see `RopeScaling`.
    biased
        Names of the matrices whose products get a bias added, among ``q, k, v, o, gate, up, down``.
    sliding_window
        How many tokens back, itself included, a token sees (Mistral 7B v0.1: 4096). ``None``: all.
    compute_dtype
        ``float32``, or ``bfloat16`` for activations and products. Norms, softmax and logits are float32 in any case.
    remat
        Whether layers are computed again in the backward pass instead of being kept; saves memory, costs a third more.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> spec = DecoderSpec(215)
    >>> spec.head_size, spec.kv_heads, spec.num_params
    (16, 4, 120576)
    >>> PRESETS["small"](215).num_params
    880640
    """

    vocabulary_size: int
    width: int = 64
    num_layers: int = 2
    num_heads: int = 4
    hidden: int = 192
    num_kv_heads: int | None = None
    head_dim: int | None = None
    activation: Activation = "silu"
    norm_epsilon: float = 1e-5
    norm_offset: bool = False
    scale_embedding: bool = False
    tied_head: bool = True
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    biased: tuple[str, ...] = ()
    sliding_window: int | None = None
    compute_dtype: ComputeDtype = "float32"
    remat: bool = False

    def __post_init__(self) -> None:
        check_integer("vocabulary_size", self.vocabulary_size, low=2)
        for name in ("width", "num_layers", "num_heads", "hidden"):
            check_integer(name, getattr(self, name), low=1)
        if self.num_heads % check_integer("num_kv_heads", self.kv_heads, low=1):
            raise InputError(f"num_kv_heads must divide num_heads = {self.num_heads}, got {self.kv_heads}")
        if check_integer("head_dim", self.head_size, low=2) % 2:
            raise InputError(f"head_dim must be even, got {self.head_size}")
        check_choice("activation", self.activation, get_args(Activation))
        check_positive(norm_epsilon=self.norm_epsilon, rope_theta=self.rope_theta)
        object.__setattr__(self, "biased", tuple(self.biased))
        for name in self.biased:
            check_choice("biased", name, list(self.projections))
        if self.sliding_window is not None:
            check_integer("sliding_window", self.sliding_window, low=1)
        check_compute_dtype(self.compute_dtype)

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def head_size(self) -> int:
        """Length of a head's vectors."""
        return self.width // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def projections(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the seven matrices of a layer."""
        queries, keys = self.num_heads * self.head_size, self.kv_heads * self.head_size
        return {
            "q": (self.width, queries),
            "k": (self.width, keys),
            "v": (self.width, keys),
            "o": (queries, self.width),
            "gate": (self.width, self.hidden),
            "up": (self.width, self.hidden),
            "down": (self.hidden, self.width),
        }

    @property
    def num_params(self) -> int:
        """Number of parameters."""
        layer = 2 * self.width + sum(rows * columns for rows, columns in self.projections.values())
        layer += sum(self.projections[name][1] for name in self.biased)
        tables = 1 if self.tied_head else 2
        return tables * self.vocabulary_size * self.width + self.num_layers * layer + self.width


def _tiny(vocabulary_size: int) -> DecoderSpec:
    return DecoderSpec(vocabulary_size)


def _small(vocabulary_size: int) -> DecoderSpec:
    return DecoderSpec(vocabulary_size, width=128, num_layers=4, hidden=384)


PRESETS: Mapping[str, Callable[[int], DecoderSpec]] = MappingProxyType({"tiny": _tiny, "small": _small})
"""Models to train from nothing, given the vocabulary's size: ``tiny`` for tests, ``small`` for experiments."""
