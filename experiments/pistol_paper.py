"""The paper's Tables 1 to 9 (Qiu et al., arXiv 2406.16810v2), and where they do not agree with themselves."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jaxaudit.report.blocks import Bullets, Section, Table, Text
from jaxaudit.study import (
    SHORT_NAMES,
    Outcome,
)

MODELS = ("Llama2-7B", "Mistral-7B", "Gemma-7B")
METHODS = ("GA", "GD", "UKL", "DPO", "NPO")
SLIPS = (
    "Four printed deviation scores are not those of the printed means: Table 2, AB, Gemma NPO 39.4 (36.3, which makes "
    "AB lower than AC); Table 3, semi-dense, Llama2 NPO 21.2 (19.9); sparse, Mistral UKL 42.5 (42.2) and Gemma UKL "
    "60.5 (57.7).",
    '"Consistently" harder for AB (Takeaway 1) has exceptions: Mistral UKL, 66.8 against 74.0, and Gemma NPO after the '
    "correction.",
    "Takeaway 2 is not monotone for Llama2 UKL (sparse to dense 55.8, 64.9, 56.0), DPO and NPO, Gemma UKL and DPO, and "
    "Mistral DPO (3.8, 7.6, 5.0). The sparse and the dense row of Llama2 NPO are identical.",
    "Table 7, Mistral semi-dense: the MRR cells of GA, GD and DPO are the ROUGE-1 cells of Table 3.",
    "The appendix gives the semi-dense graph 27 edges; figure, text and published data have 21.",
    "The authors' code evaluates the first 200 retained questions in file order only: for Dataset 2 the sparse chain "
    "and one or two semi-dense edges, whatever is forgotten.",
    "Section 6 cites Table 4 where it means Table 3.",
    "The paper says that NPO drops L(D_r); it has none. What NPO drops is the winning answer of DPO.",
    "What the text calls DPO is no DPO: a sum of two likelihoods, of refusals and of retained answers, without "
    "reference and preference; what is called idk here. The code has DPO proper, without a retain term. Which made the "
    "tables is not said.",
    "MRR and THR follow the model's own greedy answer in the code, the definition says given the question; for Llama 2 "
    "and Mistral the tokenizer's leading space probably shifts every target by one: their retain MRR is near 0.3 where "
    "ROUGE-1 is near 1.",
    "A forgotten edge's addresses stay answers of other edges, and who never saw the edge scores 0.26 to 0.32 on it, "
    "about 5 points more on AB than on AC: forget recall 0, the paper's ideal, is over-forgetting.",
)


@cache
def _document() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "paper_pistol.json").read_text())


def rows(table: str) -> list[dict[str, Any]]:
    """Rows of a printed table, by column."""
    one = _document()["tables"][table]
    return [dict(zip(one["columns"], row)) for row in one["rows"]]


def printed(table: str, column: str) -> dict[tuple[str, str, str], float]:
    """A column by what is forgotten, method and model."""
    return {(row["forget_data"], row["method"], row["model"]): row[column] for row in rows(table)}


def beside(
    table: str,
    column: str,
    groups: dict[str, str],
    ours: dict[str, dict[str, str]],
    title: str = "Beside the paper",
    *,
    name: str = "ours",
) -> Section:
    """The paper's three models next to the one of the study.

    Parameters
    ----------
    table, column
        Of the paper.
    groups
        The paper's name of each group of ours.
    ours
        By group and method (the paper's name): a cell.
    title
        Of the section.
    name
        Of our column.
    """
    values = printed(table, column)
    body = [
        (
            group,
            method,
            *(str(values[theirs, method, model]) for model in MODELS),
            ours[group].get(method, ""),
        )
        for group, theirs in groups.items()
        for method in METHODS
    ]
    text = (
        f"Table {table} of the paper, {column.replace('_', ' ')}. Its models have 7 billion parameters and knew much "
        "beforehand: compare directions, not sizes."
    )
    return Section(title, (Text(text), Table(("forgotten", "method", *MODELS, name), tuple(body))))


def ours_by_method(
    outcomes: Mapping[str, Sequence[Outcome]], cell: Callable[[Outcome], str]
) -> dict[str, dict[str, str]]:
    """A cell per group and method, by the paper's name of the method, for `beside`."""
    return {
        group: {SHORT_NAMES[one.method]: cell(one) for one in found if one.method in SHORT_NAMES}
        for group, found in outcomes.items()
    }


def slips_section() -> Section:
    """What to know before the printed tables are compared with anything."""
    return Section("The paper's tables, checked", (Bullets(SLIPS),))
