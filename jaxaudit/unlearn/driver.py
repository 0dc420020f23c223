"""Feeds an unlearner its mini-batches: each stage becomes a loop that the run axis can repeat."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Int, Key

from jaxaudit.data import Examples
from jaxaudit.train import Loop, Params, take_batch
from jaxaudit.unlearn.base import Batch, Trained, Unlearner


class RunInput(NamedTuple):
    """What differs between runs."""

    key: Key[Array, ""]
    """The run's noise key for this stage."""
    params: Params
    """Where this stage starts."""
    forget: Int[Array, " forget"]
    """The run's own forget examples D_f(S), as indices into the pool, in the fixed order."""
    checkpoint: Params | None = None
    """Of training, if the method rewinds."""
    previous: Any = None
    """Last state of the stage before, if this one continues it."""


class SharedInput(NamedTuple):
    """What all runs share."""

    pool: Examples
    retain: Int[Array, " retain"]
    """The retain examples, as indices into the pool, in the fixed order."""
    initial_params: Params


@lru_cache(maxsize=128)
def stage_loop(stage: Unlearner) -> Loop:
    """One stage as a loop over its updates; the carry is the stage's state.

    ``per_run`` is a `RunInput`, ``shared`` a `SharedInput`. Update ``t`` gets batch ``t`` of the retain and of the
    forget examples, each read in the fixed order, again and again, or drawn with replacement.

    Parameters
    ----------
    stage
        The unlearner.
    """

    def init(run: RunInput, shared: SharedInput) -> Any:
        trained = Trained(run.params, shared.initial_params, run.checkpoint, run.previous)
        return stage.init(jax.random.fold_in(run.key, 0), trained)

    def body(step: Int[Array, ""], state: Any, run: RunInput, shared: SharedInput) -> Any:
        key = jax.random.fold_in(run.key, step + 1)
        if stage.sampling == "random":
            key, batch = _draw_batch(key, run, shared, stage.batch_size)
        else:
            batch = _next_batch(step, run, shared, stage.batch_size)
        return stage.update(key, state, batch)[0]

    return Loop(init, body, stage.num_updates)


def _next_batch(step: Int[Array, ""], run: RunInput, shared: SharedInput, size: int) -> Batch:
    return Batch(
        retain=take_batch(shared.pool, shared.retain, step, size),
        forget=take_batch(shared.pool, run.forget, step, size),
    )


def _draw_batch(
    key: Key[Array, ""], run: RunInput, shared: SharedInput, size: int
) -> tuple[Key[Array, ""], Batch]:
    """A batch drawn uniformly with replacement, and a key that is left for the update."""
    update_key, *keys = jax.random.split(key, 3)
    members = (shared.retain, run.forget)
    rows = [index[jax.random.randint(k, (size,), 0, len(index))] for k, index in zip(keys, members)]
    return update_key, Batch(*(jax.tree.map(lambda leaf, i=i: leaf[i], shared.pool) for i in rows))
