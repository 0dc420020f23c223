"""Image sets: read, cut, shrunk, augmented and normalised, each against a slow and obvious way to do it."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from sklearn import datasets

from jaxaudit.data import ImageSet, frozen_augmentation, load_images, shrink, subset
from jaxaudit.data.images import normalise
from jaxaudit.errors import InputError


def numbered(sizes=(5, 7, 12, 6), test=(2, 3, 4, 2), shape=(4, 6, 2)):
    """Images of floats whose first pixel is their own number (test images from 1,000), shuffled."""
    rng = np.random.default_rng(1)
    parts = []
    for offset, counts in ((0, sizes), (1000, test)):
        labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        images = rng.random((len(labels), *shape)).astype(np.float32)
        images[:, 0, 0, 0] = offset + np.arange(len(labels))
        parts += [images, labels]
    names = tuple("abcdefgh"[: len(sizes)])
    return ImageSet("toy", *parts, names, "Toy.", mean=np.zeros(shape[-1]), std=np.ones(shape[-1]))


def numbers(images):
    return images[:, 0, 0, 0].astype(int) % 1000


def test_digits_are_scikit_learns():
    images = load_images("digits")
    pixels, labels = datasets.load_digits(return_X_y=True)
    everything = np.concatenate([images.train_images, images.test_images])
    mine = zip(
        (16 * everything).astype(int).reshape(-1, 64).tolist(), [*images.train_labels, *images.test_labels]
    )
    theirs = zip(pixels.astype(int).tolist(), labels)
    assert sorted(mine) == sorted(theirs)
    assert everything.dtype == np.float32
    assert images.class_names == tuple("0123456789")
    counts = np.bincount(labels)
    assert abs(np.bincount(images.test_labels) - counts / 5).max() < 1
    with pytest.raises(InputError, match="labels must be 'fine': digits has no coarse labels"):
        load_images("digits", labels="coarse")
    with pytest.raises(InputError, match="labels must be one of fine, coarse, got 'finest'"):
        load_images("digits", labels="finest")


def test_statistics_normalise():
    for images in (load_images("digits"), shrink(load_images("digits"), 4)):
        x = normalise(images, "train").astype(np.float64)
        assert abs(x.mean()) < 1e-5
        assert x.std() == pytest.approx(1, abs=1e-5)


def test_normalise_bytes_and_floats():
    images = numbered()
    mean, std = np.array([0.25, 0.5]), np.array([0.5, 2.0])
    x = normalise(images._replace(mean=mean, std=std), "test")
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, (images.test_images.astype(float) - mean) / std, rtol=2e-6, atol=1e-6)
    as_bytes = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 2), np.uint8)
    x = normalise(images._replace(train_images=as_bytes, mean=mean, std=std), "train")
    np.testing.assert_allclose(x, (as_bytes / 255 - mean) / std, rtol=2e-6, atol=1e-6)
    with pytest.raises(InputError, match=r"std must be finite and positive, got \[1.0, 0.0\]"):
        normalise(images._replace(std=np.array([1.0, 0.0])), "train")
    with pytest.raises(InputError, match=r"axis 0 \(channels\) of mean must have length 2, got 3"):
        normalise(images._replace(mean=np.zeros(3)), "train")


@pytest.mark.parametrize("seed", range(3))
def test_subset_is_stratified_and_keeps_labels_with_images(seed):
    images = numbered()
    small = subset(images, num_classes=3, num_train=12, num_test=5, seed=seed)
    old = [images.class_names.index(name) for name in small.class_names]
    assert old == sorted(old)
    assert len(old) == 3
    for part, number in (("train", 12), ("test", 5)):
        taken = numbers(getattr(small, f"{part}_images"))
        assert sorted(set(taken)) == taken.tolist()
        labels = getattr(images, f"{part}_labels")
        assert [old[y] for y in getattr(small, f"{part}_labels")] == labels[taken].tolist()
        np.testing.assert_array_equal(
            getattr(small, f"{part}_images"), getattr(images, f"{part}_images")[taken]
        )
        sizes = np.bincount(labels)[old]
        counts = np.bincount(getattr(small, f"{part}_labels"), minlength=3)
        assert counts.sum() == number
        assert abs(counts - number * sizes / sizes.sum()).max() < 1
    assert f"12 training and 5 test images; subset seed {seed}." in small.description
    assert (small.mean, small.std) == (images.mean, images.std)


def test_subset_draws_every_class_and_every_image_equally_often():
    images, trials = numbered(), 800
    classes, taken = np.zeros(4), np.zeros(30)
    for seed in range(trials):
        small = subset(images, num_classes=2, seed=seed)
        classes[[images.class_names.index(name) for name in small.class_names]] += 1
        taken[numbers(subset(images, num_train=15, seed=seed).train_images)] += 1
    # Five standard deviations of a binomial count.
    assert (abs(classes - trials / 2) < 5 * np.sqrt(trials / 4)).all()
    # Half of every class: of 5 and 7 images 2.5 and 3.5, the odd ones given at random.
    assert (abs(taken - trials / 2) < 5 * np.sqrt(trials / 4)).all()


def test_the_draws_of_a_subset_do_not_disturb_each_other():
    images = numbered()
    one = subset(images, num_classes=2, num_train=6, seed=4)
    two = subset(images, num_classes=2, num_train=6, num_test=3, seed=4)
    other = subset(images, num_classes=2, seed=4)
    assert one.class_names == two.class_names == other.class_names
    np.testing.assert_array_equal(one.train_images, two.train_images)
    assert len(other.train_images) == sum(
        images.class_names[y] in other.class_names for y in images.train_labels
    )
    same = subset(images)
    np.testing.assert_array_equal(same.train_images, images.train_images)
    np.testing.assert_array_equal(same.test_labels, images.test_labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 5}, "num_classes must be an integer between 2 and 4, got 5"),
        ({"num_classes": 1}, "num_classes must be an integer between 2 and 4, got 1"),
        ({"num_train": 31}, "num_train must be an integer between 4 and 30, got 31"),
        ({"num_test": 3}, "num_test must be an integer between 4 and 11, got 3"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_subsets_that_do_not_fit(options, message):
    with pytest.raises(InputError, match=message):
        subset(numbered(), **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_shrink_averages_blocks(dtype):
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (5, 6, 4, 3)).astype(dtype)
    images = numbered()._replace(train_images=pixels, test_images=pixels[:2])
    small = shrink(images, 2)
    scale = 255 if dtype == np.uint8 else 1
    assert small.train_images.shape == (5, 2, 2, 3)
    for n, row, column, channel in itertools.product(range(5), range(2), range(2), range(3)):
        block = pixels[n, 3 * row : 3 * row + 3, 2 * column : 2 * column + 2, channel].astype(float)
        assert small.train_images[n, row, column, channel] == pytest.approx(block.mean() / scale, rel=1e-6)
    np.testing.assert_array_equal(small.test_images, small.train_images[:2])
    np.testing.assert_allclose(small.mean, small.train_images.mean(axis=(0, 1, 2)), atol=1e-4)
    np.testing.assert_allclose(small.std, small.train_images.std(axis=(0, 1, 2)), atol=1e-4)
    with pytest.raises(InputError, match="size must divide the images' 6 x 4 pixels, got 4"):
        shrink(images, 4)


def test_augmentation_crops_and_flips_every_image_once():
    images, padding = numbered(sizes=(150, 150), test=(3, 3), shape=(4, 6, 2)), 2
    augmented = frozen_augmentation(jax.random.key(0), images, padding=padding)
    found = np.zeros((5, 5, 2), int)
    for before, after in zip(images.train_images, augmented.train_images):
        padded = np.zeros((8, 10, 2), np.float32)
        padded[2:6, 2:8] = before
        for top, left in itertools.product(range(5), range(5)):
            crop = padded[top : top + 4, left : left + 6]
            found[top, left, 0] += np.array_equal(crop, after)
            found[top, left, 1] += np.array_equal(crop[:, ::-1], after)
    assert found.sum() == 300
    assert stats.chisquare(found.ravel()).pvalue > 1e-4
    assert augmented.test_images is images.test_images
    assert augmented.train_labels is images.train_labels


def test_augmentation_by_key():
    images = numbered()
    first, again, other = (
        frozen_augmentation(jax.random.key(seed), images, padding=1).train_images for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    flipped = frozen_augmentation(jax.random.key(0), images, padding=0).train_images
    for before, after in zip(images.train_images, flipped):
        assert np.array_equal(after, before) or np.array_equal(after, before[:, ::-1])
    with pytest.raises(InputError, match="padding must be an integer of at least 0, got -1"):
        frozen_augmentation(jax.random.key(0), images, padding=-1)


def arrays(**changes):
    rng = np.random.default_rng(0)
    content = {
        "train_images": rng.random((6, 4, 4, 1)),
        "train_labels": np.array([0, 2, 4, 0, 2, 4]),
        "test_images": rng.random((3, 4, 4, 1)),
        "test_labels": np.array([0, 2, 2]),
    }
    return {name: value for name, value in {**content, **changes}.items() if value is not None}


def save(folder, **changes):
    path = folder / "mine.npz"
    np.savez(path, **arrays(**changes))
    return path


def test_npz_without_names_and_with_missing_classes(tmp_path):
    images = load_images(save(tmp_path))
    assert images.name == "mine"
    assert images.class_names == ("0", "2", "4")
    assert images.train_labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert images.test_labels.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(images.train_images, arrays()["train_images"])
    with pytest.raises(InputError, match="labels must be 'fine': mine has no coarse labels"):
        load_images(save(tmp_path), labels="coarse")


def test_constant_channels_do_not_divide_by_zero(tmp_path):
    images = load_images(save(tmp_path, train_images=np.full((6, 4, 4, 1), 0.5)))
    assert images.std.tolist() == [1.0]
    assert not normalise(images, "train").any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_labels": None}, "mine.npz: arrays lack 'test_labels'"),
        (
            {"train_images": np.zeros((6, 16))},
            "train_images must have axes .images, height, width, channels.",
        ),
        ({"train_images": np.zeros((6, 4, 4, 1), int)}, r"train_images must be uint8 \(0..255\) or floats"),
        ({"train_images": np.full((6, 4, 4, 1), np.nan)}, "train_images must be finite, got nan"),
        ({"train_images": np.zeros((6, 4, 5, 1))}, "images of one shape, got .4, 5, 1. and .4, 4, 1."),
        ({"train_images": np.zeros((0, 4, 4, 1)), "train_labels": np.zeros(0, int)}, "at least one image"),
        ({"train_labels": np.array([0, 1])}, r"axis 0 \(images\) of train_labels must have length 6, got 2"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, -1])}, "train_labels must be in 0 .. 2, got -1"),
        ({"train_labels": np.linspace(0, 1, 6)}, "train_labels must be integers, got 0.2"),
        ({"label_names": np.array(["cat", "dog"])}, "train_labels must be in 0 .. 1, got 2"),
        ({"label_names": np.arange(5)}, "label_names must be strings, got dtype int64"),
    ],
)
def test_npz_files_that_are_wrong(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_images(save(tmp_path, **changes))


def test_statistics_of_bytes(tmp_path):
    pixels = np.random.default_rng(3).integers(0, 200, (6, 4, 4, 1), np.uint8)
    images = load_images(save(tmp_path, train_images=pixels, test_images=pixels[:3]))
    assert images.mean[0] == pytest.approx(np.mean(pixels / 255), abs=1e-6)
    assert images.std[0] == pytest.approx(np.std(pixels / 255), abs=1e-6)
