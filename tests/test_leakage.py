"""Leakage against brute force over sign patterns, scikit-learn and the laws its p-values must follow."""

import itertools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import binomtest, false_discovery_control, kstest
from sklearn.metrics import roc_auc_score

from jaxaudit.errors import InputError
from jaxaudit.leakage import measure_leakage, sign_flip_p_values


def draw(rng, num_runs: int, num_groups: int) -> np.ndarray:
    base = np.where(np.arange(num_groups) < num_groups // 2, 1, -1)
    return rng.permuted(np.tile(base, (num_runs, 1)), axis=1)


def brute_force(ratios: np.ndarray, signs: np.ndarray) -> list[float]:
    """Oracle: add up the probabilities of all sign patterns of one group that reach its log-odds."""
    num_runs, num_groups = signs.shape
    positive = (num_groups // 2) / num_groups
    p_values = [0.0] * num_groups
    for j, pattern in itertools.product(range(num_groups), itertools.product((-1, 1), repeat=num_runs)):
        if np.dot(pattern, ratios[:, j]) >= np.dot(signs[:, j], ratios[:, j]) - 1e-9:
            p_values[j] += np.prod([positive if s == 1 else 1 - positive for s in pattern])
    return p_values


@pytest.mark.parametrize(("num_runs", "num_groups"), [(1, 2), (3, 5), (6, 4), (8, 7)])
@pytest.mark.parametrize("integers", [False, True])
def test_p_values_are_exact(num_runs, num_groups, integers):
    rng = np.random.default_rng(num_runs)
    signs = draw(rng, num_runs, num_groups)
    ratios = rng.integers(-2, 3, size=signs.shape) * 0.1 if integers else rng.normal(size=signs.shape)
    found = sign_flip_p_values(ratios, signs)
    np.testing.assert_allclose(found, brute_force(ratios, signs), rtol=1e-12)


def test_groups_beyond_one_block_are_treated_alike():
    rng = np.random.default_rng(0)
    signs = draw(rng, 6, 200)
    ratios = rng.normal(size=signs.shape)
    few = [5, 63, 64, 150, 199]
    found = sign_flip_p_values(ratios, signs)[few]
    patterns = np.array(list(itertools.product((-1, 1), repeat=6)))
    expected = [(patterns @ ratios[:, j] >= signs[:, j] @ ratios[:, j] - 1e-9).mean() for j in few]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("num_groups", [4, 7])
@pytest.mark.parametrize("num_runs", [5, 12, 20])
def test_no_evidence_is_p_value_one(num_runs, num_groups):
    signs = draw(np.random.default_rng(0), num_runs, num_groups)
    leakage = measure_leakage(np.zeros(signs.shape), signs)
    assert {record.p_value for record in leakage.records} == {1.0}
    assert leakage.roc_auc == 0.5
    assert leakage.tpr_at_fpr == {0.001: 0.0, 0.01: 0.0}
    assert leakage.num_recognised == 0
    assert [record.group for record in leakage.records] == list(range(num_groups))


def test_sampled_p_values_agree_with_enumeration():
    """A thirteenth run with next to no evidence changes nothing but the way of counting."""
    rng = np.random.default_rng(1)
    signs = draw(rng, 13, 30)
    ratios = rng.normal(size=signs.shape) + 0.3 * signs
    ratios[12] = 1e-9
    sampled = sign_flip_p_values(ratios, signs)
    exact = sign_flip_p_values(ratios[:12], signs[:12])
    # five standard deviations of a share of 49,999 draws, and the observed pattern
    assert (np.abs(sampled - exact) <= 5 * np.sqrt(exact * (1 - exact) / 49_999) + 1 / 50_000).all()
    assert (sampled != exact).any()


def test_sampled_p_values_count_the_observed_pattern():
    signs = draw(np.random.default_rng(2), 40, 6)
    np.testing.assert_allclose(sign_flip_p_values(3.0 * signs, signs), 1 / 50_000, rtol=1e-12)


def test_failed_runs_are_no_evidence():
    rng = np.random.default_rng(3)
    signs = draw(rng, 9, 6)
    ratios = rng.normal(size=signs.shape)
    failed = np.isin(np.arange(9), [2, 5])
    broken = np.where(failed[:, None], np.nan, ratios)
    leakage = measure_leakage(broken, signs, failed)
    zeroed = np.where(failed[:, None], 0.0, ratios)
    assert leakage == measure_leakage(zeroed, signs)
    np.testing.assert_allclose(
        [r.p_value for r in sorted(leakage.records, key=lambda r: r.group)],
        brute_force(ratios[~failed], signs[~failed]),
        rtol=1e-12,
    )
    assert leakage.roc_auc == roc_auc_score(signs.ravel() == 1, zeroed.ravel())


@pytest.mark.parametrize("num_groups", [6, 5])
def test_p_values_are_valid_under_the_null(num_groups):
    """P[p <= x] <= x, and nearly uniform where the enumeration is fine: 10 runs have steps of 1/1024."""
    rng = np.random.default_rng(4)
    p_values = np.array(
        [
            sign_flip_p_values(rng.normal(size=(10, num_groups)), draw(rng, 10, num_groups))[0]
            for _ in range(1_500)
        ]
    )
    assert kstest(p_values, "uniform").pvalue > 1e-3
    for level in (0.01, 0.05, 0.2):
        below = int((p_values <= level).sum())
        assert binomtest(below, len(p_values), level, alternative="greater").pvalue > 1e-3


def test_false_discoveries_are_controlled_under_the_null():
    rng = np.random.default_rng(5)
    signs = [draw(rng, 10, 300) for _ in range(60)]
    found = [measure_leakage(rng.normal(size=s.shape), s).num_recognised > 0 for s in signs]
    assert binomtest(sum(found), len(found), 0.1, alternative="greater").pvalue > 1e-3


def test_planted_leaks_are_found():
    rng = np.random.default_rng(6)
    signs = draw(rng, 10, 400)
    ratios = rng.normal(size=signs.shape)
    ratios[:, :40] += 4.0 * signs[:, :40]
    leakage = measure_leakage(ratios, signs)
    named = [record.group for record in leakage.records[: leakage.num_recognised]]
    assert len(set(named) & set(range(40))) >= 38
    assert len(set(named) - set(range(40))) <= 12
    assert all(record.q_value <= 0.1 for record in leakage.records[: leakage.num_recognised])
    assert all(record.q_value > 0.1 for record in leakage.records[leakage.num_recognised :])


def test_a_single_leak_among_many_is_found_with_enough_runs():
    rng = np.random.default_rng(7)
    signs = draw(rng, 40, 1_000)
    ratios = rng.normal(size=signs.shape)
    ratios[:, 123] = 3.0 * signs[:, 123]
    leakage = measure_leakage(ratios, signs)
    assert leakage.records[0].group == 123
    assert leakage.num_recognised >= 1


def test_records_are_complete_and_sorted_and_corrected():
    rng = np.random.default_rng(8)
    signs = draw(rng, 5, 30)
    ratios = rng.normal(size=signs.shape) + signs
    leakage = measure_leakage(ratios, signs)
    assert sorted(record.group for record in leakage.records) == list(range(30))
    keys = [(record.p_value, -record.log_odds) for record in leakage.records]
    assert keys == sorted(keys)
    p_values, q_values = zip(*((record.p_value, record.q_value) for record in leakage.records))
    np.testing.assert_allclose(q_values, false_discovery_control(p_values), rtol=1e-12)
    for record in leakage.records:
        expected = sum(signs[run, record.group] * ratios[run, record.group] for run in range(5))
        np.testing.assert_allclose(record.log_odds, expected, rtol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_roc_numbers_agree_with_scikit_learn_and_a_loop_over_thresholds(ties):
    rng = np.random.default_rng(9)
    signs = draw(rng, 10, 400)
    ratios = rng.normal(size=signs.shape) + 1.5 * signs
    ratios = np.round(ratios, 1) if ties else ratios
    leakage = measure_leakage(ratios, signs)
    member = signs == 1
    assert leakage.roc_auc == pytest.approx(roc_auc_score(member.ravel(), ratios.ravel()), rel=1e-12)
    larger = (ratios[member][:, None] > ratios[~member]).mean()
    equal = (ratios[member][:, None] == ratios[~member]).mean()
    assert leakage.roc_auc == pytest.approx(larger + equal / 2, rel=1e-12)
    for rate, tpr in leakage.tpr_at_fpr.items():
        allowed = [t for t in np.unique(ratios) if (ratios[~member] >= t).mean() <= rate]
        assert tpr == max((ratios[member] >= t).mean() for t in allowed)
        assert 0 < tpr < 1


def test_thresholds_on_a_straight_piece_of_the_curve_count():
    # Pairs of a member and a non-member: every threshold is on the diagonal, the second of them at 1 %.
    signs = np.tile([[1, -1]], 200)
    leakage = measure_leakage(-(np.arange(400) // 2)[None, :], signs)
    assert leakage.tpr_at_fpr == {0.001: 0.0, 0.01: 0.01}
    assert leakage.roc_auc == pytest.approx(0.5, rel=1e-12)


def test_misled_auditor_has_negative_log_odds_and_large_p_values():
    signs = draw(np.random.default_rng(10), 8, 6)
    leakage = measure_leakage(-2.0 * signs, signs)
    assert {record.log_odds for record in leakage.records} == {-16.0}
    assert {record.p_value for record in leakage.records} == {1.0}
    assert leakage.roc_auc == 0.0


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ([[1.0, np.nan]], "log_ratios must be finite, got nan"),
        ([[np.inf, 0.0]], "log_ratios must be finite, got inf"),
        ([[1.0, 0.0, 0.0]], r"log_ratios must have the shape \(1, 2\) of signs, got \(1, 3\)"),
    ],
)
def test_bad_log_ratios_are_errors(ratios, message):
    with pytest.raises(InputError, match=message):
        measure_leakage(ratios, [[1, -1]])


def test_results_are_frozen():
    leakage = measure_leakage([[1.0, 0.0]], [[1, -1]])
    with pytest.raises(FrozenInstanceError):
        leakage.roc_auc = 1.0
    assert leakage.false_discovery_rate == 0.1
