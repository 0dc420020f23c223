"""Unlearning by losses on tokens: kl, idk, dpo, npo, simnpo and rmu, each under a name of its own.

All take gradient steps on a forget term plus ``retain_weight`` times a retain term. Ascent and gradient difference are
`jaxaudit.unlearn.gradient_ascent` and `jaxaudit.unlearn.gradient_difference` on the loss `answer_loss`. None has a
guarantee. Shared arguments:

* ``model``: a `TokenModel`. Losses that say so need its ``logits_fn``, ``alternatives_fn`` or ``features_fn``.
* ``optimizer``: any optax optimiser that holds no random key.
* ``num_updates``, ``batch_size``: updates, and examples of each kind in each.
* ``micro_batches``: pieces in which a batch is worked off to save memory; they do not change the result, since every
  piece is divided by the weight of the whole batch.
* ``average``: of negative log-likelihoods and divergences: over all ``token``s of the batch (default), or over every
  ``example``'s own mean. Sums of log-probabilities (dpo, npo) are averaged over examples in any case.
* ``reference``: ``fine-tuned``, the model before unlearning, or ``base``, where training started. It does not move, so
  what it makes of an answer can be computed once: ``given`` takes it from `Questions.reference`.

Bad arguments raise `InputError`.
"""

from collections.abc import Callable

import optax
from jaxtyping import Array

from jaxaudit.checks import check_choice, check_integer, check_real
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.unlearn.base import Unlearner
from jaxaudit.unlearn.preference import terms
from jaxaudit.unlearn.preference.engine import (
    Objective,
    Reference,
    Steps,
    check_positive,
    objective_unlearner,
)
from jaxaudit.unlearn.preference.model import TokenModel
from jaxaudit.unlearn.preference.terms import Average, Mask

_AVERAGES = ("token", "example")
_MASKS = ("answer", "real", "all")


def kl(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int = 4,
    micro_batches: int = 1,
    retain_weight: float = 1.0,
    reference: Reference = "fine-tuned",
    mask: Mask = "real",
    average: Average = "token",
    retain_model: TokenModel | None = None,
    reference_fn: Callable[[Examples], Array] | None = None,
) -> Unlearner:
    """Climb the forget loss, but predict the retain tokens as the reference does.

        minimise  -L(forget) + retain_weight * mean over retain positions of KL(reference || current)

    L is `answer_loss`. Equation 5 of Qiu et al., who call it UKL; from Maini et al. Their text takes the fine-tuned
    model as reference, their code the base model, which pulls retained answers back to what was never learned; and
    their code averages over padding too (``mask="all"``), so that the weight depends on the length of the padding.
    Equation 5 divides by the length |x| with the first token, which nothing predicts; here it is left out.

    Parameters
    ----------
    model
        With ``logits_fn``, unless there is a ``retain_model``.
    optimizer, num_updates, batch_size, micro_batches, average, reference
        See `jaxaudit.unlearn.preference.methods`.
    retain_weight
        Of the divergence; not negative. With 0 it is gradient ascent.
    mask
        Positions of the divergence: ``answer``, ``real`` (question and answer) or ``all`` (padding too).
    retain_model
        Of the same parameters, for the divergence: one that predicts questions, too, where ``model`` predicts answers
        only. ``None``: ``model``.
    reference_fn
        Logits of the reference as a function of the examples, for ``reference="given"``. A distribution over the
        vocabulary at every position is too much to keep, and a retained question is read about once, so they are not
        computed beforehand.

    References
    ----------
    Maini et al. (2024), TOFU: A Task of Fictitious Unlearning for LLMs.
    Qiu et al. (2025), How Data Inter-connectivity Shapes LLMs Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params)
    >>> method = kl(model, optimizer=optax.sgd(0.1), num_updates=5)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 2.33)
    """
    _check_names(average, mask)
    if (reference == "given") != (reference_fn is not None):
        raise InputError(
            f"reference must be 'given' if and only if there is a reference_fn, got {reference!r}"
        )
    retain = terms.divergence(retain_model or model, mask, average, reference_fn)
    objective = Objective(terms.likelihood(model, average, sign=-1.0), retain, retain_weight)
    return objective_unlearner(
        objective, Steps(optimizer, num_updates, batch_size, micro_batches), reference=reference
    )


