"""The anytime-valid bound: expectations exactly, false alarms and sharpness by simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest

from jaxaudit.bound.counts import log_null_pmf
from jaxaudit.bound.law import sample, worst_case_law
from jaxaudit.bound.lower_bound import epsilon_lower_bound
from jaxaudit.bound.sequence import ConfidenceSequence, log_e_process
from jaxaudit.errors import InputError

DESIGNS = [(2, 2, 0.3), (6, 6, 3.0), (9, 4, 1.0), (45, 40, 2.0), (400, 100, 10.0)]
# m, r, true epsilon; after 10, 30, 100 runs: mean bound with 24 equally weighted rates from 0.02 to 4, mean
# bound (of 4000 other audits on the same grid of claims) and standard deviation of the bound.
MEANS = [
    (6, 6, 3.0, (2.30, 2.64, 2.77), (2.458, 2.722, 2.835), (0.286, 0.131, 0.084)),
    (45, 40, 2.0, (0.73, 1.27, 1.58), (0.876, 1.386, 1.657), (0.406, 0.258, 0.147)),
    (400, 100, 10.0, (8.59, 9.22, 9.58), (8.715, 9.333, 9.670), (0.329, 0.213, 0.119)),
]


def worst_case_audits(num_groups, num_guesses, epsilon, *, delta=0.0, size, seed):
    law = worst_case_law(num_groups, num_guesses, epsilon, delta)
    return sample(law, np.random.default_rng(seed), size)


def expectation_of_factor(pmf, history, epsilon, num_groups, num_guesses, delta):
    """E[M after one more run | history] / M(history)."""
    next_overlaps = np.arange(num_guesses + 1)
    audits = np.column_stack([np.tile(history, (num_guesses + 1, 1)), next_overlaps]).astype(int)
    log_process = log_e_process(audits, epsilon, num_groups=num_groups, num_guesses=num_guesses, delta=delta)
    before = np.exp(log_process[0, -2]) if len(history) else 1.0
    return np.sum(pmf * np.exp(log_process[:, -1])) / before


@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon"), DESIGNS)
def test_the_worst_case_mechanism_makes_it_a_martingale(num_groups, num_guesses, epsilon):
    pmf = np.exp(worst_case_law(num_groups, num_guesses, epsilon).log_pmf)
    for history in ([], [num_guesses], [num_guesses // 2, 0, num_guesses]):
        factor = expectation_of_factor(pmf, history, epsilon, num_groups, num_guesses, 0.0)
        assert factor == pytest.approx(1, rel=1e-11)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon"), DESIGNS)
def test_every_smaller_epsilon_makes_it_a_supermartingale(num_groups, num_guesses, epsilon, delta):
    for smaller in np.linspace(0, epsilon, 7):
        pmf = np.exp(worst_case_law(num_groups, num_guesses, smaller, delta).log_pmf)
        factor = expectation_of_factor(
            pmf, [num_guesses, num_guesses // 2], epsilon, num_groups, num_guesses, delta
        )
        assert factor <= 1 + 1e-11


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_supermartingale_for_any_mechanism_that_meets_the_claim(seed):
    """Laws whose ratio to chance stays within e^-eps and e^eps, not only the worst one."""
    rng, epsilon = np.random.default_rng(seed), 1.0
    chance = np.exp(log_null_pmf(12, 8))
    # Between any weights in [e^-eps, 1] and [1, e^eps] some mixture has total probability 1.
    low, high = np.exp(-epsilon * rng.random(9)), np.exp(epsilon * rng.random(9))
    share = (1 - chance @ low) / (chance @ (high - low))
    pmf = chance * (low + share * (high - low))
    assert pmf.sum() == pytest.approx(1)
    assert expectation_of_factor(pmf, [4, 6], epsilon, 12, 8, 0.0) <= 1 + 1e-12


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon"), [case[:3] for case in MEANS])
def test_false_alarms_at_any_of_100_runs(num_groups, num_guesses, epsilon, delta):
    overlaps = worst_case_audits(num_groups, num_guesses, epsilon, delta=delta, size=(2000, 100), seed=1)
    design = {"num_groups": num_groups, "num_guesses": num_guesses, "delta": delta}

    def alarms(claim):
        return int((log_e_process(overlaps, claim, **design).max(axis=1) >= np.log(20)).sum())

    upper_limit = binomtest(alarms(epsilon), 2000).proportion_ci(0.999).high
    assert upper_limit <= 0.05
    # The same count for a claim that is too small: the test above can fail.
    assert alarms(epsilon * 0.7) > 0.3 * 2000


@pytest.mark.parametrize(("num_groups", "num_guesses", "epsilon", "plain", "known", "spread"), MEANS)
def test_mean_bound_is_known_and_above_that_of_a_plain_mixture(
    num_groups, num_guesses, epsilon, plain, known, spread
):
    overlaps = worst_case_audits(num_groups, num_guesses, epsilon, size=(400, 100), seed=2)
    # Mean of the bound = integral of P[bound > e]; rounding e down to the grid only makes it smaller.
    grid = epsilon * np.concatenate([np.linspace(0, 0.5, 11), np.linspace(0.5, 1.1, 41)[1:]])
    rejected = np.zeros((3, len(grid) - 1))
    for column, claim in enumerate(grid[1:]):
        process = log_e_process(overlaps, claim, num_groups=num_groups, num_guesses=num_guesses)
        so_far = np.maximum.accumulate(process, axis=1)[:, [9, 29, 99]]
        rejected[:, column] = (so_far >= np.log(20)).mean(axis=0)
    means = rejected @ np.diff(grid)
    # Three standard errors of the difference of two means, of 400 and of 4000 audits.
    assert (np.abs(means - known) < 3 * np.array(spread) * np.sqrt(1 / 400 + 1 / 4000)).all()
    assert (means > plain).all()
    assert (means < epsilon).all()


def test_many_perfect_runs_exceed_the_largest_soft_evidence():
    """Right guesses in every run are the less likely the smaller epsilon is, also above log M' = 2.996."""
    sequence = ConfidenceSequence(num_groups=6, num_guesses=6)
    for _ in range(200):
        sequence.add(6)
    assert sequence.log_p_value(sequence.epsilon) == pytest.approx(np.log(0.05), abs=1e-9)
    assert sequence.log_p_value(sequence.epsilon + 1e-6) > np.log(0.05)
    fixed = epsilon_lower_bound([6] * 200, num_groups=6, num_guesses=6).epsilon
    assert 4 < sequence.epsilon < fixed


