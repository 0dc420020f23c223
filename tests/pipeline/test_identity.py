"""Only the same audit is resumed: every change of what is computed gives another key."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

from jaxaudit.evaluate import evaluation
from jaxaudit.pipeline import Executor, audit_key, plan_trainings, set_up
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
