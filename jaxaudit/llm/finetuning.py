"""Fine-tuning on answers: AdamW on the mean negative log-likelihood of the answers' tokens, as loops over one run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import jax
import optax
from jaxtyping import Array, Float, Int

from jaxaudit.checks import check_choice, check_integer, check_not_negative, check_positive, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.llm.decoder import Adapted, Decoder
from jaxaudit.llm.tokenmodel import token_model
from jaxaudit.train import (
    Loop,
    LossFn,
    Params,
    TrainingRun,
    TrainingShared,
    TrainState,
    num_batches,
    start_training,
    take_batch,
    training_step,
)
from jaxaudit.unlearn.preference import TokenModel, answer_loss
from jaxaudit.unlearn.preference.model import pick_log_probs, truth
from jaxaudit.unlearn.preference.terms import Context, likelihood, term_mean

Decay = Literal["linear", "cosine", "constant"]


@dataclass(frozen=True)
class AdamWSpec:
    """AdamW: the rate rises from 0 along a line, and then falls to 0 or stays. The optimiser of PISTOL's fine-tuning.

    Parameters
    ----------
    epochs
        Passes over the examples; the order is the same in every pass.
    learning_rate
        Largest rate, positive.
    batch_size
        Examples per update; the last batch of a pass is filled up with weight 0.
    warmup_share
        Share of all updates in which the rate rises, in [0, 1].
    decay
        How it falls to 0 afterwards: ``linear`` or ``cosine``; or ``constant``.
    weight_decay
        Of AdamW, not negative.
    clip_norm
        Largest norm of the gradient of all parameters together; ``None``: no limit.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> spec = AdamWSpec(epochs=2, learning_rate=0.1, batch_size=5, warmup_share=0.5)
    >>> schedule = spec.schedule(spec.num_updates(10))
    >>> [round(float(schedule(step)), 3) for step in range(5)]
    [0.0, 0.05, 0.1, 0.05, 0.0]
    """

    epochs: int
    learning_rate: float
    batch_size: int = 16
    warmup_share: float = 0.1
    decay: Decay = "linear"
    weight_decay: float = 0.0
    clip_norm: float | None = 1.0

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, low=0)
        check_integer("batch_size", self.batch_size, low=1)
        check_positive(learning_rate=self.learning_rate)
        check_not_negative(weight_decay=self.weight_decay)
        if not 0 <= check_real("warmup_share", self.warmup_share) <= 1:
            raise InputError(f"warmup_share must be in [0, 1], got {self.warmup_share}")
        check_choice("decay", self.decay, get_args(Decay))
        if self.clip_norm is not None:
            check_positive(clip_norm=self.clip_norm)

    def num_updates(self, num_examples: int) -> int:
        """Updates in all passes over this many examples."""
        return self.epochs * num_batches(num_examples, self.batch_size)

    def schedule(self, num_updates: int) -> optax.Schedule:
        """Rate by number of the update, in a training of so many."""
        warmup = round(self.warmup_share * num_updates)
        rest = max(num_updates - warmup, 1)
        after = {
            "linear": optax.linear_schedule(self.learning_rate, 0.0, rest),
            "cosine": optax.cosine_decay_schedule(self.learning_rate, rest),
            "constant": optax.constant_schedule(self.learning_rate),
        }[self.decay]
        rise = optax.linear_schedule(0.0, self.learning_rate, max(warmup, 1))
        return optax.join_schedules([rise, after], [warmup])

    def optimizer(self, num_updates: int) -> optax.GradientTransformation:
        """The optax optimiser for a training of so many updates."""
        adamw = optax.adamw(self.schedule(num_updates), weight_decay=self.weight_decay)
        if self.clip_norm is None:
            return adamw
        return optax.chain(optax.clip_by_global_norm(self.clip_norm), adamw)


class LoraShared(NamedTuple):
    """What all trainings of adapters share."""

    pool: Examples
    """All candidate examples."""
    initial_params: Params
    """The adapters that every run starts from."""
    base: Params
    """The decoder's parameters, which stay as they are."""


@lru_cache(maxsize=64)
def fine_tuning_loop(model: TokenModel, spec: AdamWSpec, num_members: int) -> Loop:
    """Fine-tuning as a loop over updates, from `TrainingRun` and `TrainingShared` to a `TrainState`.

    Parameters
    ----------
    model
        From `token_model` (all parameters are trained) or `lora_model` (the adapters are). Without dropout.
    spec
        Epochs, batch size and optimiser.
    num_members
        Examples that each run trains on.
    """
    loss = answer_loss(model)
    return _loop(lambda step, run, shared: loss, spec, num_members, deterministic=True)


@lru_cache(maxsize=64)
def lora_tuning_loop(
    model: Decoder, spec: AdamWSpec, num_members: int, prompt_length: int = 1, packed: int | None = None
) -> Loop:
    """Training of adapters on a base that all runs share, from `TrainingRun` and `LoraShared` to a `TrainState`.

    The base is an argument, not a constant of the program, so it may be large. Dropout, if the spec of the adapters has
    some, is drawn from each run's key.

    Parameters
    ----------
    model
        From ``decoder(spec, lora)``.
    spec
        Epochs, batch size and optimiser.
    num_members
        Examples that each run trains on.
    prompt_length, packed
        As for `token_model`.

    Raises
    ------
    InputError
        If the decoder has no adapters.
    """
    if model.lora is None:
        raise InputError("model must be a decoder with a lora spec, got None")
    dropout = model.lora.dropout > 0
    whole = token_model(model, prompt_length)

    def loss_at(step: Int[Array, ""], run: TrainingRun, shared: LoraShared) -> LossFn:
        key = jax.random.fold_in(run.key, step) if dropout else None

        def log_probs_fn(adapters: Params, examples: Examples) -> Float[Array, "examples tokens"]:
            tokens, params = truth(examples), Adapted(shared.base, adapters)
            output = model.forward(params, tokens, first=prompt_length - 1, dropout_key=key, packed=packed)
            return pick_log_probs(output.logits[:, :-1], tokens.ids[:, prompt_length:])

        # As answer_loss, whose cache must not keep what belongs to one step.
        term = likelihood(whole._replace(log_probs_fn=log_probs_fn), "token")
        return lambda adapters, examples: term_mean(term, adapters, Context(), examples)

    return _loop(loss_at, spec, num_members, deterministic=not dropout)


def _loop(loss_at: Callable[..., LossFn], spec: AdamWSpec, num_members: int, *, deterministic: bool) -> Loop:
    num_updates = spec.num_updates(num_members)
    optimizer = spec.optimizer(num_updates)

    def init(run: TrainingRun, shared: TrainingShared | LoraShared) -> TrainState:
        return start_training(shared.initial_params, optimizer)

    def body(step: Int[Array, ""], state: TrainState, run: TrainingRun, shared: Any) -> TrainState:
        batch = take_batch(shared.pool, run.members, step, spec.batch_size)
        return training_step(loss_at(step, run, shared), optimizer, state, batch)[0]

    return Loop(init, body, num_updates, deterministic=deterministic)
