"""What a language model still says and knows: overlap of texts, probabilities and ranks of tokens, and their summary.

Everything is a number per question first; means and intervals over questions and seeds come last.
"""

from jaxaudit.metrics.deviation import (
    Deviation,
    deviation_from_retraining,
    deviation_of_means,
    deviation_score,
)
from jaxaudit.metrics.intervals import Interval, bootstrap_interval, t_interval
from jaxaudit.metrics.ranks import (
    answer_probability,
    answers_first,
    mean_reciprocal_rank,
    scaled_top,
    token_ranks,
    top_hit_ratio,
)
from jaxaudit.metrics.stemmer import porter_stem
from jaxaudit.metrics.text import exact_match, rouge1_recall

__all__ = [
    "Deviation",
    "Interval",
    "answer_probability",
    "answers_first",
    "bootstrap_interval",
    "deviation_from_retraining",
    "deviation_of_means",
    "deviation_score",
    "exact_match",
    "mean_reciprocal_rank",
    "porter_stem",
    "rouge1_recall",
    "scaled_top",
    "t_interval",
    "token_ranks",
    "top_hit_ratio",
]
