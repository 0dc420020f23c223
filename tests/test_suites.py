"""What each suite of methods is built for."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.data import load
from jaxaudit.design import AuditDesign
from jaxaudit.models import mlp
from jaxaudit.suites import convex_setting, network_setting
from jaxaudit.train import SgdSpec
from jaxaudit.unlearn import UnlearningSpec

DATA = load("digits", seed=0, num_groups=6, group_size=2, num_holdout=1700)
DESIGN = AuditDesign(num_groups=6, num_calibration_runs=40, predictor="joint")


def test_a_network_is_trained_as_asked():
    model, training = mlp((64,), 10, (8,)), SgdSpec(2, 0.1, batch_size=10)
    setting = network_setting(DATA, DESIGN, model, training, UnlearningSpec())
    assert (setting.problem.num_retain, setting.problem.num_forget) == (85, 3 * 2)
    assert setting.num_training_updates == 2 * 10  # 91 members make 10 batches
    assert setting.problem.constants is None


def test_the_constants_are_those_of_the_loss_that_is_trained():
    setting = convex_setting(DATA, DESIGN, UnlearningSpec(l2=0.2))
    problem = setting.problem
    assert problem.constants.strong_convexity == 0.2
    rng = np.random.default_rng(0)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[:1]), DATA.retain)
    for _ in range(20):
        params = rng.normal(size=(65, 10))
        params = jnp.asarray(params * problem.constants.radius / np.linalg.norm(params), jnp.float32)
        gradient = jax.grad(problem.loss_fn)(params, one)
        assert jnp.linalg.norm(gradient) <= problem.constants.lipschitz
    assert setting.training.deterministic
    assert setting.training.num_steps == setting.num_training_updates
