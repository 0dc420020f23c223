import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import rel_entr, softmax

from jaxaudit.data import Examples
from jaxaudit.errors import InputError
from jaxaudit.train import SgdSpec, cross_entropy_loss, take_batch
from jaxaudit.unlearn import Batch, Trained, apply, as_stages, retain_finetune, then
from jaxaudit.unlearn.scrub import distillation_divergence, scrub

NUM_RETAIN, NUM_FORGET = 7, 5
ASCENT = SgdSpec(2, 0.05, batch_size=2, schedule="constant")
DESCENT = SgdSpec(5, 0.3, batch_size=3, momentum=0.9)


def linear(params, x):
    return x @ params


def make_pool(seed=0):
    rng = np.random.default_rng(seed)
    size = NUM_RETAIN + NUM_FORGET
    x = jnp.asarray(rng.normal(size=(size, 4)), jnp.float32)
    return Examples(x, jnp.asarray(rng.integers(0, 3, size), jnp.int32), jnp.ones(size))


POOL = make_pool()
RETAIN, FORGET = jnp.arange(NUM_RETAIN), NUM_RETAIN + jnp.arange(NUM_FORGET)
TRAINED = Trained(jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)), jnp.float32), jnp.zeros((4, 3)))


def make(**change):
    settings = {
        "ascent": ASCENT,
        "descent": DESCENT,
        "distillation_weight": 0.5,
        "loss_weight": 1.0,
        **change,
    }
    return scrub(linear, num_retain=NUM_RETAIN, num_forget=NUM_FORGET, **settings)


def batch_at(step):
    """Retain and forget batches of the sizes of the two kinds of steps."""
    return Batch(take_batch(POOL, RETAIN, step, 3), take_batch(POOL, FORGET, step, 2))


def unlearn(method, trained=TRAINED):
    stages = [stage._replace(update=jax.jit(stage.update)) for stage in as_stages(method).stages]
    return np.asarray(apply(then(*stages), jax.random.key(0), trained, batch_at))


def mean_divergence(student, teacher, x, temperature):
    """SciPy's relative entropy of the softened probabilities."""
    p, q = (softmax(np.asarray(x) @ np.asarray(w, float) / temperature, axis=1) for w in (teacher, student))
    return temperature**2 * rel_entr(p, q).sum(axis=1).mean()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_divergence_is_that_of_scipy(temperature):
    rng = np.random.default_rng(3)
    student, teacher = 3 * rng.normal(size=(2, 6, 5))
    weights = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    p, q = (softmax(logits / temperature, axis=1) for logits in (teacher, student))
    expected = temperature**2 * rel_entr(p, q)[weights > 0].sum(axis=1).mean()
    got = distillation_divergence(*(jnp.asarray(a) for a in (student, teacher, weights)), temperature)
    assert float(got) == pytest.approx(expected, rel=1e-5)


def test_divergence_is_not_symmetric_and_vanishes_only_for_equals():
    certain, undecided = jnp.array([[9.0, 0.0, 0.0]]), jnp.zeros((1, 3))
    one = jnp.ones(1)
    assert float(distillation_divergence(certain, certain, one, 4.0)) == 0.0
    there, back = (
        float(distillation_divergence(*pair, one)) for pair in ((certain, undecided), (undecided, certain))
    )
    assert there == pytest.approx(np.log(np.exp(9) + 2) - 3 - np.log(3), rel=1e-5)
    p = np.array([np.exp(9), 1, 1]) / (np.exp(9) + 2)
    assert back == pytest.approx(np.log(3) + np.sum(p * np.log(p)), rel=1e-5)
    assert float(distillation_divergence(certain, undecided, jnp.zeros(1))) == 0.0


def test_extreme_logits_give_finite_numbers_and_gradients():
    student, teacher = jnp.array([[1e4, -1e4]]), jnp.array([[-1e4, 1e4]])
    value, gradient = jax.value_and_grad(distillation_divergence)(student, teacher, jnp.ones(1))
    assert float(value) == pytest.approx(2e4, rel=1e-5)
    assert np.isfinite(gradient).all()


def test_the_gradient_of_a_large_temperature_is_that_of_the_squared_difference_of_logits():
    """T^2 KL tends to half the variance of the difference of the logits over equally likely classes."""
    rng = np.random.default_rng(4)
    student, teacher = (jnp.asarray(a, jnp.float32) for a in rng.normal(size=(2, 1, 6)))
    gradient = jax.grad(distillation_divergence)(student, teacher, jnp.ones(1), 100.0)
    apart = np.asarray(student - teacher)
    np.testing.assert_allclose(gradient, (apart - apart.mean()) / 6, rtol=0.05, atol=2e-3)


def numpy_step(params, objective_gradient, rate, velocity, momentum):
    velocity = momentum * velocity + objective_gradient
    return params - rate * velocity, velocity


