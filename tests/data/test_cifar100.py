"""CIFAR-100 from every form it comes in: the same images from all of them, and nothing but images from any."""

import io
import json
import os
import pickle
import socket
import struct
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from jaxaudit.data import cifar100, load_images
from jaxaudit.errors import InputError

NUM_TRAIN, NUM_TEST = 30, 15
FINE = tuple(f"fine{i}" for i in range(6))
COARSE = tuple(f"coarse{i}" for i in range(3))
DATA = os.environ.get("JAXAUDIT_DATA")


def made_up():
    """The oracle: images, fine and coarse labels of both parts, every class in both."""
    rng = np.random.default_rng(0)
    content = {}
    for part, n in (("train", NUM_TRAIN), ("test", NUM_TEST)):
        fine = rng.permutation(np.arange(n) % len(FINE))
        content[part] = (rng.integers(0, 256, (n, 32, 32, 3), np.uint8), fine, fine // 2)
    return content


CONTENT = made_up()


def rows(images):
    """Each image as the formats have it: all of red, then green, then blue, row by row."""
    return np.array([np.concatenate([image[:, :, c].ravel() for c in range(3)]) for image in images])


class Python2Pickler(pickle._Pickler):
    """Writes as Python 2 did: strings are bytes."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def save_bytes(self, value):
        short = len(value) < 256
        size = bytes([len(value)]) if short else struct.pack("<i", len(value))
        self.write((pickle.SHORT_BINSTRING if short else pickle.BINSTRING) + size + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def python2_pickle(value):
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def python_files():
    files = {
        "meta": python2_pickle(
            {
                b"fine_label_names": [n.encode() for n in FINE],
                b"coarse_label_names": [n.encode() for n in COARSE],
            }
        )
    }
    for part, (images, fine, coarse) in CONTENT.items():
        files[part] = python2_pickle(
            {
                b"filenames": [f"image_{i}.png".encode() for i in range(len(fine))],
                b"batch_label": f"{part} batch 1 of 1".encode(),
                b"fine_labels": fine.tolist(),
                b"coarse_labels": coarse.tolist(),
                b"data": rows(images),
            }
        )
    return files


def binary_files():
    files = {
        "fine_label_names.txt": "\n".join((*FINE, "")).encode(),
        "coarse_label_names.txt": "\n".join((*COARSE, "")).encode(),
    }
    for part, (images, fine, coarse) in CONTENT.items():
        records = zip(rows(images), fine, coarse)
        files[f"{part}.bin"] = b"".join(bytes([c, f]) + pixels.tobytes() for pixels, f, c in records)
    return files


FILES = {"cifar-100-python": python_files, "cifar-100-binary": binary_files}


def write(folder, kind, *, packed, files=None):
    """An archive as it is published, packed or not; the path to give to `load_images`."""
    files = FILES[kind]() if files is None else files
    if not packed:
        (folder / kind).mkdir(parents=True)
        for name, content in files.items():
            (folder / kind / name).write_bytes(content)
        return folder / kind
    folder.mkdir(exist_ok=True)
    path = folder / f"{kind}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{kind}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_npz(path, **changes):
    arrays = {"label_names": np.array(FINE, "S"), "coarse_label_names": np.array(COARSE)}
    for part, (images, fine, coarse) in CONTENT.items():
        arrays |= {f"{part}_images": images, f"{part}_labels": fine, f"{part}_coarse_labels": coarse}
    np.savez(path, **{name: value for name, value in {**arrays, **changes}.items() if value is not None})
    return path


def write_prepared(folder):
    """Prepared by tensorflow-datasets itself, shuffled, without TensorFlow."""
    tfds = pytest.importorskip("tensorflow_datasets")
    pytest.importorskip("importlib_resources")
    pillow = pytest.importorskip("PIL.Image")

    def png(pixels):
        file = io.BytesIO()
        pillow.fromarray(pixels).save(file, "PNG")
        file.seek(0)
        return file  # encoding an array would need TensorFlow

    class Cifar100(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("3.0.2")
        pkg_dir_path = folder

        def _info(self):
            features = {
                "id": tfds.features.Text(),
                "image": tfds.features.Image(shape=(32, 32, 3)),
                "label": tfds.features.ClassLabel(names=FINE),
                "coarse_label": tfds.features.ClassLabel(names=COARSE),
            }
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

        def _split_generators(self, manager):
            return {part: self._generate_examples(part) for part in CONTENT}

        def _generate_examples(self, part):
            for i, (image, fine, coarse) in enumerate(zip(*CONTENT[part])):
                record = {"image": png(image), "label": fine, "coarse_label": coarse}
                yield i, {"id": f"{part}_{i:05d}", **record}

    builder = Cifar100(data_dir=str(folder), file_format="array_record")
    builder.download_and_prepare()
    return Path(builder.data_dir)


@pytest.fixture
def _no_data(tmp_path, monkeypatch):
    """A machine without data, on which every use of the network is an error."""

    def connect(*_):
        raise AssertionError("the network is used")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.delenv("JAXAUDIT_DATA", raising=False)
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def check_is_the_data(images, labels):
    for part, (pixels, fine, coarse) in CONTENT.items():
        np.testing.assert_array_equal(getattr(images, f"{part}_images"), pixels)
        np.testing.assert_array_equal(getattr(images, f"{part}_labels"), fine if labels == "fine" else coarse)
        assert getattr(images, f"{part}_images").dtype == np.uint8
    assert images.class_names == (FINE if labels == "fine" else COARSE)


@pytest.mark.parametrize("labels", ["fine", "coarse"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", FILES)
def test_archives(kind, packed, labels, tmp_path):
    check_is_the_data(load_images(write(tmp_path, kind, packed=packed), labels=labels), labels)
    check_is_the_data(load_images(tmp_path, labels=labels), labels)


@pytest.mark.parametrize("labels", ["fine", "coarse"])
def test_npz(labels, tmp_path):
    check_is_the_data(load_images(write_npz(tmp_path / "mine.npz"), labels=labels), labels)


@pytest.mark.usefixtures("_no_data")
def test_prepared_by_tensorflow_datasets(tmp_path, monkeypatch):
    prepared = write_prepared(tmp_path)
    assert "tensorflow" not in sys.modules
    for labels in ("fine", "coarse"):
        check_is_the_data(load_images(prepared, labels=labels), labels)
    check_is_the_data(load_images(tmp_path), "fine")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert load_images("cifar100").name == "cifar100"
    (prepared / "dataset_info.json").write_text('{"fileFormat": "tfrecord"}')
    with pytest.raises(InputError, match=r"holds tfrecord files, which need TensorFlow; .*array_record"):
        load_images(prepared)


@pytest.mark.usefixtures("_no_data")
def test_prepared_but_damaged(tmp_path):
    pytest.importorskip("tensorflow_datasets")
    info = tmp_path / "cifar100" / "3.0.2" / "dataset_info.json"
    info.parent.mkdir(parents=True)
    info.write_text("{")
    with pytest.raises(InputError, match=r"dataset_info.json is damaged"):
        load_images(tmp_path)
    info.write_text(json.dumps({"fileFormat": "array_record"}))
    with pytest.raises(InputError, match=r"cannot be read by tensorflow-datasets|lacks a package"):
        load_images(tmp_path)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "dataset_info.json").write_text('{"fileFormat": "array_record"}')
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(InputError, match=r"lacks a package .*; install 'jaxaudit\[cifar100\]'"):
        load_images(tmp_path)


@pytest.mark.usefixtures("_no_data")
def test_absent_data_says_what_to_do_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXAUDIT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError) as caught:
        load_images("cifar100")
    message = str(caught.value)
    assert "cifar-100-python.tar.gz" in message
    assert "set JAXAUDIT_DATA to that folder" in message
    assert "download_and_prepare()" in message
    assert "use 'digits'" in message
    assert f"JAXAUDIT_DATA ({tmp_path / 'nowhere'}, no such folder); TFDS_DATA_DIR (not set)" in message


@pytest.mark.usefixtures("_no_data")
def test_where_it_is_found(tmp_path, monkeypatch):
    home = tmp_path / "home" / "tensorflow_datasets"
    expected = write(home, "cifar-100-binary", packed=False)
    assert cifar100.find() == expected
    folder = tmp_path / "data"
    monkeypatch.setenv("JAXAUDIT_DATA", str(folder))
    assert cifar100.find() == expected
    folder.mkdir()
    assert cifar100.find() == expected
    small = write_npz(folder / "cifar100_small.npz", train_coarse_labels=None)
    assert cifar100.find() == small
    large = write_npz(folder / "cifar100_large.npz")
    assert cifar100.find() == large
    for version in ("3.0.2", "3.0.10"):
        (folder / "cifar100" / version).mkdir(parents=True)
        (folder / "cifar100" / version / "dataset_info.json").touch()
    assert cifar100.find() == folder / "cifar100" / "3.0.10"
    archive = write(folder, "cifar-100-python", packed=True)
    assert cifar100.find() == archive
    assert load_images("cifar100").name == "cifar100"
    unpacked = write(folder, "cifar-100-python", packed=False)
    assert cifar100.find() == unpacked


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "call",
    [
        lambda marker: Call(os.system, f"touch {marker}"),
        lambda marker: Call(exec, f"open({str(marker)!r}, 'w')"),
        lambda marker: Call(open, str(marker), "w"),
        lambda marker: Call(np.save, str(marker), 1),
        lambda marker: Call(getattr, "a", "upper"),
    ],
)
def test_pickles_cannot_call_anything(call, tmp_path):
    marker = tmp_path / "marker.npy"
    files = python_files() | {"train": python2_pickle({b"data": call(marker)})}
    with pytest.raises(InputError, match=r"train is damaged .*asks for .*does not need"):
        load_images(write(tmp_path, "cifar-100-python", packed=True, files=files))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.zeros((2, 3072), np.float32)}, r"array of type 'f4' where bytes \('u1'\) were expected"),
        ({"data": np.array([[None]])}, r"array of type 'O8'"),
        ({"data": np.zeros((30, 3071), np.uint8)}, r"of shape \(n, 3072\), got \(30, 3071\)"),
        ({"data": [1, 2]}, r"of shape \(n, 3072\), got \(0,\)"),
        ({"fine_labels": "123"}, "labels in train must be a list of integers"),
        ({"fine_labels": [0.5]}, "labels in train must be a list of integers"),
        ({"fine_labels": [0] * 29}, r"axis 0 \(images\) of train_labels must have length 30, got 29"),
        ({"fine_labels": [*range(29), 100]}, r"train_labels must be in 0 .. 5, got 6"),
        ({"fine_labels": None}, "train lacks 'fine_labels'"),
    ],
)
def test_python_archives_that_are_wrong(changes, message, tmp_path):
    images, fine, coarse = CONTENT["train"]
    content = {"data": rows(images), "fine_labels": fine.tolist(), "coarse_labels": coarse.tolist()}
    content = {key.encode(): v for key, v in {**content, **changes}.items() if v is not None}
    files = python_files() | {"train": python2_pickle(content)}
    with pytest.raises(InputError, match=message):
        load_images(write(tmp_path, "cifar-100-python", packed=False, files=files))


def test_columns_first_arrays(tmp_path):
    images, fine, coarse = CONTENT["train"]
    content = {b"data": np.asfortranarray(rows(images)), b"fine_labels": fine.tolist()}
    files = python_files() | {"train": python2_pickle({**content, b"coarse_labels": coarse.tolist()})}
    check_is_the_data(load_images(write(tmp_path, "cifar-100-python", packed=True, files=files)), "fine")


@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_cut_off_pickles(name, tmp_path):
    files = python_files()
    files[name] = files[name][:-40]
    with pytest.raises(InputError, match=f"{name} is damaged or no file of the official archive"):
        load_images(write(tmp_path, "cifar-100-python", packed=False, files=files))


def test_other_files_that_are_wrong(tmp_path):
    files = binary_files()
    files["test.bin"] += b"x"
    path = write(tmp_path / "a", "cifar-100-binary", packed=False, files=files)
    with pytest.raises(InputError, match=r"test.bin must hold records of 3074 bytes, got 46111 bytes"):
        load_images(path)
    path = write(tmp_path / "b", "cifar-100-python", packed=True)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"no archive", b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cifar-100-python.tar.gz is no tar archive or is damaged"):
            load_images(path)
    path = write(tmp_path / "c", "cifar-100-python", packed=True, files={"readme": b"hello"})
    with pytest.raises(InputError, match=r"is no CIFAR-100 archive: expected files train, .*, found readme"):
        load_images(path)
    with pytest.raises(InputError, match="holds no CIFAR-100: expected cifar-100-python"):
        load_images(tmp_path)
    with pytest.raises(InputError, match=r"images must be 'digits', 'cifar100', a folder, .npz or .tar.gz"):
        load_images(__file__)
    with pytest.raises(InputError, match="no such file or folder: cifar10"):
        load_images("cifar10")


@pytest.mark.skipif(not DATA or not list(Path(DATA).glob("cifar100*")), reason="needs JAXAUDIT_DATA")
def test_the_real_images():
    fine, coarse = load_images("cifar100"), load_images("cifar100", labels="coarse")
    assert (len(fine.class_names), len(coarse.class_names)) == (100, 20)
    assert fine.train_images.shape[1:] == (32, 32, 3)
    # Five fine classes in each coarse class, each fine class in one: known of CIFAR-100.
    pairs = set(zip(fine.train_labels.tolist(), coarse.train_labels.tolist()))
    assert len(pairs) == 100
    assert set(np.bincount([c for _, c in pairs])) == {5}
    by_name = {fine.class_names[f]: coarse.class_names[c] for f, c in pairs}
    assert (by_name["maple_tree"], by_name["baby"]) == ("trees", "people")
    # Published statistics of the full training set; those of a subset are close.
    np.testing.assert_allclose(fine.mean, [0.5071, 0.4865, 0.4409], atol=0.01)
    np.testing.assert_allclose(fine.std, [0.2673, 0.2564, 0.2762], atol=0.01)
