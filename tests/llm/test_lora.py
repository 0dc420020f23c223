import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import (
    Adapted,
    LoraSpec,
    adapter_norm,
    decoder,
    init_adapters,
    merge,
    unmerge,
    untouched_runs,
)
from jaxaudit.llm.lora import PROJECTIONS, check_adapters
from jaxaudit.unlearn.preference import Tokens
from tests.llm.reference import logits_fn, random_adapters, random_params, small_spec

SPEC = small_spec(num_kv_heads=1, head_dim=8, biased=("q",))
IDS = np.random.default_rng(0).integers(0, 11, (2, 7))
TOKENS = Tokens(jnp.asarray(IDS), jnp.zeros(IDS.shape), jnp.ones(IDS.shape))


@pytest.mark.parametrize("targets", [("q", "v"), PROJECTIONS])
def test_merged_equals_unmerged(targets):
    lora = LoraSpec(rank=3, targets=targets)
    base, adapters = random_params(SPEC), random_adapters(SPEC, lora)
    adapted = logits_fn(SPEC, lora)(Adapted(base, adapters), TOKENS)
    merged = merge(base, adapters, lora)
    scale = float(abs(adapted).max())
    np.testing.assert_allclose(logits_fn(SPEC)(merged, TOKENS) / scale, adapted / scale, atol=1e-5)
    for name in PROJECTIONS:
        moved = merged["layers"][name]["kernel"] != base["layers"][name]["kernel"]
        assert bool(moved.any()) == (name in targets)


def test_merge_adds_the_product():
    lora = LoraSpec(rank=2, alpha=5.0, targets=("o",))
    base, adapters = random_params(SPEC), random_adapters(SPEC, lora)
    a, b = (np.asarray(adapters["layers"]["o"][name], np.float64) for name in "ab")
    expected = np.asarray(base["layers"]["o"]["kernel"], np.float64) + 2.5 * np.einsum("lir,lro->lio", a, b)
    np.testing.assert_allclose(
        merge(base, adapters, lora)["layers"]["o"]["kernel"], expected, rtol=1e-6, atol=1e-6
    )


def test_unmerge_undoes_merge():
    lora = LoraSpec(rank=2)
    base, adapters = random_params(SPEC), random_adapters(SPEC, lora)
    back = unmerge(merge(base, adapters, lora), adapters, lora)
    assert jax.tree.structure(back) == jax.tree.structure(base)
    for name in PROJECTIONS:
        one, other, added = (
            tree["layers"][name]["kernel"] for tree in (base, back, merge(base, adapters, lora))
        )
        rounding = np.spacing(np.maximum(abs(one), abs(added)))
        assert (abs(one - other) <= rounding).all()


def test_types_of_the_base_are_kept():
    lora = LoraSpec(rank=2)
    base = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), random_params(SPEC))
    merged = merge(base, random_adapters(SPEC, lora), lora)
    assert {leaf.dtype for leaf in jax.tree.leaves(merged)} == {jnp.dtype(jnp.bfloat16)}


def test_new_adapters_change_nothing():
    lora = LoraSpec()
    base, adapters = random_params(SPEC), init_adapters(jax.random.key(0), SPEC, lora)
    adapted = logits_fn(SPEC, lora)(Adapted(base, adapters), TOKENS)
    np.testing.assert_array_equal(adapted, logits_fn(SPEC)(base, TOKENS))
    for one, other in zip(jax.tree.leaves(merge(base, adapters, lora)), jax.tree.leaves(base)):
        np.testing.assert_array_equal(one, other)
    assert float(adapter_norm(adapters, lora)) == 0.0


def test_start_is_that_of_peft():
    """Kaiming's uniform rule with a = sqrt 5 and the gain of a leaky ReLU: the bound is 1 / sqrt(inputs)."""
    spec = small_spec(width=64, hidden=100)
    adapters = init_adapters(jax.random.key(1), spec, LoraSpec(rank=16))
    for name, one in adapters["layers"].items():
        inputs, outputs = spec.projections[name]
        bound = np.sqrt(2 / (1 + 5)) * np.sqrt(3 / inputs)
        assert one["a"].shape == (3, inputs, 16)
        assert one["b"].shape == (3, 16, outputs)
        assert 0.99 * bound < float(abs(one["a"]).max()) <= bound * (1 + 1e-6)
        assert float(one["a"].std()) == pytest.approx(bound / np.sqrt(3), rel=0.05)
        assert not one["b"].any()
    starts = [np.asarray(one["a"]).ravel()[:100] for one in adapters["layers"].values()]
    assert len({tuple(start) for start in starts}) == 7


