"""Greedy generation with a cache: fixed shapes, many rows at once, one compilation."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError
from jaxaudit.llm.decoder import Adapted, Cache, Decoder, Network, Output, collections, make_context
from jaxaudit.llm.words import Tokenizer, answer_texts
from jaxaudit.train import Params


class Prompts(NamedTuple):
    """Questions, padded on either side."""

    ids: Int[Any, "examples tokens"]
    real: Float[Any, "examples tokens"]
    """0 at padding."""


class Generation(NamedTuple):
    """What a model said."""

    ids: Int[Array, "examples steps"]
    """One token per step; the end token at steps that were not taken."""
    taken: Float[Array, "examples steps"]
    """1 at every step up to the end token, which is included."""
    observed: Array | None = None
    """What ``observe`` made of every step's logits, (examples, steps, ...); 0 where none was taken by any row."""


Observe = Callable[[Float[Array, "examples vocabulary"], Int[Array, " examples"]], Array]
"""From the logits that a step chose from, and what is aimed at there, to what is kept of them, a row per example."""


class _Progress(NamedTuple):
    step: Int[Array, ""]
    token: Int[Array, " examples"]
    done: Any
    cache: Cache
    said: Generation


def generate(
    model: Decoder,
    params: Params | Adapted,
    prompts: Prompts,
    *,
    num_tokens: int,
    eos: int | None,
    observe: Observe | None = None,
    targets: Int[Any, "examples steps"] | None = None,
) -> Generation:
    """The most likely next token, again and again; of equal logits the first. Pure: jit it, or vmap it over params.

    Parameters
    ----------
    model
        From `decoder`.
    params
        Of the decoder, or `Adapted`.
    prompts
        Each with at least one real token; where padding is and what it holds does not matter.
    num_tokens
        Steps at most, the end token's included.
    eos
        Token that ends an answer; ``None``: all steps are taken.
    observe, targets
        What to keep of every step's logits, such as the rank of the true token, so that the logits of all steps are
        never held together: ``observe(logits, targets[:, step])``. Both or neither.

    Raises
    ------
    InputError
        If ``num_tokens`` is not an integer of at least 1, or only one of ``observe`` and ``targets`` is there.

    Examples
    --------
    >>> from jaxaudit.llm.decoder import decoder
    >>> from jaxaudit.llm.spec import DecoderSpec
    >>> model = decoder(DecoderSpec(10, width=8, num_heads=2, hidden=12))
    >>> params = jax.eval_shape(model.init_fn, jax.random.key(0))  # shapes only
    >>> prompts = Prompts(jnp.array([[1, 2, 3]]), jnp.ones((1, 3)))
    >>> jax.eval_shape(lambda params: generate(model, params, prompts, num_tokens=4, eos=None), params).ids.shape
    (1, 4)
    """
    check_integer("num_tokens", num_tokens, low=1)
    if (observe is None) != (targets is None):
        raise InputError("observe and targets must be given together, got one of them")
    prompts = left_padded(prompts)
    count, length = prompts.ids.shape
    real = jnp.concatenate([prompts.real, jnp.ones((count, num_tokens - 1), prompts.real.dtype)], axis=1)
    network, variables = Network(model.spec, model.lora), collections(params, model.lora)

    def logits_after(
        ids: Int[Array, "examples tokens"], column: Any, cache: Cache
    ) -> tuple[Float[Array, "examples vocabulary"], Cache]:
        context = make_context(model.spec, real, column, ids.shape[1])
        output = cast(Output, network.apply(variables, ids, context, cache, first=ids.shape[1] - 1))
        return output.logits[:, 0], cast(Cache, output.cache)

    def unfinished(progress: _Progress) -> Any:
        return (progress.step < num_tokens) & ~jnp.all(progress.done)

    def advance(progress: _Progress) -> _Progress:
        column = length + progress.step - 1
        logits, cache = logits_after(progress.token[:, None], column, progress.cache)
        return say(progress._replace(cache=cache), logits)

    def say(progress: _Progress, logits: Float[Array, "examples vocabulary"]) -> _Progress:
        after = _say(progress, logits, eos)
        if observe is None or targets is None:
            return after
        return _keep(after, progress.step, observe(logits, targets[:, progress.step]))

    logits, cache = logits_after(prompts.ids, 0, _empty_cache(model, count, real.shape[1]))
    start = _start(count, num_tokens, eos, cache)
    if observe is not None and targets is not None:
        seen = jax.eval_shape(observe, logits, targets[:, 0])
        start = _with_room(start, seen)
    return jax.lax.while_loop(unfinished, advance, say(start, logits)).said


