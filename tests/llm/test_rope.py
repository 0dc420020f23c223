import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxaudit.llm import DecoderSpec, RopeScaling
from jaxaudit.llm.rope import rope_angles, rope_frequencies, rotate
from tests.llm.reference import frequencies

SPEC = {"width": 64, "num_heads": 1}


@pytest.mark.parametrize("theta", [1e4, 5e5, 1e6])
@pytest.mark.parametrize(
    "scaling", [None, RopeScaling("linear", 4.0), RopeScaling("llama3", 8.0), RopeScaling("llama3", 32.0)]
)
def test_frequencies_follow_the_definition(theta, scaling):
    spec = DecoderSpec(10, rope_theta=theta, rope_scaling=scaling, **SPEC)
    np.testing.assert_allclose(rope_frequencies(spec), frequencies(spec), rtol=1e-12)


def test_llama3_keeps_the_fast_and_divides_the_slow():
    plain = rope_frequencies(DecoderSpec(10, rope_theta=5e5, **SPEC))
    scaled = rope_frequencies(
        DecoderSpec(10, rope_theta=5e5, rope_scaling=RopeScaling("llama3", 8.0), **SPEC)
    )
    length = 2 * math.pi / plain
    ratio = plain / scaled
    np.testing.assert_allclose(ratio[length < 8192 / 4], 1.0)
    np.testing.assert_allclose(ratio[length > 8192], 8.0)
    between = ratio[(length > 8192 / 4) & (length < 8192)]
    assert len(between) > 0
    assert ((between > 1) & (between < 8)).all()


def test_products_depend_on_the_distance_alone():
    """And rotation keeps lengths: the two properties that define it."""
    spec = DecoderSpec(10, rope_theta=100.0, **SPEC)
    rng = np.random.default_rng(0)
    query, key = (jnp.asarray(rng.normal(size=64), jnp.float32) for _ in range(2))

    def turned(vector, position):
        return rotate(vector[None, None, None], *rope_angles(spec, jnp.array([[position]])))[0, 0, 0]

    for distance in (0, 1, 5):
        products = [float(turned(query, start + distance) @ turned(key, start)) for start in (0, 3, 40)]
        np.testing.assert_allclose(products, products[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(turned(query, 0), query)
    assert float(jnp.linalg.norm(turned(query, 17))) == pytest.approx(float(jnp.linalg.norm(query)), rel=1e-5)
    assert float(turned(query, 3) @ turned(key, 0)) != pytest.approx(float(query @ key), abs=1e-2)
