"""Settings that suit a kind of methods: which model is trained how, for which design."""

from typing import NamedTuple

from jaxaudit.data import AuditData
from jaxaudit.design import AuditDesign
from jaxaudit.models import Model
from jaxaudit.models.softmax_regression import ridge_cross_entropy, softmax_regression
from jaxaudit.train import Loop, SgdSpec, cross_entropy_loss
from jaxaudit.unlearn import Problem, UnlearningSpec
from jaxaudit.unlearn.projected_descent import DescentStep, largest_learning_rate, projected_descent_training

_CONVEX_STEPS = 400


class Setting(NamedTuple):
    """One audit without its methods."""

    data: AuditData
    model: Model
    design: AuditDesign
    training: SgdSpec | Loop
    num_training_updates: int
    problem: Problem
    """What the methods of this audit are built for."""


def network_setting(
    data: AuditData, design: AuditDesign, model: Model, training: SgdSpec, settings: UnlearningSpec
) -> Setting:
    """A classifier trained by SGD: for heuristics, and for methods whose noise makes up for any training."""
    num_forget = data.num_groups // 2 * data.group_size
    problem = Problem(
        loss_fn=cross_entropy_loss(model.logits_fn),
        logits_fn=model.logits_fn,
        num_classes=data.num_classes,
        training=training,
        spec=settings,
        num_retain=data.num_retain,
        num_forget=num_forget,
    )
    return Setting(data, model, design, training, training.num_updates(data.num_retain + num_forget), problem)


def convex_setting(data: AuditData, design: AuditDesign, settings: UnlearningSpec) -> Setting:
    """Softmax regression with a ridge penalty, whose constants are known: for methods with proofs about convex losses.

    Base training of the methods that bring none is full-batch gradient descent, near enough to the optimum.
    """
    num_forget = data.num_groups // 2 * data.group_size
    model, constants = softmax_regression(data.retain.x.shape[1:], data.num_classes, settings.l2)
    loss_fn = ridge_cross_entropy(model.logits_fn, settings.l2)
    step = DescentStep(largest_learning_rate(constants), constants.radius)
    num_members = data.num_retain + num_forget
    training = projected_descent_training(loss_fn, step, num_steps=_CONVEX_STEPS, num_members=num_members)
    problem = Problem(
        loss_fn=loss_fn,
        logits_fn=model.logits_fn,
        num_classes=data.num_classes,
        training=SgdSpec(_CONVEX_STEPS, step.learning_rate, schedule="constant", batch_size=data.num_retain),
        spec=settings,
        num_retain=data.num_retain,
        num_forget=num_forget,
        constants=constants,
    )
    return Setting(data, model, design, training, training.num_steps, problem)
