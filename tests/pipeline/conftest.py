"""A tiny audit: four candidate groups of two records, a linear model."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import AuditData, Examples, make_groups
from jaxaudit.design import AuditDesign
from jaxaudit.evaluate import evaluation
from jaxaudit.models import Model
from jaxaudit.pipeline import set_up
from jaxaudit.train import cross_entropy_loss

RUNS = 15
MODEL = Model(lambda key: {"w": jnp.zeros((3, 2))}, lambda params, x: x @ params["w"], "linear")
LOSS = cross_entropy_loss(MODEL.logits_fn)
DESIGN = AuditDesign(num_groups=4, num_calibration_runs=12, num_audit_runs=3, predictor="joint")


def make_data() -> AuditData:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 3)), rng.integers(0, 2, 16)
    retain, holdout = (Examples(x[part], y[part], np.ones(4)) for part in (slice(4), slice(4, 8)))
    groups = make_groups(x, y, [[8, 9], [10, 11], [12, 13], [14, 15]])
    ids = tuple((f"{group}a", f"{group}b") for group in range(4))
    return AuditData("toy", retain, groups, holdout, ids, num_classes=2, description="")


DATA = make_data()
EVALUATE = evaluation(MODEL.logits_fn, "logit", DATA.num_retain)


@pytest.fixture(scope="session")
def setup():
    return set_up(DATA, MODEL, DESIGN, seed=0)
