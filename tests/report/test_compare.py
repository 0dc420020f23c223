"""Comparison of stored and recomputed numbers."""

import copy

import numpy as np
import pytest

from jaxaudit.report.compare import differences, same_array
from jaxaudit.report.document import statistics_document


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        (1.0, 1.0 + 1e-12),
        (1e-300, 1e-300),
        ({"a": [1, None, "inf", True]}, {"a": [1, None, "inf", True]}),
        ({"epsilon": 0.0}, {"epsilon": 1e-12}),
        (2, 2.0),
    ],
)
def test_equal_up_to_rounding(stored, computed):
    assert differences(stored, computed) == []


@pytest.mark.parametrize(
    ("stored", "computed", "message"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-8}, "a is 1.0, recomputed 1.00000001"),
        ({"p_value": 1e-20}, {"p_value": 1e-30}, "p_value is 1e-20, recomputed 1e-30"),
        ({"a": {}}, {"a": {"b": 1}}, "a.b is missing"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b is not a number of the report"),
        ({"a": [1, 2]}, {"a": [1]}, "a has 2 entries, recomputed 1"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1] is 2, recomputed 3"),
        ({"a": True}, {"a": 1}, "a is True, recomputed 1"),
        ({"a": None}, {"a": 0.0}, "a is None, recomputed 0.0"),
        ({"a": "inf"}, {"a": 1.0}, "a is 'inf', recomputed 1.0"),
        ({"a": [1]}, {"a": {"b": 1}}, "a is [1], recomputed {'b': 1}"),
    ],
)
def test_differences_are_named(stored, computed, message):
    assert differences(stored, computed) == [message]


def leaves(document, path=()):
    """Paths of all values of a JSON document that are not containers."""
    if isinstance(document, dict | list) and document:
        items = document.items() if isinstance(document, dict) else enumerate(document)
        return [leaf for key, value in items for leaf in leaves(value, (*path, key))]
    return [path]


def changed(value):
    """Another value of the same kind, close by."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 1.0001 + 1e-6 if isinstance(value, float) else "changed"


def test_a_change_of_any_statistical_number_is_seen(report):
    document = statistics_document(report.methods[0].analysis, report.record_ids)
    paths = leaves(document)
    assert len(paths) > 150
    for *parents, last in paths:
        forged = copy.deepcopy(document)
        inner = forged
        for key in parents:
            inner = inner[key]
        inner[last] = changed(inner[last])
        found = differences(forged, document)
        assert len(found) == 1, (parents, last)
        assert str(parents[0] if parents else last) in found[0]


def test_same_array():
    floats = np.array([1.0, -np.inf, np.nan])
    assert same_array(floats, floats + 1e-12)
    assert not same_array(floats, np.array([1.0 + 1e-6, -np.inf, np.nan]))
    assert not same_array(floats, np.array([1.0, 0.0, np.nan]))
    assert not same_array(floats, np.array([1.0, -np.inf]))
    assert not same_array(np.array([1]), np.array([2]))
    assert not same_array(np.array([1]), np.array([1.0]))
