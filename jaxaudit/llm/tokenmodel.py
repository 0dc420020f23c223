"""Decoders as the losses on tokens see them: logits only where answers are, base parameters shared or trained.

All predicted tokens of an example are those from column ``prompt_length`` on: in the layout of `tokenize` these are the
answer and the padding after it, so the head is never applied to the question.
"""

from functools import lru_cache

from jaxtyping import Array, Float

from jaxaudit.checks import check_integer
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.llm.decoder import Adapted, Decoder, Output
from jaxaudit.train import Params
from jaxaudit.unlearn.preference import Masks, TokenModel, Tokens
from jaxaudit.unlearn.preference.model import alternatives, pick_log_probs, truth


@lru_cache(
    maxsize=64
)  # the same functions for the same model, so that programs built on them are compiled once
def token_model(
    model: Decoder, prompt_length: int = 1, features_layer: int | None = None, packed: int | None = None
) -> TokenModel:
    """A decoder for losses on tokens; parameters are the decoder's, or `Adapted`.

    Parameters
    ----------
    model
        From `decoder`.
    prompt_length
        First column that is predicted, at least 1; `TokenizedRecords.prompt_length`. 1 predicts everything, as a
        divergence over questions needs.
    features_layer
        The layer, from 0, whose output is ``features_fn``; ``None``: there is none.
    packed
        Real tokens of the fullest batch at most, see `jaxaudit.llm.packed_size`: padding is then not computed. Not with
        features. ``None``: everything is.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import jax
    >>> from jaxaudit.llm.decoder import decoder
    >>> from jaxaudit.llm.spec import DecoderSpec
    >>> small = decoder(DecoderSpec(10, width=8, num_heads=2, hidden=12))
    >>> tokens = Tokens(jnp.array([[1, 2, 3, 4]]), jnp.array([[0.0, 0.0, 1.0, 1.0]]), jnp.ones((1, 4)))
    >>> examples = Examples(tokens, jnp.zeros(1, int), jnp.ones(1))
    >>> params = jax.eval_shape(small.init_fn, jax.random.key(0))  # shapes only
    >>> jax.eval_shape(token_model(small, prompt_length=2).log_probs_fn, params, examples).shape
    (1, 2)
    """
    check_integer("prompt_length", prompt_length, low=1)
    if features_layer is not None:
        check_integer("features_layer", features_layer, low=0, high=model.spec.num_layers - 1)
        if packed is not None:
            raise InputError(f"packed must be None for a model with features, got {packed}")

    def output(params: Params, tokens: Tokens, keep_features: bool = False) -> Output:
        _check_columns(tokens, prompt_length)
        first = prompt_length - 1
        return model.forward(params, tokens, first=first, keep_features=keep_features, packed=packed)

    def logits_of(params: Params, examples: Examples) -> Float[Array, "examples tokens vocabulary"]:
        return output(params, truth(examples)).logits[:, :-1]

    def log_probs_of(params: Params, examples: Examples) -> Float[Array, "examples tokens"]:
        return pick_log_probs(logits_of(params, examples), truth(examples).ids[:, prompt_length:])

    def masks_of(examples: Examples) -> Masks:
        tokens = truth(examples)
        return Masks(tokens.answer[:, prompt_length:], tokens.real[:, prompt_length:])

    def features_of(params: Params, examples: Examples) -> Float[Array, "examples tokens width"]:
        features = output(params, truth(examples), keep_features=True).features
        assert features is not None
        return features[features_layer][:, prompt_length:]

    features = None if features_layer is None else features_of
    return TokenModel(log_probs_of, masks_of, logits_of, alternatives, features)


def lora_model(
    model: Decoder,
    base: Params,
    prompt_length: int = 1,
    features_layer: int | None = None,
    packed: int | None = None,
) -> TokenModel:
    """An adapted decoder whose parameters are the adapters; the base is a constant that all runs share.

    Every call makes new functions, which are compiled again. So build it once per audit; or inside of a loop, from a
    base that is one of the loop's arguments and thus no constant of the program.

    Parameters
    ----------
    model
        From ``decoder(spec, lora)``.
    base
        Parameters that stay as they are.
    prompt_length, features_layer, packed
        As for `token_model`.

    Raises
    ------
    InputError
        If the decoder has no adapters, or an argument is out of range.
    """
    if model.lora is None:
        raise InputError("model must be a decoder with a lora spec, got None")
    whole = token_model(model, prompt_length, features_layer, packed)

    def on_adapters(function):  # type: ignore[no-untyped-def]
        return lambda adapters, examples: function(Adapted(base, adapters), examples)

    assert whole.logits_fn is not None
    return whole._replace(
        log_probs_fn=on_adapters(whole.log_probs_fn),
        logits_fn=on_adapters(whole.logits_fn),
        features_fn=None if whole.features_fn is None else on_adapters(whole.features_fn),
    )


def _check_columns(tokens: Tokens, prompt_length: int) -> None:
    if tokens.ids.shape[1] <= prompt_length:
        raise InputError(
            f"prompt_length must be below the number of columns = {tokens.ids.shape[1]}, got {prompt_length}"
        )
