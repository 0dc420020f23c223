"""Base training: every distinct training once, and once per sign vector where it is deterministic.

Noise drawn from a run's own key makes every run a training of its own: only then are runs independent.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PyTree

from jaxaudit.checks import check_integer
from jaxaudit.pipeline.executor import Executor
from jaxaudit.pipeline.setup import Setup, keys_for
from jaxaudit.runs import to_host
from jaxaudit.store import Progress, TrainedShelf, fingerprint, hash_arrays, hash_loop
from jaxaudit.train import Loop, LossFn, Params, SgdSpec, TrainingRun, TrainingShared, training_loop
from jaxaudit.unlearn.base import Recipe


class Training(NamedTuple):
    """One training that some methods of an audit start from."""

    name: str
    """Short and unique in the audit; its noise keys are drawn for this name."""
    loop: Loop
    rewinds: tuple[int, ...]
    """How many updates before its end parameters are wanted as well, each once."""
    methods: tuple[str, ...]
    """Names of the methods that start from it."""
    about: Any
    """The training in plain JSON types."""

    @property
    def label(self) -> str:
        """What progress and costs are shown under."""
        return f"train{self.name.removeprefix('training')}"

    @property
    def updates(self) -> tuple[int, ...]:
        """Numbers of updates after which parameters are wanted, in order; the last is the end."""
        return tuple(sorted({self.loop.num_steps - rewind for rewind in (0, *self.rewinds)}))


class TrainedRuns(NamedTuple):
    """Trained models of all runs."""

    params: Params
    checkpoints: Mapping[int, Params]
    """Earlier parameters, by how many updates before the end."""


def plan_trainings(
    recipes: Mapping[str, Recipe], default: SgdSpec | Loop, loss_fn: LossFn, num_members: int
) -> tuple[Training, ...]:
    """The distinct trainings of some methods, in the order in which they are first needed.

    Equal specs are one training, and so is one and the same loop.

    Parameters
    ----------
    recipes
        Methods by name.
    default
        Training of the methods that bring none of their own.
    loss_fn
        ``(params, examples) -> scalar``, what a spec minimises.
    num_members
        Examples that each run trains on.

    Raises
    ------
    InputError
        A method rewinds by more updates than its training has.

    Examples
    --------
    >>> from jaxaudit import unlearn
    >>> own = Recipe(unlearn.no_unlearning(), training=SgdSpec(2, 0.1, batch_size=5), rewind_updates=3)
    >>> recipes = {"none": Recipe(unlearn.no_unlearning()), "rewind": own}
    >>> trainings = plan_trainings(recipes, SgdSpec(1, 0.1, batch_size=5), lambda params, examples: params, 10)
    >>> [(training.name, training.updates, training.methods) for training in trainings]
    [('training', (2,), ('none',)), ('training-2', (1, 4), ('rewind',))]
    """
    specs = {name: recipe.training or default for name, recipe in recipes.items()}
    loops = {
        name: training_loop(loss_fn, spec, num_members) if isinstance(spec, SgdSpec) else spec
        for name, spec in specs.items()
    }
    main = training_loop(loss_fn, default, num_members) if isinstance(default, SgdSpec) else default
    others = [loop for loop in dict.fromkeys(loops.values()) if loop != main]
    names = {main: "training", **{loop: f"training-{index}" for index, loop in enumerate(others, 2)}}
    trainings = []
    for loop in dict.fromkeys(loops.values()):
        methods = tuple(name for name, own in loops.items() if own == loop)
        wanted = [recipes[name].rewind_updates for name in methods]
        rewinds = {
            check_integer("rewind_updates", one, 0, loop.num_steps) for one in wanted if one is not None
        }
        spec = specs[methods[0]]
        about = asdict(spec) if isinstance(spec, SgdSpec) else "user loop"
        trainings.append(Training(names[loop], loop, tuple(sorted(rewinds)), methods, about))
    return tuple(trainings)


def train_runs(executor: Executor, setup: Setup, training: Training, data: str = "") -> TrainedRuns:
    """Train the models of all runs, as far as they are not in the store.

    Parameters
    ----------
    executor, setup
        How, and from what. Models are kept in the store that the executor keeps its progress in, if there is one.
    training
        What to do.
    data
        Fingerprint of the data, as part of the models' key in the store.
    """
    first, row_of_run = training_rows(setup.signs, training.loop.deterministic)
    job = _Job(executor, setup, training, first)
    progress = executor.progress
    rows = job.train(np.arange(len(first))) if progress is None else _with_store(job, progress, data)
    if len(first) < len(setup.signs):
        rows = {update: _take(params, row_of_run) for update, params in rows.items()}
    end = training.loop.num_steps
    return TrainedRuns(rows[end], {rewind: rows[end - rewind] for rewind in training.rewinds})


def shelf_key(executor: Executor, setup: Setup, training: Training, data: str) -> str:
    """Hash of all that trained models depend on, except the sign vector (and the noise key, if it is used).

    The program of the training is part of it, so that a loop of the user's own has a key as well.
    """
    initial = to_host(setup.shared.initial_params)
    return fingerprint(
        {
            "data": data,
            "order": hash_arrays([setup.order]),
            "initial_params": hash_arrays(jax.tree.leaves(initial)),
            "training": hash_loop(training.loop, *_one_run(setup)),
            "matmul_precision": executor.options.matmul_precision,
        }
    )


def model_shapes(setup: Setup, training: Training) -> PyTree:
    """Shapes and types of the parameters of one model."""
    return jax.eval_shape(training.loop.init, *_one_run(setup)).params


def _one_run(setup: Setup) -> tuple[TrainingRun, TrainingShared]:
    """Shapes and types of the arguments of one training."""
    run = TrainingRun(setup.members[0], setup.keys[0])
    return jax.eval_shape(lambda: (run, _shared(setup)))


def _shared(setup: Setup) -> TrainingShared:
    return TrainingShared(setup.shared.pool, setup.shared.initial_params)


def training_rows(
    signs: Int[np.ndarray, "runs groups"], deterministic: bool
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " runs"]]:
    """Which runs to train, and whose training each run uses.

    Parameters
    ----------
    signs
        ``(runs, groups)``.
    deterministic
        Whether equal sign vectors give equal models.

    Returns
    -------
    The first run of every distinct sign vector, in order of runs; and for each run the row that is its own.

    Examples
    --------
    >>> [index.tolist() for index in training_rows(np.array([[1, -1], [-1, 1], [1, -1]]), True)]
    [[0, 1], [0, 1, 0]]
    """
    if not deterministic:
        return np.arange(len(signs)), np.arange(len(signs))
    _, first, inverse = np.unique(signs, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.reshape(-1)]


class _Job(NamedTuple):
    """One training and the runs that stand for its distinct rows."""

    executor: Executor
    setup: Setup
    training: Training
    runs: Int[np.ndarray, " rows"]

    @property
    def keys(self) -> Key[Array, " rows"]:
        return keys_for(self.setup.keys, self.training.name)[self.runs]

    def run_inputs(self, rows: Int[np.ndarray, " some"]) -> TrainingRun:
        return TrainingRun(self.setup.members[self.runs[rows]], self.keys[rows])

    def train(self, rows: Int[np.ndarray, " some"]) -> dict[int, Params]:
        """Parameters of some rows, by number of updates."""
        executor, loop, name = self.executor, self.training.loop, self.training.name
        structure = jax.tree.structure(model_shapes(self.setup, self.training))
        found: dict[int, Params] = {}

        def snapshot(update: int) -> Callable[[Any], None]:
            def look(carry: Any) -> None:
                kept = executor.once(f"{name}-{update}", lambda: _by_number(carry.params))
                found[update] = jax.tree.unflatten(structure, kept.values())

            return look

        on_the_way = self.training.updates[:-1]
        for update in on_the_way:
            kept = executor.recall(f"{name}-{update}")
            if kept is not None:
                found[update] = jax.tree.unflatten(structure, kept.values())
        looks = {update: snapshot(update) for update in on_the_way if update not in found}
        carry = executor.run(
            loop,
            self.run_inputs(rows),
            _shared(self.setup),
            name=name,
            label=self.training.label,
            looks=looks,
        )
        return found | {loop.num_steps: carry.params}

    def row_keys(self) -> list[str]:
        """What tells the rows of a shelf apart: the sign vector, and the noise key if noise is drawn from it."""
        parts = [row.tobytes() for row in np.asarray(self.setup.signs[self.runs], np.int8)]
        if not self.training.loop.deterministic:
            noise = np.asarray(jax.random.key_data(self.keys))
            parts = [part + key.tobytes() for part, key in zip(parts, noise)]
        return [hashlib.sha256(part).hexdigest()[:32] for part in parts]


def _with_store(job: _Job, progress: Progress, data: str) -> dict[int, Params]:
    """Rows from the store; the others are trained, and put there."""
    reporter, label = job.executor.reporter, job.training.label
    about = {"data": data, "training": job.training.about}
    key = shelf_key(job.executor, job.setup, job.training, data)
    shelf = TrainedShelf(progress.store, key, about, reporter.say)
    like = model_shapes(job.setup, job.training)
    keys, found = job.row_keys(), {}
    there = np.ones(len(keys), bool)
    for update in job.training.updates:
        found[update], there_now = shelf.take(update, keys, like)
        there &= there_now
    job.executor.reused[label] = int(there.sum())
    reporter.say(f"{label}: {there.sum()} of {len(keys)} models from the store")
    if there.all():
        _forget(job)
        return found
    rows = _rows_to_train(job, progress, there)
    new = {update: to_host(params) for update, params in job.train(rows).items()}
    for update, params in new.items():
        shelf.put(update, [keys[row] for row in rows], params)
        for leaf, own in zip(jax.tree.leaves(found[update]), jax.tree.leaves(params)):
            leaf[rows] = own
    _forget(job)
    return found


def _forget(job: _Job) -> None:
    """Forget the progress of a training: its parts and its snapshots."""
    name = job.training.name
    for kept in (name, *(f"{name}-{update}" for update in job.training.updates)):
        job.executor.forget(kept)


def _rows_to_train(
    job: _Job, progress: Progress, there: Bool[np.ndarray, " rows"]
) -> Int[np.ndarray, " some"]:
    """Rows that are not in the store; after an interruption those of the first time, whose parts are kept."""
    name = f"{job.training.name}-rows"
    piece = progress.load(name)
    if piece is not None and set(np.flatnonzero(~there)) <= set(piece.leaves[0].tolist()):
        return piece.leaves[0]
    rows = np.flatnonzero(~there)
    _forget(job)
    progress.keep(name, [rows])
    return rows


def _take(params: Params, rows: Int[np.ndarray, " runs"]) -> Params:
    return jax.tree.map(lambda leaf: leaf[rows], params)


def _by_number(params: Params) -> dict[str, Any]:
    return {str(index): leaf for index, leaf in enumerate(jax.tree.leaves(params))}
