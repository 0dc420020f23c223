import jax
import jax.numpy as jnp
import pytest

from jaxaudit.errors import InputError
from jaxaudit.models import mlp


def test_layers_of_the_main_job():
    model = mlp((64,), 10)
    params = model.init_fn(jax.random.key(0))
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    assert shapes == {(64, 128), (128, 128), (128, 10), (128,), (10,)}
    assert model.description == "MLP 64-128-128-10, ReLU"


def test_images_are_flattened():
    model = mlp((8, 8, 1), 3, hidden=(4,))
    assert model.logits_fn(model.init_fn(jax.random.key(0)), jnp.ones((5, 8, 8, 1))).shape == (5, 3)


@pytest.mark.parametrize(("classes", "hidden"), [(1, (4,)), (3, (0,))])
def test_bad_sizes(classes, hidden):
    with pytest.raises(InputError, match="num_classes must be at least 2 and hidden widths positive"):
        mlp((4,), classes, hidden)
