"""Structural unlearning of language models: fine-tune on contracts, forget edges, and compare with retraining.

The order of use::

    model = small_model(data)                       # or published_model("smollm2"), with study_spec("smollm2")
    study = Study(QuestionSet(data, model), study_spec("cpu"), store=folder)
    choices = choose_rates(study, ["A_B", "A_C"])   # every rate that was tried is kept
    outcome(study, ["A_B"], "npo", choices["npo"].rate).excess

Reference: X. Qiu et al., "How Data Inter-connectivity Shapes LLMs Unlearning: A Structural Unlearning Perspective",
arXiv 2406.16810v2 (2025).

languagemodel
    The pretrained model: a published one, or a small one that is made here.
questions, authorquestions
    The data as tokens, with the parts that results are broken down by; for contracts, and for authors in TOFU's format.
settings
    `StudySpec`, and presets.
training, unlearning, measure, chunks
    Many models at a time: fine-tuning and retraining, unlearning, and what they still know.
models, resultstore
    Models that are made once and whose results are kept on disk.
rates
    The learning rate of every method.
candidates, edgespec, edgemodels, edgetraining, edgerates, edgeaudit, epsilon
    Edges as forget groups: how much of them a method leaves, as a lower bound on epsilon.
outcome, effects, resampling
    Scores beside retraining; differences and rank correlations, with intervals.
cost
    What it would take on this machine.
page, figures, report
    What a reader sees.
"""

from jaxaudit.study.authorquestions import AuthorQuestions
from jaxaudit.study.candidates import Candidates, draw_candidates
from jaxaudit.study.cost import audit_line, cost_line, duration, untrained_model
from jaxaudit.study.edgeaudit import EdgeAudit
from jaxaudit.study.edgespec import (
    BEFORE,
    RETRAINED,
    SCORE_DEFINITION,
    STRONG,
    EdgeAuditSpec,
    Rule,
    method_of,
)
from jaxaudit.study.effects import (
    MIN_CLUSTERS,
    Effect,
    monotone,
    rank_agreement,
    rank_correlation,
    score_difference,
)
from jaxaudit.study.epsilon import (
    EdgeEpsilon,
    Look,
    analyse_looks,
    ceiling_of,
    control_looks,
    edge_epsilon,
    look_document,
    look_plan,
    looks_of,
    matched_auc,
)
from jaxaudit.study.languagemodel import (
    PRETRAINING,
    SHORT_PRETRAINING,
    LanguageModel,
    chosen_model,
    make_background,
    published_model,
    small_model,
)
from jaxaudit.study.measure import measure
from jaxaudit.study.models import Case, Study, study_fingerprint
from jaxaudit.study.outcome import (
    BASELINES,
    Outcome,
    guessing_floors,
    outcome,
    outcome_cases,
    outcomes_of,
    recall_table,
)
from jaxaudit.study.ownrate import at_own_rate
from jaxaudit.study.questions import QuestionSet
from jaxaudit.study.rates import RateChoice, Tried, choose_rates, tuning_cases
from jaxaudit.study.resampling import paired_interval
from jaxaudit.study.resultstore import ResultStore
from jaxaudit.study.settings import (
    ADAPTERS,
    FINE_TUNING,
    SHORT_NAMES,
    StudyPreset,
    StudySpec,
    study_spec,
)
from jaxaudit.study.training import Training, fine_tune
from jaxaudit.study.unlearning import Request, Unlearned, unlearn

__all__ = [
    "ADAPTERS",
    "BASELINES",
    "BEFORE",
    "FINE_TUNING",
    "MIN_CLUSTERS",
    "PRETRAINING",
    "RETRAINED",
    "SCORE_DEFINITION",
    "SHORT_NAMES",
    "SHORT_PRETRAINING",
    "STRONG",
    "AuthorQuestions",
    "Candidates",
    "Case",
    "EdgeAudit",
    "EdgeAuditSpec",
    "EdgeEpsilon",
    "Effect",
    "LanguageModel",
    "Look",
    "Outcome",
    "QuestionSet",
    "RateChoice",
    "Request",
    "ResultStore",
    "Rule",
    "Study",
    "StudyPreset",
    "StudySpec",
    "Training",
    "Tried",
    "Unlearned",
    "analyse_looks",
    "at_own_rate",
    "audit_line",
    "ceiling_of",
    "choose_rates",
    "chosen_model",
    "control_looks",
    "cost_line",
    "draw_candidates",
    "duration",
    "edge_epsilon",
    "fine_tune",
    "guessing_floors",
    "look_document",
    "look_plan",
    "looks_of",
    "make_background",
    "matched_auc",
    "measure",
    "method_of",
    "monotone",
    "outcome",
    "outcome_cases",
    "outcomes_of",
    "paired_interval",
    "published_model",
    "rank_agreement",
    "rank_correlation",
    "recall_table",
    "score_difference",
    "small_model",
    "study_fingerprint",
    "study_spec",
    "tuning_cases",
    "unlearn",
    "untrained_model",
]
