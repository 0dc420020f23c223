"""Tensors of a folder of safetensors files, read one at a time into the decoder's stacked parameters.

Nothing is unpickled, and no more than one tensor is in memory beside the result.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.errors import InputError
from jaxaudit.llm.decoder import decoder
from jaxaudit.llm.pretrained.families import LEAVES, read_json
from jaxaudit.llm.spec import DecoderSpec
from jaxaudit.train import Params

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_HEAD = "lm_head.weight"
_IGNORED = re.compile(r".*\.rotary_emb\.inv_freq")  # older files keep what follows from the configuration
_SHOWN = 3


class Checkpoint(NamedTuple):
    """Tensors by name, as published: matrices are (outputs, inputs), one per layer."""

    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]
    """The values of one, of a type of floats."""


def open_safetensors(folder: str | Path) -> Checkpoint:
    """The tensors of ``model.safetensors``, or of the files that ``model.safetensors.index.json`` lists.

    Files are mapped into memory: a tensor is read when it is asked for.

    Raises
    ------
    InputError
        No such files, a damaged one, a tensor that its file does not have, a type that is not of floats, or
        ``safetensors`` is not installed.
    """
    folder = Path(folder)
    if (folder / _INDEX).is_file():
        files = _indexed(folder)
    elif (folder / _WEIGHTS).is_file():
        files = [folder / _WEIGHTS]
    else:
        raise InputError(
            f"{folder} must hold {_WEIGHTS} or {_INDEX}; weights in other forms, pickles above all, are not read"
        )
    handles: dict[str, Any] = {}
    for file in files:
        opened = _open(file)
        handles |= dict.fromkeys(opened.keys(), opened)
    shapes = {name: tuple(handle.get_slice(name).get_shape()) for name, handle in handles.items()}
    return Checkpoint(shapes, lambda name: _floats(name, handles[name]))


def _indexed(folder: Path) -> list[Path]:
    places = read_json(folder / _INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise InputError(f"{folder / _INDEX} must have a weight_map, got {places!r}")
    names = sorted({str(name) for name in places.values()})
    for name in names:
        if Path(name).name != name or not (folder / name).is_file():
            raise InputError(f"{folder / _INDEX} must name files of its own folder, got {name!r}")
    return [folder / name for name in names]


def _open(file: Path) -> Any:
    try:
        return _package().safe_open(file, framework="np")
    except InputError:
        raise
    except Exception as error:  # the package's own exception, of which nothing more is known
        raise InputError(f"{file} is damaged or is not a safetensors file: {error}") from error


def _floats(name: str, handle: Any) -> np.ndarray:
    kind = handle.get_slice(name).get_dtype()
    if kind not in ("F64", "F32", "F16", "BF16"):
        raise InputError(
            f"tensor {name!r} must be of type F32, F16 or BF16, got {kind}: quantised weights are not read"
        )
    return np.asarray(handle.get_tensor(name))


def _package() -> ModuleType:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise InputError("this needs the package safetensors: pip install 'jaxaudit[llm]'") from error
    return safetensors


def read_params(spec: DecoderSpec, checkpoint: Checkpoint, dtype: str = "float32") -> Params:
    """Parameters of ``decoder(spec)`` from a checkpoint, as NumPy arrays.

    Parameters
    ----------
    spec
        Of the decoder; tells names and shapes.
    checkpoint
        Holds all of its tensors and no others, except those that follow from the configuration, and an output layer
        that repeats the embeddings it is tied to.
    dtype
        ``float32`` or ``bfloat16``.

    Raises
    ------
    InputError
        Tensors that are missing, that the decoder has no place for, of wrong shapes, or not finite: named.
    """
    expected = _expected(spec)
    _check_names(spec, checkpoint, expected)
    leaves = {path: np.empty(shape, jnp.dtype(dtype)) for path, shape in _shapes(spec).items()}
    for name, (path, layer, _) in expected.items():
        values = checkpoint.read(name)
        if not np.isfinite(values).all():
            raise InputError(f"tensor {name!r} must be finite, got nan or inf")
        target = leaves[path] if layer is None else leaves[path][layer]
        target[...] = values.T if _is_turned(path) else values
    params: Params = {}
    for path, leaf in leaves.items():
        place = params
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = leaf
    return params


def write_safetensors(folder: str | Path, params: Params) -> None:
    """Write ``model.safetensors`` with published names, in the types of the parameters."""
    _package().numpy.save_file(split_params(params), Path(folder) / _WEIGHTS, metadata={"format": "pt"})


def split_params(params: Params) -> dict[str, np.ndarray]:
    """The reverse: published names and forms, in the types of the parameters."""
    tensors: dict[str, np.ndarray] = {}
    for entries, leaf in jax.tree_util.tree_leaves_with_path(params):
        path = tuple(entry.key for entry in entries)
        values = np.asarray(leaf)
        values = values.swapaxes(-1, -2) if _is_turned(path) else values
        if path[0] == "layers":
            tensors |= {LEAVES[path].format(layer): one for layer, one in enumerate(values)}
        else:
            tensors[LEAVES[path]] = values
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


def _is_turned(path: tuple[str, ...]) -> bool:
    """Matrices are published as (outputs, inputs); the table of embeddings is the same on both sides."""
    return path[-1] in ("kernel", "head")


def _shapes(spec: DecoderSpec) -> dict[tuple[str, ...], tuple[int, ...]]:
    tree = jax.eval_shape(decoder(spec).init_fn, jax.random.key(0))
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {tuple(entry.key for entry in path): leaf.shape for path, leaf in leaves}


def _expected(spec: DecoderSpec) -> dict[str, tuple[tuple[str, ...], int | None, tuple[int, ...]]]:
    """Place, layer and published shape of every tensor, by name."""
    found: dict[str, tuple[tuple[str, ...], int | None, tuple[int, ...]]] = {}
    for path, shape in _shapes(spec).items():
        layers = range(spec.num_layers) if path[0] == "layers" else [None]
        own = shape[1:] if path[0] == "layers" else shape
        for layer in layers:
            found[LEAVES[path].format(layer)] = (path, layer, own[::-1] if _is_turned(path) else own)
    return found


def _check_names(spec: DecoderSpec, checkpoint: Checkpoint, expected: Mapping[str, Any]) -> None:
    shapes = checkpoint.shapes
    missing = [name for name in expected if name not in shapes]
    known = {name for name in shapes if _IGNORED.fullmatch(name)}
    if spec.tied_head and _HEAD in shapes and not missing:
        _check_tied(checkpoint)
        known.add(_HEAD)
    extra = [name for name in shapes if name not in expected and name not in known]
    wrong = [
        f"{name} {shapes[name]} instead of {shape}"
        for name, (_, _, shape) in expected.items()
        if name in shapes and shapes[name] != shape
    ]
    problems = {"missing": missing, "not of this decoder": extra, "of the wrong shape": wrong}
    texts = [f"{len(names)} {problem}: {_some(names)}" for problem, names in problems.items() if names]
    if texts:
        raise InputError(
            f"the checkpoint's tensors must be those of the configuration, got {'; '.join(texts)}"
        )


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _check_tied(checkpoint: Checkpoint) -> None:
    table, head = (checkpoint.read(name) for name in (LEAVES[("embedding",)], _HEAD))
    if not np.array_equal(table, head):
        raise InputError(
            f"{_HEAD} must repeat the embeddings, as the configuration ties them, got other values"
        )
