"""How fast are many convolutional networks trained at once, against one after the other and against PyTorch?

python benchmarks/tinynet.py
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from common import Workload, main

from jaxaudit.data import Examples
from jaxaudit.models import tinynet

CLASSES = 100


def network(widths):
    """The same layers in PyTorch, group normalisation with Flax's epsilon."""
    from torch import nn

    layers, channels = [], 3
    for width in widths:
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(8, width, eps=1e-6), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def to_torch(params):
    """Kernels become (out, in, height, width); PyTorch numbers the layers in their order."""
    places = {"Conv_0": 0, "GroupNorm_0": 1, "Conv_1": 3, "GroupNorm_1": 4, "Conv_2": 7, "GroupNorm_2": 8}
    places |= {"Conv_3": 10, "GroupNorm_3": 11, "Dense_0": 16}
    found = {}
    for layer, place in places.items():
        for name, leaf in params[layer].items():
            value = np.array(leaf)
            if name == "kernel":
                value = value.transpose(3, 2, 0, 1) if value.ndim == 4 else value.T
            found[f"{place}.{'bias' if name == 'bias' else 'weight'}"] = np.ascontiguousarray(value)
    return found


def workloads(smoke: bool) -> list[Workload]:
    """Random images: what they show makes no difference to the time."""
    cases = [((16, 32), 8, 16, 64, 4), ((16, 32), 16, 16, 64, 2), ((64, 128), 32, 2, 128, 2)]
    if smoke:
        cases = [((8, 8), 4, 2, 4, 2)]
    rng, found = np.random.default_rng(0), []
    for widths, size, num_runs, batch_size, batches in cases:
        shape = (2 * batches * batch_size, size, size, 3)
        images = jnp.asarray(rng.normal(size=shape), jnp.float32)
        found.append(
            Workload(
                f"TinyNet {'-'.join(map(str, widths))} on {size}x{size}",
                tinynet((size, size, 3), CLASSES, widths),
                Examples(images, jnp.asarray(rng.integers(0, CLASSES, len(images))), jnp.ones(len(images))),
                num_members=batches * batch_size,
                num_runs=num_runs,
                batch_size=batch_size,
                network=partial(network, widths),
                ensemble=partial(network, widths),
                to_torch=to_torch,
                channels_first=True,
            )
        )
    return found


if __name__ == "__main__":
    main(__doc__, workloads)
