import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import cross_entropy_loss, take_batch
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.dampening import DampeningSpec, dampening_factor, selective_dampening

NUM_RETAIN, NUM_FORGET, CLASSES, BATCH = 12, 4, 3, 5
LOSS = cross_entropy_loss(lambda params, x: x @ params["weight"] + params["bias"])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(NUM_RETAIN + NUM_FORGET, 4))
X[:, 0] = 0  # a feature that is always 0 has parameters of no importance at all
Y = RNG.integers(0, CLASSES, len(X))
WEIGHTS = np.ones(len(X))
WEIGHTS[-1] = 0
POOL = Examples(jnp.asarray(X, jnp.float32), jnp.asarray(Y), jnp.asarray(WEIGHTS, jnp.float32))
PARAMS = {
    "weight": jnp.asarray(RNG.normal(size=(4, CLASSES)), jnp.float32),
    "bias": jnp.asarray(RNG.normal(size=CLASSES), jnp.float32),
}


def batch_at(step):
    parts = (jnp.arange(NUM_RETAIN), NUM_RETAIN + jnp.arange(NUM_FORGET))
    return Batch(*(take_batch(POOL, rows, step, BATCH) for rows in parts))


def dampen(**settings):
    spec = DampeningSpec(batch_size=BATCH, **settings)
    method = selective_dampening(LOSS, num_retain=NUM_RETAIN, num_forget=NUM_FORGET, spec=spec)
    return apply(method, jax.random.key(0), Trained(PARAMS, PARAMS), batch_at)


def importances():
    """Mean squared gradients of all and of the forget examples, example by example in NumPy."""
    squares = {"weight": [], "bias": []}
    for x, y in zip(X, Y):
        odds = np.exp(x @ np.asarray(PARAMS["weight"], float) + np.asarray(PARAMS["bias"], float))
        error = odds / odds.sum() - np.eye(CLASSES)[y]
        squares["weight"].append(np.outer(x, error) ** 2)
        squares["bias"].append(error**2)
    everywhere, forget = slice(0, -1), slice(NUM_RETAIN, -1)  # the last example is padding
    means = [
        {name: np.mean(values[rows], axis=0) for name, values in squares.items()}
        for rows in (everywhere, forget)
    ]
    return tuple(means)


def published_factor(everywhere, forget, threshold, strength):
    """One parameter."""
    return min(strength * everywhere / forget, 1.0) if forget > threshold * everywhere else 1.0


def published_factors(threshold, strength):
    return {
        name: np.vectorize(published_factor)(own, forget, threshold, strength)
        for (name, own), forget in zip(importances()[0].items(), importances()[1].values())
    }


@pytest.mark.parametrize(("threshold", "strength"), [(1.0, 1.0), (1.5, 0.5), (0.0, 0.0), (1.2, 3.0)])
def test_factors_are_those_published(threshold, strength):
    expected = published_factors(threshold, strength)
    everywhere, forget = (
        {name: jnp.asarray(part) for name, part in means.items()} for means in importances()
    )
    for name in PARAMS:
        factors = dampening_factor(everywhere[name], forget[name], threshold=threshold, strength=strength)
        np.testing.assert_allclose(factors, expected[name], rtol=1e-5)


def test_the_method_multiplies_by_the_factors_of_its_importances():
    dampened, factors = dampen(threshold=1.0, strength=0.9), published_factors(1.0, 0.9)
    for name, before in PARAMS.items():
        assert 0 < np.mean(factors[name] < 1) < 1
        np.testing.assert_allclose(dampened[name], before * factors[name], rtol=1e-4)


def test_parameters_of_no_importance_stay():
    dampened = dampen(threshold=0.0, strength=0.0)
    np.testing.assert_array_equal(dampened["weight"][0], PARAMS["weight"][0])
    assert (dampened["weight"][1:] == 0).all()


def test_nothing_is_selected_above_the_largest_possible_ratio():
    """I_D holds the forget examples too, so I_f / I_D is at most n / n_f = 15 / 3."""
    everywhere, forget = importances()
    assert (forget["weight"][1:] / everywhere["weight"][1:]).max() < 5
    same = dampen(threshold=5.0)
    for name, before in PARAMS.items():
        np.testing.assert_array_equal(same[name], before)


@pytest.mark.parametrize("threshold", [0.5, 5.0])
def test_measured_share_is_that_of_the_parameters_that_changed(threshold):
    spec = DampeningSpec(threshold=threshold, strength=0.5, batch_size=64)
    method = selective_dampening(LOSS, num_retain=NUM_RETAIN, num_forget=NUM_FORGET, spec=spec)
    everything = Batch(
        *(
            jax.tree.map(lambda leaf, r=rows: leaf[r], POOL)
            for rows in (slice(0, NUM_RETAIN), slice(NUM_RETAIN, None))
        )
    )
    state = None
    for stage in method.stages:
        assert stage.num_updates == 1
        state = stage.init(jax.random.key(0), Trained(PARAMS, PARAMS, None, state))
        state, _ = jax.jit(stage.update)(jax.random.key(0), state, everything)
    changed = [np.asarray(state.params[name] != PARAMS[name]) for name in PARAMS]
    share = method.stages[-1].measure(state)["dampened"]
    assert float(share) == pytest.approx(np.concatenate([one.ravel() for one in changed]).mean())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"threshold": -0.1}, "threshold must not be negative, got -0.1"),
        ({"threshold": float("nan")}, "threshold must be a finite number, got nan"),
        ({"strength": -1.0}, "strength must not be negative, got -1.0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(InputError, match=message):
        DampeningSpec(**setting)
