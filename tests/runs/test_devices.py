import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.runs import RunOptions, map_runs, to_host
from jaxaudit.runs.devices import agree, choose_devices, is_key, join_runs, padded, place, share, take_runs

SCRIPT = Path(__file__).parent / "many_devices.py"
ROOT = SCRIPT.parents[2]
HERE = choose_devices(1)


def start(num_processes, process, port, devices):
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.runs.many_devices", *map(str, (num_processes, process, port))]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def check(process):
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert "passed" in output


@pytest.mark.slow
def test_eight_devices_give_what_one_gives():
    check(start(1, 0, 0, devices=8))


@pytest.mark.slow
def test_two_processes_give_what_one_gives():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = [start(2, number, port, devices=2) for number in range(2)]
    for process in processes:
        check(process)


def test_more_devices_than_there_are():
    with pytest.raises(InputError, match=r"num_devices must be at most the 1 that JAX sees, got 2"):
        map_runs(lambda x, _: x, jnp.ones(2), None, options=RunOptions(num_devices=2))


def test_blocks_are_filled_up_evenly():
    three = HERE * 3  # only their number matters here
    assert [padded(count, three) for count in (1, 3, 4, 7)] == [3, 3, 6, 9]


@pytest.mark.parametrize("as_array", [np.asarray, jnp.asarray])
def test_taken_runs_are_rows_and_the_last_one_fills_up(as_array):
    tree = {"a": as_array(np.arange(10.0).reshape(5, 2)), "b": as_array(np.arange(5))}
    taken = take_runs(tree, 1, 3, 5, HERE)
    assert taken["b"].tolist() == [1, 2, 3, 3, 3]
    np.testing.assert_array_equal(taken["a"], np.asarray(tree["a"])[[1, 2, 3, 3, 3]])
    assert take_runs(tree, 0, 5, 5, HERE)["b"].tolist() == [0, 1, 2, 3, 4]


def test_joining_many_pieces_equals_concatenation():
    pieces = [(jnp.arange(3) + 10 * index, 1 + index % 3) for index in range(200)]
    expected = np.concatenate([np.asarray(piece)[:count] for piece, count in pieces])
    np.testing.assert_array_equal(join_runs(pieces, HERE), expected)
    assert join_runs([({}, 3)], HERE) == {}


def test_values_reach_the_host_and_keys_become_their_data():
    keys = jax.random.split(jax.random.key(3), 2)
    fetched = to_host({"key": keys, "x": jnp.ones(2), "n": 3})
    np.testing.assert_array_equal(fetched["key"], jax.random.key_data(keys))
    assert isinstance(fetched["x"], np.ndarray)
    assert fetched["n"] == 3
    assert is_key(keys)


def test_placing_copies_only_if_needed():
    array = jnp.ones(3)
    assert share(array, HERE) is array
    assert place(np.ones(3, np.float32), array.sharding).tolist() == [1, 1, 1]


def test_one_process_agrees_with_itself():
    assert agree(0.1) == 0.1
