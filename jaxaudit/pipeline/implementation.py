"""Which of several equal implementations of a model is fastest here."""

from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from jaxaudit.data import AuditData
from jaxaudit.models import Model
from jaxaudit.progress import Reporter, SilentReporter
from jaxaudit.runs import RunOptions, fastest
from jaxaudit.store import fingerprint, read_piece, write_piece
from jaxaudit.train import SgdSpec, TrainingRun, TrainingShared, cross_entropy_loss, training_loop


def fastest_model(
    model: Model,
    data: AuditData,
    training: SgdSpec,
    num_runs: int,
    *,
    options: RunOptions | None = None,
    store: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Model:
    """The model or one of its alternatives, by the time of a training step; the model itself if it has none.

    Choose before methods are built on the model's loss. With a store the first choice is kept, so that an interrupted
    audit goes on with the same program.

    Parameters
    ----------
    model
        With ``alternatives``: equal functions of equal parameters.
    data, training, num_runs
        What will be trained: half of the groups, and the retain set.
    options
        How the runs will be carried out.
    store
        As in `jaxaudit.audit.run_audit`.
    reporter
        Told of the choice.

    Examples
    --------
    >>> from jaxaudit.data import load
    >>> from jaxaudit.models import mlp
    >>> model = mlp((64,), 10)
    >>> fastest_model(model, load("digits", seed=0), SgdSpec(1, 0.1), 60) is model
    True
    """
    candidates = (model, *model.alternatives)
    if len(candidates) == 1:
        return model
    reporter = reporter or SilentReporter()
    options = options or RunOptions()
    num_members = data.num_retain + data.num_groups // 2 * data.group_size
    about = [one.description for one in candidates], asdict(training), asdict(options), num_members, num_runs
    name = f"choices/{fingerprint([about, data.pool.x.shape, jax.default_backend()])[:32]}"
    kept = None if store is None else read_piece(Path(store), name, reporter.say)
    if kept is not None:
        return candidates[kept.note["candidate"]]
    loops = {
        str(index): training_loop(cross_entropy_loss(one.logits_fn), training, num_members)
        for index, one in enumerate(candidates)
    }
    initial_params = jax.jit(model.init_fn)(jax.random.key(0))
    members = np.tile(np.arange(num_members, dtype=np.int32), (num_runs, 1))
    runs = TrainingRun(jax.device_put(members), jax.random.split(jax.random.key(0), num_runs))
    shared = TrainingShared(jax.device_put(data.pool), initial_params)
    choice = int(fastest(loops, runs, shared, options=options, label="model", reporter=reporter).name)
    if store is not None:
        write_piece(Path(store), name, (), {"candidate": choice})
    return candidates[choice]
