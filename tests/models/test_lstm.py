import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.models import char_lstm

SIZES = {"vocabulary_size": 7, "embedding": 3, "hidden": 5, "layers": 2}


def model_and_text(**changes):
    model = char_lstm(**SIZES | changes)
    params = model.init_fn(jax.random.key(0))
    return model, params, np.random.default_rng(1).integers(0, 7, (4, 6))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def numpy_logits(params, characters):
    """The published equations, one character of one example after the other, in float64."""
    lstm = {name: np.asarray(leaf, np.float64) for name, leaf in params["lstm"].items()}
    table, linear = np.asarray(params["embedding"]["weight"], np.float64), params["linear"]
    size = lstm["weight_hh_l0"].shape[1]
    logits = []
    for text in characters:
        hidden, cell = np.zeros((2, size)), np.zeros((2, size))
        for character in text:
            inputs = table[character]
            for layer in range(2):
                one, two, three, four = (
                    f"{name}_l{layer}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                )
                z = lstm[one] @ inputs + lstm[three] + lstm[two] @ hidden[layer] + lstm[four]
                enter, keep, new, leave = z[:size], z[size : 2 * size], z[2 * size : 3 * size], z[3 * size :]
                cell[layer] = sigmoid(keep) * cell[layer] + sigmoid(enter) * np.tanh(new)
                hidden[layer] = inputs = sigmoid(leave) * np.tanh(cell[layer])
            logits.append(np.asarray(linear["weight"], np.float64) @ inputs + linear["bias"])
    return np.reshape(logits, (*characters.shape, -1))


def test_forward_follows_the_equations():
    model, params, text = model_and_text()
    np.testing.assert_allclose(
        model.logits_fn(params, text), numpy_logits(params, text), rtol=1e-5, atol=1e-6
    )


def test_forward_and_gradients_equal_pytorch():
    torch = pytest.importorskip("torch")
    model, params, text = model_and_text()

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(7, 3)
            self.lstm = torch.nn.LSTM(3, 5, 2, batch_first=True)
            self.linear = torch.nn.Linear(5, 7)

        def forward(self, x):
            return self.linear(self.lstm(self.embedding(x))[0])

    network = Network()
    flat = {f"{part}.{name}": leaf for part, leaves in params.items() for name, leaf in leaves.items()}
    network.load_state_dict({name: torch.tensor(np.asarray(leaf)) for name, leaf in flat.items()})
    logits = network(torch.tensor(text))
    np.testing.assert_allclose(model.logits_fn(params, text), logits.detach().numpy(), rtol=1e-5, atol=1e-6)
    (logits**2).sum().backward()
    gradient = jax.grad(lambda params: jnp.sum(model.logits_fn(params, text) ** 2))(params)
    for name, value in network.named_parameters():
        part, leaf = name.split(".")
        np.testing.assert_allclose(gradient[part][leaf], value.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_the_papers_network_has_as_many_parameters_as_the_papers():
    params = jax.eval_shape(char_lstm().init_fn, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 825_220


def test_start_is_pytorchs():
    params = char_lstm(100, 50, 64, 1).init_fn(jax.random.key(0))
    table = params["embedding"]["weight"]
    assert abs(float(table.mean())) < 5 / np.sqrt(table.size)
    assert float(table.std()) == pytest.approx(1, abs=0.05)
    for leaf in [*params["lstm"].values(), *params["linear"].values()]:
        assert float(abs(leaf).max()) <= 1 / 8
        assert float(abs(leaf).max()) > 0.9 / 8
    kernels = [leaf.ravel() for leaf in params["lstm"].values()]
    assert not any(np.array_equal(kernels[2], other) for other in kernels[3:])


def test_no_place_sees_the_future():
    model, params, text = model_and_text()
    changed = text.copy()
    changed[:, 3] = (changed[:, 3] + 1) % 7
    before, after = model.logits_fn(params, text), model.logits_fn(params, changed)
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (abs(before - after)[:, 3:].max((0, 2)) > 0).all()


def test_many_runs_equal_one_at_a_time():
    model, _, text = model_and_text()
    params = jax.vmap(model.init_fn)(jax.random.split(jax.random.key(3), 3))
    texts = np.stack([text, (text + 1) % 7, text[::-1]])
    together = jax.vmap(model.logits_fn)(params, texts)
    for run in range(3):
        alone = model.logits_fn(jax.tree.map(lambda leaf, run=run: leaf[run], params), texts[run])
        np.testing.assert_allclose(together[run], alone, rtol=1e-5, atol=1e-6)


def test_second_derivatives_exist_both_ways():
    model, params, text = model_and_text()
    gradient = jax.grad(lambda params: jnp.mean(model.logits_fn(params, text) ** 2))
    forward = jax.jvp(gradient, (params,), (params,))[1]
    backward = jax.vjp(gradient, params)[1](params)[0]  # the Hessian is symmetric
    for one, other in zip(jax.tree.leaves(forward), jax.tree.leaves(backward)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_same_sizes_give_the_same_functions():
    assert char_lstm(7, 3, 5).logits_fn is char_lstm(7, 3, 5, 2).logits_fn
    assert char_lstm(7, 3, 5).description == "LSTM 2 x 5, embedding 3, 7 characters"


@pytest.mark.parametrize(
    ("name", "value"), [("vocabulary_size", 1), ("embedding", 0), ("hidden", 2.5), ("layers", 0)]
)
def test_bad_sizes(name, value):
    with pytest.raises(InputError, match=f"{name} must be an integer of at least .*, got {value}"):
        char_lstm(**{name: value})
