"""A few short texts with answers, as token numbers below 11."""

import jax.numpy as jnp
import numpy as np

from jaxaudit.data import Examples
from jaxaudit.unlearn.preference import Questions, Tokens

PROMPT_LENGTH = 4


def toy_tokens(seed, count, answer_length):
    """Rows as `tokenize` lays them out: questions of 2 to 4 tokens, answers of 1 and more."""
    rng = np.random.default_rng(seed)
    shape = (count, PROMPT_LENGTH + answer_length)
    columns = np.arange(shape[1])
    first = rng.integers(0, PROMPT_LENGTH - 1, count)
    last = PROMPT_LENGTH + rng.integers(1, answer_length + 1, count)
    real = (columns >= first[:, None]) & (columns < last[:, None])
    ids = np.where(real, rng.integers(2, 11, shape), 0)
    answer = real & (columns >= PROMPT_LENGTH)
    return Tokens(
        jnp.asarray(ids, jnp.int32), jnp.asarray(answer, jnp.float32), jnp.asarray(real, jnp.float32)
    )


def toy_examples(count=5, seed=0):
    """Examples with alternatives, and their prompt length."""
    truth, other = toy_tokens(seed, count, 4), toy_tokens(seed + 1, count, 3)
    other = Tokens(
        jnp.concatenate([truth.ids[:, :PROMPT_LENGTH], other.ids[:, PROMPT_LENGTH:]], axis=1),
        other.answer,
        jnp.concatenate([truth.real[:, :PROMPT_LENGTH], other.real[:, PROMPT_LENGTH:]], axis=1),
    )
    return Examples(Questions(truth, other), jnp.zeros(count, jnp.int32), jnp.ones(count)), PROMPT_LENGTH
