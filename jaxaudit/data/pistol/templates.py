"""The two contract types of the paper: 20 attributes and the 20 questions of its Appendix B each.

Reference: X. Qiu et al., "How Data Inter-connectivity Shapes LLMs Unlearning: A Structural Unlearning
Perspective", arXiv 2406.16810v2 (2025), Section 3.1 and Appendix B. Ranges of the values, which the paper
leaves out, are those of the authors' published data.
"""

from collections.abc import Mapping

from jaxaudit.data.pistol.contracts import ContractType, Party, Question
from jaxaudit.data.pistol.values import Address, Choice, Date, Integer, Product, Word
from jaxaudit.data.pistol.words import BENEFITS, GOODS, JOBS, STATES

_FIVE_TO_THIRTY = Integer(5, 30, step=5)
_SIDES = Choice(("Seller", "Customer"))


def _about(parties: str, questions: Mapping[str, str]) -> tuple[Question, ...]:
    """Questions that end alike; one that has its own question mark is complete."""
    return tuple(
        Question(answer, text if text.endswith("?") else f"{text} based on the contract between {parties}?")
        for answer, text in questions.items()
    )


SALES = ContractType(
    name="sales",
    parties=(Party("seller", "company"), Party("customer", "company")),
    attributes={
        "effective date": Date(),
        "good": Word(GOODS, unique=True),
        "quantity": Integer(1, 100),
        "unit price": Integer(1, 100),
        "total price": Product("quantity", "unit price"),
        "invoice days": Integer(1, 5),
        "payment days": _FIVE_TO_THIRTY,
        "penalty days": _FIVE_TO_THIRTY,
        "late rate": Integer(1, 5, suffix="%"),
        "delivery address": Address(),
        "shipping decider": _SIDES,
        "shipping payer": _SIDES,
        "warranty years": Integer(1, 5),
        "defect days": _FIVE_TO_THIRTY,
        "cooling-off days": Integer(3, 14),
        "law": Choice(STATES),
    },
    questions=_about(
        "{seller} and {customer}",
        {
            "effective date": "What was the effective date of the contract between {seller} and {customer}?",
            "seller": "What was the name of the seller in the contract with {customer} as of {effective date}?",
            "seller address": "What was the address of {seller} in the contract with {customer}?",
            "customer": "What was the name of the customer in the contract with {seller} as of {effective date}?",
            "customer address": "What was the address of {customer} in the contract with {seller}?",
            "good": "What was the good that the seller was selling to the customer",
            "quantity": "What was the quantity of the good being sold",
            "unit price": "What was the unit price in dollars of the good being sold",
            "total price": "What was the total price in dollars of the good being sold",
            "invoice days": "By how many days after the delivery time must the seller provide the customer with an "
            "invoice",
            "payment days": "Within how many days must the invoice be paid in full",
            "penalty days": "After how many days would unpaid balances incur a late payment penalty",
            "late rate": "What was the late payment interest rate",
            "delivery address": "What was the address of delivery",
            "shipping decider": "Who would decide the shipping method",
            "shipping payer": "Who would be responsible for the costs of the shipment",
            "warranty years": "What was the duration of the general warranty period in years",
            "defect days": "Within how many days of discovering a defect must the customer notify the seller in "
            "writing in the event of a breach of warranty",
            "cooling-off days": "What was the duration of the cooling-off period in days",
            "law": "Which jurisdiction's laws govern the contract between {seller} and {customer}?",
        },
    ),
)

EMPLOYMENT = ContractType(
    name="employment",
    parties=(Party("employer", "company"), Party("employee", "person")),
    attributes={
        "start date": Date(),
        "length": Integer(6, 48, suffix=" months"),
        "job": Word(JOBS, unique=True),
        "work address": Address(),
        "start hour": Integer(6, 10),
        "end hour": Integer(14, 18),
        "hourly pay": Integer(10, 100),
        "pay frequency": Choice(("weekly", "bi-weekly", "monthly")),
        "benefit": Word(BENEFITS),
        "holiday days": Integer(10, 30),
        "confidentiality months": Integer(3, 12),
        "sick days": Integer(7, 14),
        "notice weeks": Integer(2, 12),
        "non-compete months": Integer(6, 24),
        "change notice weeks": Integer(2, 8),
        "law": Choice(STATES),
    },
    questions=_about(
        "{employer} and {employee}",
        {
            "employer": "What was the name of the employer in the employment contract with {employee}, which started "
            "from {start date}?",
            "employer address": "What was the principal business location of {employer}",
            "employee": "What was the name of the employee in the employment contract with {employer}, which started "
            "from {start date}?",
            "employee address": "What was the address of {employee}",
            "start date": "What was the start date",
            "length": "For how many months will the employer employ the employee",
            "job": "What was the job position",
            "work address": "What was the work location",
            "start hour": "At what hour did the workday start",
            "end hour": "At what hour did the workday finish",
            "hourly pay": "What was the hourly basic pay in dollars",
            "pay frequency": "What was the frequency of salary payment",
            "benefit": "What benefit was provided to the employee",
            "holiday days": "How many days of paid holiday leave were provided to the employee",
            "confidentiality months": "For how many months after the employment ends was the employee prohibited from "
            "disclosing any confidential information",
            "sick days": "What was the number of days the employee was entitled to Paid Sick Leave in each year of "
            "employment",
            "notice weeks": "How many weeks' written notice of termination must the employee and employer each "
            "provide to the other",
            "non-compete months": "For how many months did the non-compete clause cover",
            "change notice weeks": "How many weeks' written notice must the employer provide before any proposed "
            "changes to the terms of employment",
            "law": "Which jurisdiction's laws govern the contract between {employer} and {employee}?",
        },
    ),
)

CONTRACT_TYPES: Mapping[str, ContractType] = {"sales": SALES, "employment": EMPLOYMENT}
