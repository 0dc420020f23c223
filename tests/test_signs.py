"""Sign vectors against exhaustive lists, chi-square tests and a plain loop over runs."""

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from jaxaudit import signs as sg
from jaxaudit.design import AuditDesign
from jaxaudit.errors import InputError

KEY = jax.random.key(7)


def all_balanced(num_groups: int) -> list[tuple[int, ...]]:
    """Oracle: filter the full cube, which is in lexicographic order."""
    return [s for s in itertools.product((-1, 1), repeat=num_groups) if s.count(1) == num_groups // 2]


@pytest.mark.parametrize("num_groups", range(2, 12))
def test_enumeration_is_the_filtered_cube(num_groups):
    signs = sg.enumerate_signs(num_groups)
    assert signs.dtype == np.int8
    assert [tuple(row) for row in signs.tolist()] == all_balanced(num_groups)
    assert sg.num_sign_vectors(num_groups) == len(signs)


def test_number_of_sign_vectors_is_exact_when_large():
    half = math.factorial(2250)
    assert sg.num_sign_vectors(4500) == math.factorial(4500) // (half * half)


def test_enumeration_refuses_too_many():
    with pytest.raises(InputError, match=r"num_groups = 16 has 12870 balanced .* more than limit = 10000"):
        sg.enumerate_signs(16)
    assert len(sg.enumerate_signs(16, limit=12_870)) == 12_870


@pytest.mark.parametrize("num_groups", [2, 3, 4, 5, 6])
def test_audit_signs_are_uniform(num_groups):
    signs = sg.draw_signs(KEY, 20_000, num_groups)
    vectors, counts = np.unique(signs, axis=0, return_counts=True)
    assert [tuple(row) for row in vectors.tolist()] == all_balanced(num_groups)
    assert chisquare(counts).pvalue > 1e-3


def test_audit_signs_of_neighbouring_runs_are_independent():
    signs = sg.draw_signs(KEY, 20_000, 4)
    index = np.unique(signs, axis=0, return_inverse=True)[1].reshape(-1)
    pairs = np.bincount(index[::2] * 6 + index[1::2], minlength=36)
    assert chisquare(pairs).pvalue > 1e-3


@pytest.mark.parametrize("num_groups", [2, 7, 45, 500])
def test_audit_signs_are_balanced_int8(num_groups):
    signs = sg.draw_signs(KEY, 30, num_groups)
    assert signs.dtype == np.int8
    assert signs.shape == (30, num_groups)
    assert ((signs == 1).sum(axis=1) == num_groups // 2).all()
    assert ((signs == -1).sum(axis=1) == num_groups - num_groups // 2).all()


def test_more_runs_leave_the_earlier_ones_alone():
    np.testing.assert_array_equal(sg.draw_signs(KEY, 50, 9)[:13], sg.draw_signs(KEY, 13, 9))
    np.testing.assert_array_equal(sg.draw_signs(KEY, 13, 9), sg.draw_signs(KEY, 13, 9))
    assert (sg.draw_signs(KEY, 13, 9) != sg.draw_signs(jax.random.key(8), 13, 9)).any()


@pytest.mark.parametrize("num_groups", [2, 6, 500])
@pytest.mark.parametrize("num_runs", [2, 5, 50])
def test_calibration_pairs_are_complements_when_even(num_runs, num_groups):
    signs = sg.draw_calibration_signs(KEY, num_runs, num_groups)
    assert signs.shape == (num_runs, num_groups)
    pairs = num_runs // 2
    np.testing.assert_array_equal(signs[0 : 2 * pairs : 2], -signs[1 : 2 * pairs : 2])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    num_groups=st.sampled_from([3, 7]),
    num_runs=st.sampled_from([4, 7]),
)
def test_calibration_pairs_differ_from_complements_in_one_group_when_odd(seed, num_groups, num_runs):
    signs = sg.draw_calibration_signs(jax.random.key(seed), num_runs, num_groups)
    assert ((signs == 1).sum(axis=1) == num_groups // 2).all()
    pairs = num_runs // 2
    both_out = (signs[0 : 2 * pairs : 2] == -1) & (signs[1 : 2 * pairs : 2] == -1)
    both_in = (signs[0 : 2 * pairs : 2] == 1) & (signs[1 : 2 * pairs : 2] == 1)
    assert (both_out.sum(axis=1) == 1).all()
    assert not both_in.any()
    assert (signs == 1).any(axis=0).all()
    assert (signs == -1).any(axis=0).all()


def test_held_back_groups_rotate():
    signs = sg.draw_calibration_signs(KEY, 70, 7)
    held = ((signs[::2] == -1) & (signs[1::2] == -1)).sum(axis=0)
    assert held.sum() == 35
    assert held.max() - held.min() <= 2


@pytest.mark.parametrize(("num_groups", "least"), [(6, 2), (7, 4)])
def test_too_few_calibration_runs(num_groups, least):
    with pytest.raises(
        InputError, match=rf"num_calibration_runs.* must be an integer of at least {least}, got {least - 1}"
    ):
        sg.draw_calibration_signs(KEY, least - 1, num_groups)


@pytest.mark.parametrize("num_runs", [40, 50, 100])
def test_joint_calibration_covers_every_vector_equally(num_runs):
    signs = sg.draw_joint_calibration_signs(KEY, num_runs, 6)
    vectors, counts = np.unique(signs, axis=0, return_counts=True)
    assert signs.shape == (num_runs, 6)
    assert [tuple(row) for row in vectors.tolist()] == all_balanced(6)
    assert set(counts) <= {num_runs // 20, -(-num_runs // 20)}


def test_joint_calibration_is_shuffled():
    first = [
        tuple(sg.draw_joint_calibration_signs(jax.random.key(seed), 13, 4)[0].tolist()) for seed in range(300)
    ]
    counts = [first.count(vector) for vector in all_balanced(4)]
    assert chisquare(counts).pvalue > 1e-3


def test_joint_calibration_needs_two_runs_per_vector():
    with pytest.raises(
        InputError,
        match=r"num_calibration_runs \(two for each of the 20 sign vectors\) must be an integer of at least 40, got 39",
    ):
        sg.draw_joint_calibration_signs(KEY, 39, 6)


def test_signs_of_a_design_are_reproducible_and_calibrate_its_predictor():
    design = AuditDesign(num_groups=4, num_calibration_runs=12, num_audit_runs=5)
    calibration, audited = sg.draw_run_signs(design, seed=3)
    assert calibration.shape == (12, 4)
    assert audited.shape == (5, 4)
    np.testing.assert_array_equal(calibration[::2], -calibration[1::2])
    for again, first in zip(sg.draw_run_signs(design, seed=3), (calibration, audited)):
        np.testing.assert_array_equal(again, first)
    joint, _ = sg.draw_run_signs(design.replace(predictor="joint"), seed=3)
    assert np.unique(joint, axis=0, return_counts=True)[1].tolist() == [2] * 6


def test_audited_signs_are_independent_of_calibration_signs():
    design = AuditDesign(num_groups=2, num_calibration_runs=4, num_audit_runs=1)
    draws = [sg.draw_run_signs(design, seed) for seed in range(400)]
    same = sum(bool((calibration[0] == audited[0]).all()) for calibration, audited in draws)
    assert binomtest(same, 400, 0.5).pvalue > 1e-3


def test_the_order_is_one_permutation_per_seed():
    orders = [sg.draw_order(seed, 50).tolist() for seed in (0, 0, 1)]
    assert sorted(orders[0]) == list(range(50))
    assert orders[0] == orders[1] != orders[2]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    num_groups=st.integers(2, 7),
    num_retain=st.integers(0, 5),
    size=st.integers(1, 4),
)
def test_indices_are_the_order_restricted_to_the_members(seed, num_groups, num_retain, size):
    rng = np.random.default_rng(seed)
    candidates = sg.enumerate_signs(num_groups)
    signs = candidates[rng.integers(len(candidates), size=5)]
    order = rng.permutation(num_retain + num_groups * size)
    members = sg.member_indices(signs, num_retain, size, order)
    forgotten = sg.forget_indices(signs, num_retain, size, order)
    assert members.dtype == forgotten.dtype == np.int32
    assert members.shape == (5, num_retain + num_groups // 2 * size)
    assert forgotten.shape == (5, num_groups // 2 * size)
    for row, sign in enumerate(signs):
        forget = {num_retain + j * size + b for j in range(num_groups) if sign[j] == 1 for b in range(size)}
        assert forgotten[row].tolist() == [i for i in order if i in forget]
        assert members[row].tolist() == [i for i in order if i in forget or i < num_retain]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": np.arange(5)}, r"order must be a permutation of the 4 pool indices .*, got shape \(5,\)"),
        ({"order": [0, 1, 2, 2]}, "order must be a permutation"),
        ({"num_retain": -1}, "num_retain must be an integer of at least 0, got -1"),
        ({"group_size": 0}, "group_size must be an integer of at least 1, got 0"),
        ({"group_size": 1.5}, "group_size must be an integer of at least 1, got 1.5"),
        ({"signs": [[1, 1]]}, "signs must have exactly 1 of 2 entries"),
    ],
)
def test_indices_refuse_bad_input(changes, message):
    arguments = {"signs": [[1, -1]], "num_retain": 2, "group_size": 1, "order": np.arange(4)} | changes
    with pytest.raises(InputError, match=message):
        sg.member_indices(**arguments)


@pytest.mark.parametrize("key", [np.uint32([0, 7]), jax.random.split(KEY, 2), 7])
def test_only_one_typed_key_is_accepted(key):
    with pytest.raises(InputError, match="key must be one typed key"):
        sg.draw_signs(key, 2, 4)


@pytest.mark.parametrize(
    ("num_runs", "num_groups", "message"),
    [
        (0, 4, "num_runs must be an integer of at least 1, got 0"),
        (2, 1, "num_groups must be an integer of at least 2, got 1"),
    ],
)
def test_draws_refuse_empty_designs(num_runs, num_groups, message):
    with pytest.raises(InputError, match=message):
        sg.draw_signs(KEY, num_runs, num_groups)
