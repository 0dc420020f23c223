"""Which audit this is: a hash of all that its result depends on, so that only the same audit is resumed."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxaudit.evaluate import EvaluationRun, EvaluationShared
from jaxaudit.pipeline.executor import Executor
from jaxaudit.pipeline.setup import Setup
from jaxaudit.pipeline.trainings import Training, model_shapes, shelf_key
from jaxaudit.pipeline.unlearning import Evaluate
from jaxaudit.provenance import installed_version
from jaxaudit.store import fingerprint, hash_arrays, hash_loop, hash_program
from jaxaudit.unlearn.base import Recipe, Unlearner, as_stages
from jaxaudit.unlearn.driver import RunInput, SharedInput, stage_loop

_Stages = dict[Any, tuple[list[str | None], Any]]
"""What is known of stages, which compositions repeat, by the stage and the shapes of its inputs."""
_PACKAGES = ("jaxaudit", "jax", "jaxlib")


def audit_key(
    executor: Executor,
    setup: Setup,
    trainings: tuple[Training, ...],
    recipes: Mapping[str, Recipe],
    evaluate: Evaluate,
    data: str,
) -> str:
    """SHA-256 (hex) of an audit's data, runs and keys, and of every program that it will carry out.

    Programs are compared by what they compute: another hyper-parameter is another audit. How the runs are spread over
    time, memory and devices does not count.
    """
    models = {name: model_shapes(setup, one) for one in trainings for name in one.methods}
    first = next(iter(models.values()))
    run = EvaluationRun(first, first, _one_run(setup.forget))
    shared = EvaluationShared(setup.shared.pool, setup.holdout)
    stages: _Stages = {}
    return fingerprint(
        {
            "signs": hash_arrays([setup.signs]),
            "noise": hash_arrays([np.asarray(jax.random.key_data(setup.keys))]),
            "trainings": [
                [one.name, one.updates, sorted(one.methods), shelf_key(executor, setup, one, data)]
                for one in trainings
            ],
            "methods": {
                name: _method(setup, models[name], recipe, stages) for name, recipe in recipes.items()
            },
            "evaluation": hash_program(evaluate, run, shared),
            "versions": {package: installed_version(package) for package in _PACKAGES},
            "backend": jax.default_backend(),
        }
    )


def _method(setup: Setup, params: Any, recipe: Recipe, known: _Stages) -> list[Any]:
    checkpoint = None if recipe.rewind_updates is None else params
    previous, stages = None, []
    for stage in as_stages(recipe.method).stages:
        key = jax.eval_shape(lambda: jax.random.key(0))
        run = RunInput(key, params, _one_run(setup.forget), checkpoint, previous if stage.continues else None)
        leaves, structure = jax.tree.flatten(run)
        inputs = (stage, structure, tuple(leaves))
        if inputs not in known:
            known[inputs] = _stage(stage, run, setup.shared)
        hashes, previous = known[inputs]
        params = previous.params
        stages.append(hashes)
    return [stages, recipe.rewind_updates, sorted(recipe.record_at), recipe.same_for_all]


def _stage(stage: Unlearner, run: RunInput, shared: SharedInput) -> tuple[list[str | None], Any]:
    """Hashes of what a stage computes and of what it measures, and the shapes of its state."""
    loop = stage_loop(stage)
    state = jax.eval_shape(loop.init, run, shared)
    measured = None if stage.measure is None else hash_program(stage.measure, state)
    return [hash_loop(loop, run, shared), measured], state


def _one_run(leaf: Any) -> Any:
    """Shape and type of one run's slice."""
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)
