"""A contract type from a JSON file, so that a new kind of contract is data and no code.

.. code-block:: json

    {
     "name": "lease",
     "parties": [{"role": "landlord", "kind": "company"}, {"role": "tenant", "kind": "person"}],
     "attributes": {
      "start": {"kind": "date", "first_year": 2000, "last_year": 2009},
      "rent": {"kind": "integer", "low": 300, "high": 900, "step": 10},
      "flat": {"kind": "address"},
      "pets": {"kind": "choice", "options": ["allowed", "forbidden"]}
     },
     "questions": [
      {"answer": "rent", "text": "What does {tenant} pay to {landlord} per month?"}
     ]
    }

Kinds of attributes are the classes of `jaxaudit.data.pistol.values` in lower case, with their arguments.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxaudit.border import check_is_file, check_names
from jaxaudit.checks import check_choice
from jaxaudit.data.pistol.contracts import ContractType, Party, Question
from jaxaudit.data.pistol.values import Address, Choice, Date, Integer, Product, Value, Word
from jaxaudit.errors import InputError

_KINDS: dict[str, Callable[..., Value]] = {
    kind.__name__.lower(): kind for kind in (Address, Choice, Date, Integer, Product, Word)
}


def read_contract_type(path: str | Path) -> ContractType:
    """The contract type that a JSON file describes, see `contract_type`."""
    check_is_file(path)
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON in UTF-8: {error}") from error
    try:
        return contract_type(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def contract_type(document: Mapping[str, Any]) -> ContractType:
    """The contract type that plain data describe; the layout is that of this module's docstring.

    Raises
    ------
    InputError
        A part that is missing or of the wrong form, or what `ContractType` refuses.

    Examples
    --------
    >>> lease = contract_type(
    ...     {
    ...         "name": "lease",
    ...         "parties": [{"role": "landlord", "kind": "company"}, {"role": "tenant", "kind": "person"}],
    ...         "attributes": {"rent": {"kind": "integer", "low": 300, "high": 900}},
    ...         "questions": [{"answer": "rent", "text": "What does {tenant} pay to {landlord}?"}],
    ...     }
    ... )
    >>> lease.attributes["rent"]
    Integer(low=300, high=900, step=1, suffix='')
    """
    parts = _object("contract type", document, ("name", "parties", "attributes", "questions"))
    parties = [
        Party(**_object("party", party, ("role", "kind"))) for party in _list("parties", parts["parties"])
    ]
    if len(parties) != 2:
        raise InputError(f"parties must be two, got {len(parties)}")
    questions = [
        Question(**_object("question", question, ("answer", "text")))
        for question in _list("questions", parts["questions"])
    ]
    texts = {
        "name": parts["name"],
        **{f"role {index}": party.role for index, party in enumerate(parties)},
        **{f"answer of question {index}": question.answer for index, question in enumerate(questions)},
        **{f"text of question {index}": question.text for index, question in enumerate(questions)},
    }
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{name} must be a text that is not empty, got {text!r}")
    if not isinstance(parts["attributes"], Mapping):
        raise InputError(f"attributes must be an object, got {parts['attributes']!r}")
    attributes = {name: _value(name, spec) for name, spec in parts["attributes"].items()}
    return ContractType(parts["name"], (parties[0], parties[1]), attributes, tuple(questions))


def _value(name: str, spec: Any) -> Value:
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise InputError(f"attribute {name!r} must be an object with a kind, got {spec!r}")
    check_choice(f"kind of attribute {name!r}", spec["kind"], tuple(_KINDS))
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in spec.items()
        if key != "kind"
    }
    try:
        return _KINDS[spec["kind"]](**arguments)
    except (TypeError, InputError) as error:
        raise InputError(f"attribute {name!r}: {error}") from error


def _object(what: str, value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"a {what} must be an object with {', '.join(keys)}, got {value!r}")
    check_names(f"{what}: keys", value, keys)
    return {key: value[key] for key in keys}


def _list(what: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} must be a list, got {value!r}")
    return list(value)
