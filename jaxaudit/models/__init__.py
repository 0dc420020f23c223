"""Models as two pure functions. Only this package knows about Flax; any other library fits the same two functions."""

from jaxaudit.models.base import Model, from_linen, from_nnx
from jaxaudit.models.lstm import char_lstm
from jaxaudit.models.mlp import mlp
from jaxaudit.models.softmax_regression import ConvexConstants, ridge_cross_entropy, softmax_regression
from jaxaudit.models.tinynet import tinynet

__all__ = [
    "ConvexConstants",
    "Model",
    "char_lstm",
    "from_linen",
    "from_nnx",
    "mlp",
    "ridge_cross_entropy",
    "softmax_regression",
    "tinynet",
]
