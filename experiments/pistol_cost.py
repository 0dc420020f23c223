"""What a PISTOL script would do, and what it would cost on this machine."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pistol_data import KNOWN, DataName

from jaxaudit.data.pistol import PistolData
from jaxaudit.study import LanguageModel, StudySpec
from jaxaudit.study.cost import cost_line, duration

if TYPE_CHECKING:
    from pistol import EdgesOf


def estimate(
    spec: StudySpec,
    data: Mapping[DataName, tuple[PistolData, LanguageModel, int]],
    needs: "Sequence[EdgesOf]",
) -> str:
    """Models by kind and data set, and seconds; what is in the store already is not subtracted.

    Parameters
    ----------
    spec
        Settings of the studies.
    data
        By name: contents, model (for the small decoder without parameters), number of edges on which rates are chosen.
    needs
        Edges of all scripts.
    """
    lines, total = [], 0.0
    for name, (contents, model, num_tuned) in data.items():
        edges = len({edge for need in needs if need.data == name for edge in need.edges})
        line, seconds = cost_line(spec, contents, model, edges, 0 if name in KNOWN else num_tuned)
        total += seconds
        lines.append(f"{name}: {line}")
    return "\n".join([*lines, f"together about {duration(total)} on this machine; a killed run goes on"])
