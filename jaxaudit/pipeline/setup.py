"""What all runs of an audit start from: sign vectors, index tables, keys, and what they share."""

import zlib
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int, Key

from jaxaudit.data import AuditData, Examples
from jaxaudit.design import AuditDesign
from jaxaudit.keys import stream_key
from jaxaudit.models import Model
from jaxaudit.signs import draw_order, draw_run_signs, forget_indices, member_indices
from jaxaudit.train import Params
from jaxaudit.unlearn.driver import SharedInput


class Setup(NamedTuple):
    """Calibration runs come first."""

    signs: Int[np.ndarray, "runs groups"]
    members: Int[Array, "runs members"]
    forget: Int[Array, "runs forget"]
    keys: Key[Array, " runs"]
    """Noise of each run; see `keys_for`."""
    shared: SharedInput
    holdout: Examples
    order: Int[np.ndarray, " pool"]


def set_up(
    data: AuditData, model: Model, design: AuditDesign, seed: int, initial_params: Params | None = None
) -> Setup:
    """Draw sign vectors, order, keys and x0.

    Parameters
    ----------
    data, model, design, seed, initial_params
        As in `jaxaudit.audit.run_audit`.
    """
    signs = np.concatenate(draw_run_signs(design, seed))
    # x0 and the order do not depend on the sign vectors, and are the same for all runs.
    order = draw_order(seed, len(data.pool.y))
    if initial_params is None:
        initial_params = jax.jit(model.init_fn)(stream_key(seed, "init"))
    tables = (signs, data.num_retain, data.group_size, order)
    pool, holdout, retain, members, forget = jax.device_put(
        (
            data.pool,
            data.holdout,
            order[order < data.num_retain],
            member_indices(*tables),
            forget_indices(*tables),
        )
    )
    keys = jax.random.split(stream_key(seed, "noise"), len(signs))
    return Setup(signs, members, forget, keys, SharedInput(pool, retain, initial_params), holdout, order)


def keys_for(keys: Key[Array, " runs"], purpose: str) -> Key[Array, " runs"]:
    """Keys of all runs for one purpose: every training and every method have noise of their own.

    Examples
    --------
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> one, other = (jax.random.key_data(keys_for(keys, purpose)) for purpose in ("training", "method ascent"))
    >>> bool((one != other).any(axis=1).all())
    True
    """
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, zlib.crc32(purpose.encode()))
