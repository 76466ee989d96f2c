"""Digits as pen strokes, and the compact file that holds all of Stroke MNIST.

The file is an .xz archive of: the bytes MAGIC, the SHA-256 of the rest, and the streams of each part. A move
to a neighbouring pixel is one of eight directions; longer moves are in a separate stream. End-of-stroke
rows are not stored: there is one before each long move, except a move to the last point.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

MAGIC = b"perdure strokes 1\n"
"""The first bytes of the unpacked file."""
PARTS = ("train", "test")
"""The parts of MNIST, in the order of the file."""
DIRECTIONS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)], dtype=np.int8)
"""(dx, dy) of the moves to a neighbouring pixel, by their code."""
JUMP = len(DIRECTIONS)
"""The code of a longer move."""
LARGEST = 2**27
"""Maximum size of the unpacked file in bytes; Stroke MNIST needs 3 million."""
SHIPPED = "strokes.xz"
"""The file included with Perdure, built by tools/strokes."""


@dataclass(frozen=True)
class Strokes:
    """N digits, concatenated.

    rows: int8 [sum of lengths, 4] of (dx, dy, end of stroke, end of digit); the first row of a digit is its
    start (column, row), counted from 1; lengths: int64 [N]; labels: uint8 [N].
    """

    rows: Array
    lengths: Array
    labels: Array

    def __len__(self) -> int:
        """The number of digits."""
        return len(self.lengths)

    @property
    def offsets(self) -> Array:
        """The row at which each digit begins: [N]."""
        return beginnings(self.lengths)

    def digit(self, index: int) -> Array:
        """The rows [T, 4] of one digit."""
        begin = int(self.offsets[index])
        return self.rows[begin : begin + int(self.lengths[index])]

    def slice(self, begin: int, end: int) -> Strokes:
        """The digits from `begin` to before `end`."""
        bounds = np.concatenate([[0], self.lengths.cumsum()])
        rows = self.rows[bounds[begin] : bounds[end]]
        return Strokes(rows, self.lengths[begin:end], self.labels[begin:end])


def beginnings(lengths: Array) -> Array:
    """Where runs of these lengths begin when they are concatenated."""
    result: Array = lengths.cumsum() - lengths
    return result


def pen_strokes(moves: Array, counts: Array, labels: Array) -> Strokes:
    """Strokes of digits with the given numbers of points: counts [N].

    moves: int8 [sum of counts, 2] of (dx, dy) to each point in pen order; the first one of a digit is its
    start (column, row), counted from 1.
    """
    begins = beginnings(counts)
    lifted = np.abs(moves).max(axis=1) > 1
    lifted[begins] = False
    lifted[begins + counts - 1] = False  # the pen is not lifted before the last point
    lengths = counts + np.add.reduceat(lifted, begins, dtype=np.int64) + 1
    # A point's row: one for each point before it, each lift so far, and each end of an earlier digit.
    place = np.arange(len(moves)) + lifted.cumsum() + np.repeat(np.arange(len(counts)), counts)
    rows = np.zeros((int(lengths.sum()), 4), dtype=np.int8)
    rows[place, :2] = moves
    rows[place[lifted] - 1, 2] = 1
    rows[lengths.cumsum() - 1, 2:] = 1
    return Strokes(rows, lengths, labels)


def decode(content: bytes, name: str) -> dict[str, Strokes]:
    """The digits of a file's content; `name` is used in error messages."""
    head = len(MAGIC) + hashlib.sha256().digest_size
    try:
        plain = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(content, LARGEST)
    except (lzma.LZMAError, EOFError) as error:
        raise PerdureError(_damaged(name, str(error))) from None
    if not plain.startswith(MAGIC):
        raise PerdureError(_damaged(name, f"it does not begin with '{MAGIC.decode().strip()}'"))
    if hashlib.sha256(plain[head:]).digest() != plain[len(MAGIC) : head]:
        raise PerdureError(_damaged(name, "its checksum does not match"))
    parts = {}
    try:
        for part in PARTS:
            parts[part], head = decode_part(plain, head)
    except (struct.error, ValueError, IndexError) as error:
        raise PerdureError(_damaged(name, str(error))) from None
    return parts


def _damaged(name: str, reason: str) -> str:
    return f"'{name}' is not a valid strokes file ({reason}); reinstall Perdure."


def decode_part(content: bytes, offset: int) -> tuple[Strokes, int]:
    """The digits whose streams begin at an offset, and the offset at which they end."""
    digits, moved, jumped = struct.unpack_from("<3I", content, offset)
    offset += struct.calcsize("<3I")
    streams = []
    for size in (digits, digits, digits, digits, moved, jumped, jumped):
        streams.append(np.frombuffer(content, np.uint8, size, offset))
        offset += size
    labels, counts, start_x, start_y, codes, jump_x, jump_y = streams
    counts = counts.astype(np.int64)
    begins = beginnings(counts)
    steps = np.concatenate([DIRECTIONS, np.zeros((1, 2), dtype=np.int8)])[codes]
    steps[codes == JUMP] = np.stack([jump_x, jump_y], axis=1).view(np.int8)
    moves = np.empty((moved + digits, 2), dtype=np.int8)
    inside = np.ones(len(moves), dtype=bool)
    inside[begins] = False
    moves[inside] = steps
    moves[begins] = np.stack([start_x, start_y], axis=1).view(np.int8)
    return pen_strokes(moves, counts, labels), offset


def shipped_content() -> bytes:
    """The bytes of the file included with Perdure."""
    path = files("perdure") / "benchmarks" / "strokes" / SHIPPED
    try:
        return path.read_bytes()
    except OSError as error:
        raise PerdureError(_damaged(SHIPPED, error.strerror or str(error))) from None


def shipped() -> dict[str, Strokes]:
    """All digits of Stroke MNIST: 60 000 in `train`, 10 000 in `test`."""
    return _decoded_once(shipped_content())


@lru_cache(maxsize=1)
def _decoded_once(content: bytes) -> dict[str, Strokes]:
    """`decode` of the file included with Perdure: a worker that carries out many runs does it once."""
    parts = decode(content, SHIPPED)
    for part in parts.values():
        for array in (part.rows, part.lengths, part.labels):
            array.setflags(write=False)  # shared by all runs of this process
    return parts
