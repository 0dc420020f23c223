import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.data import Examples
from jaxaudit.unlearn import Unlearner
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop

POOL = Examples(jnp.arange(10.0)[:, None], jnp.arange(10), jnp.ones(10))
SHARED = SharedInput(POOL, jnp.array([3, 1, 0]), jnp.array(7.0))
RUN = RunInput(jax.random.key(0), jnp.array(1.0), jnp.array([9, 8]))


def recorder(num_updates):
    seen = []

    def init(key, trained):
        seen.append(("init", trained, key))
        return trained

    def update(key, state, batch):
        seen.append((batch.retain.y.tolist(), batch.retain.weights.tolist(), batch.forget.y.tolist(), key))
        return state, {}

    return Unlearner(init, update, num_updates, batch_size=2), seen


def test_batches_come_in_the_fixed_order_again_and_again():
    stage, seen = recorder(3)
    loop = stage_loop(stage)
    state = loop.init(RUN, SHARED)
    for step in range(loop.num_steps):
        state = loop.body(step, state, RUN, SHARED)
    assert [entry[:3] for entry in seen[1:]] == [
        ([3, 1], [1.0, 1.0], [9, 8]),
        ([0, 0], [1.0, 0.0], [9, 8]),
        ([3, 1], [1.0, 1.0], [9, 8]),
    ]
    assert float(seen[0][1].params) == 1.0
    assert float(seen[0][1].initial_params) == 7.0


def test_every_update_and_run_has_its_own_key():
    keys = []
    for run_key in jax.random.split(jax.random.key(1), 2):
        stage, seen = recorder(3)
        loop = stage_loop(stage)
        run = RUN._replace(key=run_key)
        state = loop.init(run, SHARED)
        for step in range(3):
            loop.body(step, state, run, SHARED)
        keys += [np.asarray(jax.random.key_data(entry[-1])).tobytes() for entry in seen]
    assert len(set(keys)) == len(keys) == 2 * 4


def test_equal_stages_are_one_loop():
    """So a stage that two methods share is compiled once."""
    stage, _ = recorder(2)
    assert stage_loop(stage) is stage_loop(stage._replace())
