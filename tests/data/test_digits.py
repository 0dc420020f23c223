"""scikit-learn's digits, read through an independent call of scikit-learn."""

import numpy as np
import pytest
from sklearn import datasets

from jaxaudit.data import load_digits
from jaxaudit.errors import InputError


def test_defaults_are_the_main_job():
    data = load_digits(seed=0)
    assert (data.num_groups, data.group_size, data.num_retain, len(data.holdout.y)) == (500, 1, 997, 300)
    assert (data.num_classes, data.name) == (10, "digits")
    assert data.retain.x.shape == (997, 64)
    assert 0 <= data.pool.x.min() < data.pool.x.max() == 1


def test_group_size_alone_is_enough():
    data = load_digits(seed=0, group_size=4)
    assert (data.num_groups, data.group_size, len(data.holdout.y)) == (149, 4, 300)


def test_ids_lead_back_to_the_source():
    pixels, labels = datasets.load_digits(return_X_y=True)
    data = load_digits(seed=3, num_groups=20, group_size=2)
    for j, ids in enumerate(data.group_ids):
        np.testing.assert_array_equal(data.groups.x[j], (pixels[list(map(int, ids))] / 16).astype(np.float32))
        np.testing.assert_array_equal(data.groups.y[j], labels[list(map(int, ids))])


def test_every_image_is_used_once():
    pixels, _ = datasets.load_digits(return_X_y=True)
    data = load_digits(seed=1)
    found = np.concatenate([data.pool.x, data.holdout.x])
    assert sorted(map(bytes, found)) == sorted(map(bytes, (pixels / 16).astype(np.float32)))


def test_requested_images():
    data = load_digits(seed=0, forget_ids=[["1", "2"], ["1796"]], num_holdout=10)
    assert (data.num_groups, data.group_size, data.num_retain) == (2, 2, 1784)
    with pytest.raises(InputError, match="the data has no record '1797'"):
        load_digits(seed=0, forget_ids=[["1"], ["1797"]])


def test_sizes_that_do_not_fit():
    with pytest.raises(InputError, match=r"must leave some of the 1797 records, got 600 \* 3"):
        load_digits(seed=0, num_groups=600, group_size=3)
    with pytest.raises(InputError, match="num_holdout must leave a record to retain, got 1500: 1297 records"):
        load_digits(seed=0, num_holdout=1500)
