"""How a decoder is cut up over devices: column by column into a layer's two halves, row by row out of them.

A matrix that comes first in its half (``q, k, v, gate, up``) is cut by outputs, and the one that comes last (``o``,
``down``) by inputs: a device computes its own heads and hidden units from beginning to end, and devices add up their
results twice per layer. Embeddings are cut by tokens. Adapters are cut as their matrices, and by runs on another axis
of the mesh: runs share the base and never speak to each other.

References
----------
Shoeybi et al. (2019), Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism.
"""

from typing import Any

from jax.sharding import PartitionSpec

from jaxaudit.checks import check_integer
from jaxaudit.llm.lora import LoraSpec
from jaxaudit.llm.spec import DecoderSpec

_WHOLE = PartitionSpec()
_ROWS = ("o", "down")


def base_partition(spec: DecoderSpec, num_shards: int, *, axis: str = "model") -> dict[str, Any]:
    """Partition of the parameters of ``decoder(spec)``, in their structure.

    Parameters
    ----------
    spec
        Of the decoder.
    num_shards
        Devices along the axis. Heads, hidden units or tokens that do not come out even stay whole on every device.
    axis
        Of the mesh.

    Raises
    ------
    InputError
        If the number is not an integer of at least 1.

    Examples
    --------
    >>> partition = base_partition(DecoderSpec(10, num_heads=4, num_kv_heads=1), num_shards=2)
    >>> [partition["layers"][name]["kernel"] for name in ("q", "k", "o")]
    [P(None, None, 'model'), P(), P(None, 'model', None)]
    """
    cut = _cut_projections(spec, num_shards)
    tokens = axis if spec.vocabulary_size % num_shards == 0 else None
    layers: dict[str, Any] = {name: {"weight": _WHOLE} for name in ("attention_norm", "mlp_norm")}
    for name in spec.projections:
        layers[name] = {"kernel": _kernel(name, axis) if cut[name] else _WHOLE}
        if name in spec.biased:
            is_cut = cut[name] and name not in _ROWS
            layers[name]["bias"] = PartitionSpec(None, axis) if is_cut else _WHOLE
    partition = {"embedding": PartitionSpec(tokens, None), "layers": layers, "norm": {"weight": _WHOLE}}
    return partition if spec.tied_head else {**partition, "head": PartitionSpec(None, tokens)}


def adapter_partition(
    spec: DecoderSpec, lora: LoraSpec, num_shards: int, *, axis: str = "model", runs_axis: str = "runs"
) -> dict[str, Any]:
    """Partition of the adapters of many runs, stacked along a first axis.

    Parameters
    ----------
    spec, lora
        Of the decoder and of the adapters.
    num_shards, axis
        As for `base_partition`.
    runs_axis
        Of the mesh; its size must divide the number of runs.

    Raises
    ------
    InputError
        If the number is not an integer of at least 1.

    Examples
    --------
    >>> adapter_partition(DecoderSpec(10), LoraSpec(targets=("q",)), num_shards=2)["layers"]["q"]
    {'a': P('runs',), 'b': P('runs', None, None, 'model')}
    """
    cut = _cut_projections(spec, num_shards)
    whole = PartitionSpec(runs_axis)

    def one(name: str) -> dict[str, PartitionSpec]:
        if not cut[name]:
            return {"a": whole, "b": whole}
        if name in _ROWS:
            return {"a": PartitionSpec(runs_axis, None, axis, None), "b": whole}
        return {"a": whole, "b": PartitionSpec(runs_axis, None, None, axis)}

    return {"layers": {name: one(name) for name in lora.targets}}


def _kernel(name: str, axis: str) -> PartitionSpec:
    return PartitionSpec(None, axis, None) if name in _ROWS else PartitionSpec(None, None, axis)


def _cut_projections(spec: DecoderSpec, num_shards: int) -> dict[str, bool]:
    """Whether a matrix is cut: between heads or hidden units, never within a head."""
    check_integer("num_shards", num_shards, low=1)
    parts = {"q": spec.num_heads, "k": spec.kv_heads, "v": spec.kv_heads, "o": spec.num_heads}
    return {name: parts.get(name, spec.hidden) % num_shards == 0 for name in spec.projections}