def softmax_rows(x, params, temperature=1.0):
    return softmax(x @ params / temperature, axis=1)


def test_the_whole_course_in_numpy():
    """Gradient of T^2 KL(teacher || student) in the logits: T (q - p); of the cross-entropy: q - onehot."""
    alpha, gamma, temperature = 0.5, 0.8, 2.0
    method = make(distillation_weight=alpha, loss_weight=gamma, temperature=temperature)
    teacher = np.asarray(TRAINED.params, float)
    params, velocity, descents = teacher.copy(), np.zeros_like(teacher), 0
    x, y = np.asarray(POOL.x, float), np.asarray(POOL.y)

    def divergence_gradient(rows):
        apart = softmax_rows(x[rows], params, temperature) - softmax_rows(x[rows], teacher, temperature)
        return temperature * x[rows].T @ apart / len(rows)

    for epoch in range(DESCENT.epochs):
        for first in range(0, NUM_RETAIN, 3):
            rows = np.arange(first, min(first + 3, NUM_RETAIN))
            loss_gradient = x[rows].T @ (softmax_rows(x[rows], params) - np.eye(3)[y[rows]]) / len(rows)
            rate = 0.3 * (1 - descents / 15)
            gradient = alpha * divergence_gradient(rows) + gamma * loss_gradient
            params, velocity = numpy_step(params, gradient, rate, velocity, 0.9)
            descents += 1
        for first in range(0, NUM_FORGET if epoch < ASCENT.epochs else 0, 2):
            rows = NUM_RETAIN + np.arange(first, min(first + 2, NUM_FORGET))
            params = params + 0.05 * divergence_gradient(rows)
    np.testing.assert_allclose(unlearn(method), params, rtol=2e-3, atol=2e-4)


def test_without_teacher_and_max_steps_it_is_fine_tuning():
    none = SgdSpec(0, 0.05, batch_size=2)
    optimizer = DESCENT.optimizer(DESCENT.num_updates(NUM_RETAIN))
    finetuned = retain_finetune(cross_entropy_loss(linear), optimizer=optimizer, num_updates=15, batch_size=3)
    ours = make(ascent=none, distillation_weight=0.0)
    np.testing.assert_allclose(unlearn(ours), unlearn(finetuned), rtol=1e-5, atol=1e-6)


def test_obeying_only_stays_at_the_teacher():
    """And so do max-steps from there: the reason to begin with min-steps."""
    obedient = make(loss_weight=0.0, distillation_weight=1.0)
    rounding = 1e-5
    np.testing.assert_allclose(unlearn(obedient), TRAINED.params, atol=rounding)


def test_max_steps_move_away_from_the_teacher_on_forget_data_and_min_steps_come_back():
    method = make()
    trained, apart = TRAINED, []
    for stage in method.stages:
        state = stage.init(jax.random.key(0), trained)
        for step in range(stage.num_updates):
            state, _ = stage.update(jax.random.key(1), state, batch_at(step))
        trained = trained._replace(params=state.params, previous=state)
        apart.append(mean_divergence(state.params, TRAINED.params, POOL.x[FORGET], 4.0))
        np.testing.assert_array_equal(state.teacher, TRAINED.params)
    # remember, min, max, min, max, min, min, min
    assert apart[0] == 0
    assert apart[2] > apart[1] > 0
    assert apart[4] > apart[3]


def test_order_and_number_of_stages():
    stages = as_stages(make()).stages
    assert [stage.num_updates for stage in stages] == [0, 3, 3, 3, 3, 3, 3, 3]
    assert [stage.batch_size for stage in stages[1:]] == [3, 2, 3, 2, 3, 3, 3]
    assert len(set(stages)) == 3  # so that three programs are compiled, not one per epoch


def test_it_starts_anew_after_another_method():
    """The teacher is the model that SCRUB is given, whatever came before."""
    none = SgdSpec(0, 0.05, batch_size=2)
    first = make(ascent=none)
    both = unlearn(then(first, make()))
    second = unlearn(make(), TRAINED._replace(params=jnp.asarray(unlearn(first))))
    np.testing.assert_allclose(both, second, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ascent": SgdSpec(5, 0.1)}, "ascent.epochs must be less than descent.epochs, got 5 and 5"),
        ({"distillation_weight": -1.0}, "distillation_weight must not be negative, got -1.0"),
        ({"loss_weight": float("nan")}, "loss_weight must be a finite number, got nan"),
        ({"distillation_weight": 0, "loss_weight": 0}, "must not both be 0"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        make(**change)


@pytest.mark.parametrize("name", ["num_retain", "num_forget"])
def test_empty_sets(name):
    sizes = {"num_retain": 3, "num_forget": 3, name: 0}
    with pytest.raises(InputError, match=f"{name} must be an integer of at least 1, got 0"):
        scrub(linear, ascent=ASCENT, descent=DESCENT, distillation_weight=1.0, loss_weight=1.0, **sizes)
