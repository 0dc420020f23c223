"""Data of an audit: a name or a path in, `AuditData` (retain, candidate groups, holdout) out."""

from pathlib import Path

from jaxaudit.data.base import AuditData, Examples, make_groups
from jaxaudit.data.digits import load_digits
from jaxaudit.data.files import load_file
from jaxaudit.data.image_split import image_audit_data
from jaxaudit.data.images import ImageSet, frozen_augmentation, load_images, shrink, subset
from jaxaudit.data.requests import parse_forget_ids
from jaxaudit.errors import InputError

__all__ = [
    "AuditData",
    "Examples",
    "ImageSet",
    "frozen_augmentation",
    "image_audit_data",
    "load",
    "load_digits",
    "load_file",
    "load_images",
    "make_groups",
    "parse_forget_ids",
    "shrink",
    "subset",
]


def load(
    name_or_path: str | Path,
    *,
    seed: int,
    forget_ids: str | None = None,
    num_groups: int | None = None,
    group_size: int = 1,
    num_holdout: int | None = None,
) -> AuditData:
    """Data by name (``digits``) or from a ``.npz`` or ``.csv`` file.

    ``forget_ids`` is text as in `parse_forget_ids`: ``12,40-45`` or ``@file``. See `load_digits` and
    `load_file` for the rest.

    Raises
    ------
    InputError
        Neither a known name nor a file; or anything that the loaders refuse.

    Examples
    --------
    >>> load("digits", seed=0, forget_ids="12,40-42").group_ids
    (('12',), ('40',), ('41',), ('42',))
    """
    groups = None if forget_ids is None else parse_forget_ids(forget_ids)
    if name_or_path == "digits":
        return load_digits(
            seed=seed,
            forget_ids=groups,
            num_groups=num_groups,
            group_size=group_size,
            num_holdout=num_holdout,
        )
    if not Path(name_or_path).suffix:
        raise InputError(f"data must be 'digits' or a .npz or .csv file, got {str(name_or_path)!r}")
    return load_file(
        name_or_path,
        forget_ids=groups,
        num_groups=num_groups,
        group_size=group_size,
        num_holdout=num_holdout,
        seed=seed,
    )
