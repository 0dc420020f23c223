import math

import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.metrics import deviation_from_retraining, deviation_of_means, deviation_score

# Forget and retain ROUGE-1 of Llama2-7B on edge AB and AC, and the published deviation scores (Table 1).
PUBLISHED = [(0.521, 0.845, 54.4)]


@pytest.mark.parametrize(("forget", "retain", "score"), PUBLISHED)
def test_published_scores(forget, retain, score):
    assert deviation_score(forget, retain) == pytest.approx(score, abs=0.05)


def test_the_ends():
    assert deviation_score(0, 1) == 0
    assert deviation_score(1, 0) == pytest.approx(100 * math.sqrt(2))
    assert deviation_score(1, 1) == deviation_score(0, 0) == 100


def test_a_score_of_means_not_a_mean_of_scores():
    forget, retain = [0.0, 1.0], [1.0, 0.0, 0.5]
    assert deviation_score(forget, retain) == pytest.approx(100 * math.hypot(0.5, 0.5))
    assert deviation_of_means(forget, [1.0, 0.0]).mean() == pytest.approx(100 * math.sqrt(2) / 2)


def test_distance_to_retraining():
    result = deviation_from_retraining([0.2, 0.4], 0.9, retrained_forget=0.6, retrained_retain=[0.4, 0.6])
    assert result.score == pytest.approx(100 * math.hypot(0.3, 0.1))
    assert result.retrained_score == pytest.approx(100 * math.hypot(0.6, 0.5))
    assert result.distance == pytest.approx(100 * math.hypot(0.3, 0.4))
    assert result.excess == pytest.approx(result.score - result.retrained_score)
    same = deviation_from_retraining(0.3, 0.9, retrained_forget=0.3, retrained_retain=0.9)
    assert (same.excess, same.distance) == (0, 0)


@pytest.mark.parametrize(
    ("forget", "retain", "message"),
    [
        ([], 1.0, "forget must hold at least one number, got none"),
        (0.5, [1.0, 1.5], r"retain must be in \[0, 1\], got 1.5"),
        (np.nan, 1.0, r"forget must be in \[0, 1\], got nan"),
    ],
)
def test_bad_values(forget, retain, message):
    with pytest.raises(InputError, match=message):
        deviation_score(forget, retain)
