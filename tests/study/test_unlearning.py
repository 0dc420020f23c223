"""Unlearning: a run's own rate is the method's rate, and the loop does what the contract's plain loop does."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.llm import adapters_only, decoder, lora_unlearner, token_model
from jaxaudit.study import Request, at_own_rate, unlearn
from jaxaudit.train import take_batch
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.preference import PRESETS, pistol_methods
from jaxaudit.unlearn.preference.presets import pistol_optimizer


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_its_own_rate_is_the_rate_of_the_optimiser(preset, rate):
    """On a quadratic, with warm-up, decay of rate and weights, and clipping."""

    def method(own):
        optimizer = pistol_optimizer(PRESETS[preset], learning_rate=own, num_updates=8, epochs=4)
        return gradient_ascent(
            lambda params, examples: -jnp.sum((params - examples.x) ** 2),
            optimizer=optimizer,
            num_updates=8,
            batch_size=1,
        )

    start = jnp.array([1.0, -2.0])
    one = Examples(jnp.array([3.0, 0.5]), jnp.zeros(1, int), jnp.ones(1))
    batches = lambda step: Batch(one, one)  # noqa: E731
    key = jax.random.key(0)
    expected = apply(method(rate), key, Trained(start, start), batches)
    found = apply(at_own_rate(method(1.0)), key, Trained(start, start, previous=jnp.array(rate)), batches)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert float(jnp.abs(expected - start).max()) > 0


def stacked(questions, runs):
    return jax.tree.map(lambda leaf: np.stack([leaf] * runs), questions.model.params)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gradient_difference", "idk"])
def test_the_loop_is_the_contracts_plain_loop(micro, micro_spec, method):
    """With the orders of the study handed to a plain loop, at the rate itself."""
    from jaxaudit.study import unlearning

    request = Request("1_2", 1e-2, 1)
    found = unlearn(micro, micro_spec, method, [request, request._replace(rate=1e-3)], stacked(micro, 2))
    model = decoder(micro.model.spec, micro_spec.lora)
    methods = pistol_methods(
        token_model(model, micro.tokens.prompt_length),
        micro_spec.reading,
        num_forget=20,
        learning_rate=request.rate,
        epochs=micro_spec.epochs,
        batch_size=micro_spec.batch_size,
        wrap_optimizer=adapters_only,
    )
    retain, forget = unlearning._orders(micro, request)
    assert set(micro.edges[forget]) == {"1_2"}
    assert sorted([*retain, *forget]) == list(range(80))
    key = unlearning._key(request)
    base = jax.tree.map(jnp.asarray, micro.model.params)
    unlearner = lora_unlearner(model, methods[method])
    state = unlearner.init(jax.random.fold_in(key, 0), Trained(base, base))
    update = jax.jit(unlearner.update)
    for step in range(2):
        parts = (take_batch(micro.pool, jnp.asarray(rows), step, 10) for rows in (retain, forget))
        state, _ = update(jax.random.fold_in(key, step + 1), state, Batch(*parts))
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(state.params)):
        np.testing.assert_allclose(one[0], two, rtol=1e-3, atol=1e-6)
    assert any((leaf[0] != leaf[1]).any() for leaf in jax.tree.leaves(found))


def test_ascent_makes_the_forgotten_answers_less_likely(micro, micro_spec):
    from jaxaudit.study import measure

    spec = replace(micro_spec, lora=None, epochs=4)
    params = unlearn(micro, spec, "gradient_ascent", [Request("1_2", 3e-2, 1)] * 2, stacked(micro, 2))
    before, after = (
        measure(micro, tree, with_texts=False)[0]["probability"] for tree in (stacked(micro, 2), params)
    )
    forget = micro.of_edges(["1_2"])
    assert after[forget].mean() < 0.5 * before[forget].mean()
