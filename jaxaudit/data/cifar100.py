"""CIFAR-100 from files on this machine: the official archives, or what tensorflow-datasets prepared.

The two archives hold the same 50,000 + 10,000 images of 32 x 32 pixels with 100 fine and 20 coarse labels
(Krizhevsky 2009, "Learning multiple layers of features from tiny images"). Nothing is downloaded here, and
nothing is unpickled freely: the pickles of the Python archive are read by a reader that knows only the lists
and the byte array that the format consists of.
"""

import io
import json
import os
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int, Num

from jaxaudit.errors import InputError

LabelName = Literal["fine", "coarse"]
DATA_VARIABLE = "JAXAUDIT_DATA"
"""Environment variable with the folder where ``cifar100`` is looked for first."""

_SIZE, _CHANNELS = 32, 3
_PIXELS = _SIZE * _SIZE * _CHANNELS
_PYTHON_FILES = ("train", "test", "meta")
_BINARY_FILES = ("train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt")
_ARCHIVES = ("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz")
_PREPARED = "dataset_info.json"
_PREPARE = (
    'python -c "import tensorflow_datasets as tfds; '
    "tfds.builder('cifar100', file_format='array_record').download_and_prepare()\""
)


class Part(NamedTuple):
    """Training or test images with their labels."""

    images: Num[np.ndarray, "n height width channels"]
    labels: dict[LabelName, Int[np.ndarray, " n"]]


class Source(NamedTuple):
    """What a file holds, before labels are chosen and checked."""

    train: Part
    test: Part
    class_names: dict[LabelName, tuple[str, ...]]
    description: str


def find() -> Path:
    """Where CIFAR-100 is on this machine, by `locate`.

    Looks into the folder that JAXAUDIT_DATA names, then into TFDS_DATA_DIR, then into ``~/tensorflow_datasets``.

    Raises
    ------
    InputError
        It is in none of them; the message says what to do.
    """
    looked = []
    for label, folder in _folders():
        found = _inside(folder) if folder else None
        if found:
            return found
        state = "not set" if folder is None else f"{folder}{'' if folder.is_dir() else ', no such folder'}"
        looked.append(f"{label} ({state})")
    raise InputError(
        "cifar100 was not found and is never downloaded. Either put cifar-100-python.tar.gz or "
        "cifar-100-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html into a folder, packed or "
        f"unpacked, and set {DATA_VARIABLE} to that folder; or, where TensorFlow is installed, run {_PREPARE}; "
        f"or use 'digits', which needs nothing. Looked into {'; '.join(looked)}"
    )


def locate(path: str | Path) -> Path:
    """What `read` or `jaxaudit.data.images.load_images` can read at a path: the path itself, or what is inside.

    A folder may be an unpacked archive or a prepared data set of tensorflow-datasets, or may hold, in order
    of preference, one of these, a packed archive, or the largest of its ``cifar100*.npz`` files.

    Raises
    ------
    InputError
        Nothing that can be read.

    Examples
    --------
    >>> locate("nowhere.tar.gz")
    Traceback (most recent call last):
        ...
    jaxaudit.errors.InputError: no such file or folder: nowhere.tar.gz
    """
    path = Path(path)
    if path.is_dir():
        found = _inside(path)
        if found:
            return found
        raise InputError(
            f"folder {path} holds no CIFAR-100: expected cifar-100-python or cifar-100-binary (or its .tar.gz), "
            "cifar100/VERSION as prepared by tensorflow-datasets, or cifar100*.npz"
        )
    if not path.exists():
        raise InputError(f"no such file or folder: {path}")
    if path.suffix == ".npz" or path.name.endswith((".tar.gz", ".tgz", ".tar")):
        return path
    raise InputError(f"images must be 'digits', 'cifar100', a folder, .npz or .tar.gz file, got {path}")


def read(path: Path) -> Source:
    """The images of an official archive, packed or unpacked, or of a prepared folder of tensorflow-datasets.

    All give the same images in the same order (by record id where tensorflow-datasets shuffled them).

    Raises
    ------
    InputError
        A damaged or strange file, a pickle with anything but lists and the byte array, records that only
        TensorFlow can read, or missing packages.
    """
    if (path / _PREPARED).is_file():
        return _read_prepared(path)
    if path.is_dir():
        return _read_archive(path, lambda name: _file_bytes(path / name), set(os.listdir(path)))
    try:
        with tarfile.open(path) as archive:
            members = {Path(member.name).name: member for member in archive if member.isfile()}
            return _read_archive(path, lambda name: _member_bytes(archive, members[name]), set(members))
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is no tar archive or is damaged: {error}") from error


