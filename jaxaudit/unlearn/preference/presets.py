"""The unlearning methods of PISTOL (Qiu et al., 2025), as its paper describes them and as its code has them.

The two differ, and which one made the published tables cannot be told. Neither has a term for what the other leaves
out, so a preset is a choice among the methods of this package and of their settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import optax
from jaxtyping import Array

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data import Examples
from jaxaudit.train import LossFn, num_batches
from jaxaudit.unlearn.ascent import gradient_ascent
from jaxaudit.unlearn.base import Unlearner
from jaxaudit.unlearn.gradient_difference import gradient_difference
from jaxaudit.unlearn.preference.engine import Reference, check_positive
from jaxaudit.unlearn.preference.methods import dpo, idk, kl, npo
from jaxaudit.unlearn.preference.model import TokenModel
from jaxaudit.unlearn.preference.terms import Average, Mask, new_answer_loss

PresetName = Literal["pistol_paper", "pistol_code"]
FrozenLogitsFn = Callable[[Reference, Examples], Array]
"""From ``fine-tuned`` or ``base``, and examples, to the logits of that model."""


@dataclass(frozen=True)
class PistolPreset:
    """One reading of PISTOL."""

    average: Average
    """Of negative log-likelihoods and divergences."""
    kl_reference: Reference
    kl_mask: Mask
    preference: Literal["idk", "dpo"]
    """What is called DPO."""
    has_npo: bool
    warmup_epochs: float
    """The rate rises from 0 along a line for so many epochs,"""
    warmup_share: float
    """or for this share of all updates, if that is longer."""
    decay: bool
    """Whether the rate then falls along a line to 0 rather than staying."""
    weight_decay: float
    clip_norm: float | None


SCORE_REFERENCES: Mapping[str, Reference] = MappingProxyType({"dpo": "base", "npo": "fine-tuned"})
"""The methods that compare log-probabilities of whole answers with a reference's, and with which."""
PRESETS: Mapping[PresetName, PistolPreset] = MappingProxyType(
    {
        "pistol_paper": PistolPreset(
            average="example",
            kl_reference="fine-tuned",
            kl_mask="real",
            preference="idk",
            has_npo=True,
            warmup_epochs=1.0,
            warmup_share=0.0,
            decay=False,
            weight_decay=0.0,
            clip_norm=None,
        ),
        "pistol_code": PistolPreset(
            average="token",
            kl_reference="base",
            kl_mask="all",
            preference="dpo",
            has_npo=False,
            warmup_epochs=0.0,
            warmup_share=0.1,
            decay=True,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
    }
)
"""``pistol_paper``: means over examples, equations 3 to 6, and NPO (beta 0.1, fine-tuned reference, no retain term, as
its own authors have it: the paper gives no formula). Warm-up in the first epoch; the paper names no decay.
``pistol_code``: means over tokens, the base model as reference, divergence over padding too, DPO proper without a
retain term, no NPO; warm-up over a tenth of the updates, a line to 0, weight decay 0.01, gradient norm at most 1."""


def pistol_methods(
    model: TokenModel,
    preset: PresetName,
    *,
    num_forget: int,
    learning_rate: float = 1e-5,
    epochs: int = 20,
    batch_size: int = 4,
    kl_model: TokenModel | None = None,
    frozen_logits_fn: FrozenLogitsFn | None = None,
) -> dict[str, Unlearner]:
    """All methods of a preset, by name: AdamW for some epochs over the forget set.

    Every forget example is paired with one retain example. The authors draw these at random; here they follow the
    fixed order, unless the caller sets ``sampling="random"``.

    Parameters
    ----------
    model
        With ``logits_fn`` and ``alternatives_fn``.
    preset
        ``pistol_paper`` or ``pistol_code``.
    num_forget
        Examples that each run forgets, padding included.
    learning_rate
        Largest rate. The paper tunes it per method and model, between 1e-6 and 5e-5.
    epochs, batch_size
        The paper's 20 and 4.
    kl_model
        Of the same parameters, for the divergence, where ``model`` predicts answers only; ``None``: ``model``.
    frozen_logits_fn
        Logits of what the methods compare with, where that is no parameter of ``model``, for instance because adapters
        are trained on a base that is no part of the state; dpo and npo then read `Questions.reference`. ``None``: the
        parameters from which unlearning, or training, starts.

    Raises
    ------
    InputError
        If an argument is out of range.

    References
    ----------
    Qiu et al. (2025), How Data Inter-connectivity Shapes LLMs Unlearning, Appendix F.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params, lambda examples: examples)
    >>> methods = pistol_methods(model, "pistol_code", num_forget=20)
    >>> list(methods), methods["kl"].num_updates
    (['gradient_ascent', 'gradient_difference', 'kl', 'dpo'], 100)
    """
    check_choice("preset", preset, get_args(PresetName))
    chosen = PRESETS[preset]
    check_integer("num_forget", num_forget, low=1)
    check_integer("batch_size", batch_size, low=1)
    num_updates = check_integer("epochs", epochs, low=0) * num_batches(num_forget, batch_size)
    optimizer = pistol_optimizer(
        chosen, learning_rate=learning_rate, num_updates=num_updates, epochs=max(epochs, 1)
    )
    steps: dict[str, Any] = {"optimizer": optimizer, "num_updates": num_updates, "batch_size": batch_size}
    loss = new_answer_loss(model, chosen.average)
    averaged = {"average": chosen.average, **steps}
    known = frozen_logits_fn is not None
    scored = {name: "given" if known else reference for name, reference in SCORE_REFERENCES.items()}
    compared: dict[str, Any] = {"reference": chosen.kl_reference}
    if frozen_logits_fn is not None:
        compared = {"reference": "given", "reference_fn": partial(frozen_logits_fn, chosen.kl_reference)}
    methods = {
        "gradient_ascent": gradient_ascent(loss, **steps),
        # -L(forget) + L(retain): twice the mean of the two.
        "gradient_difference": gradient_difference(_doubled(loss), retain_weight=0.5, **steps),
        "kl": kl(model, mask=chosen.kl_mask, retain_model=kl_model, **compared, **averaged),
    }
    if chosen.preference == "idk":
        methods["idk"] = idk(model, **averaged)
    else:
        methods["dpo"] = dpo(model, reference=scored["dpo"], beta=0.1, scale=1.0, **averaged)
    if chosen.has_npo:
        methods["npo"] = npo(model, reference=scored["npo"], beta=0.1, **averaged)
    return methods


def pistol_optimizer(
    preset: PistolPreset, *, learning_rate: float, num_updates: int, epochs: int
) -> optax.GradientTransformation:
    """AdamW with warm-up; the first update has rate 0, as in the authors' code.

    Parameters
    ----------
    preset
        Warm-up, decay of the rate and of the weights, limit on the gradient's norm.
    learning_rate
        Largest rate, positive.
    num_updates, epochs
        Of the whole unlearning.

    Raises
    ------
    InputError
        If the rate is not positive, or a count is below its limit.
    """
    peak = check_positive("learning_rate", learning_rate)
    check_integer("num_updates", num_updates, low=0)
    share = max(preset.warmup_epochs / check_integer("epochs", epochs, low=1), preset.warmup_share)
    warmup = round(min(share, 1.0) * num_updates)
    after = (
        optax.linear_schedule(peak, 0.0, max(num_updates - warmup, 1))
        if preset.decay
        else optax.constant_schedule(peak)
    )
    rate = optax.join_schedules([optax.linear_schedule(0.0, peak, max(warmup, 1)), after], [warmup])
    adamw = optax.adamw(rate, weight_decay=preset.weight_decay)
    if preset.clip_norm is None:
        return adamw
    return optax.chain(optax.clip_by_global_norm(preset.clip_norm), adamw)


def _doubled(loss_fn: LossFn) -> LossFn:
    return lambda params, examples: 2.0 * loss_fn(params, examples)
