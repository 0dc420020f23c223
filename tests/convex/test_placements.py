"""Where the points lie: the laws that Appendices H.4 and I.2 state."""

import numpy as np
import pytest

from jaxaudit.convex.placements import boundary_points, cubic_points, opposed_points
from jaxaudit.errors import InputError

BOUNDARY = {"dimension": 2, "agreement": 0.8, "forget_norm": 5.0}
OPPOSED = {"dimension": 2, "slope": 0.5, "half_range": 10.0, "forget_norm": 20.0}


def test_cubic_points():
    data = cubic_points(3, 2, distance=4.0)
    assert data.retain.features.tolist() == [[0.0]] * 3
    assert data.forget.features.tolist() == [[-4.0]] * 2
    assert data.everything.features.tolist() == [[0.0]] * 3 + [[-4.0]] * 2
    assert data.everything.labels.shape == (5,)


def test_boundary_points_follow_the_noisy_sign_and_oppose_it():
    data = boundary_points(np.random.default_rng(0), 40_000, 7, **BOUNDARY)
    assert len(np.unique(data.forget.features, axis=0)) == 1
    against = -data.forget.features[0] / 5
    assert np.linalg.norm(against) == pytest.approx(1)
    np.testing.assert_allclose(np.cov(data.retain.features.T), np.eye(2) / 2, atol=0.02)
    agrees = (data.retain.features @ against >= 0) == (data.retain.labels > 0)
    assert agrees.mean() == pytest.approx(0.8, abs=4 * 0.4 / 200)  # four standard errors
    assert set(data.retain.labels) == {-1.0, 1.0}
    assert (data.forget.labels == 1).all()


def test_opposed_points_lie_on_two_opposite_planes():
    data = opposed_points(np.random.default_rng(0), 4000, 4000, **OPPOSED)
    np.testing.assert_allclose(np.cov(data.retain.features[:, :2].T), np.eye(2) / 2, atol=0.05)
    assert (data.everything.features[:, 2] == 1).all()
    assert np.abs(data.everything.labels).max() <= 10
    fitted, noise = {}, {}
    for name, part in data._asdict().items():
        kept = np.abs(part.labels) < 9.5  # the others may be clipped
        solution, residuals, *_ = np.linalg.lstsq(part.features[kept], part.labels[kept])
        fitted[name], noise[name] = solution, np.sqrt(residuals[0] / kept.sum())
    assert np.linalg.norm(fitted["retain"][:2]) == pytest.approx(0.5, abs=0.005)
    np.testing.assert_allclose(fitted["forget"][:2], -20 * fitted["retain"][:2], atol=0.1)
    np.testing.assert_allclose([fitted["retain"][2], fitted["forget"][2]], 0, atol=0.005)
    np.testing.assert_allclose(list(noise.values()), 0.05, rtol=0.05)
    assert (np.abs(data.forget.labels) == 10).any()


def test_same_seed_same_data_and_other_seed_other_data():
    for place, options in ((boundary_points, BOUNDARY), (opposed_points, OPPOSED)):
        first, again, other = (
            place(np.random.default_rng(seed), 5, 3, **options).everything.features for seed in (1, 1, 2)
        )
        assert np.array_equal(first, again)
        assert not np.isclose(first[:5, :2], other[:5, :2]).any()


def test_the_older_generator_draws_in_the_stated_order():
    data = opposed_points(np.random.RandomState(42), 70, 30, **OPPOSED)
    again = np.random.RandomState(42)
    direction = again.randn(2)
    features = again.randn(70, 2) / np.sqrt(2)
    noise = again.randn(70)
    np.testing.assert_array_equal(data.retain.features[:, :2], features)
    clean = 0.5 * features @ direction / np.linalg.norm(direction)
    np.testing.assert_allclose(data.retain.labels, clean + 0.05 * noise, rtol=1e-12)
    np.testing.assert_array_equal(data.forget.features[:, :2], again.randn(30, 2) / np.sqrt(2))


def test_bad_input_is_named():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="num_forget must be an integer of at least 1, got 0"):
        cubic_points(5, 0, 1.0)
    with pytest.raises(InputError, match="distance must be positive, got -1"):
        cubic_points(5, 1, -1.0)
    with pytest.raises(InputError, match=r"agreement must be in \[0, 1\], got 1.2"):
        boundary_points(rng, 5, 1, dimension=2, agreement=1.2, forget_norm=1.0)
    with pytest.raises(InputError, match="dimension must be an integer of at least 1, got 0"):
        opposed_points(rng, 5, 1, **{**OPPOSED, "dimension": 0})
    with pytest.raises(InputError, match="half_range must be positive"):
        opposed_points(rng, 5, 1, **{**OPPOSED, "half_range": 0.0})
