"""Everything that one audit has computed so far, so that it can be killed at any moment and started again.

Its folder is named after a hash of all that the result depends on. Of a finished audit only the scores stay, which are
small, so that the same audit returns at once; the models that it trained stay on their shelf. The folder of every
audit can be removed at any time: what it held is computed again.
"""

import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from jaxtyping import PyTree

from jaxaudit.errors import InputError
from jaxaudit.runs import RunOptions, RunPlan
from jaxaudit.store.pieces import Note, Piece, clean, read_piece, remove, write_piece


class Progress:
    """Pieces of one audit, by name.

    Parameters
    ----------
    store
        Root of the store; made if it is not there.
    key
        Hash of everything that the audit's result depends on.
    say
        Told of damage.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as store:
    ...     progress = Progress(Path(store), "3f", print)
    ...     progress.keep("scores/result", np.array([0.5]))
    ...     progress.keep("models", np.array([0.1, 0.2]))
    ...     progress.finish("result")
    ...     progress.load("scores/result").leaves, progress.load("models")
    ([array([0.5])], None)
    """

    def __init__(self, store: Path, key: str, say: Callable[[str], None]) -> None:
        self.store = store
        self.say = say
        self._folder = f"audits/{key[:32]}"
        try:
            (store / self._folder).mkdir(parents=True, exist_ok=True)
            clean(store)
        except OSError as error:
            raise InputError(f"store {store} cannot be written: {error.strerror}") from error

    def load(self, name: str) -> Piece | None:
        """A piece, or ``None`` if it is not there or is damaged (which is said)."""
        return read_piece(self.store, self._path(name), self.say)

    def keep(self, name: str, tree: PyTree, note: Note | None = None) -> None:
        """Write a piece; raises as `jaxaudit.store.pieces.write_piece`."""
        write_piece(self.store, self._path(name), tree, note)

    def plan(self, name: str, options: RunOptions, choose: Callable[[], RunPlan]) -> RunPlan:
        """The plan that was chosen before, so that its bits are repeated; a new one is chosen for other options.

        What was kept under the name is forgotten with the old plan: its parts may have another size.
        """
        piece = self.load(f"{name}/plan")
        if piece is not None and piece.note["options"] == asdict(options):
            return RunPlan(**piece.note["plan"])
        self.forget(name)
        plan = choose()
        self.keep(f"{name}/plan", (), {"plan": asdict(plan), "options": asdict(options)})
        return plan

    def saver(self, name: str, least: int, stop: int) -> "LoopSaver":
        """Where `run_loops` keeps the parts of one loop: those after at least ``least`` and at most ``stop`` steps."""
        return LoopSaver(self, name, least, stop)

    def steps(self, name: str, part: int) -> list[int]:
        """Numbers of steps after which a part of a loop was kept, highest first."""
        pattern = re.compile(rf"part-{part}-(\d+)")
        folder = self.store / self._path(name)
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted((int(match[1]) for match in map(pattern.fullmatch, names) if match), reverse=True)

    def tidy(self, name: str, keep: str) -> None:
        """Remove what is kept below a name, except one piece."""
        folder = self.store / self._path(name)
        self.forget(*(f"{name}/{path.name}" for path in sorted(folder.iterdir()) if path.name != keep))

    def forget(self, *names: str) -> None:
        """Remove what is kept under some names or below them."""
        remove(self.store, *map(self._path, names))

    def finish(self, keep: str) -> None:
        """Remove everything except the pieces whose last name this is."""
        root = self.store / self._folder
        # os.walk does not mind what another process removes meanwhile.
        kept = {Path(folder, keep) for folder, children, _ in os.walk(root) if keep in children}
        above = {parent for folder in kept for parent in folder.parents}
        names = []
        for folder, children, _ in os.walk(root):
            paths = [Path(folder, child) for child in children]
            names += [str(path.relative_to(root)) for path in paths if path not in kept | above]
            children[:] = [path.name for path in paths if path in above]
        self.forget(*sorted(names))

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


class LoopSaver:
    """The `jaxaudit.runs.Saver` of one loop: one piece per part, the newest state only."""

    def __init__(self, progress: Progress, name: str, least: int, stop: int) -> None:
        self._progress = progress
        self._name = name
        self._least = least
        self._stop = stop

    def load(self, part: int) -> tuple[int, PyTree] | None:
        """Steps done and leaves of a part; ``None`` if it is not kept."""
        for step in self._progress.steps(self._name, part):
            if self._least <= step <= self._stop:
                piece = self._progress.load(self._piece(part, step))
                if piece is not None:
                    return step, piece.leaves
        return None

    def save(self, part: int, step: int, carry: PyTree, done: bool) -> None:
        """Keep a part, and only then remove its older state."""
        self._progress.keep(self._piece(part, step), carry)
        others = [other for other in self._progress.steps(self._name, part) if other != step]
        self._progress.forget(*(self._piece(part, other) for other in others))

    def _piece(self, part: int, step: int) -> str:
        return f"{self._name}/part-{part}-{step}"
