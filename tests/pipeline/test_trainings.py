"""Every distinct training once, every distinct sign vector once, and nothing twice where it is stored."""

from dataclasses import asdict
from unittest.mock import patch

import jax
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.pipeline import Executor, keys_for, plan_trainings, train_runs
from jaxaudit.pipeline.trainings import shelf_key, training_rows
from jaxaudit.progress import SilentReporter
from jaxaudit.runs import RunOptions
from jaxaudit.store import Progress, pieces
from jaxaudit.train import Loop, SgdSpec, TrainingRun, TrainingShared, TrainState, training_loop
from jaxaudit.unlearn import no_unlearning
from jaxaudit.unlearn.base import Recipe
from tests.pipeline.conftest import DATA, LOSS, RUNS

SPEC = SgdSpec(epochs=2, learning_rate=0.5, batch_size=4)
MEMBERS = 8


def noisy_body(step, state, run, shared):
    noise = jax.random.normal(jax.random.fold_in(run.key, step), (3, 2))
    return state._replace(params={"w": state.params["w"] + noise})


NOISY = Loop(lambda run, shared: TrainState(shared.initial_params, ()), noisy_body, 3)


class Listener(SilentReporter):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def recipe(**options):
    return Recipe(no_unlearning(), **options)


def plan(default=SPEC, **recipes):
    return plan_trainings(recipes or {"none": recipe()}, default, LOSS, MEMBERS)


def by_hand(setup, run, loop, key, steps):
    """One model in a plain Python loop."""
    arguments = (
        TrainingRun(setup.members[run], key),
        TrainingShared(setup.shared.pool, setup.shared.initial_params),
    )
    state = loop.init(*arguments)
    for step in range(steps):
        state = loop.body(np.int32(step), state, *arguments)
    return state.params["w"]


def test_rows_of_distinct_sign_vectors_are_those_of_numpy():
    rng = np.random.default_rng(0)
    signs = rng.permuted(np.tile([1, -1], (40, 2)), axis=1)
    first, row_of_run = training_rows(signs, True)
    assert len(first) == len(np.unique(signs, axis=0)) == 6
    np.testing.assert_array_equal(signs[first][row_of_run], signs)
    assert first.tolist() == sorted(first)
    assert all((signs[:run] != signs[run]).any(axis=1).all() for run in first)
    assert [index.tolist() for index in training_rows(signs, False)] == 2 * [list(range(40))]


def test_equal_specs_are_one_training_and_different_ones_are_named():
    trainings = plan(
        a=recipe(),
        b=recipe(training=SgdSpec(2, 0.5, batch_size=4), rewind_updates=1),
        c=recipe(training=SgdSpec(2, 0.25, batch_size=4)),
        d=recipe(training=NOISY, rewind_updates=3),
        e=recipe(training=NOISY, rewind_updates=0),
    )
    assert [one.name for one in trainings] == ["training", "training-2", "training-3"]
    assert [one.methods for one in trainings] == [("a", "b"), ("c",), ("d", "e")]
    assert [one.updates for one in trainings] == [(3, 4), (4,), (0, 3)]
    assert [one.about for one in trainings] == [
        asdict(SPEC),
        asdict(SgdSpec(2, 0.25, batch_size=4)),
        "user loop",
    ]


def test_a_rewind_past_the_start_is_refused():
    with pytest.raises(InputError, match="rewind_updates must be an integer between 0 and 4, got 5"):
        plan(a=recipe(rewind_updates=5))


def test_only_distinct_sign_vectors_are_trained_where_training_is_deterministic(setup):
    executor = Executor()
    (training,) = plan()
    trained = train_runs(executor, setup, training)
    (stats,) = executor.stats["train"]
    assert stats.num_runs == len(np.unique(setup.signs, axis=0)) == 6 < RUNS
    loop = training_loop(LOSS, SPEC, MEMBERS)
    for run in (0, 7, 14):
        alone = by_hand(setup, run, loop, setup.keys[run], loop.num_steps)
        np.testing.assert_allclose(trained.params["w"][run], alone, rtol=1e-6)


def test_every_run_is_trained_with_its_own_key_where_it_is_not(setup):
    executor = Executor()
    (training,) = plan(NOISY)
    trained = train_runs(executor, setup, training)
    assert executor.stats["train"][0].num_runs == RUNS
    assert len(np.unique(np.asarray(trained.params["w"]).reshape(RUNS, -1), axis=0)) == RUNS
    keys = keys_for(setup.keys, "training")
    np.testing.assert_allclose(trained.params["w"][4], by_hand(setup, 4, NOISY, keys[4], 3), rtol=1e-6)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("loop", [SPEC, NOISY])
