"""MNIST's idx files, plain or gzipped: images [N, rows, columns] and labels [N]."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from perdure.benchmarks.sources.archives import unzipped
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

BYTES = 0x08
"""The code of unsigned bytes in the third byte of an idx file."""
CLASSES = 10
"""Labels are the digits below this number."""
LARGEST = 2**28
"""Maximum size of an unpacked file in bytes; MNIST's largest has 47 million."""
NAMES = {"train": "train", "test": "t10k"}
"""Names of the parts in MNIST's files."""


@dataclass(frozen=True)
class Digits:
    """One part of MNIST: images uint8 [N, rows, columns], labels uint8 [N]."""

    images: Array
    labels: Array


def read_digits(folder: Path, part: str) -> Digits:
    """The part `train` or `test` of MNIST, from its two files in a folder."""
    images_path = _found(folder, f"{NAMES[part]}-images-idx3-ubyte")
    labels_path = _found(folder, f"{NAMES[part]}-labels-idx1-ubyte")
    images, labels = read_images(images_path), read_labels(labels_path)
    if len(images) != len(labels):
        raise PerdureError(
            f"'{images_path}' holds {len(images)} images but '{labels_path.name}' beside it {len(labels)} "
            f"labels; both must be files of the same set."
        )
    return Digits(images, labels)


def read_images(path: Path) -> Array:
    """The images of an idx3 file: uint8 [N, rows, columns]."""
    return _read(path, dimensions=3)


def read_labels(path: Path) -> Array:
    """The labels of an idx1 file: uint8 [N], each a digit."""
    labels = _read(path, dimensions=1)
    wrong = np.flatnonzero(labels >= CLASSES)
    if len(wrong):
        raise PerdureError(
            f"'{path}': label {wrong[0]} (counted from 0) is {labels[wrong[0]]}; labels are digits "
            f"from 0 to {CLASSES - 1}."
        )
    return labels


def _found(folder: Path, name: str) -> Path:
    """The file of this name in the folder, gzipped or not."""
    for candidate in (f"{name}.gz", name):
        if (folder / candidate).is_file():
            return folder / candidate
    raise PerdureError(
        f"'{folder}' has no file '{name}.gz' (nor '{name}'); put the four files of MNIST there."
    )


def _read(path: Path, dimensions: int) -> Array:
    content = unzipped(path, LARGEST)
    header = 4 * (1 + dimensions)
    if len(content) < header:
        raise PerdureError(
            f"'{path}' ends after {len(content)} bytes, within its header of {header}; download it again."
        )
    magic, *shape = struct.unpack(f">{1 + dimensions}I", content[:header])
    wanted = BYTES << 8 | dimensions
    if magic != wanted:
        raise PerdureError(
            f"'{path}' begins with 0x{magic:08x}; an idx file of bytes in {dimensions} "
            f"dimension{'s' if dimensions > 1 else ''} begins with 0x{wanted:08x}."
        )
    size, held = prod(shape), len(content) - header
    if held != size:
        said = " x ".join(str(extent) for extent in shape)
        fault = "is cut off" if held < size else "has bytes to spare"
        raise PerdureError(
            f"'{path}' {fault}: its header says {said} = {size} bytes, but {held} follow; download it again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
