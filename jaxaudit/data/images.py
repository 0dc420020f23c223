"""Labelled images: CIFAR-100, scikit-learn's digits, or your own, cut and shrunk to the size that you can afford."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

from jaxaudit.border import as_integers, check_axes, check_names, read_npz
from jaxaudit.checks import check_choice, check_integer
from jaxaudit.data import cifar100
from jaxaudit.data.cifar100 import LabelName, Part, Source
from jaxaudit.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Array, Key

CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
"""Channel means of CIFAR-10, with which the paper's code normalises CIFAR-100 too."""
CIFAR10_STD = (0.2023, 0.1994, 0.2010)
"""The standard deviations that go with `CIFAR10_MEAN`."""

_NUM_DIGITS_TEST = 360
# The last bits of a sum of floats differ between machines; the data must not.
_DECIMALS = 6


class ImageSet(NamedTuple):
    """Training and test images with labels; `normalise` applies ``mean`` and ``std``.

    Other statistics, such as `CIFAR10_MEAN`, are set with ``images._replace(mean=..., std=...)``.
    """

    name: str
    train_images: Num[np.ndarray, "train height width channels"]
    """uint8 in 0..255, or floats, usually in [0, 1]."""
    train_labels: Int[np.ndarray, " train"]
    """In ``0 .. len(class_names) - 1``."""
    test_images: Num[np.ndarray, "test height width channels"]
    test_labels: Int[np.ndarray, " test"]
    class_names: tuple[str, ...]
    description: str
    """One or two sentences for the report."""
    mean: Float[np.ndarray, " channels"]
    """Per channel, of the training images; uint8 counts as value / 255."""
    std: Float[np.ndarray, " channels"]


def load_images(source: str | Path, *, labels: LabelName = "fine") -> ImageSet:
    """Images by name or from a path; nothing is ever downloaded.

    Parameters
    ----------
    source
        ``digits``: scikit-learn's 1,797 images of 8 x 8 pixels, a fixed fifth of every class for testing.
        ``cifar100``: what `jaxaudit.data.cifar100.find` finds: a folder named by the environment variable
        JAXAUDIT_DATA, then the folders where tensorflow-datasets keeps prepared data. Or a path that
        `jaxaudit.data.cifar100.locate` knows: an official archive (packed or unpacked), a prepared folder of
        tensorflow-datasets, or an ``.npz`` file with ``train_images`` (n, height, width, channels; uint8 or
        float), ``train_labels``, ``test_images``, ``test_labels`` and optionally ``train_coarse_labels``,
        ``test_coarse_labels``, ``label_names``, ``coarse_label_names``.
    labels
        ``fine`` (CIFAR-100: 100 classes) or ``coarse`` (20).

    Returns
    -------
    ImageSet
        Images in the order of the source. Classes without an image are left out, the others re-numbered.
        Mean and standard deviation are those of the training images, to 6 decimals.

    Raises
    ------
    InputError
        Nothing found (the message says what to do), an unknown name, no coarse labels, unreadable or damaged
        files, wrong shapes or labels.

    Examples
    --------
    >>> images = load_images("digits")
    >>> images.train_images.shape, len(images.test_labels), images.class_names[:3]
    ((1437, 8, 8, 1), 360, ('0', '1', '2'))
    """
    check_choice("labels", labels, ("fine", "coarse"))
    if source == "digits":
        name, read = "digits", _digits()
    else:
        path = cifar100.find() if source == "cifar100" else cifar100.locate(source)
        name = "cifar100" if source == "cifar100" else path.name.removesuffix(".npz")
        read = _arrays(path) if path.suffix == ".npz" else cifar100.read(path)
    if labels not in read.class_names:
        raise InputError(f"labels must be 'fine': {name} has no coarse labels")
    return _image_set(name, read, labels)


