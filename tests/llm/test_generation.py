import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.llm import (
    Adapted,
    DecoderSpec,
    LoraSpec,
    Prompts,
    decoder,
    generate,
    generate_answers,
    generate_texts,
    generation,
    merge,
    word_tokenizer,
)
from jaxaudit.unlearn.preference import Tokens
from tests.llm.reference import BASE, logits_fn, random_adapters, random_params, small_spec

RNG = np.random.default_rng(3)
LENGTHS = [5, 2, 4, 1]
PROMPTS = [RNG.integers(0, 11, length) for length in LENGTHS]
SPECS = {
    "plain": {},
    "window": {"sliding_window": 3},
    "grouped": {"num_heads": 4, "num_kv_heads": 2, "head_dim": 6, "tied_head": False},
    "gemma": {"norm_offset": True, "scale_embedding": True, "activation": "gelu_tanh", "num_kv_heads": 1},
}


say = jax.jit(generate, static_argnames=("model", "num_tokens", "eos", "observe"))


def logits_themselves(logits, targets):
    return logits


def aims(rows, steps):
    return np.arange(rows * steps).reshape(rows, steps) % 7


def padded(prompts, left=True, content=0):
    width = max(map(len, prompts))
    gaps = [(width - len(prompt), 0) if left else (0, width - len(prompt)) for prompt in prompts]
    ids = np.array([np.pad(prompt, gap, constant_values=content) for prompt, gap in zip(prompts, gaps)])
    real = np.array([np.pad(np.ones(len(prompt)), gap) for prompt, gap in zip(prompts, gaps)])
    return Prompts(jnp.asarray(ids), jnp.asarray(real, jnp.float32))


def uncached(spec, params, prompt, num_tokens, eos):
    """The whole text again for every token, without padding; what stands behind it cannot be seen."""
    text, logits = list(prompt), []
    for _ in range(num_tokens):
        ids = jnp.asarray([np.pad(text, (0, 16 - len(text)))])
        everything = logits_fn(spec)(params, Tokens(ids, jnp.zeros(ids.shape), jnp.ones(ids.shape)))
        logits.append(everything[0, len(text) - 1])
        text.append(int(jnp.argmax(logits[-1])))
        if text[-1] == eos:
            break
    return text[len(prompt) :], np.array(logits)


@pytest.mark.parametrize("name", SPECS)
def test_cached_equals_uncached(name):
    spec = small_spec(**SPECS[name])
    model, params = decoder(spec), random_params(spec)
    said = say(
        model,
        params,
        padded(PROMPTS),
        num_tokens=6,
        eos=None,
        observe=logits_themselves,
        targets=aims(len(PROMPTS), 6),
    )
    for row, prompt in enumerate(PROMPTS):
        text, logits = uncached(spec, params, prompt, 6, None)
        assert said.ids[row].tolist() == text
        np.testing.assert_allclose(said.observed[row], logits, rtol=1e-5, atol=1e-5)
    assert (said.taken == 1).all()


def test_rows_end_where_the_end_token_comes():
    spec = small_spec()
    model, params = decoder(spec), random_params(spec, seed=1)
    free = [uncached(spec, params, prompt, 8, None)[0] for prompt in PROMPTS]
    # A token that some row says early and some row never.
    eos = next(
        token
        for token in range(11)
        if any(token in text[:4] for text in free) and not all(token in text for text in free)
    )
    said = say(model, params, padded(PROMPTS), num_tokens=8, eos=eos)
    for row, prompt in enumerate(PROMPTS):
        text, _ = uncached(spec, params, prompt, 8, eos)
        assert said.taken[row].tolist() == [1.0] * len(text) + [0.0] * (8 - len(text))
        assert said.ids[row].tolist() == text + [eos] * (8 - len(text))


def test_it_stops_when_all_rows_have_ended():
    """Then the logits of later steps are never computed."""
    spec = small_spec()
    model, params = decoder(spec), random_params(spec, seed=1)
    first = uncached(spec, params, PROMPTS[0], 1, None)[0][0]
    said = say(
        model,
        params,
        padded(PROMPTS[:1]),
        num_tokens=5,
        eos=first,
        observe=logits_themselves,
        targets=aims(1, 5),
    )
    assert said.taken.tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]]
    assert (said.observed[0, 1:] == 0).all()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("content", [0, 7])
