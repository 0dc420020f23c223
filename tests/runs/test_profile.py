import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxaudit.runs import measured_matmul_peak, profile


def test_a_trace_is_written(tmp_path):
    with profile(tmp_path / "trace"):
        jax.block_until_ready(jnp.ones((8, 8)) @ jnp.ones((8, 8)))
    assert list((tmp_path / "trace").rglob("*.xplane.pb"))


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with profile(None):
        pass
    assert not list(tmp_path.iterdir())


def test_the_peak_is_within_reach_of_numpy_and_measured_once():
    size = 1024
    ones = np.ones((size, size), np.float32)
    ones @ ones
    began = time.perf_counter()
    ones @ ones
    numpy_rate = 2 * size**3 / (time.perf_counter() - began)
    peak = measured_matmul_peak()
    assert numpy_rate / 10 < peak < 10 * numpy_rate  # other processes may disturb either
    began = time.perf_counter()
    assert measured_matmul_peak() == peak
    assert time.perf_counter() - began < 0.01


def test_the_precision_is_that_of_the_runs(monkeypatch):
    """With "default" JAX's own option decides, as it does for the runs."""
    asked = []
    module = sys.modules[measured_matmul_peak.__module__]  # the function `profile` hides it
    monkeypatch.setattr(module, "_measured_peak", lambda precision: asked.append(precision) or 1.0)
    with jax.default_matmul_precision("high"):
        measured_matmul_peak("default")
        measured_matmul_peak("highest")
    measured_matmul_peak("default")
    assert asked == ["high", "highest", None]