def test_checkpoints_are_the_parameters_so_many_updates_before_the_end(setup, tmp_path, stored, loop):
    (training,) = plan(
        loop, a=recipe(rewind_updates=1), b=recipe(rewind_updates=2), c=recipe(rewind_updates=0)
    )
    progress = Progress(tmp_path, "3f", pytest.fail) if stored else None
    trained = train_runs(Executor(RunOptions(chunk=4), progress=progress), setup, training)
    assert sorted(trained.checkpoints) == [0, 1, 2]
    key = keys_for(setup.keys, "training")[5]
    for rewind, params in trained.checkpoints.items():
        alone = by_hand(setup, 5, training.loop, key, training.loop.num_steps - rewind)
        np.testing.assert_allclose(params["w"][5], alone, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(trained.params["w"], trained.checkpoints[0]["w"])


def stored_training(setup, store, training, audit="3f"):
    listener = Listener()
    executor = Executor(RunOptions(chunk=4), listener, Progress(store, audit, listener.say))
    return train_runs(executor, setup, training, "data"), executor, listener.said


@pytest.mark.parametrize(("loop", "rows"), [(SPEC, 6), (NOISY, RUNS)])
def test_the_store_gives_the_same_bits_and_trains_nothing(setup, tmp_path, loop, rows):
    (training,) = plan(loop)
    fresh = train_runs(Executor(RunOptions(chunk=4)), setup, training)
    first, _, said = stored_training(setup, tmp_path, training)
    assert said == [f"train: 0 of {rows} models from the store"]
    again, executor, said = stored_training(setup, tmp_path, training, "4e")
    assert said == [f"train: {rows} of {rows} models from the store"]
    assert (executor.stats, executor.reused) == ({}, {"train": rows})
    for trained in (first, again):
        np.testing.assert_array_equal(trained.params["w"], fresh.params["w"])


def test_only_what_is_missing_is_trained(setup, tmp_path):
    (training,) = plan()
    few = setup._replace(signs=setup.signs[:3], members=setup.members[:3], keys=setup.keys[:3])
    known = len(np.unique(few.signs, axis=0))
    stored_training(few, tmp_path, training)
    trained, executor, said = stored_training(setup, tmp_path, training)
    assert said == [f"train: {known} of 6 models from the store"]
    assert executor.stats["train"][0].num_runs == 6 - known
    fresh = train_runs(Executor(), setup, training)
    np.testing.assert_allclose(trained.params["w"], fresh.params["w"], rtol=1e-6)


def test_a_rewind_that_was_not_stored_is_trained(setup, tmp_path):
    stored_training(setup, tmp_path, plan()[0])
    trained, _, said = stored_training(setup, tmp_path, plan(a=recipe(rewind_updates=1))[0])
    assert said == ["train: 0 of 6 models from the store"]
    assert set(trained.checkpoints) == {1}


def test_damage_is_said_and_trained_again(setup, tmp_path):
    (training,) = plan()
    first, _, _ = stored_training(setup, tmp_path, training)
    (index,) = tmp_path.glob("trained/*/*/*/piece.json")
    index.write_text(index.read_text().replace('"sha256": "', '"sha256": "0'))
    again, _, said = stored_training(setup, tmp_path, training)
    assert "is damaged" in said[0]
    assert said[1] == "train: 0 of 6 models from the store"
    np.testing.assert_array_equal(again.params["w"], first.params["w"])
    assert stored_training(setup, tmp_path, training)[2] == ["train: 6 of 6 models from the store"]


def test_progress_with_other_rows_is_not_used(setup, tmp_path):
    """Killed with a snapshot of three runs, it goes on with all of them."""
    (training,) = plan(a=recipe(rewind_updates=1))
    few = setup._replace(signs=setup.signs[:3], members=setup.members[:3], keys=setup.keys[:3])
    move = pieces._move

    def kill(hidden, target):
        move(hidden, target)
        if target.name == "result":
            raise KeyboardInterrupt

    with patch.object(pieces, "_move", kill), pytest.raises(KeyboardInterrupt):
        stored_training(few, tmp_path, training)
    assert list(tmp_path.glob("audits/3f/training-3/result"))
    trained, _, _ = stored_training(setup, tmp_path, training)
    fresh = train_runs(Executor(RunOptions(chunk=4)), setup, training)
    np.testing.assert_array_equal(trained.params["w"], fresh.params["w"])
    np.testing.assert_array_equal(trained.checkpoints[1]["w"], fresh.checkpoints[1]["w"])


@pytest.mark.parametrize(
    "change",
    ["learning rate", "epochs", "data", "order", "initial_params", "precision", "loss"],
)
def test_the_key_of_a_training_holds_all_that_it_depends_on(setup, change):
    executor, training, data = Executor(), plan()[0], "data"
    key = shelf_key(executor, setup, training, data)
    assert shelf_key(Executor(), setup, plan()[0], data) == key
    match change:
        case "learning rate":
            training = plan(SgdSpec(2, 0.4, batch_size=4))[0]
        case "epochs":
            training = plan(SgdSpec(3, 0.5, batch_size=4))[0]
        case "data":
            data = "other"
        case "order":
            setup = setup._replace(order=setup.order[::-1])
        case "initial_params":
            initial = {"w": setup.shared.initial_params["w"] + 1e-7}
            setup = setup._replace(shared=setup.shared._replace(initial_params=initial))
        case "precision":
            executor = Executor(RunOptions(matmul_precision="default"))
        case "loss":
            (training,) = plan_trainings({"none": recipe()}, SPEC, lambda *args: 2 * LOSS(*args), MEMBERS)
    assert shelf_key(executor, setup, training, data) != key


def test_data_fixture_is_what_the_tests_say():
    assert DATA.num_retain + DATA.num_groups // 2 * DATA.group_size == MEMBERS
