"""Unlearning: a run's own rate is the method's rate, and the loop does what the contract's plain loop does."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import LoraSpec, decoder, init_adapters, merge
from jaxaudit.runs.programs import COMPILATIONS
from jaxaudit.study import Request, unlearn, unlearning
from jaxaudit.unlearn.preference import PRESETS
from jaxaudit.unlearn.preference.presets import pistol_optimizer


def noisy(questions, seed=0):
    """Fine-tuned parameters that differ from the base, and between runs."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: leaf + rng.normal(scale=0.3, size=leaf.shape).astype(np.float32), questions.model.params
    )


def merged(found, run, spec):
    """Parameters of one of several unlearned models."""
    adapters = jax.tree.map(lambda leaf: leaf[run], found.params.adapters)
    return merge(found.params.base, adapters, spec.lora)


class Plain:
    """PISTOL's losses on a whole model, written out from its logits."""

    def __init__(self, questions, fine_tuned):
        self.model = decoder(questions.model.spec)
        self.base = jax.tree.map(jnp.asarray, questions.model.params)
        self.fine_tuned = fine_tuned

    def log_probs(self, params, tokens):
        return jax.nn.log_softmax(self.model.logits_fn(params, tokens)[:, :-1])

    def answers(self, params, tokens):
        """Log-probability of every token, and which of them belong to the answer."""
        found = jnp.take_along_axis(self.log_probs(params, tokens), tokens.ids[:, 1:, None], axis=2)[..., 0]
        return found, tokens.answer[:, 1:]

    def loss(self, params, tokens, by_token):
        found, answer = self.answers(params, tokens)
        if by_token:
            return -(found * answer).sum() / answer.sum()
        return -((found * answer).sum(axis=1) / answer.sum(axis=1)).mean()

    def divergence(self, params, reference, tokens, by_token):
        one, other = self.log_probs(reference, tokens), self.log_probs(params, tokens)
        values = (jnp.exp(one) * (one - other)).sum(axis=-1)
        if by_token:
            return values.mean()  # padding included, as the code has it
        real = tokens.real[:, 1:]
        return ((values * real).sum(axis=1) / real.sum(axis=1)).mean()

    def log_ratio(self, params, reference, tokens):
        (now, answer), (before, _) = (self.answers(which, tokens) for which in (params, reference))
        return ((now - before) * answer).sum(axis=1)

    def paper_gradient_difference(self, params, forget, retain):
        return self.loss(params, retain.truth, False) - self.loss(params, forget.truth, False)

    def paper_kl(self, params, forget, retain):
        kept = self.divergence(params, self.fine_tuned, retain.truth, False)
        return kept - self.loss(params, forget.truth, False)

    def paper_idk(self, params, forget, retain):
        return self.loss(params, forget.alternative, False) + self.loss(params, retain.truth, False)

    def paper_npo(self, params, forget, retain):
        ratio = self.log_ratio(params, self.fine_tuned, forget.truth)
        return (2 / 0.1 * jnp.log1p(jnp.exp(0.1 * ratio))).mean()

    def code_kl(self, params, forget, retain):
        kept = self.divergence(params, self.base, retain.truth, True)
        return kept - self.loss(params, forget.truth, True)

    def code_dpo(self, params, forget, retain):
        won, lost = (self.log_ratio(params, self.base, part) for part in (forget.alternative, forget.truth))
        return jnp.log1p(jnp.exp(-0.1 * (won - lost))).mean()


def plain_unlearning(questions, spec, method, request, fine_tuned):
    """Two updates of new adapters on the fine-tuned model, in Python."""
    model = decoder(questions.model.spec, spec.lora)
    retain, forget = unlearning._orders(questions, request)
    key = jax.random.fold_in(unlearning._key(request), 0)
    adapters = init_adapters(jax.random.split(key)[0], model.spec, spec.lora)
    optimizer = pistol_optimizer(
        PRESETS[spec.reading], learning_rate=request.rate, num_updates=2, epochs=spec.epochs
    )
    of_method = getattr(Plain(questions, fine_tuned), f"{spec.reading.removeprefix('pistol_')}_{method}")

    def loss(adapters, forget, retain):
        return of_method(merge(fine_tuned, adapters, spec.lora), forget, retain)

    @jax.jit
    def update(adapters, state, forget, retain):
        updates, state = optimizer.update(jax.grad(loss)(adapters, forget, retain), state, adapters)
        return optax.apply_updates(adapters, updates), state

    state = optimizer.init(adapters)
    for step in range(2):
        chosen = [rows[10 * step : 10 * step + 10] for rows in (forget, retain)]
        parts = [jax.tree.map(lambda leaf, rows=rows: leaf[rows], questions.pool.x) for rows in chosen]
        adapters, state = update(adapters, state, *parts)
    return merge(fine_tuned, adapters, spec.lora)


