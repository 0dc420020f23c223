"""The attacks against scipy.stats and loops over points, and when there is nothing to learn."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from jaxaudit.attack import fit_batchwise, fit_joint, guess, guess_joint, joint_candidates
from jaxaudit.errors import InputError
from jaxaudit.scored import CalibrationRuns

VARIANCES = ["pooled", "per-point", "global"]
ALL_OF_FOUR = [s for s in itertools.product((-1, 1), repeat=4) if sum(s) == 0]


def random_runs(seed: int, num_runs: int = 12, examples: int = 3, padded: bool = False) -> CalibrationRuns:
    """Four groups, every balanced vector twice; scores that depend on membership, unequal spread."""
    rng = np.random.default_rng(seed)
    signs = np.array([ALL_OF_FOUR[i % 6] for i in range(num_runs)])
    spread, easiness = np.linspace(0.5, 3, examples), np.array([[-10.0], [0.0], [3.0], [20.0]])
    noise = rng.normal(size=(num_runs, 4, examples)) * spread
    scores = noise + signs[:, :, None] + easiness
    weights = np.ones((4, examples))
    if padded:
        weights[1, 2] = weights[3, 1:] = 0
        scores[:, weights == 0] = np.nan
    return CalibrationRuns(signs=signs, scores=scores, weights=weights)


def class_variances(samples: list[list[np.ndarray]], variance: str) -> np.ndarray:
    """Oracle: (points, classes) variances, from the samples of every class at every point."""
    if variance == "per-point":
        return np.array([[np.var(s, ddof=1) for s in point] for point in samples])
    squares = np.array([[len(s) * np.var(s) for s in point] for point in samples])
    freedom = np.array([[len(s) - 1 for s in point] for point in samples])
    axis = 1 if variance == "pooled" else 0
    shared = squares.sum(axis=axis, keepdims=True) / freedom.sum(axis=axis, keepdims=True)
    return np.broadcast_to(shared, squares.shape)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("padded", [False, True])
def test_batchwise_is_a_sum_of_scipy_log_densities(variance, padded):
    runs, audited = random_runs(0, padded=padded), random_runs(1, padded=padded)
    attack = fit_batchwise(runs, variance=variance)
    points = [(j, b) for j, b in np.ndindex(4, 3) if runs.weights[j, b]]
    samples = [[runs.scores[runs.signs[:, j] == sign, j, b] for sign in (1, -1)] for j, b in points]
    variances = class_variances(samples, variance)
    expected = np.zeros((audited.num_runs, 4))
    for (j, b), (inside, outside), (var_in, var_out) in zip(points, samples, variances):
        score = audited.scores[:, j, b]
        expected[:, j] += norm.logpdf(score, inside.mean(), var_in**0.5)
        expected[:, j] -= norm.logpdf(score, outside.mean(), var_out**0.5)
        np.testing.assert_allclose(attack.mean_in[j, b], inside.mean(), rtol=1e-12)
        np.testing.assert_allclose(attack.mean_out[j, b], outside.mean(), rtol=1e-12)
        np.testing.assert_allclose([attack.var_in[j, b], attack.var_out[j, b]], [var_in, var_out], rtol=1e-10)
    np.testing.assert_allclose(attack.log_ratios(audited.scores), expected, rtol=1e-9, atol=1e-9)
    assert attack.floor_hits == 0


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("padded", [False, True])
def test_joint_is_a_sum_of_scipy_log_densities(variance, padded):
    runs, audited = random_runs(2, num_runs=25, padded=padded), random_runs(3, padded=padded)
    attack = fit_joint(runs, variance=variance)
    assert [tuple(row) for row in attack.candidates.tolist()] == ALL_OF_FOUR
    points = [(j, b) for j, b in np.ndindex(4, 3) if runs.weights[j, b]]
    chosen = [(runs.signs == candidate).all(axis=1) for candidate in ALL_OF_FOUR]
    samples = [[runs.scores[rows, j, b] for rows in chosen] for j, b in points]
    variances = class_variances(samples, variance)
    expected = np.zeros((audited.num_runs, 6))
    for (j, b), classes, class_variance in zip(points, samples, variances):
        for k, (values, var) in enumerate(zip(classes, class_variance)):
            expected[:, k] += norm.logpdf(audited.scores[:, j, b], values.mean(), var**0.5)
    np.testing.assert_allclose(attack.log_likelihoods(audited.scores), expected, rtol=1e-9)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("fit", [fit_batchwise, fit_joint])
def test_failed_calibration_runs_are_left_out(fit, variance):
    runs = random_runs(4, num_runs=14)
    failed = np.arange(14) >= 12
    scores = np.where(failed[:, None, None], np.nan, runs.scores)
    flagged = CalibrationRuns(signs=runs.signs, scores=scores, failed=failed)
    without = CalibrationRuns(signs=runs.signs[:12], scores=runs.scores[:12])
    for name, value in vars(fit(without, variance=variance)).items():
        np.testing.assert_array_equal(getattr(fit(flagged, variance=variance), name), value)


@pytest.mark.parametrize("variance", VARIANCES)
def test_a_class_with_one_run_borrows_the_variance_of_the_other(variance):
    signs = [[1, -1], [-1, 1], [-1, 1], [-1, 1]]
    scores = np.array([[9.0, 1.0], [2.0, 7.0], [4.0, 5.0], [6.0, 3.0]])
    # A variance that equals the floor is not raised to it.
    attack = fit_batchwise(CalibrationRuns(signs=signs, scores=scores), variance=variance, variance_floor=4.0)
    np.testing.assert_array_equal(attack.var_in.ravel(), [4.0, 4.0])
    np.testing.assert_array_equal(attack.var_out.ravel(), [4.0, 4.0])
    assert attack.floor_hits == 0


@pytest.mark.parametrize("variance", VARIANCES)
def test_a_candidate_with_one_run_borrows_the_pooled_variance(variance):
    runs = CalibrationRuns(signs=[[1, -1], [-1, 1], [-1, 1]], scores=[[9.0, 9.0], [2.0, 2.0], [4.0, 4.0]])
    attack = fit_joint(runs, variance=variance)
    np.testing.assert_allclose(attack.var, 2.0)


@pytest.mark.parametrize(("variance", "hits"), [("pooled", 4), ("per-point", 8), ("global", 2)])
def test_variances_without_spread_are_raised_to_the_floor_and_counted(variance, hits):
    signs = [ALL_OF_FOUR[0], ALL_OF_FOUR[5]] * 2
    scores = np.where(np.array(signs) == 1, 1.0, 0.25)
    weights = np.tile([1.0, 0.0], (4, 1))
    runs = CalibrationRuns(signs=signs, scores=np.stack([scores, scores], axis=2), weights=weights)
    attack = fit_batchwise(runs, variance=variance, variance_floor=0.5)
    assert attack.floor_hits == hits
    np.testing.assert_array_equal(attack.var_in[:, 0], 0.5)
    # (1 - 0.25)^2 / (2 * 0.5)
    np.testing.assert_allclose(attack.log_ratios(runs.scores), np.where(runs.signs == 1, 0.5625, -0.5625))


def test_two_runs_alone_have_no_variance_and_get_the_floor():
    runs = CalibrationRuns(signs=[[1, -1], [-1, 1]], scores=[[2.0, 0.0], [0.0, 2.0]])
    for variance, hits in [("pooled", 2), ("per-point", 4), ("global", 2)]:
        attack = fit_batchwise(runs, variance=variance, variance_floor=4.0)
        assert attack.floor_hits == hits
        np.testing.assert_allclose(attack.log_ratios(runs.scores), [[0.5, -0.5], [-0.5, 0.5]])


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("value", [0.1, -7.3, 1e6 / 3])
def test_equal_scores_are_exactly_no_evidence(variance, value):
    signs = [ALL_OF_FOUR[i] for i in (0, 5, 1, 4, 2, 3, 0)]
    runs = CalibrationRuns(signs=signs, scores=np.full((7, 4, 3), value) * np.array([[1.0, 1.1, 0.3]]))
    attack = fit_batchwise(runs, variance=variance)
    np.testing.assert_array_equal(attack.log_ratios(runs.scores), 0.0)
    assert guess(attack.log_ratios(runs.scores), 4).tied.all()
    likelihoods = fit_joint(runs, variance=variance).log_likelihoods(runs.scores)
    np.testing.assert_array_equal(likelihoods, likelihoods[:, :1] + np.zeros(6))
    assert guess_joint(likelihoods, ALL_OF_FOUR).tied.all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_failed_audited_runs_are_no_evidence_and_touch_no_other_run(bad):
    runs, audited = random_runs(5), random_runs(6)
    batchwise, joint = fit_batchwise(runs), fit_joint(runs)
    scores, failed = audited.scores.copy(), np.arange(12) == 7
    scores[3, 1, 2] = bad
    for result, clean in [
        (batchwise.log_ratios(scores, failed), batchwise.log_ratios(audited.scores)),
        (joint.log_likelihoods(scores, failed), joint.log_likelihoods(audited.scores)),
    ]:
        np.testing.assert_array_equal(result[[3, 7]], 0.0)
        others = np.delete(np.arange(12), [3, 7])
        np.testing.assert_array_equal(result[others], clean[others])
        assert (clean[[3, 7]] != 0).all()


@pytest.mark.parametrize("word", ["member", "non-member"])
def test_a_group_without_a_class_is_named(word):
    signs = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    signs = signs if word == "non-member" else -signs
    with pytest.raises(InputError, match=rf"a {word} run that did not fail, got none for group 0"):
        fit_batchwise(CalibrationRuns(signs=signs, scores=np.ones((3, 4))))
    everything_failed = CalibrationRuns(signs=signs, scores=np.ones((3, 4)), failed=[True] * 3)
    with pytest.raises(InputError, match="got none for group 0"):
        fit_batchwise(everything_failed)


def test_missing_sign_vectors_are_counted():
    runs = CalibrationRuns(
        signs=ALL_OF_FOUR, scores=np.ones((6, 4)), failed=[False, True, False, False, False, True]
    )
    with pytest.raises(InputError, match=r"each of the 6 balanced .* of 4 groups .* got 4: 2 are missing"):
        fit_joint(runs)
    with pytest.raises(InputError, match="got 0: 6 are missing"):
        joint_candidates(CalibrationRuns(signs=ALL_OF_FOUR, scores=np.ones((6, 4)), failed=[True] * 6))


@pytest.mark.parametrize("fit", [fit_batchwise, fit_joint])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variance": "shared"}, "variance must be one of per-point, pooled, global, got 'shared'"),
        ({"variance_floor": 0.0}, "variance_floor must be positive, got 0.0"),
        ({"variance_floor": np.nan}, "variance_floor must be positive, got nan"),
    ],
)
def test_options_are_checked(fit, options, message):
    with pytest.raises(InputError, match=message):
        fit(random_runs(0), **options)


def test_scores_of_the_wrong_shape_or_size_are_errors():
    attack, joint = fit_batchwise(random_runs(0), variance="per-point"), fit_joint(random_runs(0))
    with pytest.raises(InputError, match=r"scores must have shape \(runs, 4, 3\), got \(2, 4\)"):
        attack.log_ratios(np.ones((2, 4)))
    with pytest.raises(InputError, match="small enough for float64"):
        attack.log_ratios(np.full((1, 4, 3), 1e200))
    with pytest.raises(InputError, match="small enough for float64"):
        joint.log_likelihoods(np.full((1, 4, 3), 1e200))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_guess_is_python_sorting_by_value_then_index(data):
    groups = data.draw(st.integers(2, 9))
    half = data.draw(st.integers(1, groups // 2))
    row_of_ratios = st.lists(st.integers(-2, 2), min_size=groups, max_size=groups)
    rows = data.draw(st.lists(row_of_ratios, min_size=1, max_size=4))
    guessed = guess(np.array(rows, float), 2 * half)
    for row, guesses, tied in zip(rows, guessed.guesses.tolist(), guessed.tied):
        order = sorted(range(groups), key=lambda j: (-row[j], j))
        expected = [0] * groups
        for j in order[:half]:
            expected[j] = 1
        for j in order[-half:]:
            expected[j] = -1
        assert guesses == expected
        chosen = [{row[j] for j in range(groups) if guesses[j] == sign} for sign in (1, -1)]
        rest = [{row[j] for j in range(groups) if guesses[j] != sign} for sign in (1, -1)]
        assert tied == any(a & b for a, b in zip(chosen, rest))


def test_guess_types():
    guessed = guess(np.random.default_rng(0).normal(size=(3, 7)), 6)
    assert guessed.guesses.dtype == np.int8
    assert guessed.tied.dtype == bool
    assert not guessed.tied.any()


@pytest.mark.parametrize("num_guesses", [0, 1, 3, 6, -2])
def test_guess_refuses_impossible_budgets(num_guesses):
    with pytest.raises(
        InputError, match=f"num_guesses must be even and between 2 and num_groups = 5, got {num_guesses}"
    ):
        guess(np.zeros((1, 5)), num_guesses)


@pytest.mark.parametrize(
    ("log_ratios", "message"),
    [([[0.0, np.nan]], "log_ratios must be finite, got nan"), ([0.0, 1.0], "log_ratios must have two axes")],
)
def test_guess_refuses_bad_ratios(log_ratios, message):
    with pytest.raises(InputError, match=message):
        guess(log_ratios, 2)


def test_guess_joint_takes_the_first_of_the_best():
    likelihoods = [[0, 0, 0, 0, 0, 0], [1, 2, 3, 2, 3, 0], [1, 2, 3, 2, 2, 4], [-9, -3, -2, -1, -5, -4]]
    guessed = guess_joint(likelihoods, ALL_OF_FOUR)
    assert guessed.guesses.tolist() == [list(ALL_OF_FOUR[k]) for k in (0, 2, 5, 3)]
    assert guessed.tied.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("likelihoods", "candidates", "message"),
    [
        ([[1.0, 2.0]], ALL_OF_FOUR, "must have a column for each of 6 candidates, got 2"),
        ([[1.0]], [[1, -1, -1]], "even number of groups, got 3"),
        ([[np.nan, 0.0]], [[1, -1], [-1, 1]], "log_likelihoods must be finite"),
        ([[0.0, 0.0]], [[1, -1], [1, 1]], "candidates must have exactly 1 of 2 entries"),
    ],
)
def test_guess_joint_refuses_bad_input(likelihoods, candidates, message):
    with pytest.raises(InputError, match=message):
        guess_joint(likelihoods, candidates)


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_fitted_attack_finds_the_direction_by_itself(variance):
    runs, audited = random_runs(7, num_runs=36), random_runs(8, num_runs=36)
    flipped = CalibrationRuns(signs=runs.signs, scores=-runs.scores)
    forward = fit_batchwise(runs, variance=variance).log_ratios(audited.scores)
    backward = fit_batchwise(flipped, variance=variance).log_ratios(-audited.scores)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
    assert ((forward > 0) == (audited.signs == 1)).mean() > 0.75
