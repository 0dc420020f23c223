"""Balanced sign vectors, and the examples that each of them puts into the training set.

A sign vector S says which candidate groups a run trains on and then forgets (+1) and which it never sees
(-1). Balanced: exactly ``floor(m / 2)`` of the m entries are +1, so one more -1 when m is odd. Sign vectors
leave this module as NumPy arrays, and members as index arrays of constant length, so that one compiled
program serves every run.
"""

import math
from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int8, Int32, Key

from jaxaudit.checks import check_integer
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError
from jaxaudit.keys import stream_key
from jaxaudit.scored import check_signs


def num_sign_vectors(num_groups: int) -> int:
    """Number of balanced sign vectors, ``M' = C(m, floor(m/2))``, the size of the paper's S_m (section 4).

    Parameters
    ----------
    num_groups
        Number of candidate groups, the paper's m; at least 2.

    Returns
    -------
    int
        Exact, however large.

    Examples
    --------
    >>> num_sign_vectors(6), num_sign_vectors(7)
    (20, 35)
    """
    m = check_integer("num_groups", num_groups, 2)
    return math.comb(m, m // 2)


def enumerate_signs(num_groups: int, limit: int = 10_000) -> Int8[np.ndarray, "candidates groups"]:
    """All balanced sign vectors in lexicographic order, -1 before +1.

    Parameters
    ----------
    num_groups
        Number of candidate groups, the paper's m; at least 2.
    limit
        Largest number of vectors to return.

    Raises
    ------
    InputError
        If there are more than ``limit`` of them (the default allows m <= 15).

    Examples
    --------
    >>> enumerate_signs(3)
    array([[-1, -1,  1],
           [-1,  1, -1],
           [ 1, -1, -1]], dtype=int8)
    """
    count = num_sign_vectors(num_groups)
    if count > limit:
        raise InputError(
            f"num_groups = {num_groups} has {count} balanced sign vectors, more than limit = {limit}"
        )
    signs = np.ones((count, num_groups), np.int8)
    negatives = list(combinations(range(num_groups), num_groups - num_groups // 2))
    np.put_along_axis(signs, np.array(negatives), -1, axis=1)
    return signs


def draw_signs(key: Key[Array, ""], num_runs: int, num_groups: int) -> Int8[np.ndarray, "runs groups"]:
    """Independent, uniform balanced sign vectors for audited runs (Algorithm 1 of the paper, line 2).

    Parameters
    ----------
    key
        Typed key, as made by ``jax.random.key``, used for nothing else.
    num_runs
        Number of sign vectors, the paper's L; at least 1. Row i depends on the key and i only, so that adding
        runs leaves the earlier ones as they are.
    num_groups
        Number of candidate groups, the paper's m; at least 2.

    Examples
    --------
    >>> draw_signs(jax.random.key(0), num_runs=4, num_groups=7).sum(axis=1)
    array([-1, -1, -1, -1])
    """
    _check_key(key)
    runs, m = check_integer("num_runs", num_runs, 1), check_integer("num_groups", num_groups, 2)
    return np.asarray(_shuffled_signs(key, runs, m))


def draw_calibration_signs(
    key: Key[Array, ""], num_runs: int, num_groups: int
) -> Int8[np.ndarray, "runs groups"]:
    """Sign vectors for calibration runs, in complementary pairs: every group gets member and non-member runs.

    Runs 2i and 2i + 1 are a uniform sign vector and its complement. When m is odd, the complement has one +1
    too many; the group that was held back least often so far goes back to -1. An odd last run has no partner.

    Parameters
    ----------
    key
        Typed key, used for nothing else.
    num_runs
        Number of calibration runs, the paper's Gamma; at least 2, and at least 4 when m is odd (a single pair
        would leave one group without a member run).
    num_groups
        Number of candidate groups, the paper's m; at least 2.

    Examples
    --------
    >>> draw_calibration_signs(jax.random.key(0), num_runs=4, num_groups=6).sum(axis=0)
    array([0, 0, 0, 0, 0, 0])
    """
    m = check_integer("num_groups", num_groups, 2)
    runs = check_integer(
        "num_calibration_runs (of an odd num_groups)" if m % 2 else "num_calibration_runs",
        num_runs,
        4 if m % 2 else 2,
    )
    first = draw_signs(key, -(-runs // 2), m)
    second = _hold_one_back(-first) if m % 2 else -first
    return np.stack([first, second], axis=1).reshape(-1, m)[:runs]


def draw_joint_calibration_signs(
    key: Key[Array, ""], num_runs: int, num_groups: int
) -> Int8[np.ndarray, "runs groups"]:
    """Sign vectors for the calibration of the joint predictor (Algorithm 3): every vector, equally often.

    Numbers of runs per vector differ by at most one (which vectors get the extra run is random), in random
    order.

    Parameters
    ----------
    key
        Typed key, used for nothing else.
    num_runs
        Number of calibration runs over all vectors; at least two for every balanced vector, since one run has
        no variance and cannot be left out by cross-validation.
    num_groups
        Number of candidate groups, the paper's m; at least 2, small enough to enumerate.

    Examples
    --------
    >>> signs = draw_joint_calibration_signs(jax.random.key(0), num_runs=40, num_groups=6)
    >>> set(np.unique(signs, axis=0, return_counts=True)[1].tolist())
    {2}
    """
    _check_key(key)
    candidates = enumerate_signs(num_groups)
    least = 2 * len(candidates)
    name = f"num_calibration_runs (two for each of the {len(candidates)} sign vectors)"
    runs = check_integer(name, num_runs, least)
    vector_key, order_key = jax.random.split(key)
    vectors = np.asarray(jax.random.permutation(vector_key, len(candidates)))
    order = np.asarray(jax.random.permutation(order_key, runs))
    return candidates[vectors[order % len(candidates)]]


def draw_run_signs(
    design: AuditDesign, seed: int
) -> tuple[Int8[np.ndarray, "calibration_runs groups"], Int8[np.ndarray, "audit_runs groups"]]:
    """Sign vectors of all calibration runs and of all audited runs of a design.

    Parameters
    ----------
    design
        Numbers of groups and runs, and the predictor: the joint one is calibrated on every sign vector.
    seed
        Seed of the audit; only its stream ``sign`` is used.

    Examples
    --------
    >>> design = AuditDesign(num_groups=6, num_calibration_runs=4, num_audit_runs=3)
    >>> calibration, audited = draw_run_signs(design, seed=0)
    >>> calibration.shape, audited.shape
    ((4, 6), (3, 6))
    """
    calibration_key, audit_key = jax.random.split(stream_key(seed, "sign"))
    draw_calibration = draw_joint_calibration_signs if design.predictor == "joint" else draw_calibration_signs
    return (
        draw_calibration(calibration_key, design.num_calibration_runs, design.num_groups),
        draw_signs(audit_key, design.num_audit_runs, design.num_groups),
    )


def draw_order(seed: int, pool_size: int) -> Int[np.ndarray, " pool"]:
    """The one order of all candidate training points, the same for all runs: it may not depend on S.

    Examples
    --------
    >>> sorted(draw_order(seed=0, pool_size=4).tolist())
    [0, 1, 2, 3]
    """
    return np.asarray(jax.random.permutation(stream_key(seed, "order"), pool_size))


def member_indices(
    signs: Int[np.ndarray, "runs groups"], num_retain: int, group_size: int, order: Int[np.ndarray, " pool"]
) -> Int32[np.ndarray, "runs members"]:
    """Pool indices of each run's training set D(S) = D_r + D_f(S), in the fixed order of the pool.

    Parameters
    ----------
    signs
        ``(runs, groups)``, balanced, +1 = member.
    num_retain
        Number of retain examples; they are pool indices 0 to ``num_retain - 1`` and members of every run.
    group_size
        Examples per group, padding included. Example b of group j is pool index
        ``num_retain + j * group_size + b``.
    order
        A permutation of the whole pool, the same for every run: the shuffling order, which may not depend on
        S.

    Returns
    -------
    int32 array
        ``(runs, num_retain + floor(m/2) * group_size)``; each row is ``order`` restricted to the run's
        members.

    Examples
    --------
    >>> member_indices([[1, -1], [-1, 1]], num_retain=2, group_size=1, order=[3, 1, 2, 0])
    array([[1, 2, 0],
           [3, 1, 0]], dtype=int32)
    """
    return _indices(signs, num_retain, group_size, order, with_retain=True)


def forget_indices(
    signs: Int[np.ndarray, "runs groups"], num_retain: int, group_size: int, order: Int[np.ndarray, " pool"]
) -> Int32[np.ndarray, "runs forgotten"]:
    """Pool indices of each run's own forget set D_f(S), in the fixed order of the pool.

    Parameters are those of `member_indices`; the result is ``(runs, floor(m/2) * group_size)``.

    Examples
    --------
    >>> forget_indices([[1, -1], [-1, 1]], num_retain=2, group_size=1, order=[3, 1, 2, 0])
    array([[2],
           [3]], dtype=int32)
    """
    return _indices(signs, num_retain, group_size, order, with_retain=False)


def _indices(
    signs: Int[np.ndarray, "runs groups"],
    num_retain: int,
    group_size: int,
    order: Int[np.ndarray, " pool"],
    with_retain: bool,
) -> Int32[np.ndarray, "runs selected"]:
    signs = check_signs(signs)
    retain, size = check_integer("num_retain", num_retain, 0), check_integer("group_size", group_size, 1)
    order = np.asarray(order)
    pool = retain + signs.shape[1] * size
    if order.shape != (pool,) or not np.array_equal(np.sort(order), np.arange(pool)):
        raise InputError(
            f"order must be a permutation of the {pool} pool indices "
            f"(num_retain + num_groups * group_size), got shape {order.shape}"
        )
    retained: Bool[np.ndarray, "runs retain"] = np.full((len(signs), retain), with_retain)
    selected = np.concatenate([retained, np.repeat(signs == 1, size, axis=1)], axis=1)[:, order]
    # Every row selects equally many, so the flat list of positions folds back into rows.
    return order[np.nonzero(selected)[1]].reshape(len(signs), -1).astype(np.int32)


@partial(jax.jit, static_argnames=("num_runs", "num_groups"))
def _shuffled_signs(key: Key[Array, ""], num_runs: int, num_groups: int) -> Int8[Array, "runs groups"]:
    unshuffled = jnp.where(jnp.arange(num_groups) < num_groups // 2, 1, -1).astype(jnp.int8)
    run_keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(num_runs))
    return jax.vmap(jax.random.permutation, in_axes=(0, None))(run_keys, unshuffled)


def _hold_one_back(signs: Int8[np.ndarray, "pairs groups"]) -> Int8[np.ndarray, "pairs groups"]:
    """Set one +1 of each row to -1, as evenly over groups as the rows allow."""
    signs, times_held = signs.copy(), np.zeros(signs.shape[1], int)
    for row in signs:
        positives = np.flatnonzero(row == 1)
        held = positives[np.argmin(times_held[positives])]
        row[held] = -1
        times_held[held] += 1
    return signs


def _check_key(key: Key[Array, ""]) -> None:
    if not (
        isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()
    ):
        raise InputError(f"key must be one typed key made by jax.random.key, got {key!r}")
