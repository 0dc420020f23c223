import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn import METHODS, Problem, UnlearningSpec, as_stages, build_methods, select_methods
from jaxaudit.unlearn.registry import MethodEntry

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
    counts = {
        name: [stage.num_updates for stage in as_stages(recipe.method).stages]
        for name, recipe in build_methods(tuple(METHODS.values()), PROBLEM).items()
    }
    assert counts == {"none": [0], "retain-finetune": [160], "ascent": [8, 160], "retrain": [1600]}


def test_equal_stages_are_one_object_so_that_they_compile_once():
    built = build_methods(select_methods(("retain-finetune", "ascent")), PROBLEM)
    assert built["retain-finetune"].method is built["ascent"].method.stages[-1]


def test_learning_rates_of_the_main_job():
    spec = UnlearningSpec()
    assert (spec.finetune.epochs, spec.finetune.learning_rate, spec.finetune.end_learning_rate) == (
        10,
        0.1,
        0.0,
    )
    assert (spec.ascent.epochs, spec.ascent.learning_rate, spec.ascent.end_learning_rate) == (2, 0.02, 0.02)
    assert isinstance(spec.ascent.optimizer(8), optax.GradientTransformation)


@pytest.mark.parametrize("names", [(), ("nope",), ("none", "none"), ("all", "none")])
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
