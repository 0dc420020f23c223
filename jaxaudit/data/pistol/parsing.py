"""Records in, entities and contracts out: whether a file is PISTOL data is decided by writing it again.

The answers of an edge give all fields of its contract. If the questions of a contract type, filled in with
these fields, are the questions of the file word for word, the edge has that type.
"""

from collections.abc import Iterable, Mapping, Sequence

from jaxaudit.data.pistol.contracts import Contract, ContractType, Entity
from jaxaudit.data.pistol.dataset import PistolData, Record
from jaxaudit.data.pistol.templates import CONTRACT_TYPES
from jaxaudit.errors import InputError

_Fields = dict[str, str]


def parse(
    records: Iterable[Record], contract_types: Mapping[str, ContractType] = CONTRACT_TYPES
) -> PistolData:
    """The data set that records were made from, by this package or by the authors' code.

    Its ``records`` are the same again, contract by contract; `check_values` looks at the values. Which node
    has which name follows from the names that a node has in all its edges; an edge that touches no other
    keeps the order of its roles.

    Raises
    ------
    InputError
        An edge that is not ``first_second``, whose questions are those of no type (the first one that
        differs is shown), or nodes that do not have one name and one address in all their edges.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> parse(dataset_1().records) == dataset_1()
    True
    """
    by_edge: dict[str, list[Record]] = {}
    for record in records:
        by_edge.setdefault(record.edge, []).append(record)
    nodes = {edge: _nodes(edge) for edge in by_edge}
    types: dict[str, ContractType] = {}
    fields: dict[str, _Fields] = {}
    for edge, group in by_edge.items():
        types[edge], fields[edge] = _recognise(edge, group, contract_types)
    parties = {edge: _parties(types[edge], fields[edge]) for edge in by_edge}
    entities = _assign(nodes, parties)
    node_of = {entity.name: node for node, entity in entities.items()}
    contracts = [
        Contract(
            edge,
            nodes[edge],
            types[edge],
            (node_of[parties[edge][0].name], node_of[parties[edge][1].name]),
            {name: fields[edge][name] for name in types[edge].attributes},
        )
        for edge in by_edge
    ]
    return PistolData(entities, tuple(contracts))


def check_values(data: PistolData) -> None:
    """Raise unless every value can be drawn by its contract type and no two entities share name or address.

    This covers ranges, dates, the total price and the form of addresses of goods and places of work.
    Names are free, so that a replaced entity passes.

    Raises
    ------
    InputError
        The edge, the attribute and the value that cannot be.

    Examples
    --------
    >>> from jaxaudit.data.pistol import dataset_1
    >>> check_values(dataset_1())
    """
    for contract in data.contracts:
        for name, value in contract.contract_type.attributes.items():
            text = contract.values[name]
            if not value.accepts(text, contract.values):
                raise InputError(f"edge {contract.edge}: {name} must be a value of {value}, got {text!r}")
    for what in ("name", "address"):
        texts = [getattr(entity, what) for entity in data.entities.values()]
        repeated = [text for text in texts if texts.count(text) > 1]
        if repeated:
            raise InputError(f"two entities have the {what} {repeated[0]!r}")


def _nodes(edge: str) -> tuple[str, str]:
    first, _, second = edge.partition("_")
    if not first or not second or "_" in second or first == second:
        raise InputError(f"edge must be the labels of two nodes such as 'A_B', got {edge!r}")
    return first, second


def _recognise(
    edge: str, group: Sequence[Record], contract_types: Mapping[str, ContractType]
) -> tuple[ContractType, _Fields]:
    complaints: list[tuple[int, str]] = []
    for contract_type in contract_types.values():
        fields, place, expected = _first_difference(group, contract_type)
        if expected is None:
            return contract_type, fields
        got = repr(group[place].question) if place < len(group) else f"{len(group)} questions"
        number = f"question {place + 1} of {len(contract_type.questions)}"
        complaints.append((place, f"as {contract_type.name}, {number} should be {expected}, got {got}"))
    raise InputError(f"edge {edge} is no known contract: {max(complaints, default=(0, 'none known'))[1]}")


def _first_difference(
    group: Sequence[Record], contract_type: ContractType
) -> tuple[_Fields, int, str | None]:
    """The fields, and the first question that differs with what it should be; None if all are as expected."""
    fields: _Fields = {}
    questions = contract_type.questions
    for place, (question, record) in enumerate(zip(questions, group, strict=False)):
        answer = record.answer.removesuffix(".")
        if answer == record.answer or fields.setdefault(question.answer, answer) != answer:
            return fields, place, f"answered with a full stop, and {question.answer} always alike"
    for place, question in enumerate(questions):
        try:
            expected = question.text.format_map(fields)
        except KeyError as error:
            return fields, place, f"one about {error.args[0]!r}, which no answer gives"
        if place == len(group) or expected != group[place].question:
            return fields, place, repr(expected)
    if len(group) > len(questions):
        return fields, len(questions), "nothing"
    missing = [field for field in contract_type.fields if field not in fields]
    return fields, len(questions), f"one that is answered by {missing[0]!r}" if missing else None


def _parties(contract_type: ContractType, fields: _Fields) -> tuple[Entity, Entity]:
    first, second = (
        Entity(party.kind, fields[party.role], fields[f"{party.role} address"])
        for party in contract_type.parties
    )
    return first, second


def _assign(
    nodes: Mapping[str, tuple[str, str]], parties: Mapping[str, tuple[Entity, Entity]]
) -> dict[str, Entity]:
    """Which party of an edge is which of its nodes: the party that a node has in all its edges."""
    candidates: dict[str, list[Entity]] = {}
    for edge, ends in nodes.items():
        for node in ends:
            known = candidates.get(node, parties[edge])
            candidates[node] = [entity for entity in known if entity in parties[edge]]
            if not candidates[node]:
                raise InputError(f"node {node} has no one name and address in all its edges, see edge {edge}")
    entities = {node: found[0] for node, found in candidates.items() if len(found) == 1}
    for first, second in nodes.values():
        # Ends of degree 1 are what the other end is not; an edge on its own keeps the order of its roles.
        if first not in entities and second not in entities:
            entities[first] = candidates[first][0]
        for node, other in ((first, second), (second, first)):
            if node not in entities:
                entities[node] = next(
                    (entity for entity in candidates[node] if entity != entities[other]), candidates[node][0]
                )
    for edge, (first, second) in nodes.items():
        if {entities[first], entities[second]} != set(parties[edge]):
            raise InputError(
                f"edge {edge}: the parties of the contract are not those of its nodes' other edges"
            )
    if len({entity.name for entity in entities.values()}) < len(entities):
        names = [entity.name for entity in entities.values()]
        raise InputError(f"two nodes have the name {next(name for name in names if names.count(name) > 1)!r}")
    return {node: entities[node] for ends in nodes.values() for node in ends}
