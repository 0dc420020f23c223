"""Parameters in and out of Orbax checkpoints: an audit can start from a saved x0."""

from pathlib import Path

import jax

from jaxaudit.errors import InputError
from jaxaudit.train import Params

_METADATA = "_METADATA"


def save_params(path: str | Path, params: Params) -> None:
    """Write parameters as an Orbax checkpoint.

    Parameters
    ----------
    path
        A new folder.
    params
        Any pytree of arrays.

    Raises
    ------
    InputError
        If something is already there.

    Examples
    --------
    >>> import tempfile
    >>> import jax.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_params(Path(folder) / "x0", {"bias": jnp.array([1.0, 2.0])})
    ...     load_params(Path(folder) / "x0", like={"bias": jnp.zeros(2)})["bias"].tolist()
    [1.0, 2.0]
    """
    import orbax.checkpoint as ocp  # slow to import, and rarely needed

    path = Path(path).resolve()
    if path.exists():
        raise InputError(f"{path} already exists; choose another name for the checkpoint")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, params)


def load_params(path: str | Path, like: Params) -> Params:
    """Read parameters from an Orbax checkpoint.

    Parameters
    ----------
    path
        The checkpoint's folder, the one that holds ``_METADATA``; written by `save_params`, or by
        Orbax's own ``StandardCheckpointer`` or ``PyTreeCheckpointer``.
    like
        Arrays or shapes of the same structure; the result has their structure and types.

    Raises
    ------
    InputError
        No checkpoint there, or a damaged one; a parameter (named) is missing, unknown, not finite, or of
        another shape.

    Examples
    --------
    >>> load_params("/nowhere/x0", like={"bias": jax.numpy.zeros(2)})
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: no Orbax checkpoint at /nowhere/x0: it must be the folder that holds the file _METADATA
    """
    import orbax.checkpoint as ocp

    path, wanted = Path(path).resolve(), jax.eval_shape(lambda: like)
    if not (path / _METADATA).is_file():
        raise InputError(
            f"no Orbax checkpoint at {path}: it must be the folder that holds the file {_METADATA}"
        )
    with ocp.StandardCheckpointer() as checkpointer:
        try:
            _check_shapes(path, _leaves(checkpointer.metadata(path).item_metadata.tree), _leaves(wanted))
            params = checkpointer.restore(path, wanted)
        except InputError:
            raise
        except Exception as error:  # Orbax and its storage layer raise many types for a damaged folder
            raise InputError(f"checkpoint {path} cannot be read: {error}") from error
    for name, leaf in _leaves(params).items():
        if not jax.numpy.isfinite(leaf).all():
            raise InputError(f"checkpoint {path}: parameter {name!r} has a value that is not finite")
    return params


def _leaves(tree: Params) -> dict[str, jax.Array]:
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(keys, simple=True, separator="/"): leaf for keys, leaf in pairs}


def _check_shapes(path: Path, found: dict[str, jax.Array], wanted: dict[str, jax.Array]) -> None:
    for name in wanted:
        if name not in found:
            raise InputError(
                f"checkpoint {path} lacks the parameter {name!r} of the model; "
                f"it has {', '.join(found) or 'none'}"
            )
        if tuple(found[name].shape) != tuple(wanted[name].shape):
            raise InputError(
                f"checkpoint {path}: parameter {name!r} has shape {tuple(found[name].shape)}, "
                f"the model needs {tuple(wanted[name].shape)}"
            )
    unknown = [name for name in found if name not in wanted]
    if unknown:
        raise InputError(f"checkpoint {path} has a parameter {unknown[0]!r} that the model does not have")
