"""Real tokens in one row: there and back, the same model, and no token lost unnoticed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import Adapted, LoraSpec, decoder, packed_size, token_model
from jaxaudit.llm.packing import make_packing, pack, pack_ids, unpack
from jaxaudit.unlearn.preference import answer_loss
from tests.llm.reference import random_adapters, random_params, small_spec
from tests.llm.toy import toy_examples

EXAMPLES, START = toy_examples(count=6, seed=3)
REAL = np.asarray(EXAMPLES.x.truth.real)
COUNT = int(REAL.sum())
LORA = LoraSpec(rank=2, dropout=0.0)


def test_packed_tokens_are_the_real_ones_in_their_order():
    x = np.random.default_rng(0).normal(size=(*REAL.shape, 3)).astype(np.float32)
    packing = make_packing(jnp.asarray(REAL), COUNT + 2)
    packed = pack(jnp.asarray(x), packing)
    np.testing.assert_array_equal(packed[0, :COUNT], x[REAL > 0])
    np.testing.assert_array_equal(packed[0, COUNT:], np.zeros((2, 3)))
    np.testing.assert_array_equal(unpack(packed, packing, len(x)), x * REAL[..., None])
    ids = EXAMPLES.x.truth.ids
    assert pack_ids(ids, packing)[0].tolist() == [*np.asarray(ids)[REAL > 0], 0, 0]


def test_gradients_are_those_that_jax_derives():
    """Of the same moves without a rule of their own."""
    x = jnp.asarray(np.random.default_rng(1).normal(size=(*REAL.shape, 2)).astype(np.float32))
    packing = make_packing(jnp.asarray(REAL), COUNT + 1)

    def there_and_back(x):
        return jnp.sum(jnp.sin(unpack(pack(x, packing) ** 2, packing, len(x))) * x)

    def derived(x):
        moved = x.reshape(-1, 2).at[packing.place].get(mode="fill", fill_value=0) ** 2
        back = moved.at[packing.slot].get(mode="fill", fill_value=0).reshape(x.shape)
        return jnp.sum(jnp.sin(back) * x)

    np.testing.assert_allclose(jax.grad(there_and_back)(x), jax.grad(derived)(x), rtol=1e-5, atol=1e-6)


def loss_and_gradient(packed, **changes):
    spec = small_spec(**changes)
    params, adapters = random_params(spec), random_adapters(spec, LORA)
    loss = answer_loss(token_model(decoder(spec, LORA), START, packed=packed))

    def of_adapters(adapters):
        return loss(Adapted(params, adapters), EXAMPLES)

    return jax.jit(jax.value_and_grad(of_adapters))(adapters)


@pytest.mark.parametrize("changes", [{"remat": True}, {"sliding_window": 3, "num_kv_heads": 1}])
def test_packing_changes_neither_loss_nor_gradient(changes):
    """Nor do layers that are computed again, which are compared with those that are not."""
    expected = loss_and_gradient(None, **{name: value for name, value in changes.items() if name != "remat"})
    found = loss_and_gradient(COUNT + 3, **changes)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_packed_logits_of_many_runs_are_those_of_each():
    spec = small_spec()
    params, model = random_params(spec), decoder(spec, LORA)
    runs = [random_adapters(spec, LORA, seed) for seed in (0, 1)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
    rows = jnp.array([[0, 1, 2], [5, 3, 4]])

    def logits(adapters, rows, packed):
        tokens = jax.tree.map(lambda leaf: leaf[rows], EXAMPLES.x.truth)
        return model.forward(Adapted(params, adapters), tokens, packed=packed).logits

    together = jax.vmap(lambda adapters, rows: logits(adapters, rows, COUNT))(stacked, rows)
    for run, own in enumerate(runs):
        real = REAL[rows[run]] > 0
        np.testing.assert_allclose(
            together[run][real], logits(own, rows[run], None)[real], rtol=1e-4, atol=1e-5
        )


def test_tokens_that_do_not_fit_are_not_lost_unnoticed():
    spec = small_spec(num_layers=1)
    forward = decoder(spec).forward
    tokens = EXAMPLES.x.truth
    assert np.isnan(forward(random_params(spec), tokens, packed=COUNT - 1).logits).all()
    assert np.isfinite(forward(random_params(spec), tokens, packed=COUNT).logits).all()


def test_the_size_is_that_of_the_fullest_batch():
    """As `take_batch` reads them: places past the end repeat the last member."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 100, 30)
    real = np.arange(200) < lengths[:, None]
    orders = np.stack([rng.permutation(30)[:21] for _ in range(3)])
    batches = [[*order[first : first + 4]] for order in orders for first in range(0, 21, 4)]
    fullest = max(sum(lengths[[*batch, *[batch[-1]] * (4 - len(batch))]]) for batch in batches)
    size = packed_size(real, orders, 4)
    assert fullest <= size < fullest + 32
    assert size % 32 == 0
    assert packed_size(np.ones((30, 200)), orders, 4) is None
    with pytest.raises(InputError, match="batch_size must be an integer of at least 1, got 0"):
        packed_size(real, orders, 0)


def test_features_are_not_packed():
    with pytest.raises(InputError, match="packed must be None for a model with features, got 5"):
        token_model(decoder(small_spec()), START, features_layer=0, packed=5)
