from dataclasses import replace

import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn import (
    METHODS,
    MethodEntry,
    Problem,
    Recipe,
    UnlearningSpec,
    as_stages,
    build_methods,
    by_suite,
    no_unlearning,
    registry,
    select_methods,
)

PROBLEM = Problem(
    loss_fn=lambda params, examples: 0.0,
    logits_fn=lambda params, x: x,
    num_classes=10,
    training=SgdSpec(100, 0.3),
    spec=UnlearningSpec(),
    num_retain=997,
    num_forget=250,
)


def test_number_of_updates_follows_the_data():
    """997 retain records make 16 batches of 64, 250 forget records make 4."""
    entries = select_methods(("none", "retain-finetune", "ascent", "retrain"))
    counts = {
        name: [stage.num_updates for stage in as_stages(recipe.method).stages]
        for name, recipe in build_methods(entries, PROBLEM).items()
    }
    assert counts == {"none": [0], "retain-finetune": [160], "ascent": [8, 160], "retrain": [1600]}


def test_equal_stages_are_one_object_so_that_they_compile_once():
    built = build_methods(select_methods(("retain-finetune", "ascent")), PROBLEM)
    assert built["retain-finetune"].method is built["ascent"].method.stages[-1]


def test_only_what_starts_anew_and_sees_the_same_data_is_the_same_for_all_runs():
    entries = {entry.name: entry for entry in by_suite(select_methods(("all",)))["heuristic"]}
    built = build_methods(tuple(entries.values()), PROBLEM)
    same = {name for name, recipe in built.items() if recipe.same_for_all}
    assert same == {"retrain"}
    for name in same:
        entry = entries[name]
        assert (entry.starts_from, entry.reads, entry.noisy) == ("initial", {"retain"}, False)


def test_learning_rates_of_the_main_job():
    spec = UnlearningSpec()
    assert (spec.finetune.epochs, spec.finetune.learning_rate, spec.finetune.end_learning_rate) == (
        10,
        0.1,
        0.0,
    )
    assert (spec.ascent.epochs, spec.ascent.learning_rate, spec.ascent.schedule) == (2, 0.02, "constant")
    assert isinstance(spec.ascent.optimizer(8), optax.GradientTransformation)


class Point:
    """An entry point of another package."""

    value = "other.package:METHOD"

    def __init__(self, load):
        self.load = load


@pytest.fixture
def plugin(monkeypatch):
    """Makes the registry see one entry point."""

    def install(load):
        registry.available_methods.cache_clear()
        monkeypatch.setattr(registry, "entry_points", lambda group: [Point(load)])

    yield install
    registry.available_methods.cache_clear()


OTHER = MethodEntry(
    "other", "another", "Does it.", "a paper", lambda problem: Recipe(no_unlearning()), frozenset()
)


def test_other_packages_can_add_methods(plugin):
    plugin(lambda: OTHER)
    assert select_methods(("other",)) == (OTHER,)
    assert select_methods(("all",))[-1] is OTHER
    assert "other" not in METHODS


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: 3, "other.package:METHOD must be a MethodEntry, got int"),
        (lambda: 1 / 0, "other.package:METHOD cannot be loaded: division by zero"),
        (lambda: replace(OTHER, name="none"), "other.package:METHOD takes the name 'none', which is taken"),
    ],
)
def test_a_broken_package_is_named(plugin, load, message):
    plugin(load)
    with pytest.raises(InputError, match=message):
        select_methods(("none",))


def test_methods_that_fit_everywhere_join_the_audits_that_the_others_need():
    certified = replace(OTHER, suites=("certified",))
    none, ascent = select_methods(("none", "ascent"))
    assert by_suite((none,)) == {"heuristic": (none,)}
    assert by_suite((none, certified)) == {"certified": (none, certified)}
    assert by_suite((certified, none, ascent)) == {
        "heuristic": (none, ascent),
        "certified": (certified, none),
    }


@pytest.mark.parametrize("names", [(), ("nope",), ("none", "none")])
def test_bad_names(names):
    with pytest.raises(InputError, match="methods must"):
        select_methods(names)


def test_no_name_is_not_called_none():
    with pytest.raises(InputError, match=r"; got no name$"):
        select_methods(())


def test_entries_say_what_they_are():
    for name, entry in METHODS.items():
        assert isinstance(entry, MethodEntry)
        assert entry.name == name
        assert entry.title
        assert entry.description.endswith(".")
        assert entry.reference