def subset(
    images: ImageSet,
    *,
    num_classes: int | None = None,
    num_train: int | None = None,
    num_test: int | None = None,
    seed: int = 0,
) -> ImageSet:
    """Some of the classes and some of their images, every class in proportion to its size.

    Images keep their order, classes are re-numbered in their order, mean and standard deviation stay. A
    smaller ``num_test`` takes nothing away from training, and the classes drawn do not depend on the sizes.

    Parameters
    ----------
    num_classes
        Classes to draw, at least 2; default all.
    num_train, num_test
        Training and test images to draw, at least one per class; default all of the classes drawn. The paper
        leaves a tenth of CIFAR-100 out for validation: ``num_train=45_000``.
    seed
        Seed of the draws, at least 0.

    Raises
    ------
    InputError
        More classes or images than there are, or fewer images than classes.

    Examples
    --------
    >>> small = subset(load_images("digits"), num_classes=4, num_train=40, num_test=20)
    >>> small.class_names, np.bincount(small.train_labels).tolist()
    (('4', '7', '8', '9'), [10, 10, 10, 10])
    """
    seed = check_integer("seed", seed, 0)
    # One generator per draw: a draw that is left out must not change the others.
    classes_rng, train_rng, test_rng = np.random.default_rng(seed).spawn(3)
    drawn = _draw_classes(classes_rng, images, num_classes)
    train = _draw_images(train_rng, "num_train", images.train_labels, drawn, num_train)
    test = _draw_images(test_rng, "num_test", images.test_labels, drawn, num_test)
    return images._replace(
        train_images=images.train_images[train],
        train_labels=np.searchsorted(drawn, images.train_labels[train]),
        test_images=images.test_images[test],
        test_labels=np.searchsorted(drawn, images.test_labels[test]),
        class_names=tuple(images.class_names[c] for c in drawn),
        description=(
            f"{images.description} Subset of {len(drawn)} of {len(images.class_names)} classes, {len(train)} "
            f"training and {len(test)} test images; subset seed {seed}."
        ),
    )


def shrink(images: ImageSet, size: int) -> ImageSet:
    """Every block of pixels averaged, to images of ``size x size``, as floats (uint8 becomes [0, 1]).

    Mean and standard deviation are those of the shrunk training images: averages vary less.

    Raises
    ------
    InputError
        If height or width is not a multiple of ``size``.

    Examples
    --------
    >>> small = shrink(load_images("digits"), 4)
    >>> small.train_images.shape, small.train_images.dtype.name
    ((1437, 4, 4, 1), 'float32')
    """
    size = check_integer("size", size, 1)
    height, width = images.train_images.shape[1:3]
    if height % size or width % size:
        raise InputError(f"size must divide the images' {height} x {width} pixels, got {size}")
    train, test = (_block_means(part, size) for part in (images.train_images, images.test_images))
    mean, std = _statistics(train)
    description = f"{images.description} Shrunk to {size} x {size} pixels by block averages."
    return images._replace(train_images=train, test_images=test, description=description, mean=mean, std=std)


def frozen_augmentation(key: "Key[Array, '']", images: ImageSet, *, padding: int = 4) -> ImageSet:
    """Every training image cropped at random and flipped with probability 1/2, **once**.

    That is what the paper's code trains on: it augments when it writes its batches, so that all epochs and
    all runs see the same crops. Not applied by default. Pixels outside the image are 0.

    Parameters
    ----------
    key
        Typed JAX key.
    padding
        Crops move by up to this many pixels in each direction, at least 0.

    Examples
    --------
    >>> import jax
    >>> images = load_images("digits")
    >>> augmented = frozen_augmentation(jax.random.key(0), images, padding=1)
    >>> augmented.train_images.shape == images.train_images.shape
    True
    >>> augmented.test_images is images.test_images
    True
    """
    import jax  # the data itself does not need JAX

    padding = check_integer("padding", padding, 0)
    num_train, height, width = images.train_images.shape[:3]
    crop_key, flip_key = jax.random.split(key)
    corners = np.asarray(jax.random.randint(crop_key, (num_train, 2), 0, 2 * padding + 1))
    flips = np.asarray(jax.random.bernoulli(flip_key, shape=(num_train,)))
    border = (padding, padding)
    padded = np.pad(images.train_images, ((0, 0), border, border, (0, 0)))
    rows = corners[:, :1] + np.arange(height)
    columns = corners[:, 1:] + np.arange(width)
    columns = np.where(flips[:, None], columns[:, ::-1], columns)
    augmented = padded[np.arange(num_train)[:, None, None], rows[:, :, None], columns[:, None, :]]
    description = f"{images.description} Training images cropped (padding {padding}) and flipped once."
    return images._replace(train_images=augmented, description=description)


