"""Porter's stemmer of English words, with the extensions of NLTK, which common ROUGE implementations use.

The algorithm is a list of rules ``suffix -> replacement``, each under a condition on the stem before the suffix. The
measure m of a stem is the number of times that a vowel is followed by a consonant.
"""

import re
from collections.abc import Callable
from functools import lru_cache

_IRREGULAR = {
    form: stem
    for stem, forms in {
        "sky": "sky skies",
        "die": "dying",
        "lie": "lying",
        "tie": "tying",
        "news": "news",
        "inning": "innings inning",
        "outing": "outings outing",
        "canning": "cannings canning",
        "howe": "howe",
        "proceed": "proceed",
        "exceed": "exceed",
        "succeed": "succeed",
    }.items()
    for form in forms.split()
}
_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "fulli": "ful",
}
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
# fmt: off
_STEP_4 = dict.fromkeys(
    ["al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
     "ou", "ism", "ate", "iti", "ous", "ive", "ize"], ""
)
# fmt: on


@lru_cache(maxsize=8192)
def porter_stem(word: str) -> str:
    """The stem of a word in lower case.

    Parameters
    ----------
    word
        Lower case; letters other than a, e, i, o, u (and y after a consonant), and digits, count as consonants. Words
        of one or two characters stay as they are.

    References
    ----------
    Porter (1980), An algorithm for suffix stripping.

    Examples
    --------
    >>> [porter_stem(word) for word in ("weekly", "months", "relational", "hopping", "dying")]
    ['weekli', 'month', 'relat', 'hop', 'die']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past_and_gerund, _final_y, _step_2, _step_3, _step_4, _final_e, _final_ll):
        word = step(word)
    return word


def _kinds(word: str) -> str:
    """The word as c (consonant) and v (vowel)."""
    kinds = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds.endswith("c"))
        kinds += "v" if vowel else "c"
    return kinds


def _measure(stem: str) -> int:
    return len(re.findall("v+c+", _kinds(stem)))


def _has_vowel(stem: str) -> bool:
    return "v" in _kinds(stem)


def _ends_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _kinds(word)[-1] == "c"


def _ends_short(word: str) -> bool:
    """Consonant, vowel, consonant other than w, x, y at the end; or the whole word is vowel, consonant."""
    kinds = _kinds(word)
    return kinds == "vc" or (kinds.endswith("cvc") and word[-1] not in "wxy")


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_gerund(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem != word and _has_vowel(stem):
            return _mend(stem)
    return word


def _mend(stem: str) -> str:
    """After -ed and -ing: give back an e, or undo a doubling."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_double_consonant(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _final_y(word: str) -> str:
    stem = word[:-1]
    return stem + "i" if word.endswith("y") and len(stem) > 1 and _kinds(stem)[-1] == "c" else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi") and not word.endswith(tuple(_STEP_2)):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace(word, _STEP_2, lambda stem: _measure(stem) > 0)


def _step_3(word: str) -> str:
    return _replace(word, _STEP_3, lambda stem: _measure(stem) > 0)


def _step_4(word: str) -> str:
    def fits(stem: str) -> bool:
        return _measure(stem) > 1 and (not word.endswith("ion") or stem.endswith(("s", "t")))

    return _replace(word, _STEP_4, fits)


def _final_e(word: str) -> str:
    stem = word.removesuffix("e")
    measure = _measure(stem)
    return stem if measure > 1 or (measure == 1 and not _ends_short(stem)) else word


def _final_ll(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _replace(word: str, rules: dict[str, str], condition: Callable[[str], bool]) -> str:
    """Apply the rule of the longest suffix of the word, if its condition holds."""
    fitting = [suffix for suffix in rules if word.endswith(suffix)]
    if not fitting:
        return word
    suffix = max(fitting, key=len)
    stem = word.removesuffix(suffix)
    return stem + rules[suffix] if condition(stem) else word
