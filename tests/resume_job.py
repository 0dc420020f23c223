"""A small audit with all that can be interrupted; run as STORE OUT WRITES before|after, it kills itself."""

import os
import signal
import sys
from unittest.mock import patch

import jax
import optax

from jaxaudit.audit import run_audit
from jaxaudit.progress import LineReporter, Reporter
from jaxaudit.report import AuditReport
from jaxaudit.runs import RunOptions
from jaxaudit.store import pieces
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn import release_noise, retain_finetune
from jaxaudit.unlearn.base import Recipe, Unlearner, then
from tests.pipeline.conftest import DATA, DESIGN, LOSS, MODEL

REWIND = Unlearner(
    lambda key, trained: trained._replace(params=trained.checkpoint),
    lambda key, state, batch: (state, {}),
    1,
    measure=lambda state: {"size": optax.tree.norm(state.params)},
)
FINETUNE = retain_finetune(LOSS, optimizer=optax.sgd(0.1), num_updates=3, batch_size=2)
TRAINING = SgdSpec(2, 0.5, batch_size=4)
METHODS = {
    "noise": Recipe(then(FINETUNE, release_noise(sigma=0.3)), record_at=(2,)),
    "rewind": Recipe(REWIND, training=SgdSpec(1, 0.5, batch_size=4), rewind_updates=1),
}


def audit(store: object = None, reporter: Reporter | None = None, methods: object = None) -> AuditReport:
    """The audit, with its state saved after every step."""
    seconds = "jaxaudit.runs.engine._{}_SECONDS"
    with patch(seconds.format("SAVE"), -1.0), patch(seconds.format("SEGMENT"), 0.0):
        return run_audit(
            DATA,
            MODEL,
            METHODS if methods is None else methods,
            DESIGN,
            training=TRAINING,
            store=store,
            options=RunOptions(chunk=4),
            reporter=reporter,
        )


def after_writes(count: int, act: object, moment: str) -> object:
    """A patch under which ``act()`` is called before or after the write of this number."""
    move, done = pieces._move, []

    def counted(hidden: object, target: object) -> None:
        done.append(target)
        if moment == "before" and len(done) == count:
            act()
        move(hidden, target)
        if moment == "after" and len(done) == count:
            act()

    return patch.object(pieces, "_move", counted)


if __name__ == "__main__":
    store, out, writes, moment = sys.argv[1:]
    with after_writes(int(writes), lambda: os.kill(os.getpid(), signal.SIGKILL), moment):
        audit(store, LineReporter(sys.stdout)).save(out)
    print(f"{jax.device_count()} devices")
