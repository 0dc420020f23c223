"""Runs differ in their sign vectors and keys; all else is shared."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.pipeline import keys_for, set_up
from jaxaudit.signs import draw_run_signs
from tests.pipeline.conftest import DATA, DESIGN, MODEL, RUNS


def test_calibration_runs_come_first(setup):
    np.testing.assert_array_equal(setup.signs, np.concatenate(draw_run_signs(DESIGN, 0)))


def test_members_are_the_retain_records_and_the_forget_records_of_the_run(setup):
    for signs, members, forget in zip(setup.signs, setup.members.tolist(), setup.forget.tolist()):
        expected = {4 + 2 * group + record for group in np.flatnonzero(signs == 1) for record in (0, 1)}
        assert set(forget) == expected
        assert set(members) == {0, 1, 2, 3} | expected
        in_order = [index for index in setup.order.tolist() if index in members]
        assert members == in_order
    assert sorted(setup.shared.retain.tolist()) == [0, 1, 2, 3]


def test_keys_of_all_runs_and_purposes_differ(setup):
    purposes = ("training", "training-2", "method a", "method b")
    keys = np.concatenate([np.asarray(jax.random.key_data(keys_for(setup.keys, one))) for one in purposes])
    assert len(np.unique(keys, axis=0)) == 4 * RUNS


def test_a_given_starting_point_is_taken():
    params = {"w": jnp.ones((3, 2))}
    assert set_up(DATA, MODEL, DESIGN, 0, params).shared.initial_params is params