def _folders() -> Iterator[tuple[str, Path | None]]:
    for variable in (DATA_VARIABLE, "TFDS_DATA_DIR"):
        value = os.environ.get(variable)
        yield variable, Path(value).expanduser() if value else None
    yield "~/tensorflow_datasets", Path("~/tensorflow_datasets").expanduser()


def _inside(folder: Path) -> Path | None:
    """What can be read at a folder or in it."""
    for candidate in (folder, *(folder / name.removesuffix(".tar.gz") for name in _ARCHIVES)):
        for files in (_PYTHON_FILES, _BINARY_FILES, (_PREPARED,)):
            if all((candidate / name).is_file() for name in files):
                return candidate
    archives = [folder / name for name in _ARCHIVES if (folder / name).is_file()]
    prepared = sorted((info.parent for info in folder.glob(f"cifar100/*/{_PREPARED}")), key=_version)
    arrays = sorted(folder.glob("cifar100*.npz"), key=lambda file: (file.stat().st_size, file.name))
    return next((found[-1] for found in (archives[:1], prepared, arrays) if found), None)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else -1 for part in folder.name.split("."))


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _member_bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    # Read, never extracted: a name that points out of the archive does no harm.
    file = archive.extractfile(member)
    return file.read() if file else b""


def _read_archive(path: Path, read_bytes: Callable[[str], bytes], names: set[str]) -> Source:
    if names.issuperset(_PYTHON_FILES):
        return _read_python(path, read_bytes)
    if names.issuperset(_BINARY_FILES):
        return _read_binary(path, read_bytes)
    raise InputError(
        f"{path} is no CIFAR-100 archive: expected files {', '.join(_PYTHON_FILES)} or "
        f"{', '.join(_BINARY_FILES)}, found {', '.join(sorted(names)[:10]) or 'none'}"
    )


def _read_binary(path: Path, read_bytes: Callable[[str], bytes]) -> Source:
    """Records of one byte coarse label, one byte fine label, and the pixels, channel by channel."""
    parts = []
    for name in ("train.bin", "test.bin"):
        raw = np.frombuffer(read_bytes(name), np.uint8)
        if not raw.size or raw.size % (2 + _PIXELS):
            raise InputError(f"{path}: {name} must hold records of {2 + _PIXELS} bytes, got {raw.size} bytes")
        records = raw.reshape(-1, 2 + _PIXELS)
        labels: dict[LabelName, np.ndarray] = {"coarse": records[:, 0], "fine": records[:, 1]}
        parts.append(Part(_pixels(records[:, 2:]), labels))
    names: dict[LabelName, tuple[str, ...]] = {
        "fine": tuple(_text(read_bytes("fine_label_names.txt")).split()),
        "coarse": tuple(_text(read_bytes("coarse_label_names.txt")).split()),
    }
    return Source(parts[0], parts[1], names, _description(path))


def _read_python(path: Path, read_bytes: Callable[[str], bytes]) -> Source:
    """Three pickles, each one dictionary."""
    parts = []
    for name in ("train", "test"):
        content = _unpickle(path, name, read_bytes(name), ("data", "fine_labels", "coarse_labels"))
        pixels: np.ndarray = (
            content["data"].values if isinstance(content["data"], _PickledArray) else np.empty(0)
        )
        if pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
            raise InputError(
                f"{path}: data in {name} must be bytes of shape (n, {_PIXELS}), got {pixels.shape}"
            )
        labels: dict[LabelName, np.ndarray] = {
            "fine": _integers(path, name, content["fine_labels"]),
            "coarse": _integers(path, name, content["coarse_labels"]),
        }
        parts.append(Part(_pixels(pixels), labels))
    meta = _unpickle(path, "meta", read_bytes("meta"), ("fine_label_names", "coarse_label_names"))
    names: dict[LabelName, tuple[str, ...]] = {
        "fine": _strings(path, meta["fine_label_names"]),
        "coarse": _strings(path, meta["coarse_label_names"]),
    }
    return Source(parts[0], parts[1], names, _description(path))


def _pixels(rows: np.ndarray) -> np.ndarray:
    """Rows of 3,072 bytes, channel by channel, as images with the channel last."""
    return np.ascontiguousarray(rows.reshape(-1, _CHANNELS, _SIZE, _SIZE).transpose(0, 2, 3, 1))


