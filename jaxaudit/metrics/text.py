"""How much of a true answer is in a generated one: ROUGE-1 recall and exact match, in plain Python."""

import re
import unicodedata
from collections import Counter

from jaxaudit.metrics.stemmer import porter_stem

# Scripts without spaces between words, from Thai to Chinese: every character counts as a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
_LATIN_WORDS = re.compile("[a-z0-9]+")


def rouge1_recall(prediction: str, reference: str, *, stem: bool = True, compatible: bool = False) -> float:
    """Share of the reference's words that are in the prediction, each as often as it occurs.

        sum over words of min(count in prediction, count in reference) / number of words of the reference

    Words are runs of letters and digits in lower case, so "2" and "2%." are equal, and "T-shirts" is two words. The
    measure ignores what else the prediction says. In ASCII text it equals recall of the package rouge-score 0.1.2 with
    the same stemmer, Porter's with the extensions of NLTK, which is used on Latin words of more than 3 characters.

    That package knows ASCII letters and digits only: "Łódź" becomes "d", and "株式会社" scores 0 against itself. Here
    letters of all scripts count (after Unicode normalisation NFKC; scripts without spaces by character), and a
    reference without any letter or digit is compared by its characters. Every text scores 1 against itself.

    Parameters
    ----------
    prediction, reference
        Generated and true answer. An empty reference scores 1 against an empty prediction and 0 against others.
    stem
        Whether words are compared by their stems.
    compatible
        Exactly as rouge-score: ASCII only, and 0 if either text has no word.

    Returns
    -------
    A number in [0, 1].

    References
    ----------
    Lin (2004), ROUGE: A Package for Automatic Evaluation of Summaries.

    Examples
    --------
    >>> rouge1_recall("It is paid weekly", "bi-weekly."), rouge1_recall("8. 8. 8.", "8.")
    (0.5, 1.0)
    >>> rouge1_recall("株式会社", "株式会社"), rouge1_recall("株式会社", "株式会社", compatible=True)
    (1.0, 0.0)
    """
    split = _latin_words if compatible else _words
    said, true = (_count(split(text), stem) for text in (prediction, reference))
    if not true:
        return float(not compatible and not said)
    return sum((said & true).values()) / sum(true.values())


def exact_match(prediction: str, reference: str) -> float:
    """1 if the texts are equal apart from white space and Unicode form (NFKC), 0 otherwise.

    Case and punctuation count: a greedily generated answer that was remembered has them right.

    Examples
    --------
    >>> exact_match(" The  State of Ohio.", "The State of Ohio."), exact_match("ohio", "Ohio")
    (1.0, 0.0)
    """
    one, other = (" ".join(unicodedata.normalize("NFKC", text).split()) for text in (prediction, reference))
    return float(one == other)


def _words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = "".join(character if _in_word(character) else " " for character in text)
    return _UNSPACED.sub(r" \g<0> ", spaced).split() or [c for c in text if not c.isspace()]


def _in_word(character: str) -> bool:
    """A letter or a digit, or a mark on one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _latin_words(text: str) -> list[str]:
    return _LATIN_WORDS.findall(text.lower())


def _count(words: list[str], stem: bool) -> Counter[str]:
    return Counter(porter_stem(w) if stem and len(w) > 3 and _LATIN_WORDS.fullmatch(w) else w for w in words)
