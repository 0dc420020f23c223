"""The stages of an audit that are carried out for all runs at once; `jaxaudit.audit` calls them in their order.

setup
    Sign vectors, index tables and keys of all runs.
executor
    Carries loops and functions out, remembers how it went, and resumes what was interrupted.
trainings
    Base training, once per sign vector where it is deterministic.
unlearning
    A method's stages one after the other, with looks on the way.
implementation
    The fastest of several equal implementations of a model.
identity
    A hash of all that an audit's result depends on.
"""

from jaxaudit.pipeline.executor import Executor as Executor
from jaxaudit.pipeline.executor import phases as phases
from jaxaudit.pipeline.identity import audit_key as audit_key
from jaxaudit.pipeline.implementation import fastest_model as fastest_model
from jaxaudit.pipeline.setup import Setup as Setup
from jaxaudit.pipeline.setup import keys_for as keys_for
from jaxaudit.pipeline.setup import set_up as set_up
from jaxaudit.pipeline.trainings import TrainedRuns as TrainedRuns
from jaxaudit.pipeline.trainings import Training as Training
from jaxaudit.pipeline.trainings import plan_trainings as plan_trainings
from jaxaudit.pipeline.trainings import train_runs as train_runs
from jaxaudit.pipeline.unlearning import Evaluate as Evaluate
from jaxaudit.pipeline.unlearning import Look as Look
from jaxaudit.pipeline.unlearning import check_records as check_records
from jaxaudit.pipeline.unlearning import score_label as score_label
from jaxaudit.pipeline.unlearning import unlearn_runs as unlearn_runs
