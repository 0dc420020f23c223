"""Devices: the run axis is cut into equal blocks, one per device, and no block ever looks at another.

Several hosts take part through `jax.distributed`: every process makes the same calls, arrays span all processes, and
`to_host` is the one place where results are gathered.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from jaxaudit.errors import InputError

Devices = tuple[jax.Device, ...]
RUNS = PartitionSpec("runs")
EVERYWHERE = PartitionSpec()
_JOIN_AT_ONCE = 64


def choose_devices(num_devices: int | None = None) -> Devices:
    """Devices to spread runs over.

    Parameters
    ----------
    num_devices
        How many; ``None`` takes those of all processes, or only JAX's default device if the user has set one.

    Raises
    ------
    InputError
        If there are not so many, or if some process would be left out.

    Examples
    --------
    >>> len(choose_devices(1))
    1
    """
    default = jax.config.jax_default_device  # type: ignore[attr-defined]
    if num_devices is None and default is not None:
        return tuple(jnp.zeros(()).devices())
    devices = tuple(jax.devices())
    if num_devices is None:
        return devices
    if num_devices > len(devices):
        raise InputError(f"num_devices must be at most the {len(devices)} that JAX sees, got {num_devices}")
    if jax.process_count() > 1 and num_devices != len(devices):
        raise InputError(f"num_devices must be None where several processes take part, got {num_devices}")
    return devices[:num_devices]


def spread(block: Callable[..., Any], devices: Devices, runs: Sequence[bool]) -> Callable[..., Any]:
    """``block`` on every device's own runs; results are runs too.

    Parameters
    ----------
    block
        Function of arrays that hold one device's runs, or are shared.
    devices
        Where.
    runs
        For each argument whether it has an axis of runs; the others are shared.
    """
    if len(devices) == 1:
        return block
    specs = tuple(RUNS if axis else EVERYWHERE for axis in runs)
    # check_vma: a carry may start from shared values and become a run's own, which is what we want.
    return jax.shard_map(block, mesh=_mesh(devices), in_specs=specs, out_specs=RUNS, check_vma=False)


def sharding(devices: Devices, spec: PartitionSpec) -> jax.sharding.Sharding:
    """How an array lies on the devices."""
    if len(devices) == 1:
        return jax.sharding.SingleDeviceSharding(devices[0])
    return NamedSharding(_mesh(devices), spec)


def padded(count: int, devices: Devices) -> int:
    """``count`` runs filled up to equal blocks.

    Examples
    --------
    >>> padded(5, choose_devices(1))
    5
    """
    return -(-count // len(devices)) * len(devices)


def take_runs(tree: PyTree, start: int, count: int, size: int, devices: Devices) -> PyTree:
    """Runs ``start`` to ``start + count - 1``, filled up to ``size`` by repeating the last one.

    Parameters
    ----------
    tree
        Arrays whose leading axis is that of all runs.
    start, count
        Which runs.
    size
        Length of the axis that is wanted, a multiple of the number of devices.
    devices
        Where they are wanted.
    """
    index = start + np.minimum(np.arange(size), count - 1)
    layout = sharding(devices, RUNS)

    def take(leaf: Any) -> Any:
        if size == count == len(leaf):
            return place(leaf, layout)
        if isinstance(leaf, jax.Array) and set(leaf.devices()) == set(devices):
            return _take(leaf, index, layout if len(devices) > 1 else None)
        return place(leaf[index], layout)

    return jax.tree.map(take, tree)


def share(tree: PyTree, devices: Devices) -> PyTree:
    """The same values on every device."""
    return jax.tree.map(partial(place, layout=sharding(devices, EVERYWHERE)), tree)


def join_runs(pieces: Sequence[tuple[PyTree, int]], devices: Devices) -> PyTree:
    """Pieces one after the other, each cut to its number of runs (the rest of it is filling).

    Parameters
    ----------
    pieces
        Pytrees with a leading axis of runs, and how many of the runs count.
    devices
        Where they lie. A total that is no multiple of their number is kept in full on each of them, since JAX has no
        arrays of unequal blocks.
    """
    while len(pieces) > _JOIN_AT_ONCE:  # one program with thousands of arguments takes long to compile
        groups = [pieces[at : at + _JOIN_AT_ONCE] for at in range(0, len(pieces), _JOIN_AT_ONCE)]
        pieces = [(join_runs(group, devices), sum(count for _, count in group)) for group in groups]
    trees, counts = zip(*pieces)
    lengths = [len(leaf) for leaf in jax.tree.leaves(trees[0])[:1]]
    if len(trees) == 1 and lengths in ([], [counts[0]]):
        return trees[0]
    even = sum(counts) % len(devices) == 0
    layout = sharding(devices, RUNS if even else EVERYWHERE) if len(devices) > 1 else None
    return jax.tree.map(lambda *leaves: _join(leaves, counts, layout), *trees)


def to_host(tree: PyTree) -> PyTree:
    """Results as NumPy arrays, on every process: the one place where arrays are gathered.

    Random keys become their key data.

    Examples
    --------
    >>> to_host({"scores": jnp.arange(3.0)})
    {'scores': array([0., 1., 2.], dtype=float32)}
    """
    return jax.tree.map(_fetch, tree)


def agree(value: float) -> float:
    """The first process's value, on all processes, so that decisions by the clock are the same everywhere."""
    if jax.process_count() == 1:
        return value
    return float(multihost_utils.broadcast_one_to_all(np.float32(value)))


