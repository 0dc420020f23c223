"""`load`: one door for names and paths."""

import numpy as np
import pytest

from jaxaudit.data import load, load_digits, load_file
from jaxaudit.errors import InputError


def test_digits_by_name():
    assert load("digits", seed=4).fingerprint == load_digits(seed=4).fingerprint
    assert load("digits", seed=4, group_size=4).group_size == 4
    options = {"num_groups": 10, "group_size": 2, "num_holdout": 50}
    assert load("digits", seed=4, **options).fingerprint == load_digits(seed=4, **options).fingerprint


def test_a_file_and_a_request(tmp_path):
    path = tmp_path / "own.npz"
    np.savez(path, x=np.arange(20.0)[:, None], y=np.arange(20) % 2)
    found = load(str(path), seed=1, forget_ids="3,5-6", num_holdout=4)
    expected = load_file(path, seed=1, forget_ids=[["3"], ["5"], ["6"]], num_holdout=4)
    assert found.fingerprint == expected.fingerprint
    assert found.group_ids == (("3",), ("5",), ("6",))
    found = load(path, seed=1, num_groups=4, group_size=2)
    assert found.fingerprint == load_file(path, seed=1, num_groups=4, group_size=2).fingerprint


def test_an_unknown_name():
    with pytest.raises(InputError, match=r"data must be 'digits' or a \.npz or \.csv file, got 'digit'"):
        load("digit", seed=0)