def idk(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int = 4,
    micro_batches: int = 1,
    retain_weight: float = 1.0,
    average: Average = "token",
) -> Unlearner:
    """Learn other answers, such as "I don't know", to the forget questions.

        minimise  L(forget questions with alternative answers) + retain_weight * L(retain)

    L is `answer_loss`. Equation 6 of Qiu et al., who call it DPO although it has neither reference nor preference; the
    "idk" loss of Maini et al., who pool the tokens of both parts into one mean.

    Parameters
    ----------
    model
        With ``alternatives_fn``.
    optimizer, num_updates, batch_size, micro_batches, average
        See `jaxaudit.unlearn.preference.methods`.
    retain_weight
        Of the retain loss; not negative.

    References
    ----------
    Maini et al. (2024), TOFU: A Task of Fictitious Unlearning for LLMs.
    Qiu et al. (2025), How Data Inter-connectivity Shapes LLMs Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params, lambda examples: examples)
    >>> method = idk(model, optimizer=optax.sgd(0.1), num_updates=5)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 2.0)
    """
    _check_names(average)
    objective = Objective(
        terms.likelihood(model, average, alternative=True), terms.likelihood(model, average), retain_weight
    )
    return objective_unlearner(objective, Steps(optimizer, num_updates, batch_size, micro_batches))


def dpo(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int = 4,
    micro_batches: int = 1,
    retain_weight: float = 0.0,
    beta: float = 0.1,
    scale: float = 1.0,
    reference: Reference = "fine-tuned",
    average: Average = "token",
) -> Unlearner:
    """Prefer the alternative answers to the true ones, relative to a reference model.

        minimise  mean of -scale log sigmoid(beta [(s - s_ref)(alternative) - (s - s_ref)(truth)])
                  + retain_weight * L(retain)

    s is the sum of log-probabilities of an answer's tokens; the forget term starts at ``scale * ln 2``. L is
    `answer_loss`. The authors' code of Qiu et al. has beta 0.1, scale 1, no retain term and the base model as
    reference; Zhang et al. and later code take scale ``2 / beta``, comparable with `npo`.

    Parameters
    ----------
    model
        With ``alternatives_fn``.
    optimizer, num_updates, batch_size, micro_batches, average, reference
        See `jaxaudit.unlearn.preference.methods`.
    retain_weight
        Of the retain loss; not negative.
    beta
        Inverse temperature, positive.
    scale
        Factor of the forget term, positive.

    References
    ----------
    Rafailov et al. (2023), Direct Preference Optimization: Your Language Model is Secretly a Reward Model.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params, lambda examples: examples)
    >>> method = dpo(model, optimizer=optax.sgd(0.1), num_updates=5)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 2.67)
    """
    _check_names(average)
    objective = Objective(
        terms.preference(model, check_positive("beta", beta), check_positive("scale", scale)),
        terms.likelihood(model, average),
        retain_weight,
    )
    return objective_unlearner(
        objective, Steps(optimizer, num_updates, batch_size, micro_batches), reference=reference
    )


def npo(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int = 4,
    micro_batches: int = 1,
    retain_weight: float = 0.0,
    beta: float = 0.1,
    reference: Reference = "fine-tuned",
    average: Average = "token",
) -> Unlearner:
    """Disprefer the true answers, relative to a reference model: ascent that slows down as it succeeds.

        minimise  mean of -(2 / beta) log sigmoid(-beta (s - s_ref)) + retain_weight * L(retain)

    s is the sum of log-probabilities of an answer's tokens; the forget term starts at ``(2 / beta) ln 2``. Compared
    with ascent on s, every example has the weight ``2 p^beta / (p^beta + p_ref^beta)``, 1 at the start; beta -> 0 is
    ascent. L is `answer_loss`.

    Parameters
    ----------
    model
        Its log-probabilities and masks.
    optimizer, num_updates, batch_size, micro_batches, average, reference
        See `jaxaudit.unlearn.preference.methods`.
    retain_weight
        Of the retain loss; not negative. 0 (default) is NPO proper, 1 what its authors call NPO with gradient descent
        on the retain set.
    beta
        Inverse temperature, positive.

    References
    ----------
    Zhang, Lin, Bai and Mei (2024), Negative Preference Optimization: From Catastrophic Collapse to Effective
    Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params)
    >>> method = npo(model, optimizer=optax.sgd(0.1), num_updates=5, retain_weight=1.0)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 2.33)
    """
    _check_names(average)
    objective = Objective(
        terms.negative_preference(model, check_positive("beta", beta)),
        terms.likelihood(model, average),
        retain_weight,
    )
    return objective_unlearner(
        objective, Steps(optimizer, num_updates, batch_size, micro_batches), reference=reference
    )


