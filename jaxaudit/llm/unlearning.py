"""Unlearning with adapters: any gradient method, on new adapters beside each run's own trained model."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Key

from jaxaudit.errors import InputError
from jaxaudit.llm.decoder import Adapted, Decoder
from jaxaudit.llm.lora import LoraSpec, adapter_norm, init_adapters, merge
from jaxaudit.train import Info, Params
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


class LoraState(NamedTuple):
    """The merged parameters, and the state of the method that trains the adapters."""

    params: Params
    inner: Any


def adapters_only(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """An optimiser for `Adapted` parameters that never touches the base: no decay, no clipping by its gradient.

    Examples
    --------
    >>> optimizer = adapters_only(optax.sgd(1.0))
    >>> params = Adapted(jnp.ones(1), jnp.ones(1))
    >>> updates, _ = optimizer.update(params, optimizer.init(params), params)
    >>> updates.base.tolist(), updates.adapters.tolist()
    ([0.0], [-1.0])
    """
    transforms = {"adapters": optimizer, "base": optax.set_to_zero()}
    return optax.multi_transform(transforms, Adapted("base", "adapters"))


def lora_unlearner(model: Decoder, inner: Unlearner) -> Unlearner:
    """Unlearn with new adapters on the trained model, and merge them into it: PISTOL's protocol.

    The trained model may differ between runs. Adapters start from a draw of the run's key; their norm is reported.
    Where all runs share one base and train adapters alone, `lora_model` needs less memory. Methods on a `TokenModel`
    have no key for dropout, so the adapters must not have any; the authors' code has 0.05.

    Parameters
    ----------
    model
        From ``decoder(spec, lora)``.
    inner
        A method on ``token_model(model, ...)`` whose optimiser is wrapped by `adapters_only`.

    Raises
    ------
    InputError
        If the decoder has no adapters, or they have dropout.
    """
    lora = _lora_of(model)
    if lora.dropout > 0:
        raise InputError(f"lora must have dropout 0 for unlearning, got {lora.dropout}")

    def init(key: Key[Array, ""], trained: Trained) -> LoraState:
        adapters_key, inner_key = jax.random.split(key)
        adapters = init_adapters(adapters_key, model.spec, lora)
        adapted = Trained(
            Adapted(trained.params, adapters),
            Adapted(trained.initial_params, adapters),
            None if trained.checkpoint is None else Adapted(trained.checkpoint, adapters),
            trained.previous,
        )
        return LoraState(trained.params, inner.init(inner_key, adapted))

    def update(key: Key[Array, ""], state: LoraState, batch: Batch) -> tuple[LoraState, Info]:
        inner_state, info = inner.update(key, state.inner, batch)
        base, adapters = inner_state.params
        return LoraState(merge(base, adapters, lora), inner_state), info

    def measure(last: LoraState) -> Info:
        return _norm_info(last.inner.params.adapters, lora, inner, last.inner)

    return inner._replace(init=init, update=update, measure=measure)


def with_adapter_norm(unlearner: Unlearner, lora: LoraSpec) -> Unlearner:
    """The same method on adapters (see `lora_model`), which also reports their norm.

    Parameters
    ----------
    unlearner
        Its ``state.params`` are adapters.
    lora
        Their spec.
    """
    return unlearner._replace(measure=lambda last: _norm_info(last.params, lora, unlearner, last))


def _norm_info(adapters: Params, lora: LoraSpec, unlearner: Unlearner, last: Any) -> Info:
    """``adapter_norm``, and ``adapter_untouched``: 1 if it is 0, so that the run has not unlearned anything."""
    norm = adapter_norm(adapters, lora)
    known = {} if unlearner.measure is None else unlearner.measure(last)
    return {**known, "adapter_norm": norm, "adapter_untouched": jnp.where(norm == 0, 1.0, 0.0)}


def _lora_of(model: Decoder) -> LoraSpec:
    if model.lora is None:
        raise InputError("model must be a decoder with a lora spec, got None")
    return model.lora
