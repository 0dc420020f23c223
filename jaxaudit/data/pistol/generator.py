"""Graph and seed in, data set out: entities, contracts, values.

Randomness comes from an integer seed through `numpy.random.SeedSequence`: the data are text, made once on
the host, so a JAX key would bring nothing. Every node and every edge has its own stream, named by its label:
two graphs that share a node or an edge share its entity or the values of its contract at the same seed, so
that a sweep over graphs changes the graph alone (but for the words of which each is used once, and for clashes
of names, which are drawn again).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data.pistol.contracts import KINDS, Contract, ContractType, Entity
from jaxaudit.data.pistol.dataset import PistolData
from jaxaudit.data.pistol.graphs import (
    check_graph,
    dataset_1_graph,
    dataset_2_graph,
    edges_in_order,
    find_type,
)
from jaxaudit.data.pistol.templates import CONTRACT_TYPES
from jaxaudit.data.pistol.values import draw_address, draw_word
from jaxaudit.data.pistol.words import COMPANY_SUFFIXES
from jaxaudit.errors import InputError


def generate(
    graph: nx.Graph, *, seed: int, contract_types: Mapping[str, ContractType] = CONTRACT_TYPES
) -> PistolData:
    """Contracts for every edge of a graph.

    Names and addresses are unique, addresses of delivery and of work included (the authors' generator does
    not check). An entity has one name and one address in all its contracts.

    Parameters
    ----------
    graph
        Any `networkx.Graph` whose edges carry a ``contract``; see `jaxaudit.data.pistol.graphs`.
    seed
        In 0 .. 2^32 - 1; all random text of the data follows from it.
    contract_types
        By the name that edges carry.

    Raises
    ------
    InputError
        A graph with loops or without edges, labels that cannot be told apart in ``first_second``, an
        unknown contract type or node kind, or nodes whose kinds do not fit their contract.

    Examples
    --------
    >>> from jaxaudit.data.pistol import chain
    >>> data = generate(chain(3), seed=0)
    >>> len(data.records), data.records[0].edge, data.records[-1].edge
    (40, '0_1', '1_2')
    """
    check_integer("seed", seed, low=0, high=2**32 - 1)
    check_graph(graph)
    addresses: set[str] = set()
    entities = _draw_entities(graph, seed, addresses)
    contracts: list[Contract] = []
    number_of_type: Counter[str] = Counter()
    for first, second, contract in edges_in_order(graph):
        nodes = str(first), str(second)
        contract_type = find_type(contract, "_".join(nodes), contract_types)
        source = _Source(seed, "_".join(nodes), contract, number_of_type[contract], addresses)
        contracts.append(_draw_contract(nodes, contract_type, entities, source))
        number_of_type[contract] += 1
    return PistolData(entities, tuple(contracts))


def dataset_1(seed: int = 0) -> PistolData:
    """The paper's Dataset 1 with fresh values: 24 entities, 20 contracts, 400 questions.

    Examples
    --------
    >>> data = dataset_1()
    >>> len(data.entities), len(data.contracts), len(data.records)
    (24, 20, 400)
    """
    return generate(dataset_1_graph(), seed=seed)


def dataset_2(seed: int = 0) -> PistolData:
    """The paper's Dataset 2 with fresh values: 30 companies, 9 + 21 + 45 sales, 1,500 questions.

    Examples
    --------
    >>> data = dataset_2()
    >>> len(data.entities), len(data.contracts), len(data.records)
    (30, 75, 1500)
    """
    return generate(dataset_2_graph(), seed=seed)


@dataclass
class _Source:
    """What the values of one contract are drawn from, see `jaxaudit.data.pistol.values.Source`."""

    seed: int
    edge: str
    contract: str
    number: int
    """How many contracts of this type came before."""
    taken: set[str]
    """Addresses used so far, anywhere in the data."""
    values: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = _stream(self.seed, "contract", self.edge)

    def address(self) -> str:
        return _fresh_address(self.rng, self.taken)

    def next_word(self, words: tuple[str, ...]) -> str:
        order = _stream(self.seed, "words", self.contract, words[0]).permutation(len(words))
        return words[order[self.number % len(words)]]


def _stream(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, *" ".join(names).encode()])


def _draw_entities(graph: nx.Graph, seed: int, addresses: set[str]) -> dict[str, Entity]:
    entities: dict[str, Entity] = {}
    taken: set[str] = set()
    for node, kind in graph.nodes(data="kind", default="company"):
        check_choice(f"kind of node {node}", kind, KINDS)
        rng = _stream(seed, "entity", str(node))
        name = _draw_name(rng, kind, taken)
        entities[str(node)] = Entity(kind, name, _fresh_address(rng, addresses))
    return entities


def _draw_name(rng: np.random.Generator, kind: str, taken: set[str]) -> str:
    """Two companies differ in more than the suffix, or ROUGE would take one for half of the other."""
    while True:
        if kind == "company":
            stem, suffix = draw_word(rng, 6), COMPANY_SUFFIXES[int(rng.integers(len(COMPANY_SUFFIXES)))]
            name = f"{stem} {suffix}"
        else:
            stem = name = f"{draw_word(rng, 4)} {draw_word(rng, 4)}"
        if stem not in taken:
            taken.add(stem)
            return name


def _fresh_address(rng: np.random.Generator, taken: set[str]) -> str:
    while (address := draw_address(rng)) in taken:
        pass
    taken.add(address)
    return address


def _draw_contract(
    nodes: tuple[str, str], contract_type: ContractType, entities: Mapping[str, Entity], source: _Source
) -> Contract:
    kinds = tuple(entities[node].kind for node in nodes)
    wanted = tuple(party.kind for party in contract_type.parties)
    if sorted(kinds) != sorted(wanted):
        raise InputError(
            f"edge {source.edge} ({contract_type.name}) needs a {' and a '.join(wanted)}, got a "
            f"{' and a '.join(kinds)}; set the node attribute 'kind'"
        )
    swap = bool(source.rng.integers(2)) if wanted[0] == wanted[1] else kinds != wanted
    parties = (nodes[1], nodes[0]) if swap else nodes
    for name, value in contract_type.attributes.items():
        source.values[name] = value.draw(source)
    return Contract(source.edge, nodes, contract_type, parties, source.values)
