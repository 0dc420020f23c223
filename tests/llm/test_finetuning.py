import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data.pistol import dataset_1
from jaxaudit.errors import InputError
from jaxaudit.llm import (
    AdamWSpec,
    LoraShared,
    LoraSpec,
    decoder,
    fine_tuning_loop,
    generate_texts,
    init_adapters,
    lora_model,
    lora_tuning_loop,
    token_model,
    tokenize,
    word_tokenizer,
)
from jaxaudit.llm.spec import PRESETS
from jaxaudit.runs import RunOptions, run_loops
from jaxaudit.train import TrainingRun, TrainingShared
from jaxaudit.unlearn.preference import answer_loss
from tests.llm.reference import random_params, small_spec
from tests.llm.toy import toy_examples

SPEC = small_spec(num_layers=2)
EXAMPLES, START = toy_examples(count=6)
POOL = EXAMPLES._replace(x=EXAMPLES.x.truth)
BATCHES = [(4, 0), (3, 5), (1,)]
QUICK = AdamWSpec(epochs=3, learning_rate=0.01, batch_size=2)


def run_of(members, seed=0):
    return TrainingRun(jnp.asarray(members), jax.random.key(seed))


def carried_out(loop, run, shared):
    state, body = loop.init(run, shared), jax.jit(loop.body)
    for step in range(loop.num_steps):
        state = body(step, state, run, shared)
    return state.params


def close(one, other, tolerance=1e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_it_is_adamw_on_the_answers():
    """Written out: batches in order, loss summed over answers' tokens by hand, optax's AdamW."""
    params, members = random_params(SPEC), [4, 0, 3, 5, 1]
    loop = fine_tuning_loop(token_model(decoder(SPEC), START), QUICK, 5)
    found = carried_out(loop, run_of(members), TrainingShared(POOL, params))

    def loss(params, rows):
        tokens = jax.tree.map(lambda leaf: leaf[jnp.array(rows)], POOL.x)
        log_probs = jax.nn.log_softmax(decoder(SPEC).logits_fn(params, tokens))
        total, count = 0.0, 0
        for row, column in zip(*np.nonzero(np.asarray(POOL.x.answer)[rows])):
            total, count = total - log_probs[row, column - 1, tokens.ids[row, column]], count + 1
        return total / count

    # 9 updates, of which round(0.9) = 1 warms up, from 0.
    rates = [0.0, *(0.01 * (1 - step / 8) for step in range(8))]
    gradients = {
        rows: jax.jit(lambda params, rows=rows: jax.grad(loss)(params, list(rows))) for rows in BATCHES
    }
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.inject_hyperparams(optax.adamw)(0.0, weight_decay=0.0)
    )
    state = optimizer.init(params)
    for rate, rows in zip(rates, BATCHES * 3, strict=True):
        state[1].hyperparams["learning_rate"] = jnp.asarray(rate)
        updates, state = optimizer.update(gradients[rows](params), state, params)
        params = optax.apply_updates(params, updates)
    close(found, params, 1e-4)


def test_weights_take_examples_out():
    params = random_params(SPEC)
    model = token_model(decoder(SPEC), START)
    weighted = POOL._replace(weights=jnp.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    other = weighted._replace(
        x=weighted.x._replace(ids=jnp.where(weighted.weights[:, None] > 0, POOL.x.ids, 3))
    )
    loop = fine_tuning_loop(model, QUICK, 6)
    one, two = (
        carried_out(loop, run_of(range(6)), TrainingShared(pool, params)) for pool in (weighted, other)
    )
    close(one, two, 1e-7)
    full = carried_out(loop, run_of(range(6)), TrainingShared(POOL, params))
    moved = optax.tree.norm(jax.tree.map(jnp.subtract, one, full))
    assert float(moved) > 1e-3


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_many_runs_share_one_base(dropout):
    lora = LoraSpec(rank=2, dropout=dropout)
    model, base = decoder(SPEC, lora), random_params(SPEC)
    shared = LoraShared(POOL, init_adapters(jax.random.key(1), SPEC, lora), base)
    loop = lora_tuning_loop(model, QUICK, 4, START)
    members = jnp.array([[0, 1, 2, 3], [2, 4, 5, 0], [0, 1, 2, 3]])
    runs = TrainingRun(members, jax.random.split(jax.random.key(2), 3))
    state, _ = run_loops(loop, runs, shared, options=RunOptions(strategy="scan"))
    for run in range(3):
        alone = carried_out(loop, jax.tree.map(lambda leaf, run=run: leaf[run], runs), shared)
        close(jax.tree.map(lambda leaf, run=run: leaf[run], state.params), alone, 1e-4)
    # Runs 0 and 2 have the same members: without dropout the same adapters, with it others.
    same = all((leaf[0] == leaf[2]).all() for leaf in jax.tree.leaves(state.params))
    assert same == (dropout == 0.0) == loop.deterministic


def test_base_as_argument_equals_base_as_constant():
    lora = LoraSpec(rank=2, dropout=0.0)
    model, base = decoder(SPEC, lora), random_params(SPEC)
    start = init_adapters(jax.random.key(1), SPEC, lora)
    argument = carried_out(
        lora_tuning_loop(model, QUICK, 6, START), run_of(range(6)), LoraShared(POOL, start, base)
    )
    constant = carried_out(
        fine_tuning_loop(lora_model(model, base, START), QUICK, 6),
        run_of(range(6)),
        TrainingShared(POOL, start),
    )
    close(argument, constant)


def test_dropout_changes_every_step():
    lora = LoraSpec(rank=2, dropout=0.5)
    loop = lora_tuning_loop(decoder(SPEC, lora), AdamWSpec(2, 0.01, 6, warmup_share=0.0), 6, START)
    start = init_adapters(jax.random.key(1), SPEC, lora)
    shared, run = LoraShared(POOL, start, random_params(SPEC)), run_of(range(6))
    state = loop.init(run, shared)
    body = jax.jit(loop.body)
    one, two = (body(step, state, run, shared).params for step in (0, 1))
    assert any((a != b).any() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two)))


