"""Measures of models against the decoder itself, one question after the other."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.llm import Adapted, LoraSpec, decoder, merge
from jaxaudit.metrics import scaled_top
from jaxaudit.study import measure
from jaxaudit.study.measure import text_measures
from tests.llm.reference import random_adapters

MODULE = importlib.import_module("jaxaudit.study.measure")  # the package has a function of this name


@pytest.fixture(scope="module")
def models(micro):
    """The untrained model, and one that always says the first character of some answers."""
    return jax.tree.map(
        lambda leaf: np.stack([leaf, np.random.default_rng(0).normal(size=leaf.shape).astype(np.float32)]),
        micro.model.params,
    )


@pytest.fixture(scope="module")
def found(micro, models):
    return measure(micro, models, free_running=True)


@pytest.mark.parametrize("run", [0, 1])
def test_forced_measures_are_those_of_the_logits(micro, models, found, run):
    tokens, model = micro.tokens.tokens, decoder(micro.model.spec)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf[run]), models)
    logits = np.asarray(model.logits_fn(params, jax.tree.map(jnp.asarray, tokens)))
    top = scaled_top(micro.model.spec.vocabulary_size)
    for row in range(0, micro.num_questions, 7):
        places = np.flatnonzero(tokens.answer[row])
        scores = logits[row, places - 1].astype(float)
        true = tokens.ids[row, places]
        own = scores[np.arange(len(true)), true]
        ranks = (scores >= own[:, None]).sum(axis=1)
        log_probs = own - np.log(np.exp(scores).sum(axis=1))
        assert true[-1] == micro.model.tokenizer.eos
        expected = {
            "probability": np.exp(log_probs.mean()),
            "reciprocal rank": (1 / ranks[:-1]).mean(),  # the end token is no part of the text
            "top hits": (ranks[:-1] <= top).mean(),
            "first hits": (ranks == 1).mean(),
        }
        for name, value in expected.items():
            assert found[run][name][row] == pytest.approx(value, rel=1e-3), name


def test_an_answer_is_exact_if_and_only_if_all_its_tokens_come_first(found):
    """Greedy generation goes along the true answer as long as every true token comes first."""
    for one in found:
        assert ((one["first hits"] == 1) == (one["exact"] == 1)).all()
        assert (one["free reciprocal rank"] <= 1).all()
        assert set(one["text"][one["empty"] == 1]) <= {""} | {
            text for text in one["text"] if not text.strip()
        }


def test_ranks_along_the_own_answer_are_those_of_an_uncached_generation(micro, models, found):
    tokens, model, eos = micro.tokens, decoder(micro.model.spec), micro.model.tokenizer.eos
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), models)
    forward = jax.jit(model.logits_fn)
    for row in (0, 33):
        places = np.flatnonzero(tokens.tokens.answer[row])
        true = tokens.tokens.ids[row, places]
        ids, reciprocal = np.array(tokens.tokens.ids[row]), []
        for place, token in zip(places[:-1], true):
            own = jax.tree.map(lambda leaf, row=row: leaf[row][None], tokens.tokens)._replace(ids=ids[None])
            scores = np.asarray(forward(params, own))[0, place - 1]
            reciprocal.append(1 / (scores >= scores[token]).sum())
            ids[place] = scores.argmax()
            if ids[place] == eos:
                break
        expected = sum(reciprocal) / (len(true) - 1)
        assert found[1]["free reciprocal rank"][row] == pytest.approx(expected, rel=1e-3)


def test_a_model_that_diverged_knows_nothing(micro, models):
    broken = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), models)
    for one in measure(micro, broken, free_running=True):
        for name in ("probability", "top hits", "first hits", "free top hits", "exact"):
            assert (one[name] == 0).all(), name
        lowest = 1 / micro.model.spec.vocabulary_size
        assert one["reciprocal rank"] == pytest.approx(np.full(micro.num_questions, lowest))
        assert (one["free reciprocal rank"] <= lowest * (1 + 1e-6)).all()


def test_without_texts_only_forced_measures_are_there(micro, models, found):
    forced = measure(micro, models, with_texts=False)
    assert set(forced[0]) == {"probability", "reciprocal rank", "top hits", "first hits"}
    for name, values in forced[1].items():
        np.testing.assert_array_equal(values, found[1][name])


def test_models_that_share_a_base_are_those_with_merged_adapters(micro):
    lora = LoraSpec(rank=2, targets=("q", "down"), dropout=0.0)
    draws = [random_adapters(micro.model.spec, lora, seed) for seed in (0, 1)]
    adapters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *draws)
    whole = [merge(micro.base, own, lora) for own in draws]
    found = measure(micro, Adapted(micro.base, adapters), lora=lora, with_texts=False)
    expected = measure(micro, jax.tree.map(lambda *leaves: jnp.stack(leaves), *whole), with_texts=False)
    for one, two in zip(found, expected):
        for name in one:
            np.testing.assert_allclose(one[name], two[name], rtol=1e-4, atol=1e-6)
    assert (found[0]["probability"] != found[1]["probability"]).any()


def test_blocks_of_rows_give_the_same(micro, models, found, monkeypatch):
    per_row = micro.tokens.answer_length * micro.model.spec.vocabulary_size
    monkeypatch.setattr(MODULE, "LOGITS", 30 * per_row)
    monkeypatch.setattr(MODULE, "_SPOKEN", 33)
    for one, two in zip(measure(micro, models, free_running=True), found):
        for name in two:
            if name == "text":
                assert one[name].tolist() == two[name].tolist()
            else:
                np.testing.assert_allclose(one[name], two[name], rtol=1e-3)


def test_what_is_known_to_the_last_token_is_not_generated(micro, models, found, monkeypatch):
    """Told that every answer is known, no model is asked to speak, and the texts are the true answers."""
    monkeypatch.setattr(MODULE, "_speaker", lambda *args: None)
    forced = [{**one, "first hits": np.ones(micro.num_questions)} for one in found]
    monkeypatch.setattr(MODULE, "_forced_measures", lambda asked: forced)
    for one in measure(micro, models, free_running=True):
        assert one["text"].tolist() == micro.answers
        assert (one["free reciprocal rank"] == 1).all()


def test_texts_are_compared_by_recall():
    found = text_measures(
        ["The State of Ohio", "", "12-03-1999."], ["The State of Texas.", "8.", "12-03-1999."]
    )
    assert found["recall"].tolist() == [0.75, 0.0, 1.0]
    assert found["exact"].tolist() == [0.0, 0.0, 1.0]
    assert found["empty"].tolist() == [0.0, 1.0, 0.0]
