"""Contract types as data: parties, a table of attributes, and one question per attribute.

A type is a `ContractType`; the two of the paper are in `jaxaudit.data.pistol.templates`. Nothing else in
the package knows what a sale or an employment is.
"""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jaxaudit.checks import check_choice
from jaxaudit.data.pistol.values import Integer, Product, Value
from jaxaudit.errors import InputError

Kind = Literal["company", "person"]
KINDS: tuple[Kind, ...] = ("company", "person")


@dataclass(frozen=True)
class Entity:
    """A node of the graph: who it is and where it lives, the same in all its contracts."""

    kind: str
    name: str
    address: str


@dataclass(frozen=True)
class Party:
    """A side of a contract: its role (``seller``) and what kind of entity can take it."""

    role: str
    kind: Kind


@dataclass(frozen=True)
class Question:
    """One question of a contract type, and the field that answers it.

    Fields in braces: an attribute, a role (the party's name), or a role and ``address``.
    """

    answer: str
    text: str


@dataclass(frozen=True)
class ContractType:
    """A contract type.

    Parameters
    ----------
    name
        What an edge of the graph carries as its ``contract``.
    parties
        The two sides. If both are of one kind, a fair coin decides which node takes which role.
    attributes
        What is drawn for each contract; a `Product` comes after its factors.
    questions
        Asked in this order.

    Raises
    ------
    InputError
        A question or a product uses a field that the type does not have.

    Examples
    --------
    >>> parties = (Party("lender", "company"), Party("borrower", "person"))
    >>> attributes = {"sum": Integer(10, 90, step=10)}
    >>> questions = (Question("sum", "How much does {borrower} owe to {lender}?"),)
    >>> ContractType("loan", parties, attributes, questions).fields
    ('lender', 'lender address', 'borrower', 'borrower address', 'sum')
    """

    name: str
    parties: tuple[Party, Party]
    attributes: Mapping[str, Value]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        for party in self.parties:
            check_choice(f"kind of {party.role}", party.kind, KINDS)
        self._check_fields()
        self._check_products()

    @property
    def fields(self) -> tuple[str, ...]:
        """All that a question can use."""
        of_parties = [field for party in self.parties for field in (party.role, f"{party.role} address")]
        return (*of_parties, *self.attributes)

    def owner(self, question: Question) -> int | None:
        """Which party (0 or 1) the answer belongs to in all its contracts; None if to this contract alone.

        Only an address does. A name answers the question who this party is in *this* contract.
        """
        addresses = [f"{party.role} address" for party in self.parties]
        return addresses.index(question.answer) if question.answer in addresses else None

    def _check_fields(self) -> None:
        fields = self.fields
        if len(set(fields)) < len(fields) or not self.questions:
            raise InputError(f"contract type {self.name!r} must have questions and no field twice: {fields}")
        for question in self.questions:
            unknown = [name for name in (question.answer, *_used(question.text)) if name not in fields]
            if unknown:
                raise InputError(
                    f"contract type {self.name!r} has no field {unknown[0]!r}, which the question "
                    f"{question.text!r} uses; it has {', '.join(fields)}"
                )

    def _check_products(self) -> None:
        seen: dict[str, Value] = {}
        for name, value in self.attributes.items():
            factors = (value.first, value.second) if isinstance(value, Product) else ()
            for factor in factors:
                known = seen.get(factor)
                if not isinstance(known, Integer | Product) or (isinstance(known, Integer) and known.suffix):
                    raise InputError(
                        f"contract type {self.name!r}: {name!r} is a product of {factor!r}, which must be "
                        "an earlier attribute that is a whole number without suffix"
                    )
            seen[name] = value


def _used(text: str) -> list[str]:
    """The fields of a question; only plain ones, since the text may come from a file."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise InputError(f"question {text!r} has braces that do not match: {error}") from error
    if any(conversion or form for _, _, form, conversion in parts):
        raise InputError(f"question {text!r} must use plain fields such as {{seller}}")
    return [name for _, name, _, _ in parts if name is not None]


@dataclass(frozen=True)
class Contract:
    """One edge: its name and two nodes as in the graph, the nodes by role, and the values drawn.

    ``parties`` are the labels of the nodes that take the two roles of ``contract_type``, in that order.
    """

    edge: str
    nodes: tuple[str, str]
    contract_type: ContractType
    parties: tuple[str, str]
    values: Mapping[str, str]

    def questions_and_answers(self, entities: Mapping[str, Entity]) -> list[tuple[str, str]]:
        """All questions with their answers, in the order of the type; an answer ends with a full stop."""
        fields = dict(self.values)
        for party, node in zip(self.contract_type.parties, self.parties, strict=True):
            fields |= {party.role: entities[node].name, f"{party.role} address": entities[node].address}
        return [
            (question.text.format_map(fields), f"{fields[question.answer]}.")
            for question in self.contract_type.questions
        ]
