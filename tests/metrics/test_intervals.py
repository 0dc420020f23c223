import itertools

import numpy as np
import pytest
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import bootstrap_interval, deviation_of_means, deviation_score, t_interval

RNG = np.random.default_rng(0)
TABLE = RNG.uniform(size=(4, 12))


@pytest.mark.parametrize(("over", "axis"), [("questions", 0), ("seeds", 1)])
def test_t_interval_equals_scipy(over, axis):
    expected = stats.ttest_1samp(TABLE.mean(axis=axis), 0.0).confidence_interval(0.9)
    interval = t_interval(TABLE, over=over, confidence=0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.estimate == pytest.approx(TABLE.mean())


def exact_quantiles(table, over, tail):
    """Of the bootstrap means, by going through every resample."""
    rows, columns = (range(size) for size in table.shape)
    row_draws = itertools.product(rows, repeat=len(rows)) if over != "questions" else [tuple(rows)]
    column_draws = itertools.product(columns, repeat=len(columns)) if over != "seeds" else [tuple(columns)]
    means = [table[np.ix_(r, c)].mean() for r, c in itertools.product(row_draws, list(column_draws))]
    return np.quantile(means, [tail, 1 - tail])


@pytest.mark.parametrize("over", ["questions", "seeds", "both"])
def test_bootstrap_equals_going_through_all_resamples(over):
    table = RNG.uniform(size=(3, 4))
    interval = bootstrap_interval(table, over=over, confidence=0.8, num_resamples=100_000)
    np.testing.assert_allclose((interval.low, interval.high), exact_quantiles(table, over, 0.1), atol=0.01)


def test_seeds_are_resampled_together_and_questions_apart():
    interval = bootstrap_interval(
        TABLE, TABLE, statistic=lambda one, other: one - other, over="seeds", num_resamples=50
    )
    assert (interval.low, interval.high) == pytest.approx((0, 0))
    apart = bootstrap_interval(TABLE, TABLE, statistic=lambda one, other: one - other, over="questions")
    assert apart.low < -0.05 < 0.05 < apart.high


def test_interval_of_a_deviation_score():
    forget, retain = RNG.uniform(0, 0.3, (3, 20)), RNG.uniform(0.8, 1, (3, 40))
    interval = bootstrap_interval(forget, retain, statistic=deviation_of_means, over="both")
    assert interval.low < interval.estimate < interval.high
    assert interval.estimate == pytest.approx(deviation_score(forget, retain))


def test_equal_answers_give_no_width_and_one_model_needs_no_seed_axis():
    interval = bootstrap_interval(np.full(5, 0.25), over="questions", num_resamples=20)
    assert interval.low == interval.estimate == interval.high == 0.25
    assert t_interval(np.full(5, 0.25), over="questions").high == 0.25


def test_the_same_seed_gives_the_same_interval():
    one, same, other = (bootstrap_interval(TABLE, over="both", seed=seed) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: t_interval([0.5], over="questions"),
            "questions must be at least 2 for an interval over questions",
        ),
        (
            lambda: t_interval(TABLE[:1], over="seeds"),
            "seeds must be at least 2 for an interval over seeds, got 1",
        ),
        (lambda: bootstrap_interval(TABLE[:1], over="both"), "seeds must be at least 2"),
        (lambda: bootstrap_interval(TABLE, TABLE[:3], over="both"), r"the same number of seeds.*\[4, 3\]"),
        (lambda: bootstrap_interval(over="both"), r"at least one table, got \[\]"),
        (lambda: bootstrap_interval([[np.nan, 1]], over="questions"), "table 1 must be finite, got nan"),
        (lambda: bootstrap_interval([], over="questions"), r"table 1 must be \(seeds, questions\).*\(1, 0\)"),
        (lambda: t_interval(TABLE, over="both"), "over must be one of questions, seeds, got 'both'"),
        (lambda: t_interval(TABLE, over="seeds", confidence=1.0), r"confidence must be in \(0, 1\), got 1.0"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
