"""The 1,797 handwritten digits that come with scikit-learn: real data without a download."""

from collections.abc import Sequence

import numpy as np

from jaxaudit.data.base import AuditData
from jaxaudit.data.split import Records, split_records


def load_digits(
    *,
    seed: int,
    forget_ids: Sequence[Sequence[str]] | None = None,
    num_groups: int | None = None,
    group_size: int = 1,
    num_holdout: int | None = None,
) -> AuditData:
    """scikit-learn's digits, 8 x 8 pixels in [0, 1], flattened to 64 features, 10 classes.

    The split is uniform at random, see `split_records`; a record's id is its index in
    `sklearn.datasets.load_digits`.

    Parameters
    ----------
    seed
        Seed of the split.
    forget_ids
        Record ids of each candidate group; excludes ``num_groups`` and ``group_size``.
    num_groups, group_size
        Candidate groups (the paper's m; default a third of the images, at most 500 groups) and images per
        group. At the defaults 997 images are retained.
    num_holdout
        Images that no run trains on, default 300.

    Raises
    ------
    InputError
        Sizes that leave no image to retain, or unknown record ids.

    Examples
    --------
    >>> data = load_digits(seed=0)
    >>> data.num_groups, data.group_size, data.num_retain, data.retain.x.shape
    (500, 1, 997, (997, 64))
    """
    from sklearn import datasets  # slow to import, and needed here only

    pixels, labels = datasets.load_digits(return_X_y=True)
    ids = tuple(map(str, range(len(labels))))
    return split_records(
        Records((pixels / 16).astype(np.float32), labels, ids, num_classes=10),
        name="digits",
        description="scikit-learn's 1,797 handwritten digits, pixels divided by 16.",
        seed=seed,
        forget_ids=forget_ids,
        num_groups=num_groups,
        group_size=group_size,
        num_holdout=300 if num_holdout is None else num_holdout,
    )
