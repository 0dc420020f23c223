import pytest

from jaxaudit.errors import InputError
from jaxaudit.verdict import Claim, Verdict


def make_verdict(falsified, epsilon=2.0, ceiling=5.0):
    return Verdict(
        Claim(epsilon), falsified, {"direct": 0.01, "soft": 0.5}, {"direct": 0.025, "soft": 0.025}, ceiling
    )


def test_text_says_the_level_and_what_it_does_not_mean():
    assert make_verdict(True).text == "falsified at level 0.05: the claim (epsilon 2, delta 0)"
    assert "no certificate" in make_verdict(False).text
    for ceiling in (1.0, 2.0):
        assert "could not fail" in make_verdict(False, ceiling=ceiling).text


@pytest.mark.parametrize("claim", [(-1.0, 0.0), (float("nan"), 0.0), (1.0, 1.0), (1.0, -0.1)])
def test_bad_claims(claim):
    with pytest.raises(InputError, match=r"epsilon|delta"):
        Claim(*claim)