def normalise(
    images: ImageSet, part: Literal["train", "test"]
) -> Float[np.ndarray, "n height width channels"]:
    """The training or test images as float32, ``(value - mean) / std`` per channel (uint8 is divided by 255).

    Raises
    ------
    InputError
        Another part, or a mean or standard deviation that is not one number per channel, not finite, or (the
        latter) not positive.

    Examples
    --------
    >>> x = normalise(load_images("digits"), "train")
    >>> x.dtype.name, abs(float(x.mean())) < 1e-3, abs(float(x.std()) - 1) < 1e-3
    ('float32', True, True)
    """
    check_choice("part", part, ("train", "test"))
    pixels = images.train_images if part == "train" else images.test_images
    mean, std = np.asarray(images.mean, np.float32), np.asarray(images.std, np.float32)
    for label, values in (("mean", mean), ("std", std)):
        check_axes(label, values, {"channels": pixels.shape[-1]})
        if not np.isfinite(values).all() or (label == "std" and (values <= 0).any()):
            raise InputError(
                f"{label} must be finite{' and positive' if label == 'std' else ''}, got {values.tolist()}"
            )
    scaled = pixels.astype(np.float32)
    if pixels.dtype == np.uint8:
        scaled /= np.float32(255)
    scaled -= mean
    scaled /= std
    return scaled


def _digits() -> Source:
    """scikit-learn's digits, a fixed fifth of every class for testing."""
    from sklearn import datasets  # slow to import, and needed here only

    pixels, labels = datasets.load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    test = _draw_images(np.random.default_rng(0), "num_test", labels, np.arange(10), _NUM_DIGITS_TEST)
    train = np.setdiff1d(np.arange(len(labels)), test)
    return Source(
        train=Part(images[train], {"fine": labels[train]}),
        test=Part(images[test], {"fine": labels[test]}),
        class_names={"fine": tuple("0123456789")},
        description="scikit-learn's 1,797 handwritten digits, pixels divided by 16.",
    )


def _arrays(path: Path) -> Source:
    """The images of an npz file."""
    arrays = read_npz(path)
    required = ("train_images", "train_labels", "test_images", "test_labels")
    coarse = ("train_coarse_labels", "test_coarse_labels")
    check_names(f"{path}: arrays", arrays, required, (*coarse, "label_names", "coarse_label_names"))
    keys: dict[LabelName, str] = {"fine": "labels"}
    if all(name in arrays for name in coarse):
        keys["coarse"] = "coarse_labels"
    parts = [
        Part(
            _checked_images(f"{part}_images", arrays[f"{part}_images"]),
            {level: as_integers(f"{part}_{key}", arrays[f"{part}_{key}"]) for level, key in keys.items()},
        )
        for part in ("train", "test")
    ]
    names = {
        level: _class_names(
            key.replace("labels", "label_names"), arrays, [part.labels[level] for part in parts]
        )
        for level, key in keys.items()
    }
    return Source(parts[0], parts[1], names, f"Images of {path.name}.")


def _checked_images(name: str, images: np.ndarray) -> np.ndarray:
    check_axes(name, images, dict.fromkeys(("images", "height", "width", "channels")))
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise InputError(f"{name} must be uint8 (0..255) or floats, got dtype {images.dtype}")
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise InputError(f"{name} must be finite, got {images[~np.isfinite(images)][0]}")
    return images


def _class_names(key: str, arrays: dict[str, np.ndarray], labels: list[np.ndarray]) -> tuple[str, ...]:
    """The names in the file, or else the numbers."""
    if key not in arrays:
        largest = max((int(each.max()) for each in labels if each.size), default=0)
        return tuple(map(str, range(largest + 1)))
    check_axes(key, arrays[key], {"classes": None})
    if arrays[key].dtype.kind not in "US":
        raise InputError(f"{key} must be strings, got dtype {arrays[key].dtype}")
    return tuple(arrays[key].astype(np.str_).tolist())


