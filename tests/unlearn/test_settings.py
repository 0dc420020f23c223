"""The settings of the main job reach the methods, and certify what they are meant to."""

import pytest

from jaxaudit.spec import RunSpec, settings_by_suite
from jaxaudit.unlearn import SUITES, build_methods, by_suite, select_methods


@pytest.fixture(scope="module")
def recipes():
    settings = settings_by_suite(RunSpec(), SUITES)
    return {
        (suite, name): recipe
        for suite, entries in by_suite(select_methods(("all",))).items()
        for name, recipe in build_methods(entries, settings[suite].problem).items()
    }


def test_what_is_certified(recipes):
    certified = {key: recipe.certificate for key, recipe in recipes.items() if recipe.certificate.certified}
    pairs = {name: (certificate.epsilon, certificate.delta) for (_, name), certificate in certified.items()}
    assert pairs == {
        "retrain": (0.0, 0.0),
        "clipping": (1.0, 1e-5),
        "newton": (1.0, 1e-5),
        "output-perturbation": (10.0, 1e-5),
        "descent-to-delete": (1.0, 1e-5),
        "langevin": (1.0, 1e-5),
    }
    assert not any(suite == "heuristic" and name != "retrain" for suite, name in certified)


def test_recipes_know_the_sizes_that_their_noise_is_for(recipes):
    sizes = {name: recipe.sizes for (suite, name), recipe in recipes.items() if recipe.sizes}
    assert sizes.pop("rewind") == (999, 249)
    assert set(sizes) == {"newton", "output-perturbation", "descent-to-delete", "langevin"}
    assert set(sizes.values()) == {(1485, 6)}


def test_every_recipe_has_words_and_a_cost(recipes):
    for (_, name), recipe in recipes.items():
        assert recipe.title
        assert recipe.description
        assert recipe.method.cost > 0 or name in ("none", "output-perturbation")
