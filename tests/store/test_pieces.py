"""A piece is there whole or not at all; damage is found."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.store import pieces
from jaxaudit.store.pieces import clean, read_note, read_piece, remove, write_piece

TREE = {
    "bias": np.array([np.nan, np.inf, -0.0]),
    "empty": np.zeros((3, 0), np.float32),
    "flags": np.array([True, False]),
    "half": jnp.ones((2, 3), jnp.bfloat16) / 3,
    "keys": jax.random.split(jax.random.key(3), 2),
    "number": np.float32(2.5),
    "weights": jnp.arange(6.0).reshape(2, 3),
}


def silent(text):
    raise AssertionError(text)


def test_every_bit_comes_back(tmp_path):
    write_piece(tmp_path, "a/b", TREE, {"step": 3, "rows": ["x"]})
    piece = read_piece(tmp_path, "a/b", silent)
    assert piece.note == {"step": 3, "rows": ["x"]} == read_note(tmp_path, "a/b")
    for (name, leaf), found in zip(TREE.items(), piece.leaves, strict=True):
        expected = np.asarray(jax.random.key_data(leaf) if name == "keys" else leaf)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()


def test_a_piece_without_arrays_holds_its_note(tmp_path):
    write_piece(tmp_path, "plan", (), {"chunk": 4})
    assert read_piece(tmp_path, "plan", silent) == ([], {"chunk": 4})


def test_what_is_not_there_is_none(tmp_path):
    assert read_piece(tmp_path, "a", silent) is None
    assert read_note(tmp_path, "a") is None


def test_a_piece_is_replaced_and_nothing_is_left_over(tmp_path):
    for value in (1.0, 2.0):
        write_piece(tmp_path, "a", [np.array(value)])
    assert read_piece(tmp_path, "a", silent).leaves == [2.0]
    assert list((tmp_path / ".unfinished").iterdir()) == []


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_change_or_loss_of_any_file_is_found_or_harmless(tmp_path):
    """Every file is cut, emptied, changed in its middle and removed: the old content comes back, or none at all."""
    rng = np.random.default_rng(0)
    array = rng.normal(size=(40, 50))
    write_piece(tmp_path, "good", [array], {"step": 3})
    found = []
    for path in files(tmp_path / "good"):
        content = path.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :] if content else b"x"
        for damage in (content[:middle], b"", flipped, None):
            shutil.copytree(tmp_path / "good", tmp_path / "bad")
            victim = tmp_path / "bad" / path.relative_to(tmp_path / "good")
            victim.unlink() if damage is None else victim.write_bytes(damage)
            said = []
            piece = read_piece(tmp_path, "bad", said.append)
            if piece is None:
                assert len(said) == 1
                assert said[0].startswith("store: bad is damaged (")
                found.append(path.name)
            else:
                np.testing.assert_array_equal(piece.leaves[0], array)
                assert piece.note == {"step": 3}
            shutil.rmtree(tmp_path / "bad")
    assert "piece.json" in found
    assert len(set(found)) >= 3  # the index, and what holds the array


def test_a_forged_note_is_found(tmp_path):
    write_piece(tmp_path, "a", [np.ones(2)], {"step": 3})
    path = tmp_path / "a" / "piece.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"note": {"step": 4}}))
    said = []
    assert read_piece(tmp_path, "a", said.append) is None
    assert "does not have the hash" in said[0]


def test_a_full_disk_is_an_error_that_says_what_to_do_and_loses_nothing(tmp_path, monkeypatch):
    write_piece(tmp_path, "a", [np.array(1.0)])
    write_arrays = pieces._write_arrays

    def full(folder, leaves):
        folder.mkdir()
        (folder / "half").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pieces, "_write_arrays", full)
    for name in ("a", "b"):
        with pytest.raises(
            InputError, match=r"cannot be written: .*No space left on device.*make room and start"
        ):
            write_piece(tmp_path, name, [np.array(2.0)])
    assert list((tmp_path / ".unfinished").iterdir()) == []
    assert read_piece(tmp_path, "a", silent).leaves == [1.0]
    assert read_piece(tmp_path, "b", silent) is None
    monkeypatch.setattr(pieces, "_write_arrays", write_arrays)
    write_piece(tmp_path, "b", [np.array(2.0)])
    assert read_piece(tmp_path, "b", silent).leaves == [2.0]


def test_a_really_full_disk(tmp_path):
    """Files of more than 200 kB cannot be written; what Orbax's storage layer makes of that is an InputError too."""
    code = (
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from jaxaudit.errors import InputError\n"
        "from jaxaudit.store.pieces import write_piece, read_piece\n"
        "store = Path(sys.argv[1])\n"
        "write_piece(store, 'small', [np.ones(10)])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))\n"
        "noise = np.random.default_rng(0).normal(size=100_000)\n"
        "try:\n"
        "    write_piece(store, 'large', [noise])\n"
        "except InputError as error:\n"
        "    assert 'cannot be written' in str(error), error\n"
        "else:\n"
        "    sys.exit('no error')\n"
        "assert read_piece(store, 'small', print).leaves[0].sum() == 10\n"
        "assert read_piece(store, 'large', print) is None\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "write_piece(store, 'large', [noise])\n"
        "assert (read_piece(store, 'large', print).leaves[0] == noise).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_removing_takes_a_folder_with_all_that_is_in_it(tmp_path):
    write_piece(tmp_path, "a/b", [np.ones(1)])
    write_piece(tmp_path, "c", [np.ones(1)])
    remove(tmp_path, "a")
    assert read_piece(tmp_path, "a/b", silent) is None
    assert read_piece(tmp_path, "c", silent) is not None


def test_what_killed_processes_left_is_cleaned_and_nothing_else(tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    host = socket.gethostname()
    gone, own = int(dead.stdout), os.getpid()
    mine = [f"{host}-{gone}-0", f"{host}-{gone}-{own}-old"]
    others = [f"{host}-{own}-0", f"{host}-{own}-{gone}-old", "elsewhere-1-0", f"{host}-7-{gone}-0", "what"]
    for name in mine + others:
        (tmp_path / ".unfinished" / name).mkdir(parents=True)
    clean(tmp_path)
    assert sorted(path.name for path in (tmp_path / ".unfinished").iterdir()) == sorted(others)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_two_audits_that_replace_a_piece_at_the_same_time(tmp_path, monkeypatch, moment):
    """The other one puts its piece there just before or after the old one is moved away."""
    write_piece(tmp_path, "a", [np.array(1.0)])
    replace, target = os.replace, tmp_path / "a"

    def other(folder, where):
        if folder != target:
            return replace(folder, where)
        monkeypatch.setattr(os, "replace", replace)
        if moment == "after":
            replace(folder, where)
        write_piece(tmp_path, "a", [np.array(2.0)])
        if moment == "before":
            replace(folder, where)
        return None

    monkeypatch.setattr(os, "replace", other)
    write_piece(tmp_path, "a", [np.array(3.0)])
    assert read_piece(tmp_path, "a", silent).leaves == [3.0]
    assert list((tmp_path / ".unfinished").iterdir()) == []


def test_a_piece_that_cannot_be_replaced_is_still_there(tmp_path, monkeypatch):
    write_piece(tmp_path, "a", [np.array(1.0)])
    replace, target = os.replace, tmp_path / "a"

    def refuse(folder, where):
        if where == target and not str(folder).endswith("-old"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(folder, where)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError, match="Input/output error"):
        write_piece(tmp_path, "a", [np.array(2.0)])
    assert read_piece(tmp_path, "a", silent).leaves == [1.0]


TWO_PROCESSES = """
import sys, jax, numpy as np
from pathlib import Path
jax.config.update("jax_cpu_collectives_implementation", "gloo")
port, process, store = sys.argv[1:]
jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(process))
from jaxaudit.errors import InputError
from jaxaudit.store import pieces
write_arrays = pieces._write_arrays
def full(folder, leaves):
    raise OSError("full")
pieces._write_arrays = full
try:
    pieces.write_piece(Path(store), "a", [np.ones(2)])
except InputError as error:
    print("error:", error)
pieces._write_arrays = write_arrays
pieces.write_piece(Path(store), "a", [np.ones(2)])
print("piece:", pieces.read_piece(Path(store), "a", print).leaves[0].sum())
"""


@pytest.mark.slow
def test_of_two_processes_none_waits_for_one_that_cannot_write(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, str(port), str(process), str(tmp_path)],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in (0, 1)
    ]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for output, reason in zip(outputs, ("cannot be written: full", "cannot be written by the first process")):
        assert [line.split(":")[0] for line in output.splitlines() if "Gloo" not in line] == [
            "error",
            "piece",
        ]
        assert reason in output
        assert "piece: 2.0" in output