def is_key(leaf: Any) -> bool:
    """Whether these are typed random keys.

    Examples
    --------
    >>> is_key(jax.random.key(0)), is_key(jnp.zeros(2))
    (True, False)
    """
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def place(leaf: Any, layout: jax.sharding.Sharding) -> Any:
    """An array laid out as asked; it is not copied if it lies so already."""
    if isinstance(leaf, jax.Array):
        if leaf.sharding.is_equivalent_to(layout, leaf.ndim):
            return leaf
        if not leaf.is_fully_addressable:
            return _identity(layout)(leaf)
    if layout.is_fully_addressable:
        return jax.device_put(leaf, layout)
    if is_key(leaf):
        return _wrap_keys(place(jax.random.key_data(leaf), layout), leaf.dtype)
    # Every process holds all values; device_put would compare them, and NaN is not equal to itself.
    values = np.asarray(jnp.asarray(leaf))
    return jax.make_array_from_callback(values.shape, layout, lambda block: values[block])


@lru_cache(maxsize=16)
def _mesh(devices: Devices) -> Mesh:
    return jax.make_mesh((len(devices),), ("runs",), axis_types=(AxisType.Auto,), devices=devices)


@lru_cache(maxsize=16)
def _identity(layout: jax.sharding.Sharding) -> Callable[[Any], Any]:
    return jax.jit(lambda leaf: leaf, out_shardings=layout)


@partial(jax.jit, static_argnums=1)
def _wrap_keys(data: Any, impl: Any) -> Any:
    return jax.random.wrap_key_data(data, impl=impl)


@partial(jax.jit, static_argnums=2)
def _take(leaf: Any, index: Any, layout: Any) -> Any:
    taken = leaf[index]
    return taken if layout is None else jax.lax.with_sharding_constraint(taken, layout)


@partial(jax.jit, static_argnums=(1, 2))
def _join(leaves: Any, counts: tuple[int, ...], layout: Any) -> Any:
    joined = jnp.concatenate([leaf[:count] for leaf, count in zip(leaves, counts)])
    return joined if layout is None else jax.lax.with_sharding_constraint(joined, layout)


def _fetch(leaf: Any) -> Any:
    if is_key(leaf):
        leaf = jax.jit(jax.random.key_data)(leaf)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return multihost_utils.process_allgather(leaf, tiled=True)
    return np.asarray(leaf)
