import math

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from jaxaudit.bound.gaussian import gaussian_delta, gaussian_sigma
from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import TrainingRun, TrainingShared, take_batch
from jaxaudit.unlearn import Batch, Trained, apply
from jaxaudit.unlearn.rewind import (
    RewindSpec,
    estimate_gradient_norm,
    estimate_smoothness,
    log_sensitivity,
    rewind_sigma,
    rewind_to_delete,
    rewound_descent,
)
from tests.unlearn import test_common as battery


def exact_log_sensitivity(spec, n, m):
    """As it is printed, in 50 digits."""
    with mp.workdps(50):
        eta, smooth, bound = (mp.mpf(v) for v in (spec.learning_rate, spec.smoothness, spec.gradient_bound))
        rewound = spec.num_rewound
        h = ((1 + eta * smooth * n / (n - m)) ** (spec.num_steps - rewound) - 1) * (
            1 + eta * smooth
        ) ** rewound
        return float(mp.log(2 * m * bound * h / (smooth * n)))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"learning_rate": 1e-9, "smoothness": 1e-3},
        {"num_steps": 1000, "num_rewound": 3, "learning_rate": 1.0, "smoothness": 50.0},
        {"num_steps": 2, "num_rewound": 1},
        {"gradient_bound": 1e-6},
    ],
)
@pytest.mark.parametrize(("n", "m"), [(1247, 250), (42_750, 2250), (2, 1)])
def test_sensitivity_against_mpmath(settings, n, m):
    spec = RewindSpec(**settings)
    got = log_sensitivity(spec, num_members=n, num_forget=m)
    assert got == pytest.approx(exact_log_sensitivity(spec, n, m), rel=1e-12, abs=1e-12)


def logistic(params, examples):
    """Weighted mean logistic loss of labels +1 and -1: ||x|| bounds its gradients, ||x||^2 / 4 its curvature."""
    losses = jnp.logaddexp(0.0, -examples.y * (examples.x @ params))
    return jnp.sum(examples.weights * losses) / jnp.sum(examples.weights)


def logistic_problem(seed=0, num_retain=12, num_forget=4):
    rng = np.random.default_rng(seed)
    size = num_retain + num_forget
    x = rng.normal(size=(size, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(np.arange(size) < num_retain, 1.0, -1.0)  # the forget set pulls the other way
    x[:, 0] = abs(x[:, 0])
    return Examples(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.ones(size))


SPEC = RewindSpec(
    num_steps=8,
    num_rewound=3,
    learning_rate=0.5,
    micro_batch=5,
    smoothness=0.25,
    gradient_bound=1.0,
    proven=True,
)


def train_and_unlearn(pool, num_retain, spec=SPEC):
    """Trained parameters, and those unlearned by the recipe but for its noise, in plain loops."""
    size = len(pool.y)
    recipe = rewind_to_delete(logistic, num_retain=num_retain, num_forget=size - num_retain, spec=spec)
    run, shared = TrainingRun(jnp.arange(size), jax.random.key(0)), TrainingShared(pool, jnp.zeros(3))
    loop, body = recipe.training, jax.jit(recipe.training.body)
    states = [loop.init(run, shared)]
    for step in range(loop.num_steps):
        states.append(body(step, states[-1], run, shared))
    trained = Trained(states[-1].params, jnp.zeros(3), states[-1 - recipe.rewind_updates].params)

    def batch_at(step):
        return Batch(retain=take_batch(pool, jnp.arange(num_retain), step, spec.micro_batch), forget=None)

    return trained, apply(recipe.method.stages[0], jax.random.key(0), trained, batch_at), recipe


def descend(pool, rows, start, num_steps, learning_rate=0.5):
    """Full-batch gradient descent, by the whole gradient."""
    examples = jax.tree.map(lambda leaf: leaf[jnp.asarray(rows)], pool)
    gradient, params = jax.jit(jax.grad(logistic)), start
    for _ in range(num_steps):
        params = params - learning_rate * gradient(params, examples)
    return params


def test_unlearning_goes_on_from_the_checkpoint_on_the_retain_set():
    pool = logistic_problem()
    trained, unlearned, recipe = train_and_unlearn(pool, 12)
    checkpoint = descend(pool, range(16), jnp.zeros(3), 5)
    np.testing.assert_allclose(trained.checkpoint, checkpoint, rtol=1e-5)
    np.testing.assert_allclose(trained.params, descend(pool, range(16), checkpoint, 3), rtol=1e-5)
    np.testing.assert_allclose(unlearned, descend(pool, range(12), checkpoint, 3), rtol=1e-5)
    assert recipe.rewind_updates == 3 * 4
    assert [stage.num_updates for stage in recipe.method.stages] == [3 * 3, 1]


@pytest.mark.parametrize("rewound", [1, 3, 7])
def test_the_true_distance_is_below_the_sensitivity(rewound):
    """A loss whose L and G are known, and a forget set that pulls the other way."""
    spec = RewindSpec(
        num_steps=8, num_rewound=rewound, learning_rate=0.5, smoothness=0.25, gradient_bound=1.0
    )
    pool = logistic_problem()
    checkpoint = descend(pool, range(16), jnp.zeros(3), 8 - rewound)
    unlearned = descend(pool, range(12), checkpoint, rewound)
    distance = float(jnp.linalg.norm(unlearned - descend(pool, range(12), jnp.zeros(3), 8)))
    bound = math.exp(log_sensitivity(spec, num_members=16, num_forget=4))
    assert 0.05 * bound < distance <= bound


def test_rewinding_everything_is_exact_retraining():
    spec = RewindSpec(num_steps=5, num_rewound=5, learning_rate=0.5, micro_batch=5)
    pool = logistic_problem()
    trained, unlearned, recipe = train_and_unlearn(pool, 12, spec)
    assert (trained.checkpoint == 0).all()
    np.testing.assert_allclose(unlearned, descend(pool, range(12), jnp.zeros(3), 5), rtol=1e-5)
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (0.0, 0.0)
    assert rewind_sigma(spec, num_members=16, num_forget=4) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (10.0, 1e-3), (1000.0, 1e-12)])
