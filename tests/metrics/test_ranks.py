import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxaudit.errors import InputError
from jaxaudit.metrics import (
    answer_probability,
    answers_first,
    mean_reciprocal_rank,
    scaled_top,
    token_ranks,
    top_hit_ratio,
)

RNG = np.random.default_rng(0)
LOGITS = RNG.integers(-3, 4, size=(5, 6, 9)).astype(np.float32)  # with many ties
IDS = RNG.integers(0, 9, size=(5, 6))
ANSWER = np.array([[0, 0, 1, 1, 1, 0]] * 4 + [[0] * 6], np.float32)
RANKS = stats.rankdata(-LOGITS, method="max", axis=-1)[np.arange(5)[:, None], np.arange(6), IDS]


def test_ranks_equal_scipy():
    np.testing.assert_array_equal(token_ranks(LOGITS, IDS), RANKS)


def test_a_model_that_diverged_has_the_worst_ranks():
    nothing = np.full((2, 9), np.nan, np.float32)
    assert token_ranks(nothing, np.array([0, 3])).tolist() == [9, 9]
    partly = np.array([[1.0, np.nan, 0.5]], np.float32)
    assert token_ranks(partly, np.array([0])).tolist() == [2]
    assert token_ranks(partly, np.array([1])).tolist() == [3]


def test_rank_metrics_equal_loops_over_tokens():
    for row in range(4):
        ranks = [RANKS[row, place] for place in (2, 3, 4)]
        expected = sum(1 / rank for rank in ranks) / 3
        assert mean_reciprocal_rank(RANKS, ANSWER)[row] == pytest.approx(expected)
        assert top_hit_ratio(RANKS, ANSWER, 3)[row] == pytest.approx(sum(rank <= 3 for rank in ranks) / 3)


def test_an_empty_answer_has_no_score_but_a_number():
    nothing = np.full((5, 6), np.nan)
    assert mean_reciprocal_rank(RANKS, ANSWER)[4] == top_hit_ratio(RANKS, ANSWER, 9)[4] == 0
    assert (
        answer_probability(nothing, ANSWER)[4] == answer_probability(nothing, ANSWER, per_token=False)[4] == 0
    )


def test_tokens_past_the_end_of_a_generation_are_not_found():
    ids, mask = answers_first(jnp.array([[7, 8, 9, 4]]), jnp.array([[0.0, 1.0, 1.0, 0.0]]))
    ranks, generated = jnp.array([[1, 1, 1, 1]]), jnp.array([[1.0, 0.0, 0.0, 0.0]])
    assert ids.tolist() == [[8, 9, 0, 0]]
    assert mean_reciprocal_rank(ranks, mask, generated).tolist() == [0.5]
    assert top_hit_ratio(ranks, mask, 1, generated).tolist() == [0.5]
    assert mean_reciprocal_rank(ranks, mask).tolist() == [1.0]


def test_answer_probability_is_a_geometric_mean_or_a_product():
    probabilities = RNG.uniform(0.01, 1, size=(5, 6))
    geometric = stats.gmean(probabilities[:4, 2:5], axis=1)
    log_probs = np.where(ANSWER > 0, np.log(probabilities), np.nan)
    np.testing.assert_allclose(answer_probability(log_probs, ANSWER)[:4], geometric, rtol=1e-5)
    whole = answer_probability(log_probs, ANSWER, per_token=False)[:4]
    np.testing.assert_allclose(whole, geometric**3, rtol=1e-5)


def test_jit_and_vmap():
    def both(logits, ids, answer):
        ranks = token_ranks(logits, ids)
        return mean_reciprocal_rank(ranks, answer), top_hit_ratio(ranks, answer, 2)

    direct, mapped = both(LOGITS, IDS, ANSWER), jax.jit(jax.vmap(both))(LOGITS, IDS, ANSWER)
    for one, other in zip(direct, mapped):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("top", [0, 1.5])
def test_bad_top(top):
    with pytest.raises(InputError, match="top must be an integer of at least 1"):
        top_hit_ratio(RANKS, ANSWER, top)


def test_scaled_top_is_a_share_of_the_vocabulary():
    assert [scaled_top(size) for size in (1, 320, 321, 32000, 256000)] == [1, 1, 2, 100, 800]
    with pytest.raises(InputError, match="vocabulary must be an integer of at least 1, got 0"):
        scaled_top(0)
