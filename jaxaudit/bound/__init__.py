"""Lower bounds on epsilon from what an auditor saw: NumPy and SciPy, float64, logs; JAX is never loaded."""

from jaxaudit.bound.counts import log_num_sign_vectors, log_overlap_counts
from jaxaudit.bound.evidence import EvidenceResult, EvidenceSequence, evidence_lower_bound
from jaxaudit.bound.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from jaxaudit.bound.law import OverlapLaw, null_law, odds_law, worst_case_law
from jaxaudit.bound.likelihood import direction_p_value, joint_log_evidence, log_evidence
from jaxaudit.bound.lower_bound import (
    BoundMethod,
    BoundResult,
    epsilon_lower_bound,
    p_value,
    predicted_epsilon,
)
from jaxaudit.bound.pairwise import (
    AccuracyResult,
    PairwiseResult,
    accuracy_epsilon,
    log10_draws_needed,
    optimised_pairwise_epsilon,
    pairwise_epsilon,
)
from jaxaudit.bound.plan import Plan, Power, plan
from jaxaudit.bound.sequence import ConfidenceSequence
from jaxaudit.bound.validate import FalseAlarms, Validation, validate

__all__ = [
    "AccuracyResult",
    "BoundMethod",
    "BoundResult",
    "ConfidenceSequence",
    "EvidenceResult",
    "EvidenceSequence",
    "FalseAlarms",
    "OverlapLaw",
    "PairwiseResult",
    "Plan",
    "Power",
    "Validation",
    "accuracy_epsilon",
    "direction_p_value",
    "epsilon_lower_bound",
    "evidence_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "joint_log_evidence",
    "log10_draws_needed",
    "log_evidence",
    "log_num_sign_vectors",
    "log_overlap_counts",
    "null_law",
    "odds_law",
    "optimised_pairwise_epsilon",
    "p_value",
    "pairwise_epsilon",
    "plan",
    "predicted_epsilon",
    "validate",
    "worst_case_law",
]
