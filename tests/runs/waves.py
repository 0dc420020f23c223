"""A loop that every strategy must carry out alike, and its oracle: a plain loop over runs and steps."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.train import Loop


def wave(num_steps=37, convolution=False):
    """A loop whose result depends on the step number, the run, its key and the shared argument."""

    def body(step, carry, run, shared):
        x = carry["x"] * 0.9 + jnp.sin(step * shared) * run["scale"]
        if convolution:
            kernel = jnp.stack([run["scale"], jnp.float32(1), step.astype(jnp.float32)])
            x = 0.1 * smooth(x, kernel / 50)
        noise = jax.random.normal(jax.random.fold_in(run["key"], step), 2)
        return {"x": x, "noise": carry["noise"] + noise}

    return Loop(lambda run, shared: {"x": run["start"], "noise": jnp.zeros(2)}, body, num_steps)


def smooth(x, kernel):
    signal = x[None, None, :]
    return jax.lax.conv_general_dilated(signal, kernel[None, None, :], (1,), "SAME")[0, 0]


def make_runs(count):
    rng = np.random.default_rng(0)
    return {
        "start": jnp.asarray(rng.normal(size=(count, 3)), jnp.float32),
        "scale": jnp.arange(1.0, count + 1),
        "key": jax.random.split(jax.random.key(0), count),
    }


def by_hand(loop, per_run, shared):
    results = []
    for index in range(len(per_run["scale"])):
        run = jax.tree.map(lambda leaf, i=index: leaf[i], per_run)
        carry = loop.init(run, shared)
        for step in range(loop.num_steps):
            carry = loop.body(jnp.int32(step), carry, run, shared)
        results.append(carry)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


def assert_close(one, other, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), one, other)


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)
