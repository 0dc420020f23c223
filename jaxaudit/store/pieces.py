"""A pytree of arrays as one folder: an Orbax checkpoint, a note, and a hash of both.

A piece is written into a hidden folder first and then moved to its place, so that a reader never sees half of one.
What was damaged later is found by its hash and counts as not there.
"""

import itertools
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import PyTree

from jaxaudit.errors import InputError
from jaxaudit.runs import to_host
from jaxaudit.store.fingerprint import fingerprint, hash_arrays

_ARRAYS, _INDEX = "arrays", "piece.json"
_UNFINISHED = ".unfinished"
_names = itertools.count()

Note = dict[str, Any]
"""Plain JSON types."""


class Piece(NamedTuple):
    """What was stored."""

    leaves: list[np.ndarray]
    """In the order of ``jax.tree.leaves``; random keys as their key data."""
    note: Note


def write_piece(store: Path, name: str, tree: PyTree, note: Note | None = None) -> None:
    """Write a piece; one of that name is replaced. Of several processes, which share the store, the first one writes.

    Parameters
    ----------
    store
        Root of the store.
    name
        Folder below it, with slashes.
    tree
        Arrays, on the host or on devices.
    note
        Kept with them.

    Raises
    ------
    InputError
        The disk is full, or the folder cannot be written. What was stored before is still there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as store:
    ...     write_piece(Path(store), "a/b", {"bias": np.array([1.0, 2.0])}, {"step": 3})
    ...     read_piece(Path(store), "a/b", print)
    Piece(leaves=[array([1., 2.])], note={'step': 3})
    """
    leaves = jax.tree.leaves(to_host(tree))
    failure = None
    if jax.process_index() == 0:
        try:
            _write(store, name, leaves, note or {})
        except InputError as error:
            failure = error
    if _any_failed(failure is not None):
        # The other processes must not wait for one that gives up.
        raise failure or InputError(f"store {store} cannot be written by the first process")


def _write(store: Path, name: str, leaves: list[np.ndarray], note: Note) -> None:
    hidden = store / _UNFINISHED / f"{socket.gethostname()}-{os.getpid()}-{next(_names)}"
    try:
        hidden.mkdir(parents=True)
        _write_arrays(hidden / _ARRAYS, leaves)
        _write_index(hidden / _INDEX, leaves, note)
        _move(hidden, store / name)
    except Exception as error:  # Orbax and its storage layer raise many types when a disk is full
        raise InputError(
            f"store {store} cannot be written: {error}. Nothing that was stored before is lost: make room and "
            "start again with the same arguments"
        ) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def read_piece(store: Path, name: str, say: Callable[[str], None]) -> Piece | None:
    """A piece, or ``None`` if there is none or if it is damaged, which is said. See `write_piece`."""
    folder = store / name
    if not folder.is_dir():
        return None
    try:
        index = _read_index(folder / _INDEX)
        leaves = _read_arrays(folder / _ARRAYS, index["leaves"])
        if index["sha256"] != _digest(leaves, index["note"]):
            raise ValueError("the content does not have the hash that was written down")
    except Exception as error:  # a damaged folder makes the readers raise a dozen different kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        say(f"store: {name} is damaged ({reason:.120}) and is computed again")
        return None
    return Piece(leaves, index["note"])


def read_note(store: Path, name: str) -> Note | None:
    """The note of a piece without its arrays; ``None`` if it is not there or cannot be read.

    Examples
    --------
    >>> read_note(Path("/nowhere"), "a") is None
    True
    """
    try:
        note = _read_index(store / name / _INDEX)["note"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return note if isinstance(note, dict) else None


def remove(store: Path, *names: str) -> None:
    """Remove pieces or folders of pieces, if they are there: what stays is never half a piece.

    Of several processes the first one removes what it names; the others wait for it.

    Examples
    --------
    >>> remove(Path("/nowhere"), "a")
    """
    if jax.process_index() == 0:
        for name in names:
            _remove(store, store / name)
    _wait_for_all()


def _remove(store: Path, folder: Path) -> None:
    if not folder.is_dir():
        return
    hidden = store / _UNFINISHED / f"{socket.gethostname()}-{os.getpid()}-{next(_names)}"
    try:
        hidden.parent.mkdir(exist_ok=True)
        os.replace(folder, hidden)
    except OSError:  # a disk so full that not even a folder can be made
        hidden = folder
    shutil.rmtree(hidden, ignore_errors=True)


def _wait_for_all() -> None:
    """Several processes read the same store: none may read while another one changes it."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("store")


def _any_failed(failed: bool) -> bool:
    """Whether the first process failed, told to all of them, which wait for it."""
    if jax.process_count() == 1:
        return failed
    return bool(multihost_utils.broadcast_one_to_all(np.int32(failed)))


def clean(store: Path) -> None:
    """Remove what processes of this machine left unfinished when they were killed.

    Examples
    --------
    >>> clean(Path("/nowhere"))
    """
    own = re.compile(re.escape(socket.gethostname()) + r"-(\d+)-\d+(-old)?")
    for folder in (store / _UNFINISHED).glob("*"):
        match = own.fullmatch(folder.name)
        if match and not _is_alive(int(match[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _digest(leaves: list[np.ndarray], note: Note) -> str:
    return fingerprint([hash_arrays(leaves), note])


def _write_index(path: Path, leaves: list[np.ndarray], note: Note) -> None:
    described = [{"dtype": leaf.dtype.name, "shape": leaf.shape} for leaf in leaves]
    index = {"note": note, "leaves": described, "sha256": _digest(leaves, note)}
    path.write_text(json.dumps(index), encoding="utf-8")


def _read_index(path: Path) -> dict[str, Any]:
    index = json.loads(path.read_text(encoding="utf-8"))
    return {key: index[key] for key in ("note", "leaves", "sha256")}


def _move(hidden: Path, target: Path) -> None:
    """Put a piece in its place, also where there is one already."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _replace(hidden, target)
    except OSError:  # another audit may have put its own piece there in between
        _replace(hidden, target)


def _replace(hidden: Path, target: Path) -> None:
    try:
        os.replace(hidden, target)
    except OSError:
        if not target.is_dir():
            raise
        old = hidden.with_name(f"{hidden.name}-old")
        os.replace(target, old)
        try:
            os.replace(hidden, target)
        except OSError:
            with suppress(OSError):  # not if there is a newer one now
                os.replace(old, target)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)


@lru_cache(maxsize=1)
def _checkpointer() -> Any:
    """One for all pieces; every process writes on its own, so that no other one has to take part."""
    import orbax.checkpoint as ocp  # slow to import, and rarely needed

    own = jax.process_index()
    alone = ocp.options.MultiprocessingOptions(primary_host=own, active_processes={own})
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=alone)
    return ocp.Checkpointer(handler, multiprocessing_options=alone)


def _write_arrays(folder: Path, leaves: list[np.ndarray]) -> None:
    filled = _filled(leaves)
    if filled:
        _checkpointer().save(folder.resolve(), filled)


def _filled(leaves: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by number, without empty ones, which Orbax does not store."""
    return {str(index): leaf for index, leaf in enumerate(leaves) if leaf.size}


def _read_arrays(folder: Path, described: list[dict[str, Any]]) -> list[np.ndarray]:
    import orbax.checkpoint as ocp

    empty = [np.empty(leaf["shape"], jnp.dtype(leaf["dtype"])) for leaf in described]
    as_numpy = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in _filled(empty)}
    found = _checkpointer().restore(folder.resolve(), restore_args=as_numpy) if as_numpy else {}
    return [found.get(str(index), leaf) for index, leaf in enumerate(empty)]
