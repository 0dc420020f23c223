"""Contract types as data: what a table may say, and how a contract becomes questions."""

import pytest

from jaxaudit.data.pistol.contracts import Contract, ContractType, Entity, Party, Question
from jaxaudit.data.pistol.values import Choice, Integer, Product
from jaxaudit.errors import InputError

PARTIES = (Party("lender", "company"), Party("borrower", "person"))
ATTRIBUTES = {"sum": Integer(10, 90), "rate": Integer(1, 5, suffix="%"), "years": Integer(1, 9)}


def loan(attributes=ATTRIBUTES, questions=(("sum", "How much does {borrower} owe to {lender}?"),)):
    return ContractType("loan", PARTIES, attributes, tuple(Question(*question) for question in questions))


def test_questions_and_answers():
    contract_type = loan(
        questions=[
            ("sum", "How much does {borrower} owe to {lender} at {rate}?"),
            ("borrower", "Who owes {sum} to {lender}?"),
            ("lender address", "Where is {lender}?"),
        ]
    )
    entities = {
        "x": Entity("person", "Abcd Efgh", "001 Lane"),
        "y": Entity("company", "Bank Ltd", "002 Road"),
    }
    values = {"sum": "50", "rate": "2%", "years": "3"}
    contract = Contract("x_y", ("x", "y"), contract_type, ("y", "x"), values)
    assert contract.questions_and_answers(entities) == [
        ("How much does Abcd Efgh owe to Bank Ltd at 2%?", "50."),
        ("Who owes 50 to Bank Ltd?", "Abcd Efgh."),
        ("Where is Bank Ltd?", "002 Road."),
    ]


def test_only_addresses_have_an_owner():
    contract_type = loan()
    owners = {field: contract_type.owner(Question(field, "?")) for field in contract_type.fields}
    assert owners.pop("lender address") == 0
    assert owners.pop("borrower address") == 1
    assert set(owners.values()) == {None}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("amount", "How much?"), "has no field 'amount'"),
        (("sum", "How much does {debtor} owe?"), "has no field 'debtor'"),
        (("sum", "Who is {lender.__class__}?"), "has no field 'lender.__class__'"),
        (("sum", "Who is {lender!r}?"), "must use plain fields"),
        (("sum", "Who is {lender:{sum}}?"), "must use plain fields"),
        (("sum", "Who is {lender?"), "braces that do not match"),
    ],
)
def test_bad_questions(question, message):
    with pytest.raises(InputError, match=message):
        loan(questions=[question])


@pytest.mark.parametrize(
    "attributes",
    [
        {"total": Product("sum", "years"), **ATTRIBUTES},
        {**ATTRIBUTES, "total": Product("sum", "rate")},
        {**ATTRIBUTES, "colour": Choice(("red",)), "total": Product("sum", "colour")},
        {**ATTRIBUTES, "total": Product("sum", "term")},
    ],
)
def test_bad_products(attributes):
    with pytest.raises(InputError, match="must be an earlier attribute that is a whole number"):
        loan(attributes)


def test_other_bad_types():
    with pytest.raises(InputError, match="no field twice"):
        loan({"lender": Integer(1, 2)})
    with pytest.raises(InputError, match="must have questions"):
        loan(questions=())
    with pytest.raises(InputError, match="kind of cat must be one of company, person, got 'animal'"):
        ContractType("loan", (Party("cat", "animal"), PARTIES[1]), ATTRIBUTES, (Question("sum", "?"),))


def test_a_product_of_products():
    attributes = {**ATTRIBUTES, "two": Product("sum", "years"), "three": Product("two", "years")}
    assert loan(attributes).attributes["three"] == Product("two", "years")
