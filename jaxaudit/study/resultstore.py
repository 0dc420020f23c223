"""Results on disk: one file per finished model, written whole or not at all, so that a killed study goes on."""

from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np

from jaxaudit.border import read_npz, write_npz
from jaxaudit.errors import InputError
from jaxaudit.train import Params

Arrays = Mapping[str, np.ndarray]


class ResultStore:
    """Arrays by name, below a folder; without a folder in memory.

    Parameters
    ----------
    folder
        Made when something is written. ``None``: nothing is kept on disk.

    Examples
    --------
    >>> results = ResultStore(None)
    >>> results.put("before/seed-1", {"recall": np.ones(2)})
    >>> results.get("before/seed-1")["recall"].tolist(), results.get("before/seed-2")
    ([1.0, 1.0], None)
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._memory: dict[str, Arrays] = {}

    def get(self, name: str, *, keep: bool = True) -> Arrays | None:
        """What was put there; ``None`` if there is nothing, or nothing that can be read.

        With ``keep=False`` what is read from disk does not stay in memory.
        """
        if name in self._memory:
            return self._memory[name]
        if self.folder is None or not self._path(name).is_file():
            return None
        try:
            found = read_npz(self._path(name))
        except InputError:
            return None
        if keep:
            self._memory[name] = found
        return found

    def put(self, name: str, arrays: Arrays, *, keep: bool = True) -> None:
        """Keep arrays; what was there is replaced. With ``keep=False`` on disk only, if there is a folder."""
        if keep or self.folder is None:
            self._memory[name] = dict(arrays)
        if self.folder is not None:
            self._path(name).parent.mkdir(parents=True, exist_ok=True)
            write_npz(self._path(name), arrays, overwrite=True)

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.npz"


def params_to_arrays(params: Params) -> dict[str, np.ndarray]:
    """Parameters for a `ResultStore`, leaf by leaf."""
    return {f"leaf{number}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(params))}


def params_from_arrays(arrays: Arrays, like: Params) -> Params:
    """Undo `params_to_arrays`, given parameters of the same structure.

    Examples
    --------
    >>> params = {"bias": np.ones(2), "kernel": np.zeros((2, 2))}
    >>> sorted(params_from_arrays(params_to_arrays(params), params))
    ['bias', 'kernel']
    """
    leaves, structure = jax.tree.flatten(like)
    found = [arrays[f"leaf{number}"] for number in range(len(leaves))]
    # A file knows bfloat16 as pairs of bytes without a type.
    typed = [
        array.view(leaf.dtype) if array.dtype.kind == "V" else array for array, leaf in zip(found, leaves)
    ]
    return jax.tree.unflatten(structure, typed)
