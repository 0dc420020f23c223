import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.errors import InputError
from jaxaudit.unlearn.preference import PRESETS, pistol_methods, terms
from jaxaudit.unlearn.preference.presets import SCORE_REFERENCES, pistol_optimizer
from jaxaudit.unlearn.preference.terms import Context, term_mean
from tests.unlearn.preference import toy

MODEL, BATCH = toy.MODEL, toy.BATCH
BEFORE, BASE = toy.TRAINED.params, toy.TRAINED.initial_params


def term(value, part, reference=None):
    return float(term_mean(value, toy.NOW, Context(reference), part))


def likelihood(average, part, **options):
    return term(terms.likelihood(MODEL, average, **options), part)


EXPECTED = {
    "pistol_paper": {
        "gradient_ascent": lambda: -likelihood("example", BATCH.forget),
        "gradient_difference": lambda: (
            likelihood("example", BATCH.retain) - likelihood("example", BATCH.forget)
        ),
        "kl": lambda: (
            term(terms.divergence(MODEL, "real", "example"), BATCH.retain, BEFORE)
            - likelihood("example", BATCH.forget)
        ),
        "idk": lambda: (
            likelihood("example", BATCH.retain) + likelihood("example", BATCH.forget, alternative=True)
        ),
        "npo": lambda: term(terms.negative_preference(MODEL, 0.1), BATCH.forget, BEFORE),
    },
    "pistol_code": {
        "gradient_ascent": lambda: -likelihood("token", BATCH.forget),
        "gradient_difference": lambda: likelihood("token", BATCH.retain) - likelihood("token", BATCH.forget),
        "kl": lambda: (
            term(terms.divergence(MODEL, "all", "token"), BATCH.retain, BASE)
            - likelihood("token", BATCH.forget)
        ),
        "dpo": lambda: term(terms.preference(MODEL, 0.1, 1.0), BATCH.forget, BASE),
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_losses_are_those_of_the_source(preset):
    methods = pistol_methods(MODEL, preset, num_forget=8, batch_size=8, epochs=3)
    assert list(methods) == list(EXPECTED[preset])
    for name, method in methods.items():
        assert toy.loss_of(method)[0] == pytest.approx(EXPECTED[preset][name](), rel=1e-5), name
        assert (method.num_updates, method.batch_size) == (3, 8)


@pytest.mark.parametrize("preset", PRESETS)
def test_models_that_are_no_parameters_give_the_same_losses(preset):
    """Adapters are trained beside what is fixed: references are functions, scores come with the examples."""
    frozen = {"fine-tuned": BEFORE, "base": BASE}

    def logits_of(which, examples):
        return MODEL.logits_fn(frozen[which], examples)

    methods = pistol_methods(
        MODEL, preset, num_forget=8, batch_size=8, kl_model=MODEL, frozen_logits_fn=logits_of
    )
    for name, method in methods.items():
        forget = BATCH.forget
        if name in SCORE_REFERENCES:
            context = Context(frozen[SCORE_REFERENCES[name]])
            scores = terms.reference_scores(MODEL, context, forget)
            forget = forget._replace(x=forget.x._replace(reference=scores))
        state = method.init(jax.random.key(0), toy.TRAINED)
        moved = state._replace(params=toy.NOW)
        _, info = method.update(jax.random.key(1), moved, BATCH._replace(forget=forget))
        assert float(info["loss"]) == pytest.approx(EXPECTED[preset][name](), rel=1e-5), name


def rates(preset, num_updates, epochs):
    """Steps that AdamW takes on a constant gradient are its learning rates."""
    optimizer = pistol_optimizer(PRESETS[preset], learning_rate=1e-3, num_updates=num_updates, epochs=epochs)
    parameter, gradient = jnp.zeros(()), jnp.full((), 0.5)
    state, steps = optimizer.init(parameter), []
    for _ in range(num_updates):
        update, state = optimizer.update(gradient, state, parameter)
        steps.append(-float(update))
    return np.array(steps) / 1e-3


def test_warm_up_and_decay():
    paper, code = rates("pistol_paper", 20, 5), rates("pistol_code", 20, 5)
    np.testing.assert_allclose(paper, [0, 0.25, 0.5, 0.75] + [1.0] * 16, atol=1e-5)
    np.testing.assert_allclose(code, [0, 0.5, *(1 - np.arange(18) / 18)], atol=1e-5)


def test_zero_epochs_and_one_update_are_possible():
    for preset in PRESETS:
        assert pistol_methods(MODEL, preset, num_forget=4, epochs=0)["kl"].num_updates == 0
    assert rates("pistol_paper", 1, 1).tolist() == [0.0]
    assert rates("pistol_code", 1, 1) == pytest.approx(1.0, abs=1e-5)


def test_long_gradients_are_cut_in_the_preset_of_the_code():
    optimizer = pistol_optimizer(PRESETS["pistol_code"], learning_rate=1e-3, num_updates=4, epochs=1)
    params = jnp.zeros(2)
    states = [optimizer.update(jnp.full(2, size), optimizer.init(params), params)[1] for size in (1e2, 1e5)]
    for one, other in zip(*map(jax.tree.leaves, states)):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "tofu"}, "preset must be one of pistol_paper, pistol_code, got 'tofu'"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, got 0.0"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"epochs": -1}, "epochs must be an integer of at least 0, got -1"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        pistol_methods(MODEL, **{"preset": "pistol_paper", "num_forget": 8, **options})
