"""The fastest implementation is taken, said, and kept in the store."""

import jax.numpy as jnp
import pytest

from jaxaudit.data import load
from jaxaudit.models import Model
from jaxaudit.pipeline import fastest_model
from jaxaudit.train import SgdSpec

DATA = load("digits", seed=0, num_groups=10, num_holdout=1700)


def linear(work):
    """Softmax regression that repeats a product of 200 x 200 matrices without need."""

    def logits_fn(params, x):
        waste = jnp.ones((200, 200)) * params[0, 0]
        for _ in range(work):
            waste = jnp.tanh(waste @ waste)
        return x @ params + 0 * waste.sum()

    return Model(lambda key: jnp.zeros((64, 10)), logits_fn, f"work {work}")


class Listener:
    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


@pytest.mark.parametrize("slow_first", [True, False])
def test_the_fastest_is_taken_and_said(slow_first):
    first, second = (linear(20), linear(0)) if slow_first else (linear(0), linear(20))
    listener = Listener()
    model = first._replace(alternatives=(second,))
    chosen = fastest_model(model, DATA, SgdSpec(1, 0.1), 3, reporter=listener)
    assert chosen.description == "work 0"
    assert len(listener.said) == 1


def test_the_choice_is_kept(tmp_path, monkeypatch):
    model = linear(20)._replace(alternatives=(linear(0),))
    first = fastest_model(model, DATA, SgdSpec(1, 0.1), 3, store=tmp_path)
    monkeypatch.setattr("jaxaudit.pipeline.implementation.fastest", lambda *_, **__: pytest.fail("measured"))
    assert fastest_model(model, DATA, SgdSpec(1, 0.1), 3, store=tmp_path) is first


def test_a_model_without_alternatives_is_not_measured(monkeypatch):
    monkeypatch.setattr("jaxaudit.pipeline.implementation.fastest", lambda *_, **__: pytest.fail("measured"))
    model = linear(0)
    assert fastest_model(model, DATA, SgdSpec(1, 0.1), 3) is model
