"""Unlearning by losses on tokens, for language models and for classifiers.

The methods take a `TokenModel`, so they do not depend on an architecture; see `jaxaudit.unlearn.preference.methods`.
"""

from jaxaudit.unlearn.preference.engine import Reference
from jaxaudit.unlearn.preference.methods import dpo, idk, kl, npo, rmu, simnpo
from jaxaudit.unlearn.preference.model import (
    Masks,
    Questions,
    Scores,
    TokenModel,
    Tokens,
    causal_model,
    classifier_model,
)
from jaxaudit.unlearn.preference.presets import PRESETS, PistolPreset, pistol_methods
from jaxaudit.unlearn.preference.terms import Average, Mask, answer_loss

__all__ = [
    "PRESETS",
    "Average",
    "Mask",
    "Masks",
    "PistolPreset",
    "Questions",
    "Reference",
    "Scores",
    "TokenModel",
    "Tokens",
    "answer_loss",
    "causal_model",
    "classifier_model",
    "dpo",
    "idk",
    "kl",
    "npo",
    "pistol_methods",
    "rmu",
    "simnpo",
]
