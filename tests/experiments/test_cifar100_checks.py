"""Expectations are tested on the numbers."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def checks():
    return importlib.import_module("cifar100_checks")


def cells(values):
    module = importlib.import_module("cifar100_cells")
    nothing = module.Spread((0.0,))
    return [module.Cell({}, None, nothing, module.Spread((value,)), 9.0, (nothing,) * 3) for value in values]


@pytest.mark.parametrize(
    ("shape", "values", "shows"),
    [
        ("rises", (0, 1, 1, 2), True),
        ("rises", (0, 2, 1, 3), False),
        ("rises", (1, 1), False),
        ("falls", (3, 1, 0), True),
        ("falls", (3, 3), False),
        ("peaks", (1, 3, 2), True),
        ("peaks", (3, 2, 1), False),
        ("peaks", (1, 2, 3), False),
        ("peaks", (2, 2, 2), False),
        ("peaks", (1, 2), None),
    ],
)
def test_shapes(checks, shape, values, shows):
    assert checks.shape_check("expected", {"series": cells(values)}, shape).shows is shows


def test_every_series_must_have_the_shape(checks):
    check = checks.shape_check("expected", {"a": cells((1, 2)), "b": cells((2, 1))}, "rises")
    assert check.shows is False
    assert check.found == "1 of 2. a: 1.00, 2.00; b: 2.00, 1.00"


def test_shares_of_pairs(checks):
    pairs = {"a": (2.0, 1.0), "b": (1.0, 2.0), "c": (1.0, 1.0)}
    assert checks.pairs_check("expected", pairs).shows is False
    assert checks.pairs_check("expected", pairs, share=0.6).shows is True
    assert checks.pairs_check("expected", {}).shows is None


def test_ratios(checks):
    pairs = {"a": (1.0, 1.05), "b": (0.0, 0.0), "c": (1.0, 3.0)}
    check = checks.ratio_check("expected", pairs, 0.1)
    assert check.shows is True
    assert check.found.startswith("2 of 3 pairs within 10%")
    assert checks.ratio_check("expected", {"c": (1.0, 3.0)}, 0.1).shows is False
    assert checks.ratio_check("expected", {}, 0.1).shows is None