@pytest.mark.parametrize(
    ("decay", "last"), [("linear", 1 / 90), ("constant", 1.0), ("cosine", (1 + np.cos(np.pi * 89 / 90)) / 2)]
)
def test_schedule(decay, last):
    spec = AdamWSpec(10, 0.5, 16, warmup_share=0.1, decay=decay)
    assert spec.num_updates(160) == 100
    rate = spec.schedule(100)
    np.testing.assert_allclose([rate(step) for step in (0, 5, 10)], [0.0, 0.25, 0.5], rtol=1e-6)
    assert float(rate(99)) == pytest.approx(0.5 * last, rel=1e-4)
    assert float(AdamWSpec(1, 0.5, warmup_share=0.0).schedule(9)(0)) == 0.5


def test_zero_epochs_change_nothing():
    params = random_params(SPEC)
    loop = fine_tuning_loop(token_model(decoder(SPEC), START), AdamWSpec(0, 0.1), 6)
    close(carried_out(loop, run_of(range(6)), TrainingShared(POOL, params)), params, 0)


def test_same_arguments_give_the_same_loop():
    model = token_model(decoder(SPEC), START)
    assert fine_tuning_loop(model, QUICK, 6) is fine_tuning_loop(model, AdamWSpec(3, 0.01, 2), 6)


def remember(records, epochs, rate, preset="tiny"):
    """Train on records; how many answers come back, the loss, and the tokenizer."""
    questions, answers = [one.question for one in records], [one.answer for one in records]
    tokenizer = word_tokenizer([*questions, *answers], groups=[one.edge for one in records] * 2)
    rows = tokenize(tokenizer, questions, answers)
    model = decoder(PRESETS[preset](tokenizer.vocabulary_size))
    tokens = token_model(model, rows.prompt_length)
    loop = fine_tuning_loop(tokens, AdamWSpec(epochs, rate, decay="cosine"), len(records))
    shared = TrainingShared(
        jax.tree.map(jnp.asarray, rows.examples), jax.jit(model.init_fn)(jax.random.key(0))
    )
    runs = jax.tree.map(lambda leaf: leaf[None], run_of(np.arange(len(records))))
    state, stats = run_loops(loop, runs, shared)
    params = jax.tree.map(lambda leaf: leaf[0], state.params)
    said = generate_texts(model, params, tokenizer, rows.prompts, num_tokens=rows.answer_length)
    right = sum(one == other for one, other in zip(said, answers))
    return right, float(answer_loss(tokens)(params, shared.pool)), stats


def test_a_small_model_remembers_an_edge():
    right, loss, _ = remember(dataset_1().records[:20], epochs=100, rate=8e-3)
    assert right == 20
    assert loss < 0.05


@pytest.mark.slow
def test_a_small_model_remembers_everything():
    right, loss, _ = remember(dataset_1().records, epochs=60, rate=4e-3)
    assert right >= 399
    assert loss < 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": -1}, "epochs must be an integer of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"weight_decay": -0.1}, "weight_decay must not be negative, got -0.1"),
        ({"warmup_share": 1.5}, r"warmup_share must be in \[0, 1\], got 1.5"),
        ({"decay": "step"}, "decay must be one of linear, cosine, constant, got 'step'"),
        ({"clip_norm": 0.0}, "clip_norm must be positive, got 0.0"),
    ],
)
def test_bad_specs(changes, message):
    with pytest.raises(InputError, match=message):
        AdamWSpec(**{"epochs": 1, "learning_rate": 0.1} | changes)


def test_adapters_need_a_spec():
    with pytest.raises(InputError, match="model must be a decoder with a lora spec, got None"):
        lora_tuning_loop(decoder(SPEC), QUICK, 4)
