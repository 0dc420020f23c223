"""Equal computations have equal hashes; anything that changes a result changes the hash."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.store import fingerprint, hash_arrays, hash_loop, hash_program
from jaxaudit.train import Loop

X = jax.ShapeDtypeStruct((3,), "float32")


def test_order_of_keys_is_no_difference():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1}) != fingerprint({"a": 2, "b": 1})


@pytest.mark.parametrize(
    "other",
    [
        np.array([1.0, 2.0, np.nextafter(3.0, 4.0)]),
        np.array([1.0, 2.0, 3.0], np.float32),
        np.array([[1.0, 2.0, 3.0]]),
        np.array([1.0, 3.0, 2.0]),
    ],
)
def test_arrays_differ_by_value_type_shape_and_order(other):
    assert hash_arrays([np.array([1.0, 2.0, 3.0])]) != hash_arrays([other])


def test_arrays_are_equal_whatever_their_memory_layout():
    array = np.arange(12.0).reshape(3, 4)
    assert hash_arrays([array]) == hash_arrays([np.asfortranarray(array)])
    assert hash_arrays([array.astype(np.float32)]) == hash_arrays([jnp.asarray(array, jnp.float32)])
    assert hash_arrays([array[:, ::2]]) == hash_arrays([array[:, ::2].copy()])
    assert hash_arrays([np.float32(2.0)]) == hash_arrays([np.array(2.0, np.float32)])


def test_bfloat16_can_be_hashed():
    one, other = (hash_arrays([np.asarray(jnp.array([value], jnp.bfloat16))]) for value in (1.0, 2.0))
    assert one != other


def test_programs_differ_by_a_constant_deep_inside_a_large_array():
    def program(value):
        table = np.zeros(20_000, np.float32)
        table[777] = value
        return lambda x: jnp.sum(jax.jit(lambda x: x * table[:3].sum() + jnp.asarray(table)[770:].sum())(x))

    hashes = [
        hash_program(program(value), X) for value in (1.0, 1.0, np.nextafter(np.float32(1), np.float32(2)))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_programs_differ_by_their_shapes():
    assert hash_program(jnp.sin, X) != hash_program(jnp.sin, jax.ShapeDtypeStruct((4,), "float32"))


def test_the_hash_of_a_program_is_the_same_in_another_process():
    code = (
        "import jax; from jaxaudit.store import hash_program;"
        "f = lambda key, x: jax.nn.silu(x) + jax.random.normal(key, (3,));"
        "key = jax.eval_shape(lambda: jax.random.key(0));"
        "print(hash_program(f, key, jax.ShapeDtypeStruct((3,), 'float32')))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout != b""


def loop(rate=0.5, num_steps=3, deterministic=False, start=1.0):
    return Loop(
        lambda run, shared: run * start,
        lambda step, carry, run, shared: carry * rate,
        num_steps,
        deterministic,
    )


@pytest.mark.parametrize(
    "change", [{"rate": 0.25}, {"num_steps": 4}, {"deterministic": True}, {"start": 2.0}]
)
def test_loops_differ_by_what_they_compute(change):
    assert hash_loop(loop(), X, X) == hash_loop(loop(), X, X)
    assert hash_loop(loop(), X, X) != hash_loop(loop(**change), X, X)


def test_a_loop_without_steps_needs_no_body():
    empty = Loop(lambda run, shared: run, lambda *_: 1 / 0, 0)
    assert hash_loop(empty, X, None) == hash_loop(empty, X, None)