def _description(path: Path) -> str:
    return f"CIFAR-100 (Krizhevsky 2009) from {path.name}."


class _PickledType:
    """Stands for ``numpy.dtype`` in a pickle: bytes, or an error."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        if code not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"an array of type {code!r} where bytes ('u1') were expected")

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment mean nothing for bytes."""


class _PickledArray:
    """Stands for ``numpy.ndarray`` in a pickle: an array of bytes, or an error."""

    values = np.empty(0, np.uint8)

    def __init__(self, *_: Any) -> None:
        """The shape that a pickle creates an array with is a placeholder; `__setstate__` has the right one."""

    def __setstate__(self, state: Any) -> None:
        """Version, shape, type, whether columns come first, bytes."""
        _, shape, kind, columns_first, raw = state
        if not isinstance(kind, _PickledType) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array of another form than that of the official archive")
        self.values = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if columns_first else "C")


class _ArchiveUnpickler(pickle.Unpickler):
    """Knows the three names that the pickles of the official archive use, and nothing else."""

    _KNOWN = {  # noqa: RUF012 - not a mutable default of instances
        ("numpy", "ndarray"): _PickledArray,
        ("numpy", "dtype"): _PickledType,
        ("numpy.core.multiarray", "_reconstruct"): _PickledArray,
        ("numpy._core.multiarray", "_reconstruct"): _PickledArray,
    }

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name, or an error: nothing is imported."""
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which the official archive does not need"
            )
        return self._KNOWN[module, name]


def _unpickle(path: Path, name: str, raw: bytes, required: tuple[str, ...]) -> dict[str, Any]:
    try:
        content = _ArchiveUnpickler(io.BytesIO(raw), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises a dozen different kinds
        raise InputError(f"{path}: {name} is damaged or no file of the official archive: {error}") from error
    found = {_text(key): value for key, value in content.items()} if isinstance(content, dict) else {}
    missing = [key for key in required if key not in found]
    if missing:
        raise InputError(f"{path}: {name} lacks {', '.join(map(repr, missing))}")
    return found


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _integers(path: Path, name: str, values: Any) -> Int[np.ndarray, " n"]:
    if not isinstance(values, list) or not all(isinstance(v, int) and 0 <= v < 256 for v in values):
        raise InputError(f"{path}: labels in {name} must be a list of integers from 0 to 255")
    return np.array(values, np.int64)


def _strings(path: Path, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise InputError(f"{path}: class names in meta must be a list")
    return tuple(map(_text, values))


def _read_prepared(folder: Path) -> Source:
    """A folder that tensorflow-datasets prepared, in a format that needs no TensorFlow."""
    _check_format(folder)
    try:
        import tensorflow_datasets as tfds

        builder = tfds.builder_from_directory(str(folder))
        train, test = _read_split(builder, "train"), _read_split(builder, "test")
        features = builder.info.features
        names: dict[LabelName, tuple[str, ...]] = {
            "fine": tuple(features["label"].names),
            "coarse": tuple(features["coarse_label"].names),
        }
    except ImportError as error:
        raise InputError(
            f"{folder} is read with tensorflow-datasets, which lacks a package ({' '.join(str(error).split())}); "
            "install 'jaxaudit[cifar100]'"
        ) from error
    except InputError:
        raise
    except Exception as error:  # files that are missing or damaged raise a dozen different kinds
        raise InputError(f"{folder} cannot be read by tensorflow-datasets: {error}") from error
    return Source(train, test, names, _description(Path("tensorflow-datasets")))


def _check_format(folder: Path) -> None:
    try:
        info = json.loads((folder / _PREPARED).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / _PREPARED} is damaged: {error}") from error
    file_format = info.get("fileFormat", "tfrecord") if isinstance(info, dict) else None
    if file_format != "array_record":
        raise InputError(
            f"{folder} holds {file_format} files, which need TensorFlow; where it is installed, run {_PREPARE}"
        )


def _read_split(builder: Any, split: str) -> Part:
    records = list(builder.as_data_source(split=split))
    if records and "id" in records[0]:
        records.sort(key=lambda record: record["id"])  # shuffled when it was prepared
    labels: dict[LabelName, np.ndarray] = {
        "fine": np.array([record["label"] for record in records], np.int64),
        "coarse": np.array([record["coarse_label"] for record in records], np.int64),
    }
    return Part(np.stack([record["image"] for record in records]), labels)
