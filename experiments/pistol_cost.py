"""What a PISTOL script would do, and what it would cost on this machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pistol_data import DataName

from jaxaudit.data.pistol import PistolData
from jaxaudit.study import (
    LanguageModel,
    StudySpec,
    cost_line,
    duration,
)

if TYPE_CHECKING:
    from pistol import EdgesOf


class Facts(NamedTuple):
    """What the cost of a data set depends on."""

    spec: StudySpec
    data: PistolData
    model: LanguageModel
    """For a small decoder without parameters: its pretraining is counted, too."""
    num_tuned: int
    """Edges on which rates are chosen; 0: the rates are those of another data set."""


def estimate(facts: Mapping[DataName, Facts], needs: "Sequence[EdgesOf]") -> str:
    """Models by kind and data set, and seconds; what is in the store already is not subtracted.

    Parameters
    ----------
    facts
        By name of the data set.
    needs
        Edges of all scripts.
    """
    lines, total = [], 0.0
    for name, (spec, data, model, num_tuned) in facts.items():
        edges = len({edge for need in needs if need.data == name for edge in need.edges})
        line, seconds = cost_line(spec, data, model, edges, num_tuned)
        total += seconds
        lines.append(f"{name}: {line}")
    return "\n".join([*lines, f"together about {duration(total)} on this machine; a killed run goes on"])
