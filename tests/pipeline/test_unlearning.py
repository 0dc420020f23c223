"""The stages of all runs are those of one run in a plain Python loop, and every iterate is looked at once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.evaluate import EvaluationRun, EvaluationShared
from jaxaudit.pipeline import Executor, TrainedRuns, check_records, keys_for, unlearn_runs
from jaxaudit.progress import SilentReporter
from jaxaudit.runs import RunOptions
from jaxaudit.store import Progress
from jaxaudit.train import take_batch
from jaxaudit.unlearn import exact_retraining, no_unlearning
from jaxaudit.unlearn.base import Batch, Recipe, Trained, Unlearner, apply, then
from tests.pipeline.conftest import EVALUATE, LOSS, RUNS


class State(NamedTuple):
    params: dict
    count: jax.Array


def descent(num_updates, continues=False, **options):
    """Gradient descent on both parts with noise, which counts its updates."""

    def init(key, trained):
        count = trained.previous.count if continues else jnp.zeros((), jnp.int32)
        return State(trained.params, count)

    def update(key, state, batch):
        gradient = jax.grad(lambda params: LOSS(params, batch.retain) - 0.3 * LOSS(params, batch.forget))(
            state.params
        )
        noise = jax.random.normal(key, (3, 2))
        params = {"w": state.params["w"] - 0.1 * gradient["w"] + 0.01 * noise}
        return State(params, state.count + 1), {}

    return Unlearner(init, update, num_updates, batch_size=3, continues=continues, **options)


REWIND = Unlearner(lambda key, trained: trained._replace(params=trained.checkpoint), None, 0)


@pytest.fixture(scope="module")
def trained():
    weights = np.random.default_rng(1).normal(size=(2, RUNS, 3, 2)).astype(np.float32)
    return TrainedRuns({"w": jnp.asarray(weights[0])}, {2: {"w": jnp.asarray(weights[1])}})


@pytest.fixture(scope="module")
def keys(setup):
    return keys_for(setup.keys, "method test")


def by_hand(setup, trained, keys, run, method, rewind=None):
    """Parameters and scores of one run."""

    def one(tree):
        return jax.tree.map(lambda leaf: leaf[run], tree)

    def batch(step):
        rows = (setup.shared.retain, setup.forget[run])
        return Batch(*(take_batch(setup.shared.pool, index, step, 3) for index in rows))

    checkpoint = None if rewind is None else one(trained.checkpoints[rewind])
    start = Trained(one(trained.params), setup.shared.initial_params, checkpoint)
    params = apply(method, keys[run], start, batch)
    run_input = EvaluationRun(params, one(trained.params), setup.forget[run])
    return EVALUATE(run_input, EvaluationShared(setup.shared.pool, setup.holdout))


def looks(setup, trained, keys, recipe, executor=None):
    return unlearn_runs(
        executor or Executor(RunOptions(chunk=4)), setup, trained, keys, "test", recipe, EVALUATE
    )


def same(found, run, expected):
    for name, value in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name)[run], value, rtol=2e-5, atol=1e-6, err_msg=name)


def test_records_are_the_method_stopped_there(setup, trained, keys):
    """Update 2 is within the first stage, 3 at its end, 5 within the second; 6 is the end and needs no row."""
    recipe = Recipe(then(descent(3), descent(3, continues=True)), record_at=(5, 2, 3, 6))
    found = looks(setup, trained, keys, recipe)
    assert [look.update for look in found] == [2, 3, 5, None]
    assert [look.cost for look in found] == [6, 9, 15, 18]
    stopped = {
        2: descent(2),
        3: descent(3),
        5: then(descent(3), descent(2, continues=True)),
        None: recipe.method,
    }
    for look in found:
        for run in (0, 9, 14):
            same(look.evaluation, run, by_hand(setup, trained, keys, run, stopped[look.update]))


def test_the_work_is_done_once_however_many_looks_there_are(setup, trained, keys):
    executor = Executor()
    looks(setup, trained, keys, Recipe(descent(6), record_at=(1, 2, 5)), executor)
    assert [stats.num_steps for stats in executor.stats["test: stage 1 of 1"]] == [1, 1, 3, 1]
    with_looks = looks(setup, trained, keys, Recipe(descent(6), record_at=(1, 2, 5)))[-1]
    without = looks(setup, trained, keys, Recipe(descent(6)))[-1]
    np.testing.assert_array_equal(with_looks.evaluation.scores, without.evaluation.scores)


def test_a_method_that_rewinds_gets_the_checkpoint_of_its_run(setup, trained, keys):
    recipe = Recipe(then(REWIND, descent(2)), rewind_updates=2)
    (found,) = looks(setup, trained, keys, recipe)
    for run in (0, 14):
        same(found.evaluation, run, by_hand(setup, trained, keys, run, recipe.method, rewind=2))


def test_only_a_stage_that_continues_gets_the_state_before(setup, trained, keys):
    seen = []

    def init(key, trained):
        seen.append(trained.previous)
        return State(trained.params, jnp.zeros((), jnp.int32))

    stage = Unlearner(init, lambda key, state, batch: (state, {}), 1)
    looks(setup, trained, keys, Recipe(then(descent(1), stage, stage._replace(continues=True))))
    assert seen[0] is None
    assert any(isinstance(previous, State) for previous in seen)


def test_what_stages_measure_is_told_of_every_run(setup, trained, keys):
    def measure(state):
        return {"size": optax.tree.norm(state.params), "updates": state.count}

    recipe = Recipe(
        then(descent(2, measure=measure), no_unlearning(), descent(1, continues=False, measure=measure))
    )
    recipe = recipe._replace(record_at=(1,))
    first, end = looks(setup, trained, keys, recipe)
    assert first.measured == {}
    assert sorted(end.measured) == ["size", "size (stage 3)", "updates", "updates (stage 3)"]
    assert end.measured["updates"].tolist() == RUNS * [2]
    assert end.measured["updates (stage 3)"].tolist() == RUNS * [1]
    assert len(set(end.measured["size"].tolist())) == RUNS


def test_what_is_the_same_for_all_runs_is_carried_out_once(setup, trained, keys):
    """Retraining starts from x0 and never sees what a run had trained on: one run tells all."""
    measure = {"measure": lambda state: {"size": optax.tree.norm(state.params)}}
    method = exact_retraining(LOSS, optimizer=optax.sgd(0.1), num_updates=4, batch_size=3)._replace(**measure)
    executor, recipe = Executor(), Recipe(then(method, no_unlearning()), record_at=(2,))
    once = looks(setup, trained, keys, recipe._replace(same_for_all=True), executor)
    assert [stats.num_runs for stats in executor.stats["test: stage 1 of 2"]] == [1, 1]
    for found, expected in zip(once, looks(setup, trained, keys, recipe), strict=True):
        for run in range(RUNS):
            same(
                found.evaluation,
                run,
                expected.evaluation._replace(
                    **{name: value[run] for name, value in expected.evaluation._asdict().items()}
                ),
            )
    np.testing.assert_allclose(once[-1].measured["size"], np.full(RUNS, once[-1].measured["size"][0]))
    assert once[-1].measured["size"].shape == (RUNS,)
    assert len(np.unique(once[-1].evaluation.moved)) > 1  # from where they were, which differs


def test_measures_are_scalars(setup, trained, keys):
    with pytest.raises(InputError, match=r"measure 'w' of test must be a scalar, got shape \(3, 2\)"):
        looks(setup, trained, keys, Recipe(descent(1, measure=lambda state: state.params)))


@pytest.mark.parametrize("update", [0, 7, 1.5])
def test_records_must_be_updates_of_the_method(update):
    check_records(Recipe(then(descent(3), descent(3)), record_at=(1, 6)))
    with pytest.raises(InputError, match="record_at must be an integer between 1 and 6, got"):
        check_records(Recipe(then(descent(3), descent(3)), record_at=(update,)))


class Listener(SilentReporter):
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def test_a_method_that_is_done_is_not_done_again(setup, trained, keys, tmp_path):
    recipe = Recipe(then(descent(3, measure=lambda state: {"n": state.count}), descent(2)), record_at=(2, 4))
    plain = looks(setup, trained, keys, recipe)
    results = [plain]
    for stages in (2, 0):
        listener = Listener()
        executor = Executor(RunOptions(chunk=4), listener, Progress(tmp_path, "3f", pytest.fail))
        results.append(looks(setup, trained, keys, recipe, executor))
        assert len([label for label in executor.stats if "stage" in label]) == stages
        assert listener.said == ([] if stages else ["test: scores from the store"])
    for result in results[1:]:
        assert [look.update for look in result] == [2, 4, None]
        for look, expected in zip(result, plain):
            jax.tree.map(np.testing.assert_array_equal, look.evaluation, expected.evaluation)
            jax.tree.map(np.testing.assert_array_equal, look.measured, expected.measured)
            assert look.cost == expected.cost
    assert not list(tmp_path.glob("audits/3f/*/stage*"))
