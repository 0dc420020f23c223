"""Measured false alarms: they respect the level, and the measurement notices bounds that do not."""

import json
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import beta, binom, chisquare

from jaxaudit.bound import rule
from jaxaudit.bound.counts import log_null_pmf
from jaxaudit.bound.evidence import log_wealth
from jaxaudit.bound.law import worst_case_law
from jaxaudit.bound.likelihood import log_evidence
from jaxaudit.bound.rule import OverlapRule
from jaxaudit.bound.validate import FalseAlarms, chance_overlaps, validate
from jaxaudit.errors import InputError

# The package offers the function under the same name, so that the module needs its full path.
module = import_module("jaxaudit.bound.validate")
SMALL = {"num_groups": 12, "num_guesses": 8, "num_runs": 10}
COUNTING = slice(0, None, 4)  # the checks of the counting bound come first for each mechanism


@pytest.mark.parametrize(
    ("design", "epsilon", "settings"),
    [
        ((500, 100, 10), 10.0, {}),
        ((45, 40, 10), 2.0, {"delta": 0.01}),
        ((6, 6, 50), 1.0, {"significance": 0.2}),
        ((12, 8, 10), 0.5, {"statistic": "median"}),
        ((12, 8, 10), 0.5, {"statistic": "tail", "threshold": 6}),
        ((12, 8, 10), 0.5, {"method": "odds"}),
        ((12, 8, 10), 0.5, {"method": "theorem-4.2"}),
    ],
)
def test_false_alarms_stay_within_the_level(design, epsilon, settings):
    num_groups, num_guesses, num_runs = design
    validation = validate(
        num_groups=num_groups, num_guesses=num_guesses, num_runs=num_runs, epsilon=epsilon, **settings
    )
    significance = settings.get("significance", 0.05)
    assert validation.consistent
    for check in validation.checks:
        # As many alarms as this would be a one in 1000 chance at exactly the level.
        assert check.num_alarms <= binom.isf(1e-3, 2000, significance)
        assert check.num_audits == 2000


@pytest.mark.parametrize(
    ("epsilon", "settings"),
    [
        (1.0, {}),
        (0.5, {"statistic": "median"}),
        (0.5, {"statistic": "tail", "threshold": 6}),
        (0.5, {"method": "odds"}),
    ],
)
def test_the_upper_limit_of_every_rate_is_within_the_level(epsilon, settings):
    """Where whole numbers leave some room below the level, 10,000 audits show that it holds."""
    validation = validate(**SMALL, epsilon=epsilon, **settings, num_audits=10_000)
    for check in validation.checks:
        assert beta.ppf(0.995, check.num_alarms + 1, 10_000 - check.num_alarms) <= 0.05
        assert check.holds
    assert "the significance; 8 of 8 intervals are not above it." in validation.text()


def test_the_measured_rate_is_the_exact_one():
    rates = [check.rate for check in validate(**SMALL, epsilon=0.5, num_audits=10_000).checks[COUNTING]]
    declared = OverlapRule(**SMALL)
    for true_epsilon, rate in zip((0.5, 0.0), rates, strict=True):
        tails = declared.tail_probabilities(worst_case_law(12, 8, true_epsilon))
        exact = tails[declared.critical_value(true_epsilon)]
        assert exact > 0.025
        assert abs(rate - exact) < 4 * np.sqrt(exact / 10_000)


def test_a_wrong_counting_bound_is_noticed(monkeypatch):
    def too_bold(overlaps, epsilon, **arguments):
        return right(overlaps, max(epsilon - 0.3, 0.0), **arguments)

    right = rule.p_value
    monkeypatch.setattr(rule, "p_value", too_bold)
    validation = validate(**SMALL, epsilon=1.0)
    assert not validation.consistent
    assert [check.consistent for check in validation.checks] == [False] + [True] * 7
    assert "TOO MANY" in validation.text()
    assert "NOT consistent" in validation.text()


def test_a_wrong_level_is_noticed(monkeypatch):
    right = rule.p_value
    monkeypatch.setattr(rule, "p_value", lambda *args, **kwargs: right(*args, **kwargs) / 4)
    checks = validate(**SMALL, epsilon=1.0).checks[COUNTING]
    assert [check.consistent for check in checks] == [False, False]


def test_a_wrong_chance_law_is_noticed(monkeypatch):
    """Signs that the guesses know something about."""

    def leaky(rng, num_runs, num_groups, num_guesses):
        overlaps = chance_overlaps(rng, num_runs, num_groups, num_guesses)
        return np.minimum(overlaps + (rng.random(num_runs) < 0.5), num_guesses)

    monkeypatch.setattr(module, "chance_overlaps", leaky)
    flagged = [not check.consistent for check in validate(**SMALL, epsilon=1.0).checks]
    assert not any(flagged[:4])
    assert all(flagged[4:7])


@pytest.mark.parametrize("num_checks_before", [1, 2, 3])
def test_wrong_e_processes_are_noticed(monkeypatch, num_checks_before):
    """Each e-process is multiplied by a constant per run that no valid one could afford."""
    gain = 0.4

    def inflated(process):
        return process + gain * (1 + np.arange(process.shape[-1]))

    if num_checks_before == 1:
        right = module.log_e_process
        monkeypatch.setattr(module, "log_e_process", lambda *a, **k: inflated(right(*a, **k)))
    else:
        form = ("product", "betting")[num_checks_before - 2]
        monkeypatch.setattr(
            module,
            "log_wealth",
            lambda *a, **k: inflated(log_wealth(*a, **k)) if k["form"] == form else log_wealth(*a, **k),
        )
    checks = validate(**SMALL, epsilon=1.0).checks
    flagged = [index for index, check in enumerate(checks) if not check.consistent]
    assert 4 + num_checks_before in flagged
    assert set(flagged) <= {num_checks_before, 4 + num_checks_before}


