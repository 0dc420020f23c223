"""Parameters through Orbax checkpoints: what comes back, and what is refused."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from jaxaudit.checkpoint import load_params, save_params
from jaxaudit.errors import InputError

PARAMS = {"dense": {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.array([0.5, 1.5, 2.5])}}


def test_orbax_is_loaded_only_when_a_checkpoint_is_used():
    code = "import sys, jaxaudit.checkpoint; sys.exit('orbax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def folder(tmp_path):
    save_params(tmp_path / "x0", PARAMS)
    return tmp_path / "x0"


def test_what_is_saved_comes_back(folder):
    like = {"dense": {"kernel": jnp.zeros((2, 3)), "bias": jnp.zeros(3)}}
    found = load_params(folder, like)
    np.testing.assert_array_equal(found["dense"]["kernel"], PARAMS["dense"]["kernel"])
    np.testing.assert_array_equal(found["dense"]["bias"], PARAMS["dense"]["bias"])
    assert found["dense"]["bias"].dtype == jnp.float32


def test_checkpoint_of_another_orbax_writer(tmp_path):
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "x0", PARAMS)
    np.testing.assert_array_equal(load_params(tmp_path / "x0", PARAMS)["dense"]["bias"], [0.5, 1.5, 2.5])


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_no_checkpoint(tmp_path, path):
    with pytest.raises(InputError, match=r"no Orbax checkpoint at .*_METADATA"):
        load_params(tmp_path / path, PARAMS)


def test_nothing_is_overwritten(folder):
    with pytest.raises(InputError, match="x0 already exists"):
        save_params(folder, {"other": jnp.zeros(1)})
    assert load_params(folder, PARAMS)["dense"]["bias"][0] == 0.5


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ({"kernel": jnp.zeros((2, 3))}, "has a parameter 'dense/bias' that the model does not have"),
        (
            {**PARAMS["dense"], "scale": jnp.zeros(1)},
            "lacks the parameter 'dense/scale' of the model; it has dense/",
        ),
        (
            {**PARAMS["dense"], "kernel": jnp.zeros((3, 2))},
            r"parameter 'dense/kernel' has shape \(2, 3\), the model needs \(3, 2\)",
        ),
    ],
)
def test_another_model_is_named_by_its_leaf(folder, dense, message):
    with pytest.raises(InputError, match=message):
        load_params(folder, {"dense": dense})


def test_values_must_be_finite(tmp_path):
    save_params(tmp_path / "x0", {"bias": jnp.array([1.0, jnp.nan])})
    with pytest.raises(InputError, match="parameter 'bias' has a value that is not finite"):
        load_params(tmp_path / "x0", {"bias": jnp.zeros(2)})


def test_damaged_checkpoint(folder):
    (folder / "_METADATA").write_text("{}")
    with pytest.raises(InputError, match=r"checkpoint .*x0 cannot be read"):
        load_params(folder, PARAMS)
