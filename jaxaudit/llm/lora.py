"""Low-rank adapters: small matrices beside the frozen ones, kept in a pytree of their own.

    y = x W + (alpha / rank) dropout(x) A B,    B = 0 at the start, so that an adapted model begins as its base

Adapters are ``{"layers": {name: {"a": (layers, inputs, rank), "b": (layers, rank, outputs)}}}``: plain arrays, so that
one base serves many runs, each with its own adapters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer, check_positive, check_real
from jaxaudit.errors import InputError
from jaxaudit.llm.spec import DecoderSpec
from jaxaudit.train import Params

PROJECTIONS = ("q", "k", "v", "o", "gate", "up", "down")
"""The seven matrices of a layer: of the attention, and of the feed-forward part."""


@dataclass(frozen=True)
class LoraSpec:
    """Which matrices get adapters, and what kind.

    Parameters
    ----------
    rank
        Of the product A B; the papers' r.
    alpha
        The product is multiplied by ``alpha / rank``.
    dropout
        Share of inputs of A that are dropped in `lora_tuning_loop`, in [0, 1); nowhere else.
    targets
        Names among ``q, k, v, o, gate, up, down``; each once, at least one.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Hu et al. (2021), LoRA: Low-Rank Adaptation of Large Language Models. Defaults are PISTOL's.

    Examples
    --------
    >>> LoraSpec(targets=("q", "x"))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: targets must be different names among q, k, v, o, gate, up, down, got ('q', 'x')
    """

    rank: int = 8
    alpha: float = 32.0
    dropout: float = 0.05
    targets: tuple[str, ...] = PROJECTIONS

    def __post_init__(self) -> None:
        check_integer("rank", self.rank, low=1)
        check_positive(alpha=self.alpha)
        if not 0 <= check_real("dropout", self.dropout) < 1:
            raise InputError(f"dropout must be in [0, 1), got {self.dropout}")
        object.__setattr__(self, "targets", tuple(self.targets))
        known = set(self.targets) <= set(PROJECTIONS)
        if not self.targets or not known or len(set(self.targets)) < len(self.targets):
            raise InputError(
                f"targets must be different names among {', '.join(PROJECTIONS)}, got {self.targets}"
            )

    @property
    def scale(self) -> float:
        """``alpha / rank``."""
        return self.alpha / self.rank


def init_adapters(key: Key[Array, ""], spec: DecoderSpec, lora: LoraSpec) -> Params:
    """New adapters: A uniform within ``1 / sqrt(inputs)`` (Kaiming's rule with a = sqrt 5, as in PEFT), B = 0.

    Parameters
    ----------
    key
        Typed random key.
    spec, lora
        Sizes of the decoder and of the adapters.

    Examples
    --------
    >>> adapters = init_adapters(jax.random.key(0), DecoderSpec(10), LoraSpec(rank=2, targets=("q",)))
    >>> jax.tree.map(jnp.shape, adapters)
    {'layers': {'q': {'a': (2, 64, 2), 'b': (2, 2, 64)}}}
    """

    def one(name: str) -> dict[str, Array]:
        inputs, outputs = spec.projections[name]
        bound = 1 / math.sqrt(inputs)
        own = jax.random.fold_in(key, PROJECTIONS.index(name))
        a = jax.random.uniform(own, (spec.num_layers, inputs, lora.rank), minval=-bound, maxval=bound)
        return {"a": a, "b": jnp.zeros((spec.num_layers, lora.rank, outputs))}

    return {"layers": {name: one(name) for name in lora.targets}}


def merge(params: Params, adapters: Params, lora: LoraSpec) -> Params:
    """Parameters of a plain decoder that computes what the adapted one does: ``W + (alpha / rank) A B``.

    Sums are taken in float32 and rounded to the type of W.

    Parameters
    ----------
    params
        The base.
    adapters
        See `init_adapters`.
    lora
        Their spec.
    """
    return _shifted(params, adapters, lora.scale)


def unmerge(params: Params, adapters: Params, lora: LoraSpec) -> Params:
    """Undo `merge`, up to one rounding per entry; whoever still has the base should use that."""
    return _shifted(params, adapters, -lora.scale)


def _shifted(params: Params, adapters: Params, scale: float) -> Params:
    layers = dict(params["layers"])
    for name, product in _products(adapters, scale).items():
        kernel = layers[name]["kernel"]
        shifted = (kernel.astype(jnp.float32) + product).astype(kernel.dtype)
        layers[name] = {**layers[name], "kernel": shifted}
    return {**params, "layers": layers}


def _products(adapters: Params, scale: float) -> dict[str, Float[Array, "layers inputs outputs"]]:
    return {
        name: scale * jnp.matmul(one["a"], one["b"], precision="highest")
        for name, one in adapters["layers"].items()
    }


def adapter_norm(adapters: Params, lora: LoraSpec) -> Float[Array, ""]:
    """Euclidean norm of all that the adapters add to the base: 0 exactly if they change nothing.

    Examples
    --------
    >>> lora = LoraSpec(rank=1, alpha=2.0, targets=("q",))
    >>> adapter = {"a": jnp.full((1, 2, 1), 3.0), "b": jnp.ones((1, 1, 2))}
    >>> float(adapter_norm({"layers": {"q": adapter}}, lora))
    12.0
    """
    squares = [jnp.sum(product**2) for product in _products(adapters, lora.scale).values()]
    return jnp.sqrt(sum(squares, jnp.zeros(())))


def untouched_runs(norms: Sequence[float] | Float[np.ndarray, " runs"]) -> list[int]:
    """Numbers of the runs whose adapters add nothing: they did not unlearn, whatever their other results say.

    Parameters
    ----------
    norms
        `adapter_norm` of every run.

    Raises
    ------
    InputError
        If a norm is not finite.

    Examples
    --------
    >>> untouched_runs([0.3, 0.0])
    [1]
    """
    values = np.atleast_1d(np.asarray(norms, float))
    if not np.isfinite(values).all():
        raise InputError(f"norms must be finite, got {values[~np.isfinite(values)][0]}")
    return [int(run) for run in np.flatnonzero(values == 0)]


def check_adapters(adapters: Any, spec: DecoderSpec, lora: LoraSpec) -> None:
    """Raise `InputError` unless the adapters have the shapes that the specs say."""
    expected = jax.eval_shape(lambda: init_adapters(jax.random.key(0), spec, lora))
    found, wanted = (jax.tree.map(jnp.shape, tree) for tree in (adapters, expected))
    if found != wanted:
        raise InputError(f"adapters must have the shapes {wanted}, got {found}")
