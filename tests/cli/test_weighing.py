"""Log-ratios of somebody's own attack: the bounds are those of the statistics, and their direction is watched."""

from itertools import combinations

import numpy as np
import pytest

from jaxaudit.bound import epsilon_lower_bound, evidence_lower_bound
from jaxaudit.cli.weighing import weigh
from jaxaudit.design import AuditDesign
from jaxaudit.scorefile import LogRatioFile

GROUPS, RUNS = 6, 8
RNG = np.random.default_rng(5)
SIGNS = RNG.permuted(np.tile([1, -1], (RUNS, GROUPS // 2)), axis=1)
RATIOS = 1.5 * SIGNS + RNG.normal(size=SIGNS.shape)
FAILED = np.arange(RUNS) == 2
DESIGN = AuditDesign(num_groups=GROUPS, num_guesses=4, significance=0.1)


def log_ratio_file(ratios=RATIOS, failed=FAILED, run_ids=None):
    return LogRatioFile(ratios, SIGNS, failed, np.arange(RUNS) if run_ids is None else run_ids)


def evidence_by_enumeration(temperature):
    """Log evidence of each run: the likelihood of the true signs over its average over all balanced ones."""
    every = np.array(
        [[1 if group in members else -1 for group in range(6)] for members in combinations(range(6), 3)]
    )
    scaled = temperature * np.where(FAILED[:, None], 0.0, RATIOS)
    average = np.mean(np.exp(scaled @ (every == 1).T), axis=1)
    return np.where(FAILED, -np.inf, (scaled * (SIGNS == 1)).sum(axis=1) - np.log(average))


@pytest.mark.parametrize("temperature", [None, 0.5])
@pytest.mark.parametrize("form", ["product", "betting"])
def test_soft_evidence_is_that_of_the_temperature(temperature, form):
    design = DESIGN.replace(temperature=temperature, evidence_form=form)
    found = weigh(log_ratio_file(), design, delta=1e-4).soft
    options = {"num_groups": GROUPS, "delta": 1e-4, "significance": 0.1, "form": form}
    expected = evidence_lower_bound(evidence_by_enumeration(temperature or 1.0), **options)
    assert found.epsilon == pytest.approx(expected.epsilon, abs=1e-9)
    assert found.num_runs == RUNS


def test_guesses_are_the_most_extreme_ratios():
    order = np.argsort(RATIOS, axis=1)
    rows = np.arange(RUNS)[:, None]
    right = (SIGNS[rows, order[:, -2:]] == 1).sum(axis=1) + (SIGNS[rows, order[:, :2]] == -1).sum(axis=1)
    found = weigh(log_ratio_file(), DESIGN, delta=0.0).direct
    expected = epsilon_lower_bound(np.where(FAILED, 0, right), num_groups=6, num_guesses=4, significance=0.1)
    assert found == expected


def test_without_a_number_of_guesses_only_soft_evidence_is_left():
    weighed = weigh(log_ratio_file(), DESIGN.replace(num_guesses=None), delta=0.0)
    assert weighed.direct is None
    assert weighed.soft.num_runs == RUNS


def test_runs_are_added_up_in_the_order_of_their_ids():
    order = RNG.permutation(RUNS)
    shuffled = LogRatioFile(RATIOS[order], SIGNS[order], FAILED[order], order)
    assert weigh(shuffled, DESIGN, 0.0).soft == weigh(log_ratio_file(), DESIGN, 0.0).soft
    backwards = weigh(log_ratio_file(run_ids=-np.arange(RUNS)), DESIGN, 0.0).soft
    assert backwards.trajectory != weigh(log_ratio_file(), DESIGN, 0.0).soft.trajectory


def test_levels_are_those_of_the_design():
    for method, level in {"direct": 0.1, "soft": 0.1, "both": 0.05}.items():
        weighed = weigh(log_ratio_file(), DESIGN.replace(method=method), 0.0)
        assert weighed.direct.significance == weighed.soft.significance == level