def test_the_same_matrix_gets_the_same_start_whatever_the_others():
    few, all_ = (
        init_adapters(jax.random.key(1), SPEC, LoraSpec(targets=targets)) for targets in (("v",), PROJECTIONS)
    )
    np.testing.assert_array_equal(few["layers"]["v"]["a"], all_["layers"]["v"]["a"])


def test_norm_is_that_of_the_change():
    lora = LoraSpec(rank=2, alpha=3.0)
    base, adapters = random_params(SPEC), random_adapters(SPEC, lora)
    pairs = zip(jax.tree.leaves(merge(base, adapters, lora)), jax.tree.leaves(base))
    expected = np.sqrt(sum(((np.asarray(one, np.float64) - other) ** 2).sum() for one, other in pairs))
    assert float(adapter_norm(adapters, lora)) == pytest.approx(expected, rel=1e-5)


def test_dropout_is_unbiased_and_only_with_a_key():
    lora = LoraSpec(rank=2, alpha=4.0, dropout=0.5, targets=("down",))
    spec = small_spec(num_layers=1)
    model, base, adapters = decoder(spec, lora), random_params(spec), random_adapters(spec, lora)
    params = Adapted(base, adapters)

    def features(key):
        return model.forward(params, TOKENS, dropout_key=key, keep_features=True).features[0]

    plain, keys = features(None), jax.random.split(jax.random.key(0), 1000)
    drawn = jax.jit(jax.vmap(features))(keys)
    # What enters the last matrix of the only layer is dropped, so the layer's output is linear in the mask.
    error = abs(drawn.mean(0) - plain) / (drawn.std(0) / np.sqrt(1000) + 1e-6)
    assert float(error.max()) < 5
    assert float(drawn.std(0).max()) > 1e-2
    np.testing.assert_array_equal(features(keys[0]), features(keys[0]))


def test_layers_drop_differently():
    """With equal layers and a shared mask both would add the same; each layer draws its own."""
    lora = LoraSpec(rank=2, dropout=0.5, targets=("down",))
    spec = small_spec(num_layers=2)
    base = jax.tree.map(jnp.zeros_like, random_params(spec))
    base = base | {"embedding": jnp.ones((11, 12)), "norm": {"weight": jnp.ones(12)}}
    layers = base["layers"] | {
        "mlp_norm": {"weight": jnp.ones((2, 12))},
        "gate": {"kernel": jnp.ones((2, 12, 20))},
        "up": {"kernel": jnp.ones((2, 12, 20))},
    }
    adapters = {"layers": {"down": {"a": jnp.ones((2, 20, 2)), "b": jnp.full((2, 2, 12), 1e-6)}}}
    params = Adapted(base | {"layers": layers}, adapters)
    output = (
        decoder(spec, lora)
        .forward(params, TOKENS, dropout_key=jax.random.key(0), keep_features=True)
        .features
    )
    first, second = output[0] - 1.0, output[1] - output[0]
    assert float(abs(first / first.max() - second / second.max()).max()) > 0.1


def test_untouched_runs():
    assert untouched_runs([0.0, 1e-12, 2.0, 0.0]) == [0, 3]
    assert untouched_runs([1.0]) == []
    with pytest.raises(InputError, match="norms must be finite, got nan"):
        untouched_runs([0.0, float("nan")])


def test_shapes_are_checked():
    lora = LoraSpec(rank=2)
    check_adapters(random_adapters(SPEC, lora), SPEC, lora)
    with pytest.raises(InputError, match="adapters must have the shapes"):
        check_adapters(random_adapters(SPEC, LoraSpec(rank=3)), SPEC, lora)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": 0}, "rank must be an integer of at least 1, got 0"),
        ({"alpha": 0.0}, "alpha must be positive, got 0.0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"targets": ()}, r"targets must be different names among .*, got \(\)"),
        ({"targets": ("q", "q")}, r"targets must be different names among .*, got \('q', 'q'\)"),
    ],
)
def test_bad_specs(changes, message):
    with pytest.raises(InputError, match=message):
        LoraSpec(**changes)
