"""When two computations are the same: hashes of arrays, of plain values, and of programs.

A function is known by the program that JAX lowers it to, with every constant in it: two models of the same shapes, or
two settings of a method, are told apart by what they compute, not by what they are called. The same code gives the
same program in every process; another version of JAX may give another, and then nothing is taken for equal.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from jaxaudit.train import Loop


def fingerprint(parts: Any) -> str:
    """SHA-256 (hex) of plain JSON types.

    Examples
    --------
    >>> fingerprint({"seed": 0})[:8] == fingerprint({"seed": 1})[:8]
    False
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_arrays(leaves: Iterable[np.ndarray]) -> str:
    """SHA-256 (hex) over types, shapes and bytes of arrays, in their order.

    Examples
    --------
    >>> hash_arrays([np.zeros(2)]) == hash_arrays([np.zeros((2, 1))])
    False
    """
    digest = hashlib.sha256()
    for leaf in leaves:
        array = np.asarray(leaf, order="C")
        digest.update(f"{array.dtype.name}|{array.shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def hash_program(function: Callable[..., Any], *arguments: PyTree) -> str:
    """SHA-256 (hex) of what a function computes for arguments of these shapes; nothing is compiled or carried out.

    Parameters
    ----------
    function
        Pure, as for ``jax.jit``.
    arguments
        Pytrees of arrays or of ``jax.ShapeDtypeStruct``.

    Examples
    --------
    >>> x = jax.ShapeDtypeStruct((3,), "float32")
    >>> hash_program(lambda x: 2.0 * x, x) == hash_program(lambda x: 2.0 * x, x)
    True
    >>> hash_program(lambda x: 2.0 * x, x) == hash_program(lambda x: 2.5 * x, x)
    False
    """
    text = jax.jit(function).lower(*arguments).as_text()
    return hashlib.sha256(text.encode()).hexdigest()


def hash_loop(loop: Loop, run: PyTree, shared: PyTree) -> str:
    """SHA-256 (hex) of what a loop computes in one run.

    Parameters
    ----------
    loop
        One run, without any run axis.
    run, shared
        Arguments of one run, or their shapes and types.

    Examples
    --------
    >>> count = Loop(lambda run, shared: run, lambda step, carry, run, shared: carry + 1, 3)
    >>> x = jax.ShapeDtypeStruct((), "int32")
    >>> hash_loop(count, x, None) == hash_loop(count._replace(num_steps=4), x, None)
    False
    """
    carry = jax.eval_shape(loop.init, run, shared)
    step = jax.ShapeDtypeStruct((), "int32")
    return fingerprint(
        [
            loop.num_steps,
            loop.deterministic,
            hash_program(loop.init, run, shared),
            hash_program(loop.body, step, carry, run, shared) if loop.num_steps else None,
        ]
    )
