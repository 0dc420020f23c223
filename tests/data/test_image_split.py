"""Splits of images: partitions, uniform or by class, the same in every process."""

import os
import subprocess
import sys

import numpy as np
import pytest

from jaxaudit.data import ImageSet, image_audit_data, load_images, shrink, subset
from jaxaudit.data.images import normalise
from jaxaudit.errors import InputError


def numbered(class_sizes, num_test=4):
    """Images of one pixel, which is the image's own number."""
    labels = np.random.default_rng(7).permutation(np.repeat(np.arange(len(class_sizes)), class_sizes))
    pixels = np.arange(len(labels), dtype=np.float32).reshape(-1, 1, 1, 1)
    test = np.arange(num_test) % len(class_sizes)
    names = tuple(f"class{c}" for c in range(len(class_sizes)))
    return ImageSet(
        "toy", pixels, labels, -1 - pixels[:num_test], test, names, "Toy.", np.zeros(1), np.ones(1)
    )


def split(images, kind="uniform", num_candidates=12, group_size=3, seed=0):
    return image_audit_data(
        images, split=kind, num_candidates=num_candidates, group_size=group_size, seed=seed
    )


def numbers(examples):
    return examples.x.ravel().astype(int).tolist()


@pytest.mark.parametrize("kind", ["uniform", "adversarial"])
@pytest.mark.parametrize("group_size", [1, 3, 6])
def test_a_partition_with_the_right_labels_and_ids(kind, group_size):
    images = numbered([10, 5, 9, 6])
    data = split(images, kind, group_size=group_size)
    assert sorted(numbers(data.groups) + numbers(data.retain)) == list(range(30))
    assert data.groups.y.shape == (12 // group_size, group_size)
    assert data.holdout.x.ravel().tolist() == [-1, -2, -3, -4]
    assert data.holdout.y.tolist() == images.test_labels.tolist()
    for part in (data.groups, data.retain):
        assert part.y.ravel().tolist() == images.train_labels[numbers(part)].tolist()
        assert part.weights.all()
    assert [int(i) for group in data.group_ids for i in group] == numbers(data.groups)
    assert (data.num_classes, data.name) == (4, "toy")


@pytest.mark.parametrize("seed", range(8))
def test_adversarial_shares_at_most_one_class(seed):
    images = numbered([10, 5, 9, 6])
    data = split(images, "adversarial", seed=seed)
    sizes = np.bincount(data.groups.y.ravel(), minlength=4)
    forget, retain = set(data.groups.y.flat), set(data.retain.y)
    # Whole classes, but for at most one.
    cut = [c for c in range(4) if 0 < sizes[c] < (10, 5, 9, 6)[c]]
    assert cut == sorted(forget & retain)
    assert len(cut) <= 1
    shared = f"class{cut[0]} is retained too" if cut else "no class is shared"
    assert (
        f"{shared}); 18 images retained, the 4 test images held out; split seed {seed}." in data.description
    )
    assert ", ".join(f"class{c}" for c in sorted(forget)) in data.description


def test_adversarial_needs_no_shared_class_where_classes_add_up():
    for seed in range(5):
        data = split(numbered([6] * 5), "adversarial", seed=seed)
        assert not set(data.groups.y.flat) & set(data.retain.y)
        assert "no class is shared" in data.description


def test_every_class_and_image_is_equally_often_a_candidate():
    images, trials = numbered([6] * 5), 800
    uniform, classes, within = np.zeros(30), np.zeros(5), np.zeros(30)
    for seed in range(trials):
        uniform[numbers(split(images, seed=seed).groups)] += 1
        adversarial = split(images, "adversarial", num_candidates=15, seed=seed)
        classes[list(set(adversarial.groups.y.flat))] += 1
        within[numbers(adversarial.groups)] += 1
    # Five standard deviations of a binomial count.
    assert (abs(uniform - 0.4 * trials) < 5 * np.sqrt(trials * 0.24)).all()
    assert (abs(classes - 0.6 * trials) < 5 * np.sqrt(trials * 0.24)).all()
    assert (abs(within - 0.5 * trials) < 5 * np.sqrt(trials / 4)).all()


@pytest.mark.parametrize("kind", ["uniform", "adversarial"])
def test_groups_and_retained_images_are_shuffled(kind):
    data = split(numbered([40, 40, 40]), kind, num_candidates=60)
    assert numbers(data.groups) != sorted(numbers(data.groups))
    assert numbers(data.retain) != sorted(numbers(data.retain))
    if kind == "adversarial":  # one and a half classes: groups mix them
        assert any(len(set(group)) > 1 for group in data.groups.y.tolist())


@pytest.mark.parametrize("kind", ["uniform", "adversarial"])
def test_one_seed_has_the_same_candidates_at_every_group_size(kind):
    images = numbered([1000] * 9)
    datas = [split(images, kind, num_candidates=4500, group_size=size) for size in (1, 10, 100, 500, 750)]
    assert [data.num_groups for data in datas] == [4500, 450, 45, 9, 6]
    for data in datas[1:]:
        assert numbers(data.groups) == numbers(datas[0].groups)
        assert numbers(data.retain) == numbers(datas[0].retain)


def test_images_are_normalised():
    digits = load_images("digits")
    data = split(digits, num_candidates=100, group_size=10)
    assert data.retain.x.shape == (1337, 8, 8, 1)
    assert data.retain.x.dtype == np.float32
    positions = [[int(i) for i in group] for group in data.group_ids]
    np.testing.assert_array_equal(data.groups.x, normalise(digits, "train")[np.array(positions)])
    np.testing.assert_array_equal(data.holdout.x, normalise(digits, "test"))


FINGERPRINTS = """
from jaxaudit.data import image_audit_data, load_images, shrink, subset
images = shrink(subset(load_images("digits"), num_classes=6, num_train=300, seed=2), 4)
for kind in ("uniform", "adversarial"):
    print(image_audit_data(images, split=kind, num_candidates=100, group_size=10, seed=5).fingerprint)
"""


def test_the_same_in_every_process():
    images = shrink(subset(load_images("digits"), num_classes=6, num_train=300, seed=2), 4)
    here = [split(images, kind, 100, 10, seed=5).fingerprint for kind in ("uniform", "adversarial")]
    there = subprocess.run(
        [sys.executable, "-c", FINGERPRINTS],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert there.split() == here


@pytest.mark.parametrize("kind", ["uniform", "adversarial"])
def test_the_seed_decides(kind):
    images = numbered([10, 5, 9, 6])
    assert split(images, kind).fingerprint == split(images, kind).fingerprint
    assert split(images, kind).fingerprint != split(images, kind, seed=1).fingerprint


def test_the_kinds_differ():
    images = numbered([10, 5, 9, 6])
    assert split(images, "uniform").fingerprint != split(images, "adversarial").fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "random"}, "split must be one of uniform, adversarial, got 'random'"),
        ({"num_candidates": 10}, "multiple of group_size and at least twice it, got 10 and 3"),
        ({"num_candidates": 3}, "multiple of group_size and at least twice it, got 3 and 3"),
        ({"num_candidates": 30}, "must leave some of the 30 training images to retain, got 30"),
        ({"group_size": 0}, "group_size must be an integer of at least 1, got 0"),
        ({"num_candidates": 12.0}, "num_candidates must be an integer of at least 2, got 12.0"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
)
def test_refused(options, message):
    with pytest.raises(InputError, match=message):
        split(numbered([10, 5, 9, 6]), **options)
