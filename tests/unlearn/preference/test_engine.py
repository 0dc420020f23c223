import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.runs import run_loops
from jaxaudit.train import take_batch
from jaxaudit.unlearn import Batch, apply
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop
from jaxaudit.unlearn.preference import terms
from jaxaudit.unlearn.preference.engine import Objective, Steps, check_positive, objective_unlearner
from jaxaudit.unlearn.preference.terms import Context, term_mean
from tests.unlearn.preference import toy

FORGET = terms.negative_preference(toy.MODEL, 0.5)
PREFER = terms.preference(toy.MODEL, 0.5, 1.0)
RETAIN = terms.likelihood(toy.MODEL, "token")


def build(retain_weight=0.7, micro_batches=1, reference="fine-tuned", **options):
    steps = Steps(optax.sgd(0.1), 1, 8, micro_batches)
    return objective_unlearner(
        Objective(FORGET, RETAIN, retain_weight), steps, reference=reference, **options
    )


def one_update(method):
    state = method.init(jax.random.key(0), toy.TRAINED)
    return jax.jit(method.update)(jax.random.key(1), state, toy.BATCH)


@pytest.mark.parametrize("reference", ["fine-tuned", "base"])
def test_a_step_descends_the_sum_of_both_terms(reference):
    before = toy.TRAINED.params if reference == "fine-tuned" else toy.TRAINED.initial_params

    def loss(params):
        forget = term_mean(FORGET, params, Context(before), toy.BATCH.forget)
        return forget + 0.7 * term_mean(RETAIN, params, Context(), toy.BATCH.retain)

    value, gradient = jax.value_and_grad(loss)(toy.TRAINED.params)
    state, info = one_update(build(reference=reference))
    assert info["loss"] == pytest.approx(float(value), rel=1e-5)
    assert info["gradient_norm"] == pytest.approx(float(optax.tree.norm(gradient)), rel=1e-5)
    for name, moved in state.params.items():
        np.testing.assert_allclose(
            moved, toy.TRAINED.params[name] - 0.1 * gradient[name], rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize(("build_term", "reference"), [(FORGET, "fine-tuned"), (PREFER, "base")])
def test_given_scores_are_those_of_the_reference(build_term, reference):
    """Computed beforehand, they give the same step, and the reference is no part of the state."""
    start = toy.TRAINED.params if reference == "fine-tuned" else toy.TRAINED.initial_params

    def update(which, batch):
        steps = Steps(optax.sgd(0.1), 1, 8, 1)
        method = objective_unlearner(Objective(build_term, RETAIN, 0.0), steps, reference=which)
        state = method.init(jax.random.key(0), toy.TRAINED)
        return state, jax.jit(method.update)(jax.random.key(1), state, batch)

    forget = toy.BATCH.forget
    scores = terms.reference_scores(toy.MODEL, Context(start), forget)
    scored = toy.BATCH._replace(forget=forget._replace(x=forget.x._replace(reference=scores)))
    state, (found, info) = update("given", scored)
    _, (expected, same) = update(reference, toy.BATCH)
    assert state.context.reference is None
    assert info["loss"] == pytest.approx(float(same["loss"]), rel=1e-5)
    for name, moved in found.params.items():
        np.testing.assert_allclose(moved, expected.params[name], rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="reference scores for reference='given', got none"):
        update("given", toy.BATCH)


def test_two_times_four_and_four_times_two_agree():
    """Answers have different lengths, and one example is padding: only sums over the whole batch agree."""
    whole, *pieces = (one_update(build(micro_batches=number))[0].params for number in (1, 2, 4))
    for params in pieces:
        for name in params:
            np.testing.assert_allclose(params[name], whole[name], rtol=1e-5, atol=1e-6)
    halves = [jax.tree.map(lambda leaf, i=i: jnp.split(leaf, 2)[i], toy.BATCH.retain) for i in (0, 1)]
    means = [float(term_mean(RETAIN, toy.NOW, Context(), half)) for half in halves]
    together = float(term_mean(RETAIN, toy.NOW, Context(), toy.BATCH.retain))
    assert np.mean(means) != pytest.approx(together, rel=1e-3)  # what averaging the pieces would give


def test_the_state_holds_no_more_than_the_terms_need():
    assert build(reference=None).init(jax.random.key(0), toy.TRAINED).context == Context(None, None)
    direction = build(num_features=5).init(jax.random.key(0), toy.TRAINED).context.direction
    assert (direction >= 0).all()
    assert jnp.linalg.norm(direction) == pytest.approx(1)


def test_cost_counts_the_retain_term_only_if_it_is_used():
    assert build().gradients_per_example == pytest.approx(7 / 3)
    assert build(retain_weight=0.0).gradients_per_example == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"micro_batches": 3}, "micro_batches must divide batch_size = 8, got 3"),
        ({"micro_batches": 0}, "micro_batches must be an integer of at least 1, got 0"),
        ({"retain_weight": -1.0}, "retain_weight must not be negative, got -1.0"),
        ({"reference": "other"}, "reference must be one of fine-tuned, base, given, got 'other'"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        build(**options)


def test_check_positive():
    assert check_positive("beta", 0.1) == 0.1
    with pytest.raises(InputError, match="beta must be a finite number, got inf"):
        check_positive("beta", float("inf"))


def test_many_runs_equal_one_after_the_other():
    """Tokens are several arrays: the driver cuts batches of all of them, for every run its own forget examples."""
    method = build(micro_batches=2)._replace(num_updates=2, batch_size=4)
    pool = toy.make_examples(6, 12)
    forget = jnp.array([[6, 7, 8], [9, 10, 11]])
    keys = jax.random.split(jax.random.key(0), 2)
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), toy.TRAINED.params, toy.NOW)
    shared = SharedInput(pool, jnp.arange(6), toy.TRAINED.initial_params)
    states, _ = run_loops(stage_loop(method), RunInput(keys, params, forget), shared)
    for run, start in enumerate((toy.TRAINED.params, toy.NOW)):

        def batch_at(step, run=run):
            return Batch(take_batch(pool, jnp.arange(6), step, 4), take_batch(pool, forget[run], step, 4))

        alone = apply(toy.jitted(method), keys[run], toy.TRAINED._replace(params=start), batch_at)
        for name, expected in alone.items():
            np.testing.assert_allclose(states.params[name][run], expected, rtol=1e-5, atol=1e-6)
