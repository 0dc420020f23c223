import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import Adapted, LoraSpec, RopeScaling, decoder
from jaxaudit.llm.decoder import token_positions
from jaxaudit.unlearn.preference import Tokens
from tests.llm.reference import logits_fn, random_adapters, random_params, reference_logits, small_spec

SWITCHES = {
    "plain": {},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "norm offset": {"norm_offset": True, "norm_epsilon": 1e-2},
    "scaled embedding": {"scale_embedding": True},
    "untied head": {"tied_head": False},
    "head_dim": {"head_dim": 10},
    "one kv head": {"num_heads": 4, "head_dim": 6, "num_kv_heads": 1},
    "grouped kv heads": {"num_heads": 6, "head_dim": 4, "num_kv_heads": 2},
    "theta": {"rope_theta": 50.0},
    "linear scaling": {"rope_scaling": RopeScaling("linear", 3.0)},
    "llama3 scaling": {
        "head_dim": 16,
        "rope_theta": 100.0,
        "rope_scaling": RopeScaling("llama3", 8.0, 1.0, 4.0, original_length=64),
    },
    "attention bias": {"biased": ("q", "k", "v", "o"), "num_kv_heads": 1},
    "mlp bias": {"biased": ("gate", "up", "down")},
    "sliding window": {"sliding_window": 3},
    "remat": {"remat": True},
    "gemma": {
        "activation": "gelu_tanh",
        "norm_offset": True,
        "scale_embedding": True,
        "head_dim": 8,
        "num_kv_heads": 1,
    },
}
IDS = np.random.default_rng(5).integers(0, 11, (2, 9))


def tokens(ids, real=None):
    ids = np.asarray(ids)
    real = np.ones(ids.shape, np.float32) if real is None else np.asarray(real, np.float32)
    return Tokens(jnp.asarray(ids), jnp.zeros(ids.shape), jnp.asarray(real))


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_follows_the_equations(switch):
    spec = small_spec(**SWITCHES[switch])
    params = random_params(spec)
    found = logits_fn(spec)(params, tokens(IDS))
    expected = [reference_logits(spec, params, row) for row in IDS]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("switch", [name for name in SWITCHES if name not in ("plain", "remat")])
def test_every_switch_matters(switch):
    """Else its test above would show nothing."""
    changes = SWITCHES[switch]
    spec = small_spec(**changes)
    values = {
        "rope_scaling": None,
        "sliding_window": None,
        "rope_theta": 1e4,
        "tied_head": True,
        "biased": (),
    }
    neutral = {name: value for name, value in values.items() if name in changes}
    neutral |= {
        name: small_spec().__dict__[name] for name in changes if name in ("activation", "norm_offset")
    }
    if "scale_embedding" in changes:
        neutral["scale_embedding"] = False
    params = random_params(spec)
    if not neutral:  # sizes: the parameters themselves differ
        plain = random_params(small_spec())
        assert jax.tree.map(jnp.shape, plain) != jax.tree.map(jnp.shape, params)
        return
    other = logits_fn(small_spec(**changes | neutral))(params, tokens(IDS))
    assert float(abs(other - logits_fn(spec)(params, tokens(IDS))).max()) > 1e-3


@pytest.mark.parametrize("targets", [("q",), ("k", "v"), ("o", "gate"), ("up", "down"), LoraSpec().targets])
def test_adapters_follow_the_equation(targets):
    spec, lora = small_spec(num_kv_heads=1), LoraSpec(rank=2, alpha=3.0, targets=targets)
    params, adapters = random_params(spec), random_adapters(spec, lora)
    found = logits_fn(spec, lora)(Adapted(params, adapters), tokens(IDS))
    expected = [reference_logits(spec, params, row, adapters, lora) for row in IDS]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert float(abs(found - logits_fn(spec)(params, tokens(IDS))).max()) > 1e-3


@pytest.mark.parametrize("changes", [{}, {"sliding_window": 3}])
def test_side_and_content_of_padding_do_not_matter(changes):
    spec = small_spec(**changes)
    params = random_params(spec)
    whole = logits_fn(spec)(params, tokens(IDS))
    for left, right in [(3, 0), (0, 3), (2, 1)]:
        for content in (0, 7):
            ids = np.pad(IDS, ((0, 0), (left, right)), constant_values=content)
            real = np.pad(np.ones(IDS.shape), ((0, 0), (left, right)))
            logits = logits_fn(spec)(params, tokens(ids, real))
            assert np.isfinite(logits).all()
            np.testing.assert_allclose(logits[:, left : left + 9], whole, rtol=0, atol=2e-6)


