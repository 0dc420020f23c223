import random
import unicodedata
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxaudit.metrics import exact_match, rouge1_recall

WORDS = [
    "The",
    "State",
    "of",
    "Ohio.",
    "2%.",
    "weekly",
    "bi-weekly.",
    "48 months.",
    "T-shirts",
    "shirt",
    "£5",
]
WORDS += [
    "paying",
    "payment",
    "Łódź",
    "8",
    "08-01-1999",
    "",
    "...",
    "AG",
    "株式会社",
    "running",
    "runs",
    "it's",
]


@pytest.fixture(scope="module")
def rouge_scorer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("rouge_score.rouge_scorer")
    return {stem: module.RougeScorer(["rouge1"], use_stemmer=stem) for stem in (True, False)}


def random_text(rng, words=WORDS):
    return " ".join(rng.choices(words, k=rng.randint(0, 6)))


@pytest.mark.parametrize("stem", [True, False])
def test_compatible_recall_equals_rouge_score(rouge_scorer, stem):
    rng = random.Random(1)
    for _ in range(1000):
        prediction, reference = random_text(rng), random_text(rng)
        expected = rouge_scorer[stem].score(target=reference, prediction=prediction)["rouge1"].recall
        assert rouge1_recall(prediction, reference, stem=stem, compatible=True) == pytest.approx(expected)


def test_recall_of_ascii_words_needs_no_switch():
    rng = random.Random(2)
    ascii_words = [word for word in WORDS if word.isascii() and any(map(str.isalnum, word))]
    for _ in range(500):
        prediction, reference = random_text(rng, ascii_words), random_text(rng, ascii_words) + " x"
        plain, compatible = (rouge1_recall(prediction, reference, compatible=c) for c in (False, True))
        assert plain == compatible


@pytest.mark.parametrize(
    "text",
    [
        "Łódź",
        "株式会社",
        "£1,250.00",
        "§4.2",
        "한국어 문장",
        "Привет, мир",
        "हिन्दी",
        "ไทย",
        "مرحبا",
        "€",
        "…",
        "ß",
        "K",
        "",
    ],
)
def test_every_text_scores_one_against_itself(text):
    assert rouge1_recall(text, text) == 1
    assert rouge1_recall(f"It is {text} indeed.", text) == 1 or not any(map(str.isalnum, text))
    assert exact_match(text, text) == 1


@given(st.text(max_size=12))
@settings(max_examples=100, deadline=None)
def test_any_text_against_itself_and_against_nothing(text):
    assert rouge1_recall(text, text) == 1
    assert 0 <= rouge1_recall("a 1", text, compatible=True) <= 1
    if text.strip():
        assert rouge1_recall("", text) == 0


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("2", "2%.", 1.0),
        ("a a a b", "a a b b", 0.75),  # clipped: a twice, b once
        ("Krakow d", "Łódź", 0.0),
        ("東京の会社", "株式会社", 0.5),  # two of four characters
        ("cafe\u0301", "caf\u00e9", 1.0),  # decomposed and composed
        ("कि", "क", 0.0),
        ("the months", "a month", 0.5),
        ("STRASSE", "Straße", 1.0),
        ("anything", "", 0.0),
        ("", "", 1.0),
        ("!", "?", 0.0),
    ],
)
def test_by_hand(prediction, reference, expected):
    assert rouge1_recall(prediction, reference) == expected


def test_stemming_is_a_choice():
    assert rouge1_recall("months", "month", stem=False) == 0


@pytest.mark.parametrize(
    ("prediction", "reference"), [("", ""), ("", "x"), ("x", ""), ("株", "株"), ("!", "!")]
)
def test_compatible_recall_is_zero_without_words(prediction, reference):
    assert rouge1_recall(prediction, reference, compatible=True) == 0


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [(" a  b\n", "a b", 1.0), ("A", "a", 0.0), ("2%", "2%.", 0.0), ("", "", 1.0), ("", "a", 0.0)],
)
def test_exact_match(prediction, reference, expected):
    assert exact_match(prediction, reference) == expected
    assert exact_match(unicodedata.normalize("NFD", "é"), "é") == 1