CASES = [
    ("pistol_paper", "gradient_difference"),
    ("pistol_paper", "kl"),
    ("pistol_paper", "idk"),
    ("pistol_paper", "npo"),
    ("pistol_code", "kl"),
    ("pistol_code", "dpo"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("reading", "method"), CASES)
def test_the_loop_is_the_methods_loss_from_the_fine_tuned_model(micro, micro_spec, reading, method):
    """The fine-tuned model is not the base, so that a method with the wrong one of them as reference is seen."""
    lora = LoraSpec(rank=1, targets=("q",), dropout=0.0)  # little to compile
    spec, fine_tuned = replace(micro_spec, reading=reading, lora=lora), noisy(micro)
    request = Request("1_2", 1e-2, 1)
    start = jax.tree.map(jnp.asarray, fine_tuned)
    found = unlearn(micro, spec, method, [request, request._replace(rate=1e-3)], start)
    expected = plain_unlearning(micro, spec, method, request, start)
    first, second = (merged(found, run, spec) for run in range(2))
    for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-6)
    assert any((a != b).any() for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)))
    for own, norm in zip((first, second), found.norms):
        moved = jax.tree.map(jnp.subtract, own, start)
        assert norm == pytest.approx(float(optax.tree.norm(moved)), rel=1e-4)
        assert norm > 0


@pytest.mark.parametrize("lora", [None, LoraSpec(rank=1, targets=("q",), dropout=0.0)])
def test_a_run_that_changes_nothing_has_norm_0(micro, micro_spec, lora):
    """One update, in which the rate of warm-up is still 0; and another that is not finite."""
    spec, request = replace(micro_spec, lora=lora, epochs=1, batch_size=20), Request("1_2", 1e-2, 1)
    assert unlearn(micro, spec, "gradient_ascent", [request], micro.base).norms == [0.0]
    if lora is None:
        broken = {**micro.base, "embedding": jnp.full_like(micro.base["embedding"], jnp.nan)}
        assert np.isnan(unlearn(micro, spec, "gradient_ascent", [request], broken).norms[0])


@pytest.mark.parametrize("method", ["npo", "kl"])
def test_nothing_that_is_shared_is_part_of_the_state(micro, micro_spec, method):
    """Adapters, moments of the optimiser and scores of the answers: neither the base nor a reference model."""
    model, lora = micro.model.spec, micro_spec.lora
    settings = unlearning.LoopSettings("pistol_paper", lora, 1, 10, micro.tokens.prompt_length, 20, None)
    loop = unlearning.unlearning_loop(model, settings, method)
    run = unlearning.UnlearningRun(jax.random.key(0), jnp.arange(20, 80), jnp.arange(20), jnp.array(1e-3))
    shared = unlearning.UnlearningShared(micro.pool, micro.base, micro.base)
    state = jax.eval_shape(loop.init, run, shared)
    of_adapters = sum(leaf.size for leaf in jax.tree.leaves(state.inner.params))
    scores = 2 * len(micro.pool.weights) if method == "npo" else 0
    # The adapters are in the state of the method and in that of its rate.
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) <= 4 * of_adapters + scores + 10


def test_dropout_is_refused_not_ignored(micro, micro_spec):
    spec = replace(micro_spec, lora=LoraSpec(rank=2, dropout=0.05))
    with pytest.raises(InputError, match=r"lora must have dropout 0 for unlearning, got 0\.05"):
        unlearn(micro, spec, "npo", [Request("1_2", 1e-2, 1)], micro.base)


def test_another_order_of_the_same_size_makes_no_other_program(micro, micro_spec):
    spec, programs = replace(micro_spec, epochs=1), unlearning.unlearning_loop.cache_info
    unlearn(micro, spec, "gradient_ascent", [Request("1_2", 1e-2, 1)], micro.base)
    known, compiled = programs().misses, COMPILATIONS.count
    again = replace(spec, seeds=(7,), rates=(1e-5,), chunk=3, min_utility=0.1)
    unlearn(micro, again, "gradient_ascent", [Request("1_2", 1e-3, 1)], micro.base)
    assert (programs().misses, COMPILATIONS.count) == (known, compiled)


def test_ascent_makes_the_forgotten_answers_less_likely(micro, micro_spec):
    from jaxaudit.study import measure

    spec = replace(micro_spec, lora=None, epochs=4)
    params = unlearn(micro, spec, "gradient_ascent", [Request("1_2", 3e-2, 1)], micro.base).params
    start = jax.tree.map(lambda leaf: leaf[None], micro.base)
    before, after = (measure(micro, tree, with_texts=False)[0]["probability"] for tree in (start, params))
    forget = micro.of_edges(["1_2"])
    assert after[forget].mean() < 0.5 * before[forget].mean()
