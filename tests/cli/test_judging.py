"""Verdicts on a claim, and what is printed in the end."""

import json
import math

import pytest

from jaxaudit.analysis import Claim
from jaxaudit.bound import epsilon_lower_bound, evidence_lower_bound
from jaxaudit.cli.judging import conclude, judge

DIRECT = epsilon_lower_bound([6] * 9 + [5], num_groups=6, num_guesses=6, significance=0.025)
SOFT = evidence_lower_bound([2.5, 2.0, 1.5], num_groups=6, significance=0.025)


@pytest.mark.parametrize("epsilon", [SOFT.epsilon - 0.01, SOFT.epsilon + 0.01, DIRECT.epsilon + 0.01])
def test_a_claim_falls_if_either_bound_rejects_it_at_its_level(epsilon):
    verdict = judge(Claim(epsilon), {"direct": DIRECT, "soft": SOFT}, 0.025)
    assert verdict.falsified == (epsilon < max(DIRECT.epsilon, SOFT.epsilon))
    assert verdict.p_values == {
        name: math.exp(bound.log_p_value(epsilon, 0.0))
        for name, bound in (("direct", DIRECT), ("soft", SOFT))
    }
    assert verdict.levels == {"direct": 0.025, "soft": 0.025}
    assert verdict.ceiling == max(DIRECT.ceiling, SOFT.ceiling)


def test_both_p_values_are_printed(capsys):
    verdict = judge(Claim(0.5), {"direct": DIRECT, "soft": SOFT}, 0.025)
    assert conclude(["a line"], {}, verdict, registered=False, notes=("mine",), as_json=False) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("a line falsified at level 0.05: the claim (epsilon 0.5, delta 0) (direct: p-value")
    assert out.count("level 0.025") == 2
    assert out.endswith("note: mine")


def test_json_without_a_claim(capsys):
    assert conclude([], {"bound": 1}, None, registered=True, notes=(), as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["bound"], document["verdict"], document["registered"]) == (1, None, True)
