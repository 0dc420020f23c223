import random
import warnings

import pytest

from jaxaudit.metrics import porter_stem

# Porter (1980), the examples of each step.
PORTER_1980 = """
caresses caress, ponies poni, caress caress, cats cat, feed feed, agreed agre, plastered plaster, bled bled,
motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, tanned tan, falling fall,
hissing hiss, fizzed fizz, failing fail, filing file, happy happi, sky sky, relational relat, conditional condit,
rational ration, valenci valenc, hesitanci hesit, digitizer digit, conformabli conform, radicalli radic,
differentli differ, vileli vile, analogousli analog, vietnamization vietnam, predication predic, operator oper,
feudalism feudal, decisiveness decis, hopefulness hope, callousness callous, formaliti formal, sensitiviti sensit,
sensibiliti sensibl, triplicate triplic, formative form, formalize formal, electriciti electr, electrical electr,
hopeful hope, goodness good, revival reviv, allowance allow, inference infer, airliner airlin, gyroscopic gyroscop,
adjustable adjust, defensible defens, irritant irrit, replacement replac, adjustment adjust, dependent depend,
adoption adopt, homologou homolog, communism commun, activate activ, angulariti angular, homologous homolog,
effective effect, bowdlerize bowdler, probate probat, rate rate, cease ceas, controll control, roll roll,
generalizations gener, oscillators oscil
"""
# What NLTK does otherwise than the paper of 1980: short -ies and -ied, -y, -logi, irregular words.
EXTENSIONS = (
    "ties tie, died die, enjoy enjoy, apology apolog, news news, dying die, canning canning, skies sky, by by"
)


@pytest.mark.parametrize("pair", f"{PORTER_1980.strip()}, {EXTENSIONS}".replace("\n", " ").split(","))
def test_published_examples(pair):
    word, stem = pair.split()
    assert porter_stem(word) == stem


def test_equals_nltk_on_words_made_of_suffixes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        porter = pytest.importorskip("nltk.stem.porter")
    rng, reference = random.Random(0), porter.PorterStemmer()
    suffixes = (
        "ational enci izer bli alli logi ization ness iviti icate ful ance ement ion ous ed ing ies y e ll s"
    )
    suffixes = [*suffixes.split(), "", ""]
    for _ in range(3000):
        start = "".join(rng.choices("abcdeilostuyz7", k=rng.randint(1, 5)))
        word = start + rng.choice(suffixes) + rng.choice(suffixes)
        assert porter_stem(word) == reference.stem(word), word