def test_padding_gives_no_gradient_and_no_nan():
    spec = small_spec()
    params, model = random_params(spec), decoder(spec)
    ids, real = np.pad(IDS, ((0, 0), (3, 0))), np.pad(np.ones(IDS.shape), ((0, 0), (3, 0)))

    def loss(params, batch):
        return jnp.sum(model.logits_fn(params, batch)[:, -9:] ** 2)

    alone, padded = (
        jax.jit(jax.grad(loss))(params, tokens(IDS)),
        jax.jit(jax.grad(loss))(params, tokens(ids, real)),
    )
    for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(padded)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_no_place_sees_the_future_and_a_window_not_the_past():
    spec = small_spec(sliding_window=2, num_layers=1)
    params, run = random_params(spec), logits_fn(spec)
    changed = IDS.copy()
    changed[:, 3] = (changed[:, 3] + 1) % 11
    moved = abs(run(params, tokens(IDS)) - run(params, tokens(changed))).max((0, 2))
    assert (np.flatnonzero(moved > 1e-6) == [3, 4]).all()


def test_logits_only_where_asked():
    spec = small_spec()
    params, model = random_params(spec), decoder(spec)
    whole, end = model.forward(params, tokens(IDS)), model.forward(params, tokens(IDS), first=6)
    assert end.logits.shape == (2, 3, 11)
    np.testing.assert_allclose(end.logits, whole.logits[:, 6:], rtol=1e-6, atol=1e-6)


def test_features_are_what_leaves_each_layer():
    spec = small_spec()
    params, model = random_params(spec), decoder(spec)
    features = model.forward(params, tokens(IDS), keep_features=True).features
    assert features.shape == (3, 2, 9, 12)
    first_layers = params | {"layers": jax.tree.map(lambda leaf: leaf[:2], params["layers"])}
    shallow = decoder(small_spec(num_layers=2)).forward(first_layers, tokens(IDS), keep_features=True)
    np.testing.assert_allclose(features[:2], shallow.features, rtol=1e-6, atol=1e-6)


def test_remat_has_the_same_gradient():
    params = random_params(small_spec())

    def gradient(spec):
        return jax.grad(lambda params: jnp.sum(logits_fn(spec)(params, tokens(IDS)) ** 2))(params)

    plain, again = gradient(small_spec()), gradient(small_spec(remat=True))
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(again)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_close_and_gives_float32_logits():
    spec = small_spec(compute_dtype="bfloat16")
    params = random_params(spec)
    logits = logits_fn(spec)(params, tokens(IDS))
    assert logits.dtype == jnp.float32
    exact = logits_fn(small_spec())(params, tokens(IDS))
    error = float(abs(logits - exact).max() / abs(exact).max())
    assert 1e-5 < error < 0.05


def test_base_of_an_adapted_model_gets_no_gradient():
    spec, lora = small_spec(), LoraSpec(rank=2)
    params = Adapted(random_params(spec), random_adapters(spec, lora))
    gradient = jax.grad(lambda params: jnp.sum(logits_fn(spec, lora)(params, tokens(IDS)) ** 2))(params)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient.base))
    assert all((leaf != 0).any() for leaf in jax.tree.leaves(gradient.adapters))


def test_many_adapters_on_one_base_equal_one_at_a_time():
    spec, lora = small_spec(), LoraSpec(rank=2)
    model, base = decoder(spec, lora), random_params(spec)
    several = [random_adapters(spec, lora, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
    together = jax.jit(
        jax.vmap(lambda base, one: model.logits_fn(Adapted(base, one), tokens(IDS)), (None, 0))
    )
    for found, one in zip(together(base, stacked), several):
        alone = logits_fn(spec, lora)(Adapted(base, one), tokens(IDS))
        np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-5)


def test_depth_is_compiled_once():
    """The program does not grow with the number of layers."""

    def length(layers):
        model = decoder(small_spec(num_layers=layers))
        params = jax.eval_shape(model.init_fn, jax.random.key(0))
        return len(jax.jit(model.logits_fn).lower(params, tokens(IDS)).as_text().splitlines())

    assert length(20) == length(2)


def test_start_differs_between_layers():
    params = jax.jit(decoder(small_spec()).init_fn)(jax.random.key(0))
    kernel = params["layers"]["q"]["kernel"]
    assert float(abs(kernel[0] - kernel[1]).min()) > 0
    assert float(kernel.std()) == pytest.approx(12**-0.5, rel=0.2)
    assert (params["norm"]["weight"] == 1).all()
    shifted = jax.jit(decoder(small_spec(norm_offset=True)).init_fn)(jax.random.key(0))
    assert (shifted["norm"]["weight"] == 0).all()


def test_positions_count_real_tokens():
    real = jnp.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]], float)
    expected = [[0, 0, 0, 1, 2], [0, 1, 2, 2, 2], [0, 0, 1, 2, 2]]
    assert token_positions(real).tolist() == expected


def test_same_spec_gives_the_same_functions():
    assert decoder(small_spec()) is decoder(small_spec())
    assert decoder(small_spec(), LoraSpec()) is not decoder(small_spec())


def test_adapters_need_a_spec():
    spec, lora = small_spec(), LoraSpec(rank=2)
    params = Adapted(random_params(spec), random_adapters(spec, lora))
    with pytest.raises(InputError, match="lora must be given to decoder"):
        logits_fn(spec)(params, tokens(IDS))
