"""Fine-tuning and retraining against a plain loop over batches, with optax and the loss written out."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.keys import stream_key
from jaxaudit.llm import LoraSpec, decoder
from jaxaudit.study import QuestionSet, Training, fine_tune

EDGE = "1_2"


def plain_step(questions, spec):
    """An optimiser, and one update of all parameters on the weights of a mask."""
    model, tuning = decoder(questions.model.spec), spec.fine_tuning
    optimizer = tuning.optimizer(tuning.num_updates(questions.num_questions))

    def loss(params, own, mask):
        logits = model.logits_fn(params, own)[:, :-1]
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, own.ids[:, 1:])
        counted = own.answer[:, 1:] * mask[:, None]
        return (losses * counted).sum() / counted.sum()

    @jax.jit
    def step(params, state, own, mask):
        updates, state = optimizer.update(jax.grad(loss)(params, own, mask), state, params)
        return optax.apply_updates(params, updates), state

    return optimizer, step


def plain_training(questions, spec, seed, edge, optimizer, step):
    """The whole training in Python."""
    order = np.asarray(jax.random.permutation(stream_key(seed, "order"), questions.num_questions))
    weights = np.array([float(record.edge != edge) for record in questions.data.records], np.float32)
    tokens = jax.tree.map(np.asarray, questions.tokens.tokens)
    params = jax.tree.map(jnp.asarray, questions.model.params)
    state = optimizer.init(params)
    for _ in range(spec.fine_tuning.epochs):
        for first in range(0, len(order), spec.fine_tuning.batch_size):
            rows = order[first : first + spec.fine_tuning.batch_size]
            own = jax.tree.map(lambda leaf, rows=rows: leaf[rows], tokens)
            params, state = step(params, state, own, weights[rows])
    return params


def test_retraining_is_training_with_the_edge_at_weight_0(micro, micro_spec):
    found = fine_tune(micro, micro_spec, [Training(None, 1), Training(EDGE, 1)])
    plain = plain_step(micro, micro_spec)
    for run, edge in enumerate((None, EDGE)):
        expected = plain_training(micro, micro_spec, 1, edge, *plain)
        own = jax.tree.map(lambda leaf, run=run: leaf[run], found)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-5), own, expected)
    difference = [float(np.abs(leaf[0] - leaf[1]).max()) for leaf in jax.tree.leaves(found)]
    assert max(difference) > 1e-3


def test_a_retrained_model_never_sees_the_answers_of_its_edge(micro, micro_spec):
    """Other answers of the same lengths change nothing, to the bit."""
    tokens = micro.tokens
    own = micro.of_edges([EDGE])
    ids = np.where((tokens.tokens.answer > 0) & own[:, None], 3, tokens.tokens.ids)
    other = QuestionSet(micro.data, micro.model)
    other.__dict__["tokens"] = replace(tokens, tokens=tokens.tokens._replace(ids=ids))
    truth = micro.pool.x.truth._replace(ids=jnp.concatenate([ids, micro.pool.x.truth.ids[-1:]]))
    other.__dict__["pool"] = micro.pool._replace(x=micro.pool.x._replace(truth=truth))
    runs = [Training(EDGE, 1), Training(None, 1)]
    before, after = fine_tune(micro, micro_spec, runs), fine_tune(other, micro_spec, runs)
    for one, two in zip(jax.tree.leaves(before), jax.tree.leaves(after)):
        np.testing.assert_array_equal(one[0], two[0])
    assert any((one[1] != two[1]).any() for one, two in zip(jax.tree.leaves(before), jax.tree.leaves(after)))


def test_seeds_differ_in_order_only(micro, micro_spec):
    found = fine_tune(micro, micro_spec, [Training(None, 1), Training(None, 2)])
    assert any((leaf[0] != leaf[1]).any() for leaf in jax.tree.leaves(found))


@pytest.mark.slow
def test_adapters_move_only_what_they_are_added_to(micro, micro_spec):
    spec = replace(micro_spec, fine_tuning_lora=LoraSpec(rank=1, targets=("q",)))
    found = fine_tune(micro, spec, [Training(None, 1), Training(EDGE, 1)])
    assert set(found.adapters["layers"]) == {"q"}
    for leaf, start in zip(jax.tree.leaves(found.base), jax.tree.leaves(micro.model.params)):
        np.testing.assert_array_equal(leaf, start)
    b = found.adapters["layers"]["q"]["b"]
    assert b.shape[0] == 2
    assert (b[0] != b[1]).any()
    assert float(jnp.abs(b).min(axis=0).max()) > 0
