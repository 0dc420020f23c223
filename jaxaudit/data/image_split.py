"""Image sets, split for an audit: forget candidates like the rest (uniform), or of other classes (adversarial)."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Int

from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data.base import AuditData, Examples, make_groups
from jaxaudit.data.images import ImageSet, normalise
from jaxaudit.errors import InputError

Split = Literal["uniform", "adversarial"]


def image_audit_data(
    images: ImageSet, *, split: Split, num_candidates: int, group_size: int, seed: int
) -> AuditData:
    """Candidate forget groups, retained and held-out images, as in Appendix D.1 of the paper.

    All draws come from one ``numpy.random.default_rng(seed)``: the candidates (the paper's forget set D_f),
    their order, and the order of the retained images. Group j is the j-th stretch of ``group_size``
    candidates, so that one seed has the same candidates, in the same order, at every group size.

    Parameters
    ----------
    images
        Training images become candidates or retained; the test images are held out.
    split
        ``uniform`` draws the candidates at random. ``adversarial`` draws whole classes, in a random order,
        until there are enough candidates; where the last one is not needed whole, a random part of it is
        taken, so that candidates and retained images share at most one class.
    num_candidates
        Candidate images in all, a multiple of ``group_size``, at least two groups (the paper: 4,500).
    group_size
        Images per group (the paper's B: 1, 10, 100, 500, 750); there are m = num_candidates / B groups.
    seed
        Seed of the split, at least 0.

    Returns
    -------
    AuditData
        ``x`` float32, normalised with the set's mean and standard deviation, (..., height, width, channels).
        A record's id is its index in ``images.train_images``.

    Raises
    ------
    InputError
        Sizes that do not fit, or an unknown split.

    Examples
    --------
    >>> from jaxaudit.data.images import load_images
    >>> digits = load_images("digits")
    >>> data = image_audit_data(digits, split="adversarial", num_candidates=300, group_size=50, seed=0)
    >>> data.num_groups, data.group_size, data.num_retain, data.retain.x.shape[1:]
    (6, 50, 1137, (8, 8, 1))
    >>> len(set(data.groups.y.flat) & set(data.retain.y)) <= 1
    True
    """
    check_choice("split", split, get_args(Split))
    labels = images.train_labels
    num_groups = _num_groups(num_candidates, group_size, len(labels))
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    chosen = rng.permutation(_candidates(rng, labels, split, num_candidates))
    retain = rng.permutation(np.setdiff1d(np.arange(len(labels)), chosen))
    groups = chosen.reshape(num_groups, group_size).tolist()
    x = normalise(images, "train")
    weights = np.ones(len(retain), np.float32)
    return AuditData(
        name=images.name,
        retain=Examples(x[retain], labels[retain], weights),
        groups=make_groups(x, labels, groups),
        holdout=Examples(
            normalise(images, "test"), images.test_labels, np.ones(len(images.test_labels), np.float32)
        ),
        group_ids=tuple(tuple(map(str, group)) for group in groups),
        num_classes=len(images.class_names),
        description=(
            f"{images.description} {num_groups} candidate groups of {group_size}, {split} split"
            f"{_classes_in_words(images, chosen, retain) if split == 'adversarial' else ''}; {len(retain)} "
            f"images retained, the {len(images.test_labels)} test images held out; split seed {seed}."
        ),
    )


def _num_groups(num_candidates: int, group_size: int, num_images: int) -> int:
    check_integer("group_size", group_size, 1)
    check_integer("num_candidates", num_candidates, 2)
    if num_candidates % group_size or num_candidates < 2 * group_size:
        raise InputError(
            f"num_candidates must be a multiple of group_size and at least twice it, got {num_candidates} "
            f"and {group_size}"
        )
    if num_candidates >= num_images:
        raise InputError(
            f"num_candidates must leave some of the {num_images} training images to retain, got {num_candidates}"
        )
    return num_candidates // group_size


def _candidates(
    rng: np.random.Generator, labels: Int[np.ndarray, " n"], split: Split, number: int
) -> Int[np.ndarray, " candidates"]:
    if split == "uniform":
        return rng.permutation(len(labels))[:number]
    # Classes in a random order, the images of each in a random order: the head is the candidates.
    rank = rng.permutation(int(labels.max()) + 1)
    shuffled = rng.permutation(len(labels))
    return shuffled[np.argsort(rank[labels[shuffled]], kind="stable")][:number]


def _classes_in_words(
    images: ImageSet, chosen: Int[np.ndarray, " candidates"], retain: Int[np.ndarray, " retain"]
) -> str:
    forget, kept = (set(images.train_labels[part].tolist()) for part in (chosen, retain))
    names = ", ".join(images.class_names[c] for c in sorted(forget))
    shared = ", ".join(images.class_names[c] for c in sorted(forget & kept))
    return f" (candidates of {names}; {f'{shared} is retained too' if shared else 'no class is shared'})"
