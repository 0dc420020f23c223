"""Kinds of values: what is drawn is accepted, all of it is drawn, and nothing else is accepted."""

import re
from collections import Counter
from datetime import date, datetime

import numpy as np
import pytest
from scipy.stats import chisquare

from jaxaudit.data.pistol.values import Address, Choice, Date, Integer, Product, Word, draw_address, draw_word
from jaxaudit.errors import InputError


class Source:
    """A contract with a quantity of 7 and a price of 12."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.values = {"quantity": "7", "price": "12", "rate": "2%"}

    def address(self):
        return "012 Abcdef Lane"

    def next_word(self, words):
        return words[-1]


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (Integer(3, 5), {"3", "4", "5"}),
        (Integer(5, 30, step=5), {"5", "10", "15", "20", "25", "30"}),
        (Integer(2, 7, step=3), {"2", "5"}),
        (Integer(1, 2, suffix="%"), {"1%", "2%"}),
        (Integer(6, 7, suffix=" months"), {"6 months", "7 months"}),
        (Choice(("Seller", "Customer")), {"Seller", "Customer"}),
        (Word(("Oars", "Axes", "Mops")), {"Oars", "Axes", "Mops"}),
    ],
)
def test_uniform_on_all_values(value, texts):
    source = Source()
    counts = Counter(value.draw(source) for _ in range(600))
    assert set(counts) == texts
    assert chisquare(list(counts.values())).pvalue > 1e-3
    assert all(value.accepts(text, {}) for text in texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Integer(3, 5), "6"),
        (Integer(3, 5), "2"),
        (Integer(3, 5), "4%"),
        (Integer(3, 5), "four"),
        (Integer(3, 5), "-4"),
        (Integer(3, 5), "٤"),
        (Integer(5, 30, step=5), "12"),
        (Integer(1, 5, suffix="%"), "2"),
        (Integer(1, 5, suffix="%"), "%"),
        (Choice(("weekly", "monthly")), "daily"),
        (Word(("Oars",)), " "),
        (Date(), "29-02-1999"),
        (Date(), "31-04-2000"),
        (Date(), "01-13-2000"),
        (Date(), "00-01-2000"),
        (Date(), "01-01-1979"),
        (Date(), "01-01-2020"),
        (Date(), "1-1-2000"),
        (Date(), "2000-01-01"),
        (Address(), "12 Abcdef Lane"),
        (Address(), "012 abcdef Lane"),
        (Address(), "012 Abcdef Path"),
        (Address(), "012 Abcdef Lane East"),
    ],
)
def test_other_texts_are_not_accepted(value, text):
    assert not value.accepts(text, {})


def test_dates_are_days_of_the_calendar():
    source, value = Source(), Date(1999, 2001)
    days = [datetime.strptime(value.draw(source), "%d-%m-%Y").date() for _ in range(500)]
    assert min(days) >= date(1999, 1, 1)
    assert max(days) <= date(2001, 12, 31)
    assert {day.year for day in days} == {1999, 2000, 2001}
    assert {day.month for day in days} == set(range(1, 13))
    assert {day.day for day in days} == set(range(1, 32))
    assert all(value.accepts(day.strftime("%d-%m-%Y"), {}) for day in days)


def test_a_list_that_is_used_up_and_one_that_is_not():
    assert Word(("Oars", "Axes"), unique=True).draw(Source()) == "Axes"
    assert Address().draw(Source()) == "012 Abcdef Lane"


def test_product():
    source = Source()
    value = Product("quantity", "price")
    assert value.draw(source) == "84"
    assert value.accepts("84", source.values)
    assert not value.accepts("85", source.values)
    assert not value.accepts("14", {"quantity": "7", "price": "2%"})


def test_words_and_addresses_have_their_form():
    rng = np.random.default_rng(1)
    assert all(re.fullmatch("[A-Z][a-z]{5}", draw_word(rng, 6)) for _ in range(20))
    assert all(Address().accepts(draw_address(rng), {}) for _ in range(50))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Integer(-1, 5), "low must be an integer of at least 0, got -1"),
        (lambda: Integer(5, 4), "high must be an integer of at least 5, got 4"),
        (lambda: Integer(1, 5, step=0), "step must be an integer of at least 1, got 0"),
        (lambda: Date(2001, 2000), "last_year must be an integer between 2001 and 9999, got 2000"),
        (lambda: Choice(()), r"options must be at least one text, none of them empty, got \(\)"),
        (lambda: Word(("Oars", "")), "words must be at least one text"),
        (lambda: Word(("Oars", "Oars")), "words must not repeat a text"),
    ],
)
def test_bad_tables(make, message):
    with pytest.raises(InputError, match=message):
        make()
