from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import chisquare

from jaxaudit.bound.law import null_law, odds_law, sample, worst_case_law
from jaxaudit.errors import InputError

DESIGNS = [(2, 2), (3, 2), (5, 4), (6, 6), (9, 8), (45, 40), (100, 60)]


def relative_error(log_value, exact):
    if exact == 0:
        return 0.0 if log_value == -np.inf else np.inf
    return float(abs(mpmath.exp(mpmath.mpf(float(log_value))) / exact - 1))


def assert_law_has_tails(law, tails):
    """Every field of the law, relative to the exact probability."""
    for v, (tail, following) in enumerate(zip(tails, [*tails[1:], mpmath.mpf(0)], strict=True)):
        assert relative_error(law.log_tail[v], tail) < 1e-12
        assert relative_error(law.log_complement[v], 1 - tail) < 1e-12
        assert relative_error(law.log_pmf[v], tail - following) < 1e-12


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
def test_null_law_equals_exact_integers(num_groups, num_guesses, exact_counts):
    mpmath.mp.dps = 400
    counts = exact_counts(num_groups, num_guesses)
    tails = [mpmath.mpf(sum(counts[v:])) / sum(counts) for v in range(num_guesses + 1)]
    assert_law_has_tails(null_law(num_groups, num_guesses), tails)


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.1, 1.0, 3.0, 20.0, 100.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.01, 0.31, 0.8])
def test_worst_case_law_equals_its_formula_in_400_digits(
    num_groups, num_guesses, epsilon, delta, exact_worst_case
):
    tails = exact_worst_case(num_groups, num_guesses, epsilon, delta)
    law = worst_case_law(num_groups, num_guesses, epsilon, delta)
    assert_law_has_tails(law, tails)
    assert np.exp(law.log_smooth).sum() == pytest.approx(1 - delta, rel=1e-12)
    without_atom = np.append(law.log_pmf[:-1], law.log_smooth[-1])
    np.testing.assert_array_equal(law.log_smooth, without_atom)


@pytest.mark.parametrize(("num_groups", "num_guesses"), DESIGNS)
@pytest.mark.parametrize("epsilon_ldp", [0.0, 0.1, 3.0, 100.0])
def test_odds_law_equals_its_formula_in_400_digits(num_groups, num_guesses, epsilon_ldp, exact_counts):
    mpmath.mp.dps = 400
    counts = exact_counts(num_groups, num_guesses)
    raised = mpmath.e ** mpmath.mpf(epsilon_ldp)
    tails = [
        raised * sum(counts[v:]) / (raised * sum(counts[v:]) + sum(counts[:v])) for v in range(len(counts))
    ]
    assert_law_has_tails(odds_law(num_groups, num_guesses, epsilon_ldp), tails)


def test_laws_stay_finite_where_probabilities_underflow():
    law = worst_case_law(4500, 3000, epsilon=1500.0)
    assert null_law(4500, 3000).log_tail[-1] < -2000
    assert np.isfinite(law.log_tail).all()
    assert np.exp(law.log_pmf).sum() == pytest.approx(1, abs=1e-10)


def maximal_tail(signs, guesses, overlap, epsilon, delta):
    """Largest P[V >= overlap] over all mechanisms, each (epsilon, delta)-close to one law for all signs.

    A linear program with variables p(t | s), q(t) and the positive parts of p - e^eps q and of q - e^eps p.
    """
    s, t = len(signs), len(guesses)
    size, raised = s * t, np.exp(epsilon)
    p, q = np.eye(size, 3 * size + t), np.tile(np.eye(t, 3 * size + t, k=3 * size), (s, 1))
    over, under = np.eye(size, 3 * size + t, k=size), np.eye(size, 3 * size + t, k=2 * size)
    per_sign = np.kron(np.eye(s), np.ones(t))
    upper = np.vstack([p - raised * q - over, q - raised * p - under, per_sign @ over, per_sign @ under])
    limits = np.concatenate([np.zeros(2 * size), np.full(2 * s, delta)])
    sums = np.vstack([per_sign @ p, q[:t].sum(0)])
    correct = (signs[:, None] * guesses[None] == 1).sum(axis=2) >= overlap
    gain = np.concatenate([correct.ravel() / s, np.zeros(2 * size + t)])
    result = linprog(-gain, A_ub=upper, b_ub=limits, A_eq=sums, b_eq=np.ones(s + 1), method="highs")
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize(("num_groups", "num_guesses"), [(2, 2), (3, 2), (4, 2), (4, 4), (5, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 0.0), (2.0, 0.0), (0.7, 0.05), (1.5, 0.4)])
def test_no_mechanism_beats_the_worst_case_law_and_one_attains_it(num_groups, num_guesses, epsilon, delta):
    vectors = np.array(list(product([-1, 0, 1], repeat=num_groups)))
    positives, negatives = (vectors == 1).sum(1), (vectors == -1).sum(1)
    signs = vectors[(positives == num_groups // 2) & (negatives == (num_groups + 1) // 2)]
    guesses = vectors[(positives == num_guesses // 2) & (negatives == num_guesses // 2)]
    law = worst_case_law(num_groups, num_guesses, epsilon, delta)
    for overlap in range(1, num_guesses + 1):
        best = maximal_tail(signs, guesses, overlap, epsilon, delta)
        assert best == pytest.approx(np.exp(law.log_tail[overlap]), abs=1e-9)


@settings(deadline=None)
@given(
    half=st.integers(1, 20),
    rest=st.integers(0, 20),
    epsilon=st.floats(0, 50),
    step=st.floats(0, 5),
    delta=st.floats(0, 0.9),
)
def test_tail_grows_with_epsilon_and_delta_and_dominates_the_odds_law(half, rest, epsilon, step, delta):
    design = (2 * half + rest, 2 * half)
    law = worst_case_law(*design, epsilon, delta)
    assert (np.diff(law.log_tail) <= 1e-15).all()
    assert (worst_case_law(*design, epsilon + step, delta).log_tail >= law.log_tail - 1e-12).all()
    assert (worst_case_law(*design, epsilon, (1 + delta) / 2).log_tail >= law.log_tail - 1e-12).all()
    # Two unlearned models are compared through the reference, at twice the epsilon: a weaker statement.
    no_delta = worst_case_law(*design, epsilon)
    assert (odds_law(*design, 2 * epsilon).log_tail >= no_delta.log_tail - 1e-12).all()


def test_sample_follows_the_law():
    law = worst_case_law(6, 6, 1.0, 0.1)
    draws = sample(law, np.random.default_rng(1), (200, 100))
    assert draws.shape == (200, 100)
    observed = np.bincount(draws.ravel(), minlength=7)
    possible = np.isfinite(law.log_pmf)
    assert (observed[~possible] == 0).all()
    assert chisquare(observed[possible], draws.size * np.exp(law.log_pmf[possible])).pvalue > 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: null_law(6, 5), "num_guesses must be even, got 5"),
        (lambda: worst_case_law(6, 6, -1.0), "epsilon must not be negative, got -1.0"),
        (lambda: worst_case_law(6, 6, np.nan), "epsilon must be a finite number, got nan"),
        (lambda: worst_case_law(6, 6, 1.0, 1.0), r"delta must be in \[0, 1\), got 1.0"),
        (lambda: odds_law(6, 6, -2.0), "epsilon_ldp must not be negative, got -2.0"),
        (lambda: odds_law(1, 2, 1.0), "num_groups must be an integer of at least 2, got 1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
