"""A PISTOL data set: entities and contracts, from which records and graph follow; replacing an entity."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import networkx as nx

from jaxaudit.data.pistol.contracts import Contract, Entity
from jaxaudit.errors import InputError


@dataclass(frozen=True)
class Record:
    """One question with its answer, and the edge of the graph that it belongs to."""

    question: str
    answer: str
    edge: str


class GroupedRecords(Protocol):
    """Questions in named groups, any of which can be forgotten: what every data set of a study has."""

    @property
    def records(self) -> tuple[Record, ...]:
        """All questions and answers; ``edge`` names the group."""

    @property
    def edges(self) -> tuple[str, ...]:
        """Names of the groups, in file order."""


@dataclass(frozen=True)
class PistolData:
    """Contracts between entities.

    Parameters
    ----------
    entities
        By label of the node, in the order of the graph.
    contracts
        In file order.
    """

    entities: Mapping[str, Entity]
    contracts: tuple[Contract, ...]

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All questions and answers: contract by contract, in the order of each type's questions."""
        return tuple(
            Record(question, answer, contract.edge)
            for contract in self.contracts
            for question, answer in contract.questions_and_answers(self.entities)
        )

    @property
    def edges(self) -> tuple[str, ...]:
        """Names of the edges, in file order."""
        return tuple(contract.edge for contract in self.contracts)

    @cached_property
    def graph(self) -> nx.Graph:
        """The graph: nodes carry ``kind``, edges carry ``name`` and ``contract``. Do not change it."""
        graph = nx.Graph()
        for node, entity in self.entities.items():
            graph.add_node(node, kind=entity.kind)
        for contract in self.contracts:
            graph.add_edge(*contract.nodes, name=contract.edge, contract=contract.contract_type.name)
        return graph


GOLDMAN_SACHS = Entity("company", "Goldman Sachs", "200 West Street")
WILLIAM_SHAKESPEARE = Entity("person", "William Shakespeare", "26 Henley Street")


def replace_entity(data: PistolData, node: str, *, name: str, address: str) -> PistolData:
    """Give a node another name and address in all its contracts (Section 6 of the paper).

    The paper puts one widely known entity (`GOLDMAN_SACHS`, `WILLIAM_SHAKESPEARE`; it does not state their
    addresses) into the dense part of Dataset 2, to see whether what a model knew before fine-tuning is
    harder to forget. That question only makes sense for a pretrained model. All else stays as it is: a
    person put in a company's place remains a party to sales.

    Raises
    ------
    InputError
        No such node; or a name or address that is empty or taken.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_2
    >>> data = replace_entity(
    ...     dataset_2(), "20", name=GOLDMAN_SACHS.name, address=GOLDMAN_SACHS.address
    ... )
    >>> sum("Goldman Sachs" in record.question + record.answer for record in data.records)
    180
    """
    if node not in data.entities:
        raise InputError(f"node must be one of {', '.join(data.entities)}, got {node!r}")
    others = [entity for label, entity in data.entities.items() if label != node]
    for what, text in (("name", name), ("address", address)):
        if not text.strip():
            raise InputError(f"{what} must not be empty, got {text!r}")
        if text in (getattr(entity, what) for entity in others):
            raise InputError(f"{what} {text!r} is that of another entity")
    entity = replace(data.entities[node], name=name, address=address)
    return replace(data, entities={**data.entities, node: entity})