def test_side_and_content_of_padding_do_not_matter(left, content):
    spec = small_spec(sliding_window=4)
    model, params = decoder(spec), random_params(spec)
    options = {"num_tokens": 5, "eos": None, "observe": logits_themselves, "targets": aims(len(PROMPTS), 5)}
    expected = say(model, params, padded(PROMPTS), **options)
    found = say(model, params, padded(PROMPTS, left, content), **options)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.observed, expected.observed, rtol=1e-6, atol=1e-6)


def test_adapters_speak_as_the_merged_model():
    spec, lora = small_spec(), LoraSpec(rank=2, alpha=4.0)
    base, adapters = random_params(spec), random_adapters(spec, lora)
    said = say(decoder(spec, lora), Adapted(base, adapters), padded(PROMPTS), num_tokens=6, eos=None)
    merged = say(decoder(spec), merge(base, adapters, lora), padded(PROMPTS), num_tokens=6, eos=None)
    plain = say(decoder(spec), base, padded(PROMPTS), num_tokens=6, eos=None)
    np.testing.assert_array_equal(said.ids, merged.ids)
    assert (said.ids != plain.ids).any()


def test_many_models_at_once():
    spec = small_spec()
    model, several = decoder(spec), [random_params(spec, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)

    def speak(params):
        return generate(model, params, padded(PROMPTS), num_tokens=6, eos=4)

    together = jax.jit(jax.vmap(speak))(stacked)
    for run, params in enumerate(several):
        alone = say(model, params, padded(PROMPTS), num_tokens=6, eos=4)
        np.testing.assert_array_equal(together.ids[run], alone.ids)
        np.testing.assert_array_equal(together.taken[run], alone.taken)


def test_batches_are_compiled_once_and_change_nothing():
    spec = small_spec(hidden=21)
    model, params, prompts = decoder(spec), random_params(spec), padded(PROMPTS)
    before = generation._compiled._cache_size()
    said = generate_answers(model, params, prompts, num_tokens=6, eos=4, batch_size=3)
    assert generation._compiled._cache_size() == before + 1
    whole = say(model, params, prompts, num_tokens=6, eos=4)
    np.testing.assert_array_equal(said.ids, whole.ids)
    np.testing.assert_array_equal(said.taken, whole.taken)
    assert said.observed is None


def true_logit(logits, targets):
    return jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]


def test_what_is_kept_of_a_step_is_aimed_at_its_target():
    spec = small_spec()
    model, params, prompts = decoder(spec), random_params(spec), padded(PROMPTS)
    targets = aims(len(PROMPTS), 4)
    found = generate_answers(
        model, params, prompts, num_tokens=4, eos=None, observe=true_logit, targets=targets, batch_size=2
    )
    for row, prompt in enumerate(PROMPTS):
        _, logits = uncached(spec, params, prompt, 4, None)
        expected = logits[np.arange(4), targets[row]]
        np.testing.assert_allclose(found.observed[row], expected, rtol=1e-5, atol=1e-5)


def test_texts():
    tokenizer = word_tokenizer(["abcdefgh"])
    model = decoder(DecoderSpec(tokenizer.vocabulary_size, **BASE))
    params = jax.jit(model.init_fn)(jax.random.key(0))
    prompts = padded([np.array(tokenizer.encode(text)) for text in ("ab", "c")])
    said = generate_answers(model, params, prompts, num_tokens=5, eos=tokenizer.eos)
    texts = generate_texts(model, params, tokenizer, prompts, num_tokens=5)
    expected = [
        "".join(tokenizer.tokens[i] for i, kept in zip(row, taken) if kept and i > 1)
        for row, taken in zip(said.ids, said.taken)
    ]
    assert texts == expected


def test_bad_arguments():
    model, params = decoder(small_spec()), random_params(small_spec())
    with pytest.raises(InputError, match="num_tokens must be an integer of at least 1, got 0"):
        say(model, params, padded(PROMPTS), num_tokens=0, eos=None)
    with pytest.raises(InputError, match="batch_size must be an integer of at least 1, got 0"):
        generate_answers(model, params, padded(PROMPTS), num_tokens=1, eos=None, batch_size=0)
    with pytest.raises(InputError, match="observe and targets must be given together"):
        generate_answers(model, params, padded(PROMPTS), num_tokens=1, eos=None, observe=true_logit)
