"""The paired bootstrap against the independent one, SciPy's, and its promise to cover."""

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
    ours = paired_interval(lambda a, b: a - b, tables(0), num_resamples=20_000)
    other = bootstrap_interval(
        *tables(0), statistic=lambda a, b: a - b, over="both", num_resamples=20_000, seed=1
    )
    assert ours.estimate == pytest.approx(other.estimate)
    assert ours.low == pytest.approx(other.low, abs=0.005)
    assert ours.high == pytest.approx(other.high, abs=0.005)


def test_of_one_model_the_paired_difference_is_scipys():
    one, other = (table[0] for table in tables(1))
    ours = paired_interval(lambda a, b: a - b, [one[None], other[None]], [0, 0], num_resamples=20_000)
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
    found = paired_interval(lambda a, b: a - b, [table, table], [0, 0])
    assert found.low == found.high == 0
    assert paired_interval(lambda a, b: a - b, [table, table]).high > 0.01


def test_tables_must_agree():
    one, other = tables(3)
    with pytest.raises(InputError, match="tables must agree"):
        paired_interval(lambda a, b: a - b, [one, other[:2]])
    with pytest.raises(InputError, match="tables must agree"):
        paired_interval(lambda a, b: a - b, [one, other[:, :5]], [0, 0])