def simnpo(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    batch_size: int = 4,
    micro_batches: int = 1,
    retain_weight: float = 0.0,
    beta: float = 4.5,
    margin: float = 0.0,
    average: Average = "token",
) -> Unlearner:
    """Negative preference without a reference model: every answer counts by its mean log-probability.

        minimise  mean of -(2 / beta) log sigmoid(-beta s / n - margin) + retain_weight * L(retain)

    s is the sum of log-probabilities of an answer's n tokens, ``margin`` the authors' gamma. L is `answer_loss`.

    Parameters
    ----------
    model
        Its log-probabilities and masks.
    optimizer, num_updates, batch_size, micro_batches, average
        See `jaxaudit.unlearn.preference.methods`.
    retain_weight
        Of the retain loss; not negative.
    beta
        Inverse temperature, positive.
    margin
        Any finite number; a larger one forgets further.

    References
    ----------
    Fan et al. (2024), Simplicity Prevails: Rethinking Negative Preference Optimization for LLM Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params)
    >>> method = simnpo(model, optimizer=optax.sgd(0.1), num_updates=5)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 1.0)
    """
    _check_names(average)
    objective = Objective(
        terms.simple_negative_preference(model, check_positive("beta", beta), check_real("margin", margin)),
        terms.likelihood(model, average),
        retain_weight,
    )
    return objective_unlearner(objective, Steps(optimizer, num_updates, batch_size, micro_batches))


def rmu(
    model: TokenModel,
    *,
    optimizer: optax.GradientTransformation,
    num_updates: int,
    num_features: int,
    steering: float,
    retain_weight: float,
    batch_size: int = 4,
    micro_batches: int = 1,
    mask: Mask = "real",
    average: Average = "token",
) -> Unlearner:
    """Representation misdirection: steer the features of forget tokens to a random point, keep those of retain tokens.

        minimise  mean of |h - c u|^2 on forget + retain_weight * mean of |h - h_before|^2 on retain

    h are the features of ``features_fn`` at one position, u is a unit vector drawn once per run from the noise key,
    with entries uniform on [0, 1) before scaling. Li et al. take c = 6.5 and retain_weight 1200 for layer 7 of
    Zephyr-7B, average over the features where this is a sum, and move three layers only: give an optimiser that
    freezes the rest, for instance by ``optax.masked``.

    Parameters
    ----------
    model
        With ``features_fn``.
    optimizer, num_updates, batch_size, micro_batches, average
        See `jaxaudit.unlearn.preference.methods`.
    num_features
        Length of the last axis of the features.
    steering
        c, positive; in units of the features' norm.
    retain_weight
        The authors' alpha; not negative.
    mask
        Positions that count: ``answer``, ``real`` or ``all``.

    References
    ----------
    Li et al. (2024), The WMDP Benchmark: Measuring and Reducing Malicious Use With Unlearning.

    Examples
    --------
    >>> from jaxaudit.unlearn.preference.model import classifier_model
    >>> model = classifier_model(lambda params, x: x @ params)
    >>> model = model._replace(features_fn=lambda params, examples: (examples.x @ params)[:, None])
    >>> sizes = {"num_updates": 5, "num_features": 8, "steering": 6.5, "retain_weight": 1200.0}
    >>> method = rmu(model, optimizer=optax.sgd(0.1), **sizes)
    >>> method.batch_size, round(method.gradients_per_example, 2)
    (4, 2.33)
    """
    _check_names(average, mask)
    check_integer("num_features", num_features, low=1)
    objective = Objective(
        terms.misdirection(model, check_positive("steering", steering), mask, average),
        terms.feature_distance(model, mask, average),
        retain_weight,
    )
    return objective_unlearner(
        objective,
        Steps(optimizer, num_updates, batch_size, micro_batches),
        reference="fine-tuned" if retain_weight else None,
        num_features=num_features,
    )


def _check_names(average: str, mask: str = "real") -> None:
    check_choice("average", average, _AVERAGES)
    check_choice("mask", mask, _MASKS)
