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
    forget examples, each read in the fixed order, again and again.

    Parameters
    ----------
    stage
        The unlearner.
    """

    def init(run: RunInput, shared: SharedInput) -> Any:
        return stage.init(_stage_key(run, 0), Trained(run.params, shared.initial_params))

    def body(step: Int[Array, ""], state: Any, run: RunInput, shared: SharedInput) -> Any:
        batch = Batch(
            retain=take_batch(shared.pool, shared.retain, step, stage.batch_size),
            forget=take_batch(shared.pool, run.forget, step, stage.batch_size),
        )
        return stage.update(_stage_key(run, step + 1), state, batch)[0]

    def _stage_key(run: RunInput, number: Any) -> Key[Array, ""]:
        return jax.random.fold_in(run.key, number)

    return Loop(init, body, stage.num_updates)
