"""Expectations are tested on the numbers."""

import importlib
from pathlib import Path

import pytest

from jaxaudit.errors import InputError

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


def test_equal_pairs_decide_nothing(checks):
    pairs = {"a": (2.0, 1.0), "b": (1.0, 2.0), "c": (3.0, 1.0), "d": (0.0, 0.0)}
    assert checks.pairs_check("expected", pairs).shows is False
    most = checks.pairs_check("expected", pairs, share=0.5)
    assert most.shows is True
    assert most.found.startswith("2 of 3 decided, 1 equal. a: 2.00 against 1.00;")
    assert checks.pairs_check("expected", {"a": pairs["a"], "d": pairs["d"]}).shows is True


def test_half_of_the_pairs_are_not_most(checks):
    pairs = {"a": (2.0, 1.0), "b": (1.0, 2.0)}
    assert checks.pairs_check("expected", pairs, share=0.5).shows is False


@pytest.mark.parametrize("pairs", [{}, {"a": (0.0, 0.0)}, {"a": (3.0, 3.0)}])
def test_nothing_is_shown_by_equal_numbers(checks, pairs):
    assert checks.pairs_check("expected", pairs).shows is None
    assert checks.pairs_check("expected", pairs, share=0.5).shows is None


def test_ratios(checks):
    pairs = {"a": (1.0, 1.05), "b": (0.0, 0.0), "c": (1.05, 1.0), "d": (1.0, 3.0)}
    check = checks.ratio_check("expected", pairs, 0.1)
    assert check.shows is True
    assert check.found.startswith("2 of 3 pairs within 10%, 1 both 0; median gap 4.8%")
    assert checks.ratio_check("expected", {"b": (0.0, 0.0), "d": (1.0, 3.0)}, 0.1).shows is False
    assert checks.ratio_check("expected", {"b": (0.0, 0.0)}, 0.1).shows is None


@pytest.mark.parametrize(("values", "printed"), [((1, 2), ""), ((2, 1), "because")])
def test_a_reason_is_printed_only_where_it_does_not_show(checks, values, printed):
    page = importlib.import_module("cifar100_page")
    check = checks.shape_check("expected", {"series": cells(values)}, "rises", "because")
    assert page.check_section([check]).rows[0][-1] == printed


def test_certified_and_heuristic_are_compared_in_one_design():
    """All three sentences, shown and not shown, on numbers made up for it."""
    together, module = importlib.import_module("all").together, importlib.import_module("cifar100_cells")

    def cell(value, ceiling, **labels):
        return module.Cell(
            {"split": "uniform", **labels}, None, module.Spread(()), module.Spread((value,)), ceiling, ()
        )

    def shown(clipping, control, heuristic, rewind):
        found = {
            "table6": [
                cell(clipping, 4.0, method="clipping", when="at the end"),
                cell(9.0, 4.0, method="clipping", when="after step 1"),
                cell(control, 4.0, method="none", when="at the end"),
            ],
            "table1b": [cell(heuristic, 100.0, method="ascent"), cell(0.0, 100.0, method="retrain")],
            "fig1c": [cell(rewind, 3.0, certified_epsilon=2.0)],
        }
        return [check.shows for check in together(found)]

    assert shown(clipping=0.1, control=4.0, heuristic=20.0, rewind=0.2) == [True, True, True]
    # 20 of 100 is more than 0.5 of 4, but only a share of 0.2 against 0.125; 4 is not ten times 0.5.
    assert shown(clipping=0.5, control=4.0, heuristic=20.0, rewind=0.2) == [False, True, False]
    assert shown(clipping=0.5, control=4.0, heuristic=10.0, rewind=0.2) == [False, False, False]


def test_failed_runs_have_no_accuracies():
    module = importlib.import_module("cifar100_cells")
    nothing = module.Spread(())
    assert module.Cell({}, None, nothing, nothing, 1.0, (nothing,) * 3).accuracies_text == "failed"


@pytest.mark.parametrize("sigmas", [(), (0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (-1.0, 2.0)])
def test_amounts_of_noise_must_increase(sigmas):
    with pytest.raises(InputError, match="sigmas must increase from above 0"):
        importlib.import_module("cifar100_noise").noise_ladder(sigmas)


def test_pages_do_not_overwrite_each_other():
    options = importlib.import_module("cifar100").Options
    variants = [
        options(),
        options(preset="smoke"),
        options(seeds=(1,)),
        options(seeds=(1, 2)),
        options(reference=("peak-rate",)),
        options(reference=("peak-rate", "frozen-crops")),
    ]
    stems = [one.stem(images) for one in variants for images in ("cifar100", "digits", "photos")]
    assert len(set(stems)) == len(stems)
