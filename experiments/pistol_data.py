"""The data of the PISTOL experiments, and the edges that are forgotten."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from jaxaudit.data.pistol import (
    GOLDMAN_SACHS,
    WILLIAM_SHAKESPEARE,
    Entity,
    PistolData,
    dataset_1,
    dataset_2,
    parse,
    read_records,
    replace_entity,
)
from jaxaudit.errors import InputError

DataName = Literal["dataset-1", "dataset-2", "goldman-sachs", "william-shakespeare"]
Source = Literal["generated", "published"]
REPLACED_NODE = "20"
"""Of the dense graph: the entity that gets a widely known name."""
KNOWN: dict[DataName, Entity] = {"goldman-sachs": GOLDMAN_SACHS, "william-shakespeare": WILLIAM_SHAKESPEARE}
KNOWN_DEGREES = {GOLDMAN_SACHS: 12, WILLIAM_SHAKESPEARE: 3}
"""Contracts of the known entities in what the small decoder is pretrained on, to stand for how well known they are."""
GRAPHS = ("sparse", "semi-dense", "dense")
_EDGES_PER_GRAPH = 3
_DRAW_SEED = 2025
_TUNING = {"dataset-1": ("A_C2", "A_n2", "B_D")}
"""None of them is in the paper's tables; of degrees 8, 8 and 7, as those of most edges that are."""
_PUBLISHED = {"dataset-1": "sample_data_1.json"}
_SMALL = {
    "dataset-1": ("A_B", "A_C", "A_C2", "A_n", "A_n2", "B_D", "E1_F1", "E1_q1"),
    "dataset-2": (
        *("0_1", "1_2", "2_3", "3_4"),
        *("10_11", "11_12", "11_18", "10_19"),
        *("20_21", "20_22", "20_23", "21_22"),
    ),
}
"""Edges that a smoke test keeps."""


def load(name: DataName, source: Source, *, small: bool) -> PistolData:
    """One of the data sets.

    Parameters
    ----------
    name
        The paper's two, or the second with a known entity in its dense graph.
    source
        ``generated``: fresh values. ``published``: the authors' files in ``$JAXAUDIT_DATA/pistol``.
    small
        Keep a few edges only.
    """
    base = "dataset-1" if name == "dataset-1" else "dataset-2"
    data = _load(base, source)
    if small:
        kept = tuple(contract for contract in data.contracts if contract.edge in _SMALL[base])
        nodes = {node for contract in kept for node in contract.nodes}
        data = replace(
            data,
            contracts=kept,
            entities={node: one for node, one in data.entities.items() if node in nodes},
        )
    if name in KNOWN:
        entity = KNOWN[name]
        data = replace_entity(data, REPLACED_NODE, name=entity.name, address=entity.address)
    return data


def _load(name: str, source: Source) -> PistolData:
    if source == "generated":
        return dataset_1() if name == "dataset-1" else dataset_2()
    root = os.environ.get("JAXAUDIT_DATA")
    if root is None:
        raise InputError("data must be generated unless the variable JAXAUDIT_DATA is set, got published")
    file = _PUBLISHED.get(name, "sample_data_2.json")
    return parse(read_records(Path(root) / "pistol" / file))


def graph_edges(data: PistolData) -> dict[str, tuple[str, ...]]:
    """Three random edges of each graph of Dataset 2, as in the paper; always the same ones."""
    return {graph: edges[:_EDGES_PER_GRAPH] for graph, edges in _drawn(data).items()}


def known_edges(data: PistolData) -> tuple[str, ...]:
    """Three random edges of the entity that was replaced, none of them one on which rates are chosen."""
    tuned = tuning_edges("dataset-2", data)
    edges = [edge for edge in data.edges if REPLACED_NODE in edge.split("_") and edge not in tuned]
    return _shuffled(edges, "known")[:_EDGES_PER_GRAPH]


def tuning_edges(name: DataName, data: PistolData) -> tuple[str, ...]:
    """Edges on which learning rates are chosen: none of those in the tables; for Dataset 2 one of each graph."""
    return _TUNING.get(name) or tuple(edges[_EDGES_PER_GRAPH] for edges in _drawn(data).values())


def _drawn(data: PistolData) -> dict[str, tuple[str, ...]]:
    return {
        graph: _shuffled([edge for edge in data.edges if int(edge.split("_")[0]) // 10 == number], graph)
        for number, graph in enumerate(GRAPHS)
    }


def _shuffled(edges: list[str], stream: str) -> tuple[str, ...]:
    rng = np.random.default_rng([_DRAW_SEED, *stream.encode()])
    return tuple(edges[number] for number in rng.permutation(len(edges)))
