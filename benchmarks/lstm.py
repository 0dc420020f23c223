"""How fast are many character LSTMs trained at once, against one after the other and against PyTorch?

python benchmarks/lstm.py
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import optax
from common import Workload, main

from jaxaudit.data import Examples
from jaxaudit.models import char_lstm

VOCABULARY, EMBEDDING, LAYERS = 100, 8, 2


def sequence_loss(logits_fn):
    """Mean cross-entropy over all characters of all examples."""

    def loss(params, examples):
        losses = optax.softmax_cross_entropy_with_integer_labels(logits_fn(params, examples.x), examples.y)
        return jnp.sum(losses.mean(1) * examples.weights) / jnp.sum(examples.weights)

    return loss


def network(hidden, by_hand):
    """PyTorch's own LSTM; ``by_hand`` writes its equations out, because ``nn.LSTM`` cannot be batched over runs."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(VOCABULARY, EMBEDDING)
            self.lstm = torch.nn.LSTM(EMBEDDING, hidden, LAYERS, batch_first=True)
            self.linear = torch.nn.Linear(hidden, VOCABULARY)

        def forward(self, x):
            if not by_hand:
                return self.linear(self.lstm(self.embedding(x))[0])
            sequence = self.embedding(x.T)
            for layer in range(LAYERS):
                sequence = self.layer(layer, sequence)
            return self.linear(sequence).transpose(0, 1)

        def layer(self, number, sequence):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w, u, b, c = (getattr(self.lstm, f"{name}_l{number}") for name in names)
            projected, outputs = torch.nn.functional.linear(sequence, w, b + c), []
            state = cell = projected.new_zeros(projected.shape[1], hidden)
            for inputs in projected.unbind(0):
                enter, keep, new, leave = (inputs + state @ u.T).chunk(4, -1)
                cell = keep.sigmoid() * cell + enter.sigmoid() * new.tanh()
                state = leave.sigmoid() * cell.tanh()
                outputs.append(state)
            return torch.stack(outputs)

    return Network()


def to_torch(params):
    """The model has PyTorch's names and layout."""
    return {
        f"{part}.{name}": np.array(leaf) for part, leaves in params.items() for name, leaf in leaves.items()
    }


def workloads(smoke: bool) -> list[Workload]:
    """Random text: what the characters say makes no difference to the time."""
    rng, length = np.random.default_rng(0), 6 if smoke else 80
    cases = [(8, 2, 4)] if smoke else [(64, 16, 64), (256, 4, 64)]
    found = []
    for hidden, num_runs, batch_size in cases:
        text = jnp.asarray(rng.integers(0, VOCABULARY, (8 * batch_size, length + 1)), jnp.int32)
        found.append(
            Workload(
                f"characters, LSTM {LAYERS} x {hidden}, {length} steps of time",
                char_lstm(VOCABULARY, EMBEDDING, hidden, LAYERS),
                Examples(text[:, :-1], text[:, 1:], jnp.ones(len(text))),
                num_members=2 * batch_size if smoke else 4 * batch_size,
                num_runs=num_runs,
                batch_size=batch_size,
                network=partial(network, hidden, by_hand=False),
                ensemble=partial(network, hidden, by_hand=True),
                to_torch=to_torch,
                make_loss=sequence_loss,
            )
        )
    return found


if __name__ == "__main__":
    main(__doc__, workloads)
