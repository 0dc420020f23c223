"""Convex audits: problems whose certified unlearning is exactly known, and what an auditor sees of it.

NumPy and SciPy, float64; JAX is never loaded.
"""

from jaxaudit.convex.audit import (
    PairAudit,
    audit_gaussian_pair,
    direct_epsilon,
    joint_epsilon,
    repeat_baseline,
)
from jaxaudit.convex.losses import Constants, CubicLoss, LogisticLoss, Loss, Points, SquaredLoss
from jaxaudit.convex.mechanisms import GaussianPair, output_perturbation, perturbed_newton
from jaxaudit.convex.placements import ForgetRequest, boundary_points, cubic_points, opposed_points
from jaxaudit.convex.solve import (
    NewtonUnlearning,
    minimise,
    newton_distance_bound,
    newton_unlearn,
    project,
    unlearn_by_newton,
)

__all__ = [
    "Constants",
    "CubicLoss",
    "ForgetRequest",
    "GaussianPair",
    "LogisticLoss",
    "Loss",
    "NewtonUnlearning",
    "PairAudit",
    "Points",
    "SquaredLoss",
    "audit_gaussian_pair",
    "boundary_points",
    "cubic_points",
    "direct_epsilon",
    "joint_epsilon",
    "minimise",
    "newton_distance_bound",
    "newton_unlearn",
    "opposed_points",
    "output_perturbation",
    "perturbed_newton",
    "project",
    "repeat_baseline",
    "unlearn_by_newton",
]
