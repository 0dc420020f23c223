"""The paper's values, as printed."""

import json
from typing import Literal, NamedTuple

from cifar100_presets import HERE, PAPER


class Look(NamedTuple):
    """A cell of Tables 3, 4 and 5."""

    method: str
    split: str
    score: str
    statistic: str
    num_groups: int
    num_guesses: int


def table(name: Literal["1b", "6", "7"]) -> list[list]:
    """Rows of a small table; their columns are named in the file."""
    return json.loads((HERE / "paper_cifar100.json").read_text())[name]


def looks(name: Literal["3", "4", "5"]) -> dict[Look, float]:
    """Cells with a number of a table of many looks, by method as our tables call it."""
    cells = json.loads((HERE / "paper_tables_3_to_5.json").read_text())["cells"]
    return {
        Look(_method(method), split, score, statistic, m, r): value
        for own, method, split, score, statistic, m, r, value, _ in cells
        if own == name
    }


def _method(theirs: str) -> str:
    return theirs.replace("IDA, q = ", "ida-")


def num_groups(group_size: int) -> int:
    """The paper's m at its group size B."""
    return PAPER.num_candidates // group_size
