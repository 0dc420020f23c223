"""A language model small enough to be written out by loops, and questions with true and alternative answers."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.data import Examples
from jaxaudit.unlearn import Batch, Trained
from jaxaudit.unlearn.preference import Questions, Tokens, causal_model

VOCABULARY, FEATURES, LENGTH = 7, 3, 6


def features_fn(params, tokens):
    """Mean of the embeddings so far: position t has seen tokens 0 to t."""
    embedded = params["embedding"][tokens.ids]
    return jnp.cumsum(embedded, axis=1) / jnp.arange(1, tokens.ids.shape[1] + 1)[:, None]


def logits_fn(params, tokens):
    return features_fn(params, tokens) @ params["head"]


MODEL = causal_model(logits_fn, features_fn)


def make_params(seed):
    rng = np.random.default_rng(seed)
    shapes = {"embedding": (VOCABULARY, FEATURES), "head": (FEATURES, VOCABULARY)}
    return {name: jnp.asarray(rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}


def make_tokens(seed, num_examples, length=LENGTH):
    """Answers of 1 to 3 tokens after questions of 2, padded with token 0 on the right."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, num_examples)[:, None]
    places = np.arange(length)
    real = (places < 2 + lengths).astype(np.float32)
    answer = real * (places >= 2)
    ids = rng.integers(1, VOCABULARY, (num_examples, length)) * real.astype(int)
    return Tokens(jnp.asarray(ids), jnp.asarray(answer), jnp.asarray(real))


def make_examples(seed, num_examples, num_padding=0):
    x = Questions(make_tokens(seed, num_examples), make_tokens(seed + 100, num_examples, LENGTH - 1))
    weights = (jnp.arange(num_examples) < num_examples - num_padding).astype(jnp.float32)
    return Examples(x, jnp.zeros(num_examples, jnp.int32), weights)


BATCH = Batch(retain=make_examples(1, 8), forget=make_examples(2, 8, num_padding=1))
TRAINED = Trained(make_params(3), make_params(4))
NOW = make_params(5)


def positions(tokens):
    """Every predicted token of every example: row, place of the token, whether answer, whether real."""
    for row in range(len(tokens.ids)):
        for place in range(1, tokens.ids.shape[1]):
            yield row, place, bool(tokens.answer[row, place]), bool(tokens.real[row, place])


def distribution(params, tokens, row, place):
    """Log-probabilities of the token at a place, in float64."""
    embedding, head = (np.asarray(params[name], float) for name in ("embedding", "head"))
    logits = embedding[np.asarray(tokens.ids[row, :place])].mean(axis=0) @ head
    return logits - np.log(np.exp(logits).sum())


def features(params, tokens, row, place):
    return np.asarray(params["embedding"], float)[np.asarray(tokens.ids[row, : place + 1])].mean(axis=0)


def answer_log_probs(params, tokens):
    """List of log-probabilities of the answer's tokens, per example."""
    lists = [[] for _ in tokens.ids]
    for row, place, answer, _ in positions(tokens):
        if answer:
            lists[row].append(distribution(params, tokens, row, place)[int(tokens.ids[row, place])])
    return lists


def counted(examples):
    return [row for row, weight in enumerate(examples.weights) if weight > 0]


def loss_of(method):
    """What the method minimises at the parameters ``NOW``, its context being that of the start."""
    state = method.init(jax.random.key(2), TRAINED)._replace(params=NOW)
    update = jax.jit(lambda state, batch: method.update(jax.random.key(3), state, batch)[1]["loss"])
    return float(update(state, BATCH)), state


def jitted(method):
    return method._replace(update=jax.jit(method.update))
