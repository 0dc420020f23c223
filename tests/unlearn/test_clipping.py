import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.unlearn import Batch, Trained, retain_finetune
from jaxaudit.unlearn.clipping import ClippingSpec, model_clipping, noisy_descent, uncertified_clipping
from tests.unlearn import test_common as battery

SIZES = {"a": (30, 40), "b": (700,)}
NUM_PARAMS = 1900


def quadratic(params, examples):
    """Half the squared distance to the examples' mean, in every parameter."""
    centre = jnp.sum(examples.weights * examples.x) / jnp.sum(examples.weights)
    return sum(jnp.sum((leaf - centre) ** 2) for leaf in jax.tree.leaves(params)) / 2


def batch(value=0.0):
    one = Examples(jnp.full(1, value), jnp.zeros(1, int), jnp.ones(1))
    return Batch(retain=one, forget=one._replace(x=one.x + 1e3))


def tree(value=0.0):
    return {name: jnp.full(shape, value) for name, shape in SIZES.items()}


def random_tree(seed, norm):
    rng = np.random.default_rng(seed)
    params = {name: rng.normal(size=shape) for name, shape in SIZES.items()}
    size = np.linalg.norm(flat(params))
    return {name: jnp.asarray(leaf * norm / size, jnp.float32) for name, leaf in params.items()}


def flat(params):
    return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(params)])


def pure_noise(**settings):
    """Steps that only add noise: no learning rate, and a ball that is never left."""
    return noisy_descent(quadratic, learning_rate=0.0, radius=1e6, initial_radius=1e6, **settings)


def trajectory(method, trained, num_updates, seed=0):
    key = jax.random.key(seed)
    state = method.init(jax.random.fold_in(key, 0), Trained(trained, trained))
    yield flat(state.params)
    for step in range(num_updates):
        state, _ = method.update(jax.random.fold_in(key, step + 1), state, batch())
        yield flat(state.params)


@pytest.mark.parametrize(("radius", "decay"), [(1e3, 0.0), (1e3, 0.5), (2.0, 0.5), (0.1, 0.0)])
def test_one_step_without_noise_is_equation_14(radius, decay):
    method = noisy_descent(
        quadratic, learning_rate=0.3, radius=radius, sigma=0.0, num_updates=1, weight_decay=decay
    )
    start = random_tree(0, norm=5.0)
    state = method.init(jax.random.key(0), Trained(start, start))
    got = flat(method.update(jax.random.key(1), state, batch(2.0))[0].params)
    x = flat(start)
    moved = x - 0.3 * ((x - 2.0) + decay * x)
    expected = moved * min(1.0, radius / np.linalg.norm(moved))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_the_noise_is_fresh_at_every_step_and_grows_like_a_random_walk():
    """The reference code repeats one vector: its increments are equal and its distance grows like t."""
    steps = np.array(list(trajectory(pure_noise(sigma=0.2, num_updates=9), tree(), 9)))
    increments = np.diff(steps, axis=0)
    assert increments.std(axis=1) == pytest.approx(0.2, rel=0.1)
    correlations = np.corrcoef(increments) - np.eye(9)
    assert abs(correlations).max() < 5 / np.sqrt(NUM_PARAMS)
    distances = np.linalg.norm(steps - steps[0], axis=1)[1:]
    expected = 0.2 * np.sqrt(np.arange(1, 10) * NUM_PARAMS)
    np.testing.assert_allclose(distances, expected, rtol=0.1)


def test_noise_comes_after_the_projection():
    """So a released iterate lies outside the ball, by about the norm of the noise."""
    method = noisy_descent(quadratic, learning_rate=0.0, radius=0.5, sigma=0.3, num_updates=1)
    _, after = trajectory(method, random_tree(0, norm=20.0), 1)
    assert np.linalg.norm(after) == pytest.approx(np.hypot(0.5, 0.3 * np.sqrt(NUM_PARAMS)), rel=0.1)


def test_whatever_the_start_the_means_are_within_two_radii():
    """What the accountant assumes: with equal noise, the distance after a step is that of the two means."""
    method = noisy_descent(quadratic, learning_rate=0.1, radius=0.2, sigma=0.1, num_updates=1)
    ends = [list(trajectory(method, random_tree(seed, norm=100.0), 1))[-1] for seed in (0, 1)]
    assert 0 < np.linalg.norm(ends[0] - ends[1]) <= 0.4 + 1e-5


