"""Trained parameters, one row per sign vector, for every later method, hyper-parameter, noise draw and audit.

A shelf holds the models of one training: the same data, starting point, order and program. Rows that were trained
together are one piece, named after them; its note lists them, so that there is no index that could disagree.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Bool, PyTree

from jaxaudit.store.fingerprint import fingerprint
from jaxaudit.store.pieces import Note, read_note, read_piece, write_piece


class TrainedShelf:
    """Models of one training.

    Parameters
    ----------
    store
        Root of the store.
    key
        Hash of everything that the parameters depend on, except the sign vector (and the noise key).
    about
        The same in words, kept for the reader: plain JSON types.
    say
        Told of damage.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as store:
    ...     shelf = TrainedShelf(Path(store), "3f", {}, print)
    ...     shelf.put(100, ["+-", "-+"], {"bias": np.array([[1.0], [2.0]])})
    ...     shelf.take(100, ["--", "-+"], {"bias": jax.ShapeDtypeStruct((1,), "float64")})
    ({'bias': array([[0.], [2.]])}, array([False,  True]))
    """

    def __init__(self, store: Path, key: str, about: Note, say: Callable[[str], None]) -> None:
        self._store = store
        self._name = f"trained/{key[:32]}"
        self._about = about
        self._say = say

    def take(
        self, update: int, rows: Sequence[str], like: PyTree
    ) -> tuple[PyTree, Bool[np.ndarray, " rows"]]:
        """Parameters after so many updates, and which of them were found; the others are 0.

        Parameters
        ----------
        update
            Number of updates.
        rows
            Keys of the rows, without repeats.
        like
            Shapes and types of the parameters of one row.
        """
        shapes, structure = jax.tree.flatten(like)
        leaves = [np.zeros((len(rows), *one.shape), one.dtype) for one in shapes]
        found = np.zeros(len(rows), bool)
        for name, stored in self._pieces(update):
            places = {key: place for place, key in enumerate(stored)}
            wanted = [row for row, key in enumerate(rows) if not found[row] and key in places]
            piece = read_piece(self._store, name, self._say) if wanted else None
            if piece is None or not _fits(piece.leaves, shapes, len(stored)):
                continue
            index = [places[rows[row]] for row in wanted]
            for leaf, new in zip(leaves, piece.leaves):
                leaf[wanted] = new[index]
            found[wanted] = True
        return jax.tree.unflatten(structure, leaves), found

    def put(self, update: int, rows: Sequence[str], params: PyTree) -> None:
        """Keep parameters after so many updates, one row per key; raises as `write_piece`."""
        name = f"{self._folder(update)}/{fingerprint(list(rows))[:16]}"
        write_piece(self._store, name, params, {"rows": list(rows), "about": self._about})

    def _folder(self, update: int) -> str:
        return f"{self._name}/update-{update}"

    def _pieces(self, update: int) -> list[tuple[str, list[str]]]:
        """Names and row keys of the pieces, newest first: what was damaged has been replaced by newer ones."""
        folders = [path for path in (self._store / self._folder(update)).glob("*") if path.is_dir()]
        folders.sort(key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
        names = [f"{self._folder(update)}/{folder.name}" for folder in folders]
        pieces = []
        for name in names:
            note = read_note(self._store, name)
            if note is None or "rows" not in note:
                self._say(f"store: {name} is damaged and is left aside")
            else:
                pieces.append((name, note["rows"]))
        return pieces


def _fits(leaves: list[np.ndarray], shapes: list[jax.ShapeDtypeStruct], num_rows: int) -> bool:
    found = [(leaf.shape, leaf.dtype) for leaf in leaves]
    return found == [((num_rows, *one.shape), one.dtype) for one in shapes]
