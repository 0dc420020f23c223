"""Unlearning of all runs: a method's stages one after the other, with looks at the iterates on the way."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from jaxaudit.checks import check_integer
from jaxaudit.errors import InputError
from jaxaudit.evaluate import Evaluation, EvaluationRun, EvaluationShared
from jaxaudit.pipeline.executor import Arrays, Executor, Looks
from jaxaudit.pipeline.setup import Setup
from jaxaudit.pipeline.trainings import TrainedRuns
from jaxaudit.runs import to_host
from jaxaudit.store import fingerprint
from jaxaudit.train import Info, Params
from jaxaudit.unlearn.base import Recipe, Unlearner, as_stages
from jaxaudit.unlearn.driver import RunInput, stage_loop

Evaluate = Callable[[EvaluationRun, EvaluationShared], Evaluation]
Measured = dict[str, Float[np.ndarray, " runs"]]
_MEASURED = "measured: "


class Look(NamedTuple):
    """The models of all runs at one moment of a method."""

    update: int | None
    """After how many updates of the whole method; ``None``: at its end."""
    evaluation: Evaluation
    """With an axis of runs; NumPy arrays."""
    measured: Measured
    """What the stages measured, at the end only."""
    cost: float
    """Gradient evaluations of single examples so far."""


def check_records(recipe: Recipe) -> None:
    """Raise unless every recorded update is one of the method's.

    Examples
    --------
    >>> from jaxaudit import unlearn
    >>> check_records(Recipe(unlearn.no_unlearning(), record_at=(3,)))
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: record_at must be an integer between 1 and 0, got 3
    """
    for update in recipe.record_at:
        check_integer("record_at", update, low=1, high=num_updates(recipe))


def score_label(name: str) -> str:
    """Label of the computation of a method's scores.

    Examples
    --------
    >>> score_label("scrub")
    'scrub: score'
    """
    return f"{name}: score"


def num_updates(recipe: Recipe) -> int:
    """Updates in all stages of a method."""
    return sum(stage.num_updates for stage in as_stages(recipe.method).stages)


def unlearn_runs(
    executor: Executor,
    setup: Setup,
    trained: TrainedRuns,
    keys: Key[Array, " runs"],
    name: str,
    recipe: Recipe,
    evaluate: Evaluate,
) -> list[Look]:
    """Unlearn in all runs, and evaluate the models at the end and at the recorded updates.

    Parameters
    ----------
    executor, setup
        How, and from what.
    trained
        The models that the method starts from.
    keys
        Noise of each run.
    name
        The method's name.
    recipe
        The method.
    evaluate
        What is read from one model, as made by `jaxaudit.evaluate.evaluation`.

    Returns
    -------
    The recorded iterates in the order of their updates, then the end. All of them are looks along the same runs, which
    are carried out once.
    """
    return _Method(executor, setup, trained, keys, name, recipe, evaluate).looks()


class _Method(NamedTuple):
    """One method in all runs; see `unlearn_runs`."""

    executor: Executor
    setup: Setup
    trained: TrainedRuns
    keys: Key[Array, " runs"]
    name: str
    recipe: Recipe
    evaluate: Evaluate

    @property
    def stages(self) -> tuple[Unlearner, ...]:
        return as_stages(self.recipe.method).stages

    @property
    def folder(self) -> str:
        """Where progress is kept: method names may hold what a path must not."""
        return f"method-{fingerprint(self.name)[:16]}"

    def runs_of(self, tree: Any) -> Any:
        """The runs to carry out: all, or the first if they would all be the same."""
        return jax.tree.map(lambda leaf: leaf[:1], tree) if self.recipe.same_for_all else tree

    def to_all_runs(self, tree: Any) -> Any:
        """What was carried out, for every run."""
        if not self.recipe.same_for_all:
            return tree
        count = len(self.setup.signs)
        return jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf[:1]), count, axis=0), tree)

    @property
    def records(self) -> tuple[int, ...]:
        """Recorded updates before the end, in order."""
        return tuple(sorted(set(self.recipe.record_at) - {num_updates(self.recipe)}))

    def looks(self) -> list[Look]:
        found: dict[int, Arrays] = {}
        for update in self.records:
            kept = self.executor.recall(f"{self.folder}/{update}")
            if kept is not None:
                found[update] = kept
        end = self.executor.recall(f"{self.folder}/end")
        if end is not None and len(found) == len(self.records):
            self.executor.reused[score_label(self.name)] = len(self.setup.signs)
            self.executor.reporter.say(f"{self.name}: scores from the store")
        else:
            end = self._carry_out(found)
        records = [_look(update, found[update], self._cost(update)) for update in self.records]
        return [*records, _look(None, end, as_stages(self.recipe.method).cost)]

    def _carry_out(self, found: dict[int, Arrays]) -> Arrays:
        """Do what is not done yet; adds to the evaluations ``found``, and returns that of the end."""
        params, previous, offset = self.trained.params, None, 0
        measured: Arrays = {}
        for index, stage in enumerate(self.stages):
            looks = {
                update - offset: self._recorder(update, found)
                for update in self.records
                if offset < update <= offset + stage.num_updates and update not in found
            }
            carry = self._stage(index, params, previous, looks)
            measured |= self._measure(index, carry, measured)
            # The whole state is kept only for a stage that continues it.
            continued = any(later.continues for later in self.stages[index + 1 : index + 2])
            params, previous, offset = carry.params, carry if continued else None, offset + stage.num_updates
            del carry
        end = self._evaluate(params, "end", measured)
        for index in range(len(self.stages)):
            self.executor.forget(self._stage_name(index))
        return end

    def _stage_name(self, index: int) -> str:
        return f"{self.folder}/stage-{index}"

    def _stage(self, index: int, params: Params, previous: Any, looks: Looks) -> Any:
        # Equal stages of a composition must not share noise.
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(self.keys, index)
        rewind = self.recipe.rewind_updates
        checkpoint = None if rewind is None else self.trained.checkpoints[rewind]
        stage = self.stages[index]
        run = RunInput(keys, params, self.setup.forget, checkpoint, previous if stage.continues else None)
        run = self.runs_of(run)
        label = f"{self.name}: stage {index + 1} of {len(self.stages)}"
        return self.executor.run(
            stage_loop(stage), run, self.setup.shared, name=self._stage_name(index), label=label, looks=looks
        )

    def _recorder(self, update: int, found: dict[int, Arrays]) -> Callable[[Any], None]:
        def look(carry: Any) -> None:
            found[update] = self._evaluate(carry.params, str(update), {})

        return look

    def _evaluate(self, params: Params, name: str, measured: Arrays) -> Arrays:
        """The evaluation of all runs, and what was measured, by name; kept once."""
        run = EvaluationRun(self.to_all_runs(params), self.trained.params, self.setup.forget)
        shared = EvaluationShared(self.setup.shared.pool, self.setup.holdout)
        name = f"{self.folder}/{name}"

        def compute() -> Arrays:
            evaluated = self.executor.map(self.evaluate, run, shared, name=name, label=score_label(self.name))
            return {**evaluated._asdict(), **measured}

        return self.executor.once(name, compute)

    def _measure(self, index: int, carry: Any, taken: Arrays) -> Arrays:
        """What a stage measures about its last state; a name that is taken gets the number of the stage."""
        measure = self.stages[index].measure
        if measure is None:
            return {}
        name, label = f"{self._stage_name(index)}-measures", f"{self.name}: measures"
        found = self.executor.map(_measuring(measure), carry, None, name=name, label=label)
        self.executor.forget(name)
        for key, value in found.items():
            if value.ndim != 1:
                raise InputError(
                    f"measure {key!r} of {self.name} must be a scalar, got shape {value.shape[1:]}"
                )
        names = {key: f"{_MEASURED}{key}" for key in found}
        repeated = {key: f"{name} (stage {index + 1})" for key, name in names.items() if name in taken}
        return {(names | repeated)[key]: self.to_all_runs(value) for key, value in found.items()}

    def _cost(self, updates: int) -> float:
        """Gradient evaluations of the first updates."""
        total = 0.0
        for stage in self.stages:
            total += stage._replace(num_updates=min(updates, stage.num_updates)).cost
            updates = max(0, updates - stage.num_updates)
        return total


@lru_cache(maxsize=64)  # one function per measure, so that it is compiled once
def _measuring(measure: Callable[[Any], Info]) -> Callable[[Any, None], Info]:
    return lambda state, shared: measure(state)


def _look(update: int | None, arrays: Arrays, cost: float) -> Look:
    arrays = to_host(arrays)
    evaluation = Evaluation(**{name: arrays[name] for name in Evaluation._fields})
    measured = {
        name.removeprefix(_MEASURED): values for name, values in arrays.items() if name.startswith(_MEASURED)
    }
    return Look(update, evaluation, measured, cost)
