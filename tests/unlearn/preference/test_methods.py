"""Each method is the sum of its terms, and passes the battery of all unlearners on a classifier."""

import inspect

import jax
import numpy as np
import optax
import pytest

from jaxaudit.errors import InputError
from jaxaudit.unlearn import MethodEntry, Recipe, apply
from jaxaudit.unlearn.preference import (
    answer_loss,
    classifier_model,
    dpo,
    idk,
    kl,
    npo,
    rmu,
    simnpo,
    terms,
)
from jaxaudit.unlearn.preference.terms import Context, term_mean
from tests.unlearn import test_common as battery
from tests.unlearn.preference import toy

SGD = {"optimizer": optax.sgd(0.1), "num_updates": 2}
BOTH, FORGET = frozenset({"retain", "forget"}), frozenset({"forget"})


def alternatives(examples):
    return examples._replace(y=(examples.y + 1) % 4)


def features(params, examples):
    """The logits, with an axis of one token."""
    return battery.MODEL.logits_fn(params, examples.x)[:, None]


CLASSIFIER = classifier_model(battery.MODEL.logits_fn, alternatives)._replace(features_fn=features)
RMU = {"num_features": 4, "steering": 2.0, "retain_weight": 0.5, "micro_batches": 2}
METHODS = {
    "kl": (kl, {}, BOTH),
    "kl to base": (kl, {"reference": "base", "mask": "all", "average": "example"}, BOTH),
    "idk": (idk, {"micro_batches": 2}, BOTH),
    "dpo": (dpo, {}, FORGET),
    "dpo and retain": (dpo, {"retain_weight": 0.5, "scale": 20.0, "reference": "base"}, BOTH),
    "npo": (npo, {}, FORGET),
    "npo and retain": (npo, {"retain_weight": 1.0, "reference": "base"}, BOTH),
    "simnpo": (simnpo, {}, FORGET),
    "rmu": (rmu, RMU, BOTH),
}


def entry(name):
    factory, options, reads = METHODS[name]
    recipe = Recipe(factory(CLASSIFIER, **SGD, **options))  # once, so that it is compiled once
    return MethodEntry(name, "", "", "", lambda problem: recipe, reads, noisy=factory is rmu)


ENTRIES = {name: entry(name) for name in METHODS}
CHECKS = [
    check
    for name, check in vars(battery).items()
    if name.startswith("test_") and list(inspect.signature(check).parameters) == ["entry"]
]


# All methods share one engine, and rmu uses every part of it.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "rmu" else pytest.mark.slow) for name in METHODS]
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_battery(check, name):
    check(ENTRIES[name])


@pytest.mark.parametrize("method", ENTRIES.values(), ids=lambda method: method.name)
def test_only_declared_data_changes_the_result(method):
    for part in ("retain", "forget"):
        battery.test_only_declared_data_changes_the_result(method, part)


def test_keys_are_never_reused():
    with jax.debug_key_reuse(True):
        battery.unlearn_in_loop(ENTRIES["rmu"], jax.random.key(0), battery.trained_model())


MODEL = toy.MODEL
LIKELIHOOD = {average: terms.likelihood(MODEL, average) for average in ("token", "example")}
SUMS = {
    "kl": (
        kl(MODEL, **SGD, retain_weight=0.5, mask="answer", average="example"),
        terms.likelihood(MODEL, "example", sign=-1.0),
        (0.5, terms.divergence(MODEL, "answer", "example")),
    ),
    "idk": (
        idk(MODEL, **SGD),
        terms.likelihood(MODEL, "token", alternative=True),
        (1.0, LIKELIHOOD["token"]),
    ),
    "dpo": (
        dpo(MODEL, **SGD, beta=0.2, scale=10.0, retain_weight=0.3, average="example"),
        terms.preference(MODEL, 0.2, 10.0),
        (0.3, LIKELIHOOD["example"]),
    ),
    "npo": (npo(MODEL, **SGD, beta=0.2), terms.negative_preference(MODEL, 0.2), (0.0, LIKELIHOOD["token"])),
    "simnpo": (
        simnpo(MODEL, **SGD, beta=2.0, margin=0.1, retain_weight=1.0),
        terms.simple_negative_preference(MODEL, 2.0, 0.1),
        (1.0, LIKELIHOOD["token"]),
    ),
    "rmu": (
        rmu(MODEL, **SGD, num_features=toy.FEATURES, steering=2.0, retain_weight=3.0),
        terms.misdirection(MODEL, 2.0, "real", "token"),
        (3.0, terms.feature_distance(MODEL, "real", "token")),
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_method_is_the_sum_of_its_terms(name):
    """Away from the start, where a divergence from the start would be 0."""
    method, forget, (retain_weight, retain) = SUMS[name]
    loss, state = toy.loss_of(method)
    assert state.context.reference is None or state.context.reference is toy.TRAINED.params
    context = Context(toy.TRAINED.params, state.context.direction)
    expected = term_mean(forget, toy.NOW, context, toy.BATCH.forget)
    expected += retain_weight * term_mean(retain, toy.NOW, context, toy.BATCH.retain)
    assert loss == pytest.approx(float(expected), rel=1e-5)


def descend(method, num_updates=30):
    method = toy.jitted(method._replace(num_updates=num_updates))
    return apply(method, jax.random.key(0), toy.TRAINED, lambda step: toy.BATCH)


def test_the_methods_do_what_they_are_for():
    """Forget answers become less likely; idk's refusals more likely; with a retain term, retain answers stay."""
    loss, before = answer_loss(MODEL), toy.TRAINED.params
    refusals = toy.MODEL.alternatives_fn(toy.BATCH.forget)
    methods = {name: method for name, (method, *_) in SUMS.items() if name != "rmu"}
    for name, method in methods.items():
        after = descend(method)
        if name != "idk":
            assert loss(after, toy.BATCH.forget) > loss(before, toy.BATCH.forget) + 0.05, name
        if name in ("idk", "dpo"):
            margin = {
                p: loss(v, toy.BATCH.forget) - loss(v, refusals) for p, v in (("a", after), ("b", before))
            }
            assert margin["a"] > margin["b"] + 0.05, name
        if name == "idk":
            assert loss(after, refusals) < loss(before, refusals) - 0.05


def test_rmu_reaches_its_target():
    method = rmu(
        MODEL, optimizer=optax.adam(0.1), num_updates=1, num_features=3, steering=2.0, retain_weight=0.0
    )
    state = method.init(jax.random.key(0), toy.TRAINED)
    distances = []
    for step in range(30):
        state, info = jax.jit(method.update)(jax.random.key(step), state, toy.BATCH)
        distances.append(float(info["loss"]))
    assert distances[-1] < distances[0] / 3
    assert state.context.reference is None
    np.testing.assert_array_equal(
        state.context.direction, method.init(jax.random.key(0), toy.TRAINED).context.direction
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: npo(MODEL, **SGD, beta=0.0), "beta must be positive, got 0.0"),
        (lambda: dpo(MODEL, **SGD, scale=-1.0), "scale must be positive, got -1.0"),
        (lambda: simnpo(MODEL, **SGD, margin=float("nan")), "margin must be a finite number, got nan"),
        (lambda: kl(MODEL, **SGD, mask="prompt"), "mask must be one of answer, real, all, got 'prompt'"),
        (lambda: idk(MODEL, **SGD, average="batch"), "average must be one of token, example, got 'batch'"),
        (
            lambda: rmu(MODEL, **SGD, **{**RMU, "num_features": 0}),
            "num_features must be an integer of at least 1",
        ),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(InputError, match=message):
        call()
