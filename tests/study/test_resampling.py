"""The paired bootstrap against the independent one, SciPy's, and its promise to cover."""

import itertools

import numpy as np
import pytest
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import bootstrap_interval
from jaxaudit.study.resampling import paired_interval


def tables(seed, rows=4, columns=30, count=2):
    rng = np.random.default_rng(seed)
    return [rng.random((rows, columns)) for _ in range(count)]


def test_with_lists_of_their_own_it_is_the_independent_bootstrap():
    ours = paired_interval(lambda a, b: a - b, tables(0), num_seeds=4, num_resamples=20_000)
    other = bootstrap_interval(
        *tables(0), statistic=lambda a, b: a - b, over="both", num_resamples=20_000, seed=1
    )
    assert ours.estimate == pytest.approx(other.estimate)
    assert ours.low == pytest.approx(other.low, abs=0.005)
    assert ours.high == pytest.approx(other.high, abs=0.005)


def test_of_one_model_the_paired_difference_is_scipys():
    one, other = (table[0] for table in tables(1))
    ours = paired_interval(
        lambda a, b: a - b, [one[None], other[None]], [0, 0], num_seeds=1, num_resamples=20_000
    )
    theirs = stats.bootstrap(
        (one, other),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.005)


def test_what_models_have_in_common_cancels():
    (table,) = tables(2, count=1)
    found = paired_interval(lambda a, b: a - b, [table, table], [0, 0], num_seeds=4)
    assert found.low == found.high == 0
    assert paired_interval(lambda a, b: a - b, [table, table], num_seeds=4).high > 0.01
    assert paired_interval(lambda a, b: a - b, [table, table], [0, 0], num_seeds=2, edges=[0, 1]).high > 0.01


def test_seeds_and_edges_are_crossed_factors():
    """Every resample of three seeds and of two edges, listed; questions do not differ."""
    effects = np.array([[0.0, 0.3], [0.1, 0.5], [0.6, 0.7]])
    means = [
        np.mean([effects[seed, edge] for seed in seeds for edge in edges])
        for seeds in itertools.product(range(3), repeat=3)
        for edges in itertools.product(range(2), repeat=2)
    ]
    table = np.repeat(effects.reshape(-1, 1), 5, axis=1)
    found = paired_interval(lambda mean: mean, [table], num_seeds=3, confidence=0.8, num_resamples=50_000)
    expected = np.quantile(means, [0.1, 0.9], method="inverted_cdf")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.over == "both"


def test_two_groups_of_edges_share_their_seeds():
    """What a seed does to all its models cancels between groups; edges that differ by group do not."""
    seeds = np.repeat([0.0, 0.4, 0.9], 2)[:, None] * np.ones(4)
    same = paired_interval(lambda a, b: a - b, [seeds, seeds + 0.1], num_seeds=3, edges=[0, 1])
    assert (same.low, same.high) == pytest.approx((-0.1, -0.1))
    edges = np.tile([0.0, 1.0], 3)[:, None] * np.ones(4)
    assert paired_interval(lambda a, b: a - b, [edges, edges], num_seeds=3, edges=[0, 1]).high == 1.0
    assert paired_interval(lambda a, b: a - b, [edges, edges], num_seeds=3).high == 0.0


def test_rows_of_one_seed_are_not_independent():
    """Three seeds that differ and nine rows: the interval is that of three numbers, SciPy's."""
    levels = np.array([0.2, 0.5, 0.9])
    table = np.repeat(levels, 3)[:, None] * np.ones(6)
    found = paired_interval(lambda mean: mean, [table], num_seeds=3, num_resamples=20_000)
    theirs = stats.bootstrap((levels,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


def test_tables_must_agree():
    one, other = tables(3)
    with pytest.raises(InputError, match="tables must agree"):
        paired_interval(lambda a, b: a - b, [one, other[:2]], num_seeds=1)
    with pytest.raises(InputError, match="tables must agree"):
        paired_interval(lambda a, b: a - b, [one, other[:, :5]], [0, 0], num_seeds=1)
    with pytest.raises(InputError, match=r"num_seeds must divide the numbers of rows \[4\], got 3"):
        paired_interval(lambda a: a, [one], num_seeds=3)
