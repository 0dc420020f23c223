"""An audit that is killed and started again gives the evidence of one that was not, bit by bit."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.pipeline import Executor
from jaxaudit.report.evidence_file import write_evidence
from jaxaudit.store import pieces
from tests.resume_job import METHODS, after_writes, audit

ROOT = Path(__file__).parents[1]


class KilledError(BaseException):
    """What nothing in the package may catch."""


def kill():
    raise KilledError


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """Evidence of an audit that was not interrupted and kept nothing."""
    path = tmp_path_factory.mktemp("plain") / "evidence.npz"
    write_evidence(path, audit())
    return path.read_bytes()


def evidence_of(report, folder):
    path = folder / "own.npz"
    write_evidence(path, report)
    content = path.read_bytes()
    path.unlink()
    return content


def from_store(report):
    return {phase["name"]: phase["from_store"] for phase in report.timings["phases"] if phase["from_store"]}


def test_a_store_changes_no_bit_and_keeps_only_the_models_and_the_scores(tmp_path, evidence):
    store = tmp_path / "store"
    report = audit(store)
    assert evidence_of(report, tmp_path) == evidence
    assert all(method.seconds > 0 for method in report.methods if method.recorded_at is None)
    kept = [path.relative_to(store).parent for path in store.rglob("piece.json")]
    assert {path.parts[0] for path in kept} == {"trained", "audits"}
    looks = [path.parts[-2:] for path in kept if path.parts[0] == "audits"]
    assert sorted(looks) == [("2", "result"), ("end", "result"), ("end", "result")]


def test_a_finished_audit_returns_at_once(tmp_path, evidence):
    store = tmp_path / "store"
    audit(store)
    with patch.object(Executor, "_run", side_effect=AssertionError("nothing is left to do")):
        again = audit(store)
    assert evidence_of(again, tmp_path) == evidence
    assert from_store(again) == {"train": 6, "train-2": 6, "noise: score": 15, "rewind: score": 15}
    assert again.timings["runs_at_once"] is None
    assert all(method.seconds is None for method in again.methods)
    shutil.rmtree(store / "audits")
    once_more = audit(store)
    assert evidence_of(once_more, tmp_path) == evidence
    assert from_store(once_more) == {"train": 6, "train-2": 6}


def test_killed_again_and_again_it_goes_on_where_it_was(tmp_path, evidence):
    """Killed at the first write, then two writes later, then three, and so on until it is through."""
    store, interruptions = tmp_path / "store", 0
    for writes in range(1, 100):
        try:
            with after_writes(writes, kill, "before" if writes % 2 else "after"):
                report = audit(store)
            break
        except KilledError:
            interruptions += 1
    assert interruptions >= 8
    assert evidence_of(report, tmp_path) == evidence
    (folder,) = (store / "audits").iterdir()
    assert {path.parent.name for path in folder.rglob("piece.json")} == {"result"}


def test_damage_while_it_was_interrupted_is_repaired(tmp_path, evidence):
    store = tmp_path / "store"
    with pytest.raises(KilledError), after_writes(40, kill, "after"):
        audit(store)
    indices = sorted(store.rglob("piece.json"))
    for index in indices[::2]:
        index.write_text(index.read_text()[:-5])
    for index in indices[1::4]:
        shutil.rmtree(index.parent / "arrays", ignore_errors=True)
    assert evidence_of(audit(store), tmp_path) == evidence


def test_another_audit_does_not_take_the_progress_for_its_own(tmp_path):
    store = tmp_path / "store"
    with pytest.raises(KilledError), after_writes(40, kill, "after"):
        audit(store)
    other = {"noise": METHODS["noise"]._replace(record_at=(1,))}
    expected = audit(methods=other)
    assert evidence_of(audit(store, methods=other), tmp_path) == evidence_of(expected, tmp_path)
    assert len(list((store / "audits").iterdir())) == 2


def test_a_full_disk_loses_nothing(tmp_path, evidence):
    store = tmp_path / "store"

    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for writes in (30, 8):
        message = "cannot be written: .*No space left on device.*start again with the same arguments"
        with pytest.raises(InputError, match=message), after_writes(writes, full, "before"):
            audit(store)
    assert evidence_of(audit(store), tmp_path) == evidence


def job(store, out, writes, moment="before", **environment):
    """The audit in a process of its own; it kills itself at the given write."""
    return subprocess.run(
        [sys.executable, "-m", "tests.resume_job", str(store), str(out), str(writes), moment],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_process_that_is_really_killed_twice(tmp_path):
    whole = job(tmp_path / "other", tmp_path / "whole", 10**6)
    assert whole.returncode == 0, whole.stderr
    for writes, moment in ((20, "before"), (25, "after")):
        assert job(tmp_path / "store", tmp_path / "report", writes, moment).returncode == -9
        assert not (tmp_path / "report").exists()
    last = job(tmp_path / "store", tmp_path / "report", 10**6)
    assert last.returncode == 0, last.stderr
    assert "train: 6 of 6 models from the store" in last.stdout
    contents = [(tmp_path / name / "evidence.npz").read_bytes() for name in ("whole", "report")]
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_saved_on_eight_devices_and_resumed_on_one(tmp_path, evidence):
    flags = "--xla_force_host_platform_device_count=8"
    for writes in (6, 20):  # in training, in unlearning
        assert job(tmp_path / "store", tmp_path / "report", writes, XLA_FLAGS=flags).returncode == -9
    last = job(tmp_path / "store", tmp_path / "report", 10**6)
    assert last.returncode == 0, last.stderr
    assert "1 devices" in last.stdout
    (tmp_path / "plain.npz").write_bytes(evidence)
    with np.load(tmp_path / "plain.npz") as one, np.load(tmp_path / "report" / "evidence.npz") as other:
        for name in (name for name in one.files if name.endswith(("scores", "signs", "noise_keys"))):
            np.testing.assert_allclose(other[name], one[name], rtol=1e-4, atol=1e-5, err_msg=name)


@contextmanager
def small_disk(folder, size):
    """A file system of so many bytes, if this user may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user cannot mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path, evidence):
    with small_disk(tmp_path / "disk", 2**20) as disk:
        (disk / "ballast").write_bytes(bytes(700 * 1024))
        with pytest.raises(InputError, match="start again with the same arguments"):
            audit(disk / "store")
        kept = len(list((disk / "store").rglob("piece.json")))
        assert kept > 0
        (disk / "ballast").unlink()
        # What was kept is used: writes that are left are fewer than those of an audit from the start.
        with patch.object(pieces, "_write", wraps=pieces._write) as write:
            assert evidence_of(audit(disk / "store"), tmp_path) == evidence
        left = write.call_count
    with patch.object(pieces, "_write", wraps=pieces._write) as write:
        audit(tmp_path / "store")
    assert left < write.call_count


