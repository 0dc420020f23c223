"""Models as two pure functions. Only this package knows about Flax; any other library fits the same two functions."""

from jaxaudit.models.base import Model, from_linen, from_nnx
from jaxaudit.models.mlp import mlp

__all__ = ["Model", "from_linen", "from_nnx", "mlp"]