def test_start_is_projected_on_the_initial_ball_and_gets_its_noise():
    def start(norm, **settings):
        method = noisy_descent(quadratic, learning_rate=0.1, radius=1.0, sigma=0.0, num_updates=0, **settings)
        (first,) = trajectory(method, random_tree(0, norm), 0)
        return first

    np.testing.assert_allclose(start(60.0), flat(random_tree(0, 30.0)), rtol=1e-5, atol=1e-7)
    assert (start(29.0) == flat(random_tree(0, 29.0))).all()
    noise = start(29.0, initial_sigma=0.4) - start(29.0)
    assert noise.std() == pytest.approx(0.4, rel=0.1)


def test_a_zero_vector_stays_finite():
    method = noisy_descent(quadratic, learning_rate=0.1, radius=0.2, sigma=0.0, num_updates=1)
    assert all((point == 0).all() for point in trajectory(method, tree(0.0), 1))


def test_a_wide_ball_without_noise_is_plain_descent():
    neutral = noisy_descent(
        battery.LOSS, learning_rate=0.1, radius=1e6, sigma=0.0, num_updates=6, initial_radius=1e6
    )
    plain = retain_finetune(battery.LOSS, optimizer=optax.sgd(0.1), num_updates=6)
    states = [method.init(jax.random.key(0), battery.trained_model()) for method in (neutral, plain)]
    updates = [jax.jit(method.update) for method in (neutral, plain)]
    for step in range(6):
        key = jax.random.key(step)
        states = [update(key, state, battery.batch_at(step))[0] for update, state in zip(updates, states)]
    assert battery.largest_difference(*(state.params for state in states)) < 1e-6


def finetuned(spec):
    tail = retain_finetune(quadratic, optimizer=optax.sgd(0.1), num_updates=3)
    return model_clipping(quadratic, spec=spec, finetune=tail)


def test_the_certificate_holds_with_enough_steps_only():
    recipe = finetuned(ClippingSpec())
    assert [stage.num_updates for stage in recipe.method.stages] == [40, 3]
    assert (recipe.certificate.epsilon, recipe.certificate.delta) == (1.0, 1e-5)
    more, fewer = (finetuned(ClippingSpec(num_noisy_updates=number)) for number in (50, 39))
    assert [recipe.method.stages[0].num_updates for recipe in (more, fewer)] == [50, 39]
    assert more.certificate.certified
    assert not fewer.certificate.certified
    assert "40 are needed; 39 steps give (1.0" in fewer.certificate.reason


def test_beyond_the_budget_nothing_is_certified():
    recipe = finetuned(ClippingSpec(max_noisy_updates=20))
    assert recipe.method.stages[0].num_updates == 20
    assert not recipe.certificate.certified
    assert "not reachable in the budget of 20 steps" in recipe.certificate.reason


def test_no_noise_at_all_is_said():
    recipe = finetuned(ClippingSpec(num_noisy_updates=0))
    assert recipe.certificate.reason.endswith("no noise")


def test_the_uncertified_variant_looks_on_the_way():
    tail = retain_finetune(quadratic, optimizer=optax.sgd(0.1), num_updates=3)
    recipe = uncertified_clipping(quadratic, num_retain=130, finetune=tail, num_epochs=10)
    assert recipe.record_at == (1, 2, 5, 10, 20, 30)  # 3 updates per epoch
    assert [stage.num_updates for stage in recipe.method.stages] == [30, 3]
    assert not recipe.certificate.certified
    assert "30 steps give (5e+09, 1e-05)" in recipe.certificate.reason
    given = uncertified_clipping(quadratic, num_retain=130, num_epochs=1, record_at=[2, 3])
    assert given.record_at == (2, 3)


def test_equal_settings_are_one_object():
    """So that they are compiled once."""
    assert model_clipping(quadratic).method == model_clipping(quadratic, spec=ClippingSpec()).method


SETTINGS = {"learning_rate": 0.1, "radius": 0.2, "sigma": 0.1, "num_updates": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sigma", -0.1),
        ("sigma", float("nan")),
        ("radius", 0.0),
        ("radius", -1.0),
        ("initial_radius", 0.0),
        ("initial_sigma", -1.0),
        ("learning_rate", -0.1),
        ("weight_decay", -0.1),
        ("num_updates", -1),
        ("batch_size", 0),
    ],
)
def test_bad_settings(name, value):
    with pytest.raises(InputError, match=name):
        noisy_descent(quadratic, **{**SETTINGS, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("delta", 1.0),
        ("delta", 0.0),
        ("radius", 0.0),
        ("sigma", 0.0),
        ("max_noisy_updates", -1),
        ("num_noisy_updates", 1.5),
        ("batch_size", 0),
        ("learning_rate", float("inf")),
    ],
)
def test_bad_specs(name, value):
    with pytest.raises(InputError, match=name):
        ClippingSpec(**{name: value})
