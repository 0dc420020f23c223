"""All parameters of a model as one vector: projection on a ball, and Gaussian noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from jaxaudit.train import Params


def project(params: Params, radius: float) -> Params:
    """Project all parameters, taken as one vector, on the L2 ball of a radius around 0.

        params <- params * min(1, radius / ||params||)

    Parameters
    ----------
    params
        Pytree of float arrays, finite. Inside the ball it is returned bit for bit; the zero vector stays zero, and
        neither tiny nor huge entries make the norm underflow or overflow.
    radius
        At least 0, in units of the parameters.

    Examples
    --------
    >>> project({"a": jnp.array([3.0]), "b": jnp.array([4.0])}, radius=1.0)
    {'a': Array([0.6], dtype=float32), 'b': Array([0.8], dtype=float32)}
    """
    largest = _largest(params)
    scale = jnp.where(largest > 0, largest, 1)
    scaled = jax.tree.map(lambda leaf: leaf / scale, params)
    # At least 1 unless all entries are 0, so that the maximum only guards that one case.
    norm = jnp.maximum(_norm(scaled), 1)
    # A finite vector must give a finite result even if its norm is not a finite float: never form scale * norm.
    outside = radius / scale / norm < 1
    shrink = radius / norm
    return jax.tree.map(
        lambda leaf, part: jnp.where(outside, part * shrink, leaf).astype(leaf.dtype), params, scaled
    )


def add_gaussian_noise(key: Key[Array, ""], params: Params, sigma: float) -> Params:
    """Add independent Gaussian noise to every parameter.

        params <- params + sigma * N(0, I)

    Parameters
    ----------
    key
        Used once; every leaf gets a key of its own.
    params
        Pytree of float arrays.
    sigma
        Standard deviation, at least 0, in units of the parameters.

    Examples
    --------
    >>> print(f"{add_gaussian_noise(jax.random.key(0), jnp.zeros(10_000), 0.1).std():.2f}")
    0.10
    """
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(key, len(leaves))
    noisy = [leaf + sigma * jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(structure, noisy)


def _largest(params: Params) -> Float[Array, ""]:
    """Largest absolute value of any entry."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0) for leaf in jax.tree.leaves(params)]))


def _norm(params: Params) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(params)])))