@pytest.mark.parametrize(("num_groups", "num_guesses"), [(6, 6), (7, 4), (9, 8), (40, 20)])
def test_chance_overlaps_follow_the_chance_law(num_groups, num_guesses):
    overlaps = chance_overlaps(np.random.default_rng(5), 20_000, num_groups, num_guesses)
    expected = 20_000 * np.exp(log_null_pmf(num_groups, num_guesses))
    observed = np.bincount(overlaps, minlength=num_guesses + 1)
    common = expected >= 5
    assert (observed[expected == 0] == 0).all()
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    kept = expected > 0
    assert chisquare(observed[kept], expected[kept]).pvalue > 1e-4


def test_chance_overlaps_in_blocks(monkeypatch):
    whole = chance_overlaps(np.random.default_rng(6), 50, 10, 4)
    monkeypatch.setattr(module, "_BLOCK", 70)
    blocks = chance_overlaps(np.random.default_rng(6), 50, 10, 4)
    assert len(whole) == len(blocks) == 50
    assert blocks.mean() == pytest.approx(2, abs=0.6)


@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon"), [(6, 4, 0.0), (7, 4, 1.0), (6, 6, 2.0)])
def test_the_simulated_attacker_has_the_evidence_of_real_scores(num_groups, num_guesses, epsilon):
    declared = OverlapRule(num_groups, num_guesses, 10)
    by_overlap = module._log_evidence_of_overlap(declared, epsilon)
    guesses = np.repeat([1, -1, 0], [num_guesses // 2, num_guesses // 2, num_groups - num_guesses])
    members = list(combinations(range(num_groups), num_groups // 2))
    signs = -np.ones((len(members), num_groups), dtype=int)
    for row, chosen in enumerate(members):
        signs[row, list(chosen)] = 1
    overlaps = (signs == guesses).sum(axis=1)
    strength = np.diff(by_overlap)[0]
    expected = log_evidence(strength * np.tile(guesses.astype(float), (len(signs), 1)), signs)
    np.testing.assert_allclose(by_overlap[overlaps], expected, atol=1e-10)
    # Averaged over all sign vectors the evidence of a model that forgot is exactly 1.
    assert np.exp(by_overlap[overlaps]).mean() == pytest.approx(1)


def test_same_seed_same_counts():
    def counts(seed):
        checks = validate(**SMALL, epsilon=1.0, num_audits=300, seed=seed).checks
        return [check.num_alarms for check in checks]

    assert counts(3) == counts(3)
    assert counts(3) != counts(4)


def test_interval_is_clopper_pearson():
    check = FalseAlarms("direct", "retraining", 0.0, 2000, 130, significance=0.05)
    assert check.rate == 0.065
    assert check.interval == pytest.approx((beta.ppf(0.005, 130, 1871), beta.ppf(0.995, 131, 1870)), rel=1e-9)
    assert not check.consistent
    between = FalseAlarms("direct", "retraining", 0.0, 2000, 120, significance=0.05)
    assert between.consistent
    assert not between.holds
    assert between.line().endswith("   consistent")
    few = FalseAlarms("direct", "retraining", 0.0, 2000, 60, significance=0.05)
    assert few.interval[1] < 0.05
    assert few.holds
    assert few.line().endswith("   holds")
    # Too few audits to show anything.
    assert not FalseAlarms("direct", "retraining", 0.0, 10, 0, significance=0.05).holds
    assert FalseAlarms("direct", "retraining", 0.0, 10, 0, significance=0.05).interval[0] == 0.0


def test_json_and_text():
    validation = validate(**SMALL, epsilon=1.0, num_audits=100)
    written = json.loads(json.dumps(validation.as_dict(), allow_nan=False))
    assert written["consistent"] is True
    assert written["num_audits"] == 100
    first, last = written["checks"][0], written["checks"][-1]
    assert (first["bound"], first["mechanism"], first["true_epsilon"]) == ("direct, mean", "worst case", 1.0)
    assert (last["bound"], last["mechanism"], last["true_epsilon"]) == (
        "soft evidence, betting",
        "retraining",
        0,
    )
    assert first["interval"] == list(validation.checks[0].interval)
    assert first["holds"] is validation.checks[0].holds
    text = validation.text()
    assert text.isascii()
    assert len(text.splitlines()) == 11
    assert max(map(len, text.splitlines())) < 110


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_groups": 1}, "num_groups"),
        ({"num_guesses": 5}, "num_guesses must be even, got 5"),
        ({"num_runs": 0}, "num_runs"),
        ({"epsilon": -1.0}, "epsilon must not be negative, got -1.0"),
        ({"delta": 1.5}, "delta"),
        ({"significance": 0.0}, "significance"),
        ({"statistic": "tail"}, "threshold must be given"),
        ({"num_audits": 0}, "num_audits must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(InputError, match=message):
        validate(**SMALL | {"epsilon": 1.0} | changes)
