"""Differences beside retraining and rank correlations, against SciPy and made-up outcomes."""

import itertools

import numpy as np
import pytest
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import deviation_score
from jaxaudit.study import Outcome, rank_correlation, score_difference


def made_up(forget, retain, floor_forget, floor_retain, rows=3, edge="0_1"):
    """Constant recalls."""
    tables = [
        np.full((rows, size), value)
        for value, size in ((forget, 20), (retain, 50), (floor_forget, 20), (floor_retain, 50))
    ]
    return Outcome("npo", (edge,), tuple(range(rows)), *tables, {}, 0)


def test_the_difference_is_that_of_the_scores_and_net_of_the_floors():
    first, second = made_up(0.5, 0.8, 0.3, 1.0), made_up(0.2, 0.9, 0.25, 1.0)
    effect = score_difference(first, second)
    raw = deviation_score(0.5, 0.8) - deviation_score(0.2, 0.9)
    floor = deviation_score(0.3, 1.0) - deviation_score(0.25, 1.0)
    assert effect.raw.estimate == pytest.approx(raw)
    assert effect.net.estimate == pytest.approx(raw - floor)
    assert effect.verdict == "shows"
    assert score_difference(second, first).verdict == "reversed"


def test_an_effect_that_is_the_floors_is_said_to_be_no_more():
    effect = score_difference(made_up(0.32, 1.0, 0.32, 1.0), made_up(0.26, 1.0, 0.26, 1.0))
    assert effect.raw.low > 0
    assert effect.net.estimate == pytest.approx(0)
    assert effect.verdict == "shows, but not beyond what retraining shows as well"


def test_an_effect_that_is_below_the_floors_is_said_to_be_less():
    effect = score_difference(made_up(0.32, 1.0, 0.42, 1.0), made_up(0.26, 1.0, 0.26, 1.0))
    assert effect.verdict == "shows, but less than retraining alone"


def test_of_the_same_edges_edges_and_questions_are_resampled_together():
    """Two methods on the same edges that differ by a constant: nothing is left to vary."""
    rng = np.random.default_rng(1)
    forget = rng.random((6, 20)) / 2
    zeros, ones = np.zeros((6, 20)), np.ones((6, 50))

    def one(shift, edges):
        return Outcome("npo", edges, (1, 2, 3), forget + shift, ones, zeros, ones, {}, 0)

    same = score_difference(one(0.1, ("0_1", "1_2")), one(0.0, ("0_1", "1_2")))
    assert (same.raw.low, same.raw.high) == pytest.approx((10, 10))
    assert (same.net.low, same.net.high) == pytest.approx((10, 10))
    other = score_difference(one(0.1, ("0_1", "1_2")), one(0.0, ("2_3", "3_4")))
    assert other.raw.high - other.raw.low > 1


def test_no_difference_does_not_show():
    rng = np.random.default_rng(0)
    tables = [rng.integers(0, 2, (3, 40)).astype(float) for _ in range(4)]
    one = Outcome("npo", ("0_1",), (1, 2, 3), *tables, {}, 0)
    other = Outcome("npo", ("1_2",), (1, 2, 3), *[rng.permuted(table, axis=1) for table in tables], {}, 0)
    assert score_difference(one, other).verdict == "does not show"


def test_outcomes_must_have_the_same_seeds():
    with pytest.raises(InputError, match=r"same seeds, got \(0, 1, 2\) and \(0, 1\)"):
        score_difference(made_up(0, 1, 0, 1), made_up(0, 1, 0, 1, rows=2))


@pytest.mark.parametrize("seed", range(4))
def test_the_rank_correlation_is_scipys_with_ties(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 4, 20), rng.normal(size=20).round(1)
    found = rank_correlation(x, y)
    assert found.estimate == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.low < found.estimate < found.high


def test_the_interval_covers_as_often_as_it_says():
    """Independent pairs: the true correlation is 0; a percentile bootstrap of 30 pairs is nearly right."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        found = rank_correlation(rng.normal(size=30), rng.normal(size=30), num_resamples=200)
        covered += found.low <= 0 <= found.high
    assert covered >= 86  # 95 % of 100, less four standard errors


def test_pairs_of_one_cluster_are_resampled_together():
    """Five graphs of six pairs that agree within a graph: the interval is that of five pairs, not of thirty."""
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 4, 3, 5])
    many = (np.repeat(x, 6), np.repeat(y, 6))
    names = [f"graph {number}" for number in range(5) for _ in range(6)]
    clustered, pairs = (
        rank_correlation(*many, factors=factors, num_resamples=4000) for factors in ([names], [])
    )
    # All ways to draw five of five: exactly what a bootstrap of the five pairs converges to.
    every = np.array(list(itertools.product(range(5), repeat=5)))
    values = np.array([stats.spearmanr(x[own], y[own]).statistic for own in every if len(set(own)) > 1])
    low, high = np.quantile(values, [0.025, 0.975])
    assert (clustered.low, clustered.high) == pytest.approx((low, high), abs=0.15)
    assert clustered.estimate == pairs.estimate
    assert clustered.high - clustered.low > pairs.high - pairs.low
    with pytest.raises(InputError, match="factors must name one of at least 4"):
        rank_correlation(x, y, factors=[["a", "a", "b", "b", "c"]])
    with pytest.raises(InputError, match="for each of 5 pairs"):
        rank_correlation(x, y, factors=[["a", "b", "c", "d"]])


def test_what_methods_and_graphs_add_is_no_correlation():
    """Effects of five methods, independent in x and y, seen in six graphs: intervals over both hold 0, mostly."""
    rng = np.random.default_rng(0)
    graphs, methods = (list(map(str, axis.ravel())) for axis in np.indices((6, 5)))
    covered = {"both": 0, "graphs": 0}
    for _ in range(60):
        x, y = ((rng.normal(size=5) + 0.3 * rng.normal(size=(6, 5))).ravel() for _ in range(2))
        for name, factors in (("both", [graphs, methods]), ("graphs", [graphs])):
            found = rank_correlation(x, y, factors=factors, num_resamples=200)
            covered[name] += found.low <= 0 <= found.high
    assert covered["graphs"] < 30
    assert covered["both"] >= 48  # too short with so few methods, as the docstring says


def test_what_does_not_vary_has_no_rank_correlation():
    with pytest.raises(InputError, match="must vary"):
        rank_correlation([1, 1, 1, 1], [1, 2, 3, 4])
    with pytest.raises(InputError, match="at least 4 numbers"):
        rank_correlation([1, 2, 3], [1, 2, 3])