def test_running_maximum_survives_bad_runs():
    sequence = ConfidenceSequence(num_groups=20, num_guesses=20)
    for overlap in [20] * 5 + [0] * 5:
        sequence.add(overlap)
    assert sequence.num_runs == 10
    assert sequence.overlaps == (20,) * 5 + (0,) * 5
    assert sequence.epsilon == sequence.trajectory[4] == sequence.trajectory[-1] > 5
    assert (np.diff(sequence.trajectory) >= 0).all()


def test_no_evidence_is_zero():
    sequence = ConfidenceSequence(num_groups=8, num_guesses=4)
    assert [sequence.add(2) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_perfect_guesses_come_close_to_the_bound_of_as_many_declared_runs():
    sequence = ConfidenceSequence(num_groups=100, num_guesses=100)
    for _ in range(50):
        sequence.add(100)
    fixed = epsilon_lower_bound([100] * 50, num_groups=100, num_guesses=100).epsilon
    assert fixed - 0.7 < sequence.epsilon < fixed


def test_a_large_delta_does_not_destroy_the_evidence():
    """Without the cap the atom delta on V = r outweighs every rate; the fixed-L mean bound is 3.03 here."""
    sequence = ConfidenceSequence(num_groups=4500, num_guesses=3000, delta=0.01)
    for _ in range(10):
        sequence.add(1700)
    assert 27 < sequence.epsilon < 28.1


def test_stricter_settings_give_smaller_bounds():
    def bound(**settings):
        sequence = ConfidenceSequence(num_groups=12, num_guesses=10, **settings)
        for _ in range(8):
            sequence.add(9)
        return sequence.epsilon

    assert bound(significance=0.5) > bound() > bound(significance=1e-3) > 0
    assert bound() > bound(delta=1e-3) > bound(delta=0.05) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_groups": 1}, "num_groups"),
        ({"num_guesses": 3}, "num_guesses must be even, got 3"),
        ({"num_guesses": 8}, "num_guesses"),
    ],
)
def test_bad_designs(changes, message):
    with pytest.raises(InputError, match=message):
        ConfidenceSequence(**{"num_groups": 6, "num_guesses": 6} | changes)


@pytest.mark.parametrize("overlap", [-1, 7, 2.5, float("nan"), None, True])
def test_bad_overlaps_leave_the_sequence_as_it_was(overlap):
    sequence = ConfidenceSequence(num_groups=6, num_guesses=6)
    with pytest.raises(InputError, match="overlap must be an integer between 0 and 6"):
        sequence.add(overlap)
    assert sequence.num_runs == 0
