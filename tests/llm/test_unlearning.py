import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import (
    Adapted,
    LoraSpec,
    adapter_norm,
    adapters_only,
    decoder,
    init_adapters,
    lora_model,
    lora_unlearner,
    merge,
    token_model,
    with_adapter_norm,
)
from jaxaudit.unlearn import apply, gradient_ascent
from jaxaudit.unlearn.base import Batch, Trained
from jaxaudit.unlearn.preference import answer_loss, npo
from tests.llm.reference import random_params, small_spec
from tests.llm.toy import toy_examples

SPEC, LORA = small_spec(num_layers=2), LoraSpec(rank=2, alpha=4.0, dropout=0.0)
MODEL = decoder(SPEC, LORA)
EXAMPLES, START = toy_examples(count=4)
BASE = random_params(SPEC)
TRAINED = Trained(BASE, random_params(SPEC, 1))


def batch(step):
    return Batch(EXAMPLES, EXAMPLES)


def whole(rate=0.05, num_updates=2, **options):
    optimizer = adapters_only(optax.adamw(rate, weight_decay=0.1))
    inner = npo(
        token_model(MODEL, START), optimizer=optimizer, num_updates=num_updates, batch_size=4, **options
    )
    return lora_unlearner(MODEL, inner)


def unlearned(method, key, trained):
    return apply(method._replace(update=jax.jit(method.update)), key, trained, batch)


def difference(one, other):
    return float(optax.tree.norm(jax.tree.map(jnp.subtract, one, other)))


@pytest.mark.parametrize("options", [{}, {"retain_weight": 1.0}])
def test_it_is_the_method_on_adapters_and_a_merge(options):
    """Against the method on adapters alone, with the base as a constant."""
    found = unlearned(whole(**options), jax.random.key(3), TRAINED)
    # The keys that the driver hands on, to start from the same adapters.
    init_key = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), 0), 0)
    adapters = init_adapters(jax.random.split(init_key)[0], SPEC, LORA)
    method = npo(
        lora_model(MODEL, BASE, START),
        optimizer=optax.adamw(0.05, weight_decay=0.1),
        num_updates=2,
        batch_size=4,
        **options,
    )
    after = unlearned(method, jax.random.key(3), Trained(adapters, adapters))
    expected = merge(BASE, after, LORA)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert difference(found, BASE) > 0.1


def test_base_reference_is_the_starting_point():
    """With the base of training as the reference, the first loss is not 2 / beta ln 2, with the trained one it is."""
    losses = {}
    for reference in ("fine-tuned", "base"):
        unlearner = whole(reference=reference) if reference == "base" else whole()
        state = unlearner.init(jax.random.key(0), TRAINED)
        losses[reference] = float(jax.jit(unlearner.update)(jax.random.key(1), state, batch(0))[1]["loss"])
    assert losses["fine-tuned"] == pytest.approx(20 * np.log(2), rel=1e-4)
    assert abs(losses["base"] - losses["fine-tuned"]) > 1e-2


def test_matrices_without_adapters_stay():
    lora = LoraSpec(rank=2, targets=("q", "down"), dropout=0.0)
    model = decoder(SPEC, lora)
    inner = npo(
        token_model(model, START), optimizer=adapters_only(optax.sgd(0.5)), num_updates=2, batch_size=4
    )
    after = unlearned(lora_unlearner(model, inner), jax.random.key(0), TRAINED)
    for name in SPEC.projections:
        moved = (after["layers"][name]["kernel"] != BASE["layers"][name]["kernel"]).any()
        assert bool(moved) == (name in lora.targets)
    np.testing.assert_array_equal(after["embedding"], BASE["embedding"])


def test_dropout_is_refused_not_ignored():
    inner = npo(
        token_model(MODEL, START), optimizer=adapters_only(optax.sgd(0.5)), num_updates=2, batch_size=4
    )
    with pytest.raises(InputError, match=r"lora must have dropout 0 for unlearning, got 0\.05"):
        lora_unlearner(decoder(SPEC, LoraSpec(rank=2, dropout=0.05)), inner)


def test_no_updates_change_nothing():
    assert difference(unlearned(whole(num_updates=0), jax.random.key(0), TRAINED), BASE) == 0.0


def test_state_keeps_structure_and_types():
    unlearner = whole()
    state = unlearner.init(jax.random.key(0), TRAINED)
    after, _ = jax.eval_shape(unlearner.update, jax.random.key(0), state, batch(0))
    before = jax.eval_shape(lambda: state)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after)):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_many_runs_equal_one_at_a_time():
    unlearner, keys = whole(num_updates=1), jax.random.split(jax.random.key(5), 2)
    several = [random_params(SPEC, seed) for seed in (2, 3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)

    def one(key, params):
        return apply(unlearner, key, Trained(params, TRAINED.initial_params), batch)

    together = jax.jit(jax.vmap(one))(keys, stacked)
    for run in range(2):
        alone = unlearned(unlearner, keys[run], Trained(several[run], TRAINED.initial_params))
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone)):
            np.testing.assert_allclose(a[run], b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rate", "untouched"), [(0.05, 0.0), (0.0, 1.0)])
def test_norm_of_the_adapters_is_reported(rate, untouched):
    unlearner = whole(rate=rate)
    state = unlearner.init(jax.random.key(0), TRAINED)
    for step in range(2):
        state, _ = jax.jit(unlearner.update)(jax.random.key(step), state, batch(step))
    measured = unlearner.measure(state)
    assert float(measured["adapter_untouched"]) == untouched
    assert float(measured["adapter_norm"]) == pytest.approx(
        difference(state.params, BASE), rel=1e-3, abs=1e-9
    )


def test_norm_of_adapters_on_a_shared_base():
    method = gradient_ascent(
        answer_loss(lora_model(MODEL, BASE, START)), optimizer=optax.sgd(0.1), num_updates=1
    )
    start = init_adapters(jax.random.key(0), SPEC, LORA)
    reporting = with_adapter_norm(method, LORA)
    state = reporting.init(jax.random.key(0), Trained(start, start))
    assert float(reporting.measure(state)["adapter_untouched"]) == 1.0
    state, _ = jax.jit(reporting.update)(jax.random.key(0), state, batch(0))
    assert float(reporting.measure(state)["adapter_norm"]) == float(adapter_norm(state.params, LORA)) > 0


def test_what_the_method_measures_stays():
    inner = whole()
    again = with_adapter_norm(inner._replace(measure=lambda last: {"loss": jnp.ones(())}), LORA)
    start = init_adapters(jax.random.key(0), SPEC, LORA)
    measured = again.measure(Trained(start, start))
    assert set(measured) == {"loss", "adapter_norm", "adapter_untouched"}


def test_optimizer_never_sees_the_base():
    """Neither its gradient, which would count in the clipping, nor its values, which would decay."""
    optimizer = adapters_only(optax.chain(optax.clip_by_global_norm(1.0), optax.add_decayed_weights(0.5)))
    params = Adapted(jnp.full(3, 4.0), jnp.full(2, 2.0))
    gradient = Adapted(jnp.full(3, 100.0), jnp.array([0.6, 0.0]))
    updates, _ = optimizer.update(gradient, optimizer.init(params), params)
    assert updates.base.tolist() == [0, 0, 0]
    np.testing.assert_allclose(updates.adapters, [1.6, 1.0])


def test_adapters_need_a_spec():
    inner = npo(token_model(decoder(SPEC)), optimizer=optax.sgd(0.1), num_updates=1)
    with pytest.raises(InputError, match="model must be a decoder with a lora spec, got None"):
        lora_unlearner(decoder(SPEC), inner)
