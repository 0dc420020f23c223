"""How fast are many small dense networks trained at once, against one after the other and against PyTorch?

python benchmarks/mlp.py
"""

import jax.numpy as jnp
import numpy as np
from common import Workload, main
from sklearn.datasets import load_digits

from jaxaudit.data import Examples
from jaxaudit.models import mlp


def network():
    """64-128-128-10 with ReLU, in PyTorch."""
    from torch import nn

    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def to_torch(params):
    """Flax keeps kernels as (inputs, outputs)."""
    layers = [(f"Dense_{i}", 2 * i) for i in range(3)]
    kernels = {f"{place}.weight": np.asarray(params[name]["kernel"]).T for name, place in layers}
    return kernels | {f"{place}.bias": np.asarray(params[name]["bias"]) for name, place in layers}


def workloads(smoke: bool) -> list[Workload]:
    """The digits of the main job: 1,216 examples per run, batches of 64."""
    x, y = load_digits(return_X_y=True)
    pool = Examples(jnp.asarray(x / 16, jnp.float32), jnp.asarray(y), jnp.ones(len(y)))
    sizes = {"num_runs": 2, "epochs": 1} if smoke else {"num_runs": 60, "epochs": 10}
    return [
        Workload(
            "digits, MLP 64-128-128-10",
            mlp((64,), 10),
            pool,
            num_members=128 if smoke else 1216,
            batch_size=64,
            network=network,
            ensemble=network,
            to_torch=to_torch,
            **sizes,
        )
    ]


if __name__ == "__main__":
    main(__doc__, workloads)