def test_the_noise_is_that_of_the_exact_gaussian_mechanism(epsilon, delta):
    spec = RewindSpec(epsilon=epsilon, delta=delta)
    sigma = rewind_sigma(spec, num_members=1247, num_forget=250)
    distance = math.exp(log_sensitivity(spec, num_members=1247, num_forget=250))
    assert gaussian_delta(distance, sigma, epsilon) == pytest.approx(delta, rel=1e-8)


def test_noise_is_added_once():
    params = jnp.zeros(5000)
    recipe = rewind_to_delete(lambda p, e: jnp.sum(p) * 0.0, num_retain=12, num_forget=4, spec=SPEC)
    noise = recipe.method.stages[1]
    released = apply(noise, jax.random.key(0), Trained(params, params), lambda step: None)
    expected = rewind_sigma(SPEC, num_members=16, num_forget=4)
    assert float(released.std()) == pytest.approx(expected, rel=0.05)


def test_estimates_are_not_certified_but_named():
    settings = {"num_retain": 997, "num_forget": 250}
    estimated = rewind_to_delete(logistic, **settings).certificate
    assert not estimated.certified
    assert "G and L are estimates; nominally (10, 1e-05)" in estimated.reason
    proven = rewind_to_delete(logistic, **settings, spec=RewindSpec(proven=True)).certificate
    assert (proven.epsilon, proven.delta) == (10.0, 1e-5)


def test_a_noise_that_would_overflow_is_refused():
    spec = RewindSpec(num_steps=1000, num_rewound=3, learning_rate=1.0, smoothness=50.0)
    distance = exact_log_sensitivity(spec, 1247, 250)
    power = round((distance + math.log(gaussian_sigma(1.0, 10.0, 1e-5))) / math.log(10))
    with pytest.raises(InputError, match=rf"below 1e\+30, got sigma = 10\^{power}"):
        rewind_to_delete(logistic, num_retain=997, num_forget=250, spec=spec)


def test_a_missing_checkpoint_is_named():
    method = rewound_descent(logistic, learning_rate=0.1, num_steps=1, num_retain=12)
    with pytest.raises(InputError, match=r"trained\.checkpoint"):
        method.init(jax.random.key(0), Trained(jnp.zeros(3), jnp.zeros(3)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_steps", 0),
        ("num_rewound", 0),
        ("num_rewound", -1),
        ("num_rewound", 41),
        ("learning_rate", 0.0),
        ("micro_batch", 0),
        ("epsilon", 0.0),
        ("delta", 1.0),
        ("smoothness", -1.0),
        ("smoothness", math.nan),
        ("gradient_bound", 0.0),
    ],
)
def test_bad_specs(name, value):
    with pytest.raises(InputError, match=name):
        RewindSpec(**{name: value})


def test_bad_sizes():
    with pytest.raises(InputError, match="num_members"):
        log_sensitivity(RewindSpec(), num_members=4, num_forget=4)
    with pytest.raises(InputError, match="num_forget"):
        rewind_to_delete(logistic, num_retain=4, num_forget=0)
    with pytest.raises(InputError, match="num_retain"):
        rewind_to_delete(logistic, num_retain=0, num_forget=4)
    with pytest.raises(InputError, match="num_steps"):
        rewound_descent(logistic, learning_rate=0.1, num_steps=-1, num_retain=12)


def test_smoothness_of_a_quadratic_lies_between_its_curvatures():
    curvatures = jnp.array([1.0, 1.0, 4.0])
    examples = Examples(jnp.zeros(1), jnp.zeros(1, int), jnp.ones(1))

    def loss(params, examples):
        return jnp.sum(curvatures * params**2) / 2

    few, many = (
        float(
            estimate_smoothness(jax.random.key(0), loss, jnp.ones(3), examples, radius=0.1, num_probes=number)
        )
        for number in (1, 200)
    )
    assert 1.0 <= few < many <= 4.0 + 1e-4
    assert many > 3.9  # the best of 200 random directions in three dimensions


def test_gradient_norm_is_the_largest_of_any_one_example():
    pool = battery.POOL._replace(weights=battery.POOL.weights.at[3].set(0.0))
    pool = pool._replace(x=pool.x.at[3].set(1e4))
    params = battery.trained_model().params
    gradient = jax.jit(jax.grad(battery.LOSS))
    norms = []
    for row in range(len(pool.y)):
        single = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], pool)
        leaves = jax.tree.leaves(gradient(params, single))
        norms.append(np.sqrt(sum(float((leaf**2).sum()) for leaf in leaves)))
    assert norms[3] == 0.0
    assert float(estimate_gradient_norm(battery.LOSS, params, pool)) == pytest.approx(max(norms), rel=1e-5)


def test_bad_probes():
    examples = Examples(jnp.zeros(1), jnp.zeros(1, int), jnp.ones(1))
    for name, value in {"radius": 0.0, "num_probes": 0}.items():
        with pytest.raises(InputError, match=name):
            estimate_smoothness(jax.random.key(0), logistic, jnp.zeros(3), examples, **{name: value})