def left_padded(prompts: Prompts) -> Prompts:
    """The same prompts with all padding in front.

    Examples
    --------
    >>> left_padded(Prompts(jnp.array([[7, 8, 0]]), jnp.array([[1.0, 1.0, 0.0]]))).ids.tolist()
    [[0, 7, 8]]
    """
    real = jnp.asarray(prompts.real)
    order = jnp.argsort(real > 0, axis=1, stable=True)
    ids, real = (jnp.take_along_axis(leaf, order, axis=1) for leaf in (jnp.asarray(prompts.ids), real))
    return Prompts(ids, real)


def _empty_cache(model: Decoder, count: int, columns: int) -> Cache:
    spec = model.spec
    shape = (spec.num_layers, count, columns, spec.kv_heads, spec.head_size)
    return Cache(*(jnp.zeros(shape, spec.compute_dtype) for _ in range(2)))


def _start(count: int, num_tokens: int, eos: int | None, cache: Cache) -> _Progress:
    ids = jnp.full((count, num_tokens), 0 if eos is None else eos, jnp.int32)
    said = Generation(ids, jnp.zeros((count, num_tokens)))
    return _Progress(jnp.int32(0), ids[:, 0], jnp.zeros(count, bool), cache, said)


def _say(progress: _Progress, logits: Float[Array, "examples vocabulary"], eos: int | None) -> _Progress:
    """One step: rows that are done keep what they have."""
    step, done, said = progress.step, progress.done, progress.said
    token = jnp.where(done, progress.token, jnp.argmax(logits, axis=-1).astype(jnp.int32))
    ids = said.ids.at[:, step].set(jnp.where(done, said.ids[:, step], token))
    taken = said.taken.at[:, step].set(1.0 - done)
    ended = done if eos is None else done | (token == eos)
    return _Progress(step + 1, token, ended, progress.cache, said._replace(ids=ids, taken=taken))


def _with_room(progress: _Progress, seen: jax.ShapeDtypeStruct) -> _Progress:
    count, steps = progress.said.ids.shape
    room = jnp.zeros((count, steps, *seen.shape[1:]), seen.dtype)
    return progress._replace(said=progress.said._replace(observed=room))


def _keep(progress: _Progress, step: Int[Array, ""], seen: Array) -> _Progress:
    assert progress.said.observed is not None
    observed = progress.said.observed.at[:, step].set(seen)
    return progress._replace(said=progress.said._replace(observed=observed))


_compiled = partial(jax.jit, static_argnames=("model", "num_tokens", "eos", "observe"))(generate)


def generate_answers(
    model: Decoder,
    params: Params | Adapted,
    prompts: Prompts,
    *,
    num_tokens: int,
    eos: int | None,
    observe: Observe | None = None,
    targets: Int[Any, "examples steps"] | None = None,
    batch_size: int = 100,
) -> Generation:
    """`generate` for any number of prompts, ``batch_size`` at a time, compiled once; NumPy arrays.

    Parameters
    ----------
    model, params, prompts, num_tokens, eos, observe, targets
        As for `generate`; the same function ``observe`` is compiled once.
    batch_size
        Rows at a time; the last rows are filled up.
    """
    check_integer("batch_size", batch_size, low=1)
    pieces = [
        _compiled(model, params, rows, num_tokens=num_tokens, eos=eos, observe=observe, targets=aims)
        for rows, aims in _batches((prompts, targets), min(batch_size, len(prompts.ids)))
    ]
    count = len(prompts.ids)
    return jax.tree.map(
        lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *pieces
    )


def _batches(asked: Any, size: int) -> Iterator[Any]:
    count = len(jax.tree.leaves(asked)[0])
    for first in range(0, count, size):
        rows = np.minimum(np.arange(first, first + size), count - 1)
        yield jax.tree.map(lambda leaf, rows=rows: np.asarray(leaf)[rows], asked)


def generate_texts(
    model: Decoder,
    params: Params | Adapted,
    tokenizer: Tokenizer,
    prompts: Prompts,
    *,
    num_tokens: int,
    batch_size: int = 100,
) -> list[str]:
    """Greedy answers as texts, one per prompt.

    Parameters
    ----------
    model, params, prompts, num_tokens, batch_size
        As for `generate_answers`; ``TokenizedRecords.answer_length`` steps are enough for every true answer.
    tokenizer
        Tells the end token, and decodes.
    """
    said = generate_answers(
        model, params, prompts, num_tokens=num_tokens, eos=tokenizer.eos, batch_size=batch_size
    )
    return answer_texts(tokenizer, said.ids, said.taken)
