"""The same training in PyTorch: run after run in eager mode, and all runs at once by ``torch.func``."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
torch.set_num_threads(os.cpu_count() or 1)
torch.backends.cuda.matmul.allow_tf32 = False  # true float32, as in jaxaudit
torch.backends.cudnn.allow_tf32 = False


def describe() -> str:
    """Where it runs."""
    return torch.cuda.get_device_name() if CUDA else f"{torch.get_num_threads()} CPU threads"


def mean_loss(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over the last axis."""
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def ways(work: Any) -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    """Pairs of name and function, as `common.Way`."""
    x, y = (torch.tensor(np.asarray(part)).to(DEVICE) for part in (work.pool.x, work.pool.y))
    y = y.long()
    if work.channels_first:
        x = x.movedim(-1, 1).contiguous()
    members = torch.tensor(work.members()).to(DEVICE)
    start = {
        name: torch.tensor(value).to(DEVICE) for name, value in work.to_torch(work.initial_params()).items()
    }
    per_epoch = work.num_members // work.batch_size

    def places(step: int) -> slice:
        first = step % per_epoch * work.batch_size
        return slice(first, first + work.batch_size)

    def eager() -> dict[str, np.ndarray]:
        for run in range(work.num_runs):
            network = work.network().to(DEVICE)
            network.load_state_dict(start)
            optimizer = torch.optim.SGD(network.parameters(), work.learning_rate)
            for step in range(work.steps):
                index = members[run, places(step)]
                optimizer.zero_grad()
                mean_loss(network(x[index]), y[index]).backward()
                optimizer.step()
        return to_numpy(network.state_dict())

    def ensemble() -> dict[str, np.ndarray]:
        network = work.ensemble().to(DEVICE)
        params = {name: value.expand(work.num_runs, *value.shape).clone() for name, value in start.items()}

        def loss(params: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return mean_loss(functional_call(network, params, (x,)), y)

        gradients = vmap(grad(loss))
        for step in range(work.steps):
            index = members[:, places(step)]
            found = gradients(params, x[index], y[index])
            torch._foreach_add_(
                list(params.values()), [found[name] for name in params], alpha=-work.learning_rate
            )
        return to_numpy({name: value[-1] for name, value in params.items()})

    yield "PyTorch, run after run", eager
    yield "PyTorch, vmap over runs", ensemble


def to_numpy(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Values on the host; waits for the device."""
    return {name: value.detach().cpu().numpy() for name, value in tensors.items()}