TWO_PROCESSES = """
import sys, jax
jax.config.update("jax_cpu_collectives_implementation", "gloo")
port, process, store = sys.argv[1:]
jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(process))
from tests.resume_job import audit
for repetition in range(2):
    report = audit(store)
    print([float(method.audited.scores.sum()) for method in report.methods])
    print(sorted(phase["name"] for phase in report.timings["phases"] if phase["from_store"]))
"""


@pytest.mark.slow
def test_two_processes_share_a_store(tmp_path, evidence):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, str(port), str(process), str(tmp_path / "store")],
            cwd=ROOT,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in (0, 1)
    ]
    outputs = [process.communicate(timeout=600) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs[0][1] + outputs[1][1]
    lines = [
        [line for line in out.splitlines() if line.startswith("[") and "Gloo" not in line]
        for out, _ in outputs
    ]
    assert lines[0] == lines[1]
    first, nothing, second, all_of_them = lines[0]
    assert first == second
    assert (nothing, all_of_them) == ("[]", "['noise: score', 'rewind: score', 'train', 'train-2']")
    (tmp_path / "plain.npz").write_bytes(evidence)
    with np.load(tmp_path / "plain.npz") as plain:
        sums = [plain[f"method/{name}/scores"].sum() for name in ("noise@2", "noise", "rewind")]
    np.testing.assert_allclose(json.loads(first), sums, rtol=1e-4, atol=1e-5)