def _image_set(name: str, source: Source, level: LabelName) -> ImageSet:
    """Checked and re-numbered."""
    names = source.class_names[level]
    labels = {}
    for part_name, part in (("train", source.train), ("test", source.test)):
        labels[part_name] = each = np.asarray(part.labels[level], np.int64)
        check_axes(f"{part_name}_labels", each, {"images": len(part.images)})
        if not len(each):
            raise InputError(f"{part_name}_images must hold at least one image, got none")
        if each.min() < 0 or each.max() >= len(names):
            wrong = each[(each < 0) | (each >= len(names))][0]
            raise InputError(f"{part_name}_labels must be in 0 .. {len(names) - 1}, got {wrong}")
    if source.train.images.shape[1:] != source.test.images.shape[1:]:
        raise InputError(
            "train_images and test_images must have images of one shape, got "
            f"{source.train.images.shape[1:]} and {source.test.images.shape[1:]}"
        )
    present = np.union1d(labels["train"], labels["test"])
    mean, std = _statistics(source.train.images)
    return ImageSet(
        name=name,
        train_images=source.train.images,
        train_labels=np.searchsorted(present, labels["train"]),
        test_images=source.test.images,
        test_labels=np.searchsorted(present, labels["test"]),
        class_names=tuple(names[c] for c in present),
        description=source.description,
        mean=mean,
        std=std,
    )


def _statistics(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation per channel, to 6 decimals; a constant channel gets 1."""
    pixels = images.reshape(-1, images.shape[-1])
    if images.dtype == np.uint8:
        # Sums of whole numbers are exact, and the pixels are never held as floats.
        mean = pixels.mean(axis=0, dtype=np.float64)
        squares = np.einsum("nc,nc->c", pixels, pixels, dtype=np.float64) / len(pixels)
        mean, std = mean / 255, np.sqrt(np.maximum(squares - mean**2, 0.0)) / 255
    else:
        mean, std = pixels.mean(axis=0, dtype=np.float64), pixels.std(axis=0, dtype=np.float64)
    std = np.round(std, _DECIMALS)
    return np.round(mean, _DECIMALS), np.where(std > 0, std, 1.0)


def _block_means(images: np.ndarray, size: int) -> np.ndarray:
    n, height, width, channels = images.shape
    blocks = images.reshape(n, size, height // size, size, width // size, channels)
    means = blocks.mean(axis=(2, 4), dtype=np.float64)
    return (means / 255 if images.dtype == np.uint8 else means).astype(np.float32)


def _draw_classes(
    rng: np.random.Generator, images: ImageSet, num_classes: int | None
) -> Int[np.ndarray, " drawn"]:
    """Classes in ascending order."""
    available = len(images.class_names)
    if num_classes is None:
        return np.arange(available)
    return np.sort(rng.permutation(available)[: check_integer("num_classes", num_classes, 2, available)])


def _draw_images(
    rng: np.random.Generator,
    argument: str,
    labels: Int[np.ndarray, " n"],
    classes: Int[np.ndarray, " drawn"],
    number: int | None,
) -> Int[np.ndarray, " chosen"]:
    """Positions of ``number`` images of the classes, in ascending order, each class in proportion to its size."""
    members = [np.flatnonzero(labels == c) for c in classes]
    sizes = np.array([len(each) for each in members])
    if number is None:
        return np.sort(np.concatenate(members))
    number = check_integer(argument, number, len(classes), int(sizes.sum()))
    shares = number * sizes / sizes.sum()
    quota = np.floor(shares).astype(int)
    # Largest remainders; equal ones in a random order, so that no class is favoured by its number.
    order = rng.permutation(len(classes))
    order = order[np.argsort(-(shares - quota)[order], kind="stable")]
    quota[order[: number - quota.sum()]] += 1
    return np.sort(np.concatenate([rng.permutation(each)[:k] for each, k in zip(members, quota)]))
