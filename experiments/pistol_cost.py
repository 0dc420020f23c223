"""What a PISTOL script would do, and what it would cost on this machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pistol_data import KNOWN, DataName, tuning_edges

from jaxaudit.data.pistol import PistolData
from jaxaudit.llm import PRESETS
from jaxaudit.runs import measured_matmul_peak
from jaxaudit.study import StudySpec

if TYPE_CHECKING:
    from pistol import EdgesOf, Options

_SHARE_OF_PEAK = 0.3
"""Of this machine's speed at a matrix product that training reaches."""
_TOKENS, _VOCABULARY = 77, 420
"""Per question, and of the built-in tokenizer, roughly."""
_GRADIENTS_PER_UPDATE = 4.0
"""Cost of unlearning per example of the forget set, in gradients of fine-tuning; mean over methods, small batches."""
_PRETRAINING_QUESTIONS = 10 * 600
_RANKS, _ANSWERS = 1 / 3, 1.0
"""Cost of measuring one question, in gradients: of the true answer's ranks, and of a generated answer."""


def estimate(
    spec: StudySpec, options: "Options", data: Mapping[DataName, PistolData], needs: "Sequence[EdgesOf]"
) -> str:
    """Models by kind and data set, and seconds; what is in the store already is not subtracted."""
    per_gradient = 6 * PRESETS[options.size](_VOCABULARY).num_params * _TOKENS
    lines, total = [], 0.0
    for name, contents in data.items():
        edges = len({edge for need in needs if need.data == name for edge in need.edges})
        tuned = 0 if name in KNOWN else len(tuning_edges(name, contents))
        trained = len(spec.seeds) * (1 + edges) + bool(tuned)
        tried = len(spec.methods) * tuned * len(spec.rates)
        unlearned = len(spec.methods) * edges * len(spec.seeds)
        measured = _RANKS * tried + (_RANKS + _ANSWERS) * (1 + trained + unlearned)
        updates = spec.epochs * (len(contents.records) / len(contents.edges))
        gradients = (
            _PRETRAINING_QUESTIONS
            + trained * spec.fine_tuning.epochs * len(contents.records)
            + (tried + unlearned) * updates * _GRADIENTS_PER_UPDATE
            + measured * len(contents.records)
        )
        seconds = gradients * per_gradient / (_SHARE_OF_PEAK * measured_matmul_peak())
        total += seconds
        lines.append(
            f"{name}: {trained} models fine-tuned or retrained, {unlearned} unlearned, {tried} more to choose rates, "
            f"about {_time(seconds)}"
        )
    return "\n".join([*lines, f"together about {_time(total)} on this machine; a killed run goes on"])


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
