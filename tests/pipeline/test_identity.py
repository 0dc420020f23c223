"""Only the same audit is resumed: every change of what is computed gives another key."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

from jaxaudit.evaluate import evaluation
from jaxaudit.pipeline import Executor, audit_key, plan_trainings, set_up
from jaxaudit.provenance import installed_version
from jaxaudit.runs import RunOptions
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn import release_noise
from jaxaudit.unlearn.base import Recipe, then
from tests.pipeline.conftest import DATA, DESIGN, EVALUATE, LOSS, MODEL
from tests.pipeline.test_unlearning import REWIND, descent

ROOT = Path(__file__).parents[2]


def key(
    seed=0,
    sigma=1.0,
    record_at=(),
    rewind=1,
    epochs=2,
    evaluate=EVALUATE,
    order=("noise", "rewind"),
    measure=None,
    options=None,
    data="data",
    title="",
):
    setup = set_up(DATA, MODEL, DESIGN, seed)
    noise = Recipe(
        then(descent(3, measure=measure), release_noise(sigma=sigma)), record_at=record_at, title=title
    )
    methods = {"noise": noise, "rewind": Recipe(then(REWIND, descent(2)), rewind_updates=rewind)}
    recipes = {name: methods[name] for name in order}
    trainings = plan_trainings(recipes, SgdSpec(epochs, 0.5, batch_size=4), LOSS, 8)
    return audit_key(Executor(options), setup, trainings, recipes, evaluate, data)


@pytest.fixture(scope="module")
def unchanged():
    return key()


def test_which_method_starts_from_which_training_counts():
    """The same trainings and the same methods, but for one of them another start."""
    starts = [SgdSpec(1, 0.5, batch_size=4), SgdSpec(2, 0.5, batch_size=4)]
    setup, noise = set_up(DATA, MODEL, DESIGN, 0), release_noise(sigma=1.0)
    keys = set()
    for last in starts:
        recipes = {
            name: Recipe(noise, training=training)
            for name, training in zip("abc", (*starts, last), strict=True)
        }
        trainings = plan_trainings(recipes, starts[0], LOSS, 8)
        keys.add(audit_key(Executor(), setup, trainings, recipes, EVALUATE, ""))
    assert len(keys) == 2


def test_another_version_is_another_audit(monkeypatch, unchanged):
    def version(package):
        return "other" if package == "jaxaudit" else installed_version(package)

    monkeypatch.setattr("jaxaudit.pipeline.identity.installed_version", version)
    assert key() != unchanged


def test_equal_stages_are_hashed_once_and_others_are_not(monkeypatch):
    hashed = []
    monkeypatch.setattr(
        "jaxaudit.pipeline.identity.hash_loop", lambda loop, *arguments: hashed.append(loop) or str(loop)
    )
    setup, stage = set_up(DATA, MODEL, DESIGN, 0), descent(3)
    recipes = {
        "one": Recipe(then(stage, stage, descent(2), stage)),
        "other": Recipe(
            then(stage, descent(2))
        ),  # descent(2) is another object, and may compute something else
        "rewound": Recipe(then(stage), rewind_updates=0),  # its stage has one more input
    }
    trainings = plan_trainings(recipes, SgdSpec(1, 0.5, batch_size=4), LOSS, 8)
    audit_key(Executor(), setup, trainings, recipes, EVALUATE, "")
    assert len(hashed) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"sigma": 1.5},
        {"record_at": (2,)},
        {"rewind": 2},
        {"epochs": 3},
        {"evaluate": evaluation(MODEL.logits_fn, "cross-entropy", DATA.num_retain)},
        {"order": ("noise",)},
        {"measure": lambda state: {"n": state.count}},
        {"options": RunOptions(matmul_precision="default")},
        {"data": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_computation_is_another_audit(change, unchanged):
    assert key(**change) != unchanged


def test_how_the_runs_are_spread_is_no_difference_and_neither_are_words(unchanged):
    assert key(options=RunOptions(chunk=3, memory_budget=2**20), title="noise") == unchanged


def test_the_key_is_the_same_in_another_process(unchanged):
    code = "from tests.pipeline.test_identity import key; print(key())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == unchanged


def test_measures_differ_by_what_they_measure():
    one, other = (key(measure=lambda state, c=c: {"n": state.count + c}) for c in (1, 2))
    assert one != other


def test_the_starting_point_counts():
    setups = [set_up(DATA, MODEL, DESIGN, 0, {"w": jnp.full((3, 2), value)}) for value in (0.0, 1e-6)]
    recipes = {"noise": Recipe(release_noise(sigma=1.0))}
    trainings = plan_trainings(recipes, SgdSpec(1, 0.5), LOSS, 8)
    one, other = (audit_key(Executor(), setup, trainings, recipes, EVALUATE, "") for setup in setups)
    assert one != other
