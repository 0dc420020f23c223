"""What the two anytime-valid bounds have in common."""

import math

import numpy as np
import pytest

from jaxaudit.bound import ConfidenceSequence, EvidenceSequence
from jaxaudit.bound.counts import log_num_sign_vectors
from jaxaudit.errors import InputError

MOST = log_num_sign_vectors(20)
SEQUENCES = [
    (
        lambda **settings: ConfidenceSequence(num_groups=20, num_guesses=16, **settings),
        [15, 8, 16, 0, 14, 16],
    ),
    (lambda **settings: EvidenceSequence(num_groups=20, **settings), [9.0, 8.0, MOST, -math.inf, 7.0]),
    (
        lambda **settings: EvidenceSequence(num_groups=20, form="betting", **settings),
        [9.0, 8.0, MOST, -math.inf, 7.0, MOST],
    ),
]


@pytest.mark.parametrize(("make", "runs"), SEQUENCES)
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_bound_inverts_the_p_value_after_every_run(make, runs, delta):
    sequence = make(delta=delta, significance=0.1)
    assert (sequence.epsilon, sequence.trajectory, sequence.num_runs) == (0.0, (), 0)
    assert sequence.log_p_value(0.0) == 0.0
    for number, run in enumerate(runs, 1):
        returned = sequence.add(run)
        assert returned == sequence.epsilon == sequence.trajectory[-1]
        assert sequence.num_runs == len(sequence.trajectory) == number
        if sequence.epsilon > 0:
            assert sequence.log_p_value(sequence.epsilon) == pytest.approx(math.log(0.1), abs=1e-9)
        assert sequence.log_p_value(sequence.epsilon + 1e-6) > math.log(0.1)
    assert (np.diff(sequence.trajectory) >= 0).all()
    assert sequence.epsilon > 1
    grid = [sequence.log_p_value(epsilon) for epsilon in np.linspace(0, 20, 40)]
    assert (np.diff(grid) >= -1e-12).all()
    assert grid[0] < math.log(0.1) < grid[-1] <= 0.0


@pytest.mark.parametrize("make", [make for make, _ in SEQUENCES])
def test_bad_settings_and_claims_are_named(make):
    with pytest.raises(InputError, match=r"delta must be in \[0, 1\), got 1.0"):
        make(delta=1.0)
    with pytest.raises(InputError, match=r"significance must be in \(0, 1\), got 0.0"):
        make(significance=0.0)
    with pytest.raises(InputError, match="epsilon must not be negative"):
        make().log_p_value(-1.0)
