"""Digits as pen strokes, and the compact file that holds all of Stroke MNIST.

The file is an .xz archive of: the words MAGIC, the SHA-256 of the rest, and the streams of each part. A move
to a neighbouring pixel is one of eight directions; longer moves stand in a stream of their own. End-of-stroke
rows are not stored: they stand before each long move but one to the last point.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError

MAGIC = b"perdure strokes 1\n"
"""What the unpacked file begins with."""
PARTS = ("train", "test")
"""The parts of MNIST, in the order of the file."""
DIRECTIONS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)], dtype=np.int8)
"""(dx, dy) of the moves to a neighbouring pixel, by their code."""
JUMP = len(DIRECTIONS)
"""The code of a longer move."""
LARGEST = 2**27
"""Bytes that a file may hold unpacked; Stroke MNIST needs 3 million."""
SHIPPED = "strokes.xz"
"""The file that comes with Perdure, built by the tool tools/strokes."""


@dataclass(frozen=True)
class Strokes:
    """N digits, one after the other.

    rows: int8 [sum of lengths, 4] of (dx, dy, end of stroke, end of digit), the first row of a digit its
    start (column, row) counted from 1; lengths: int64 [N]; labels: uint8 [N].
    """

    rows: Array
    lengths: Array
    labels: Array

    def __len__(self) -> int:
        """The number of digits."""
        return len(self.lengths)

    @property
    def offsets(self) -> Array:
        """Where each digit begins in rows: [N]."""
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
    """Where runs of these lengths begin when they stand one after the other."""
    result: Array = lengths.cumsum() - lengths
    return result


def pen_strokes(moves: Array, counts: Array, labels: Array) -> Strokes:
    """Strokes of digits with these numbers of points: counts [N].

    moves: int8 [sum of counts, 2] of (dx, dy) to each point in the order of the pen, the first of a digit
    its start (column, row) counted from 1.
    """
    begins = beginnings(counts)
    lifted = np.abs(moves).max(axis=1) > 1
    lifted[begins] = False
    lifted[begins + counts - 1] = False  # the pen is not lifted before the last point
    lengths = counts + np.add.reduceat(lifted, begins, dtype=np.int64) + 1
    # A point's row: one for each point before it, each lift up to it, each end of an earlier digit.
    place = np.arange(len(moves)) + lifted.cumsum() + np.repeat(np.arange(len(counts)), counts)
    rows = np.zeros((int(lengths.sum()), 4), dtype=np.int8)
    rows[place, :2] = moves
    rows[place[lifted] - 1, 2] = 1
    rows[lengths.cumsum() - 1, 2:] = 1
    return Strokes(rows, lengths, labels)


def decode(content: bytes, name: str) -> dict[str, Strokes]:
    """The digits of a file's content; `name` is what errors call it."""
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
    return f"'{name}' is not a whole file of strokes ({reason}); install Perdure again."


def decode_part(content: bytes, offset: int) -> tuple[Strokes, int]:
    """The digits whose streams begin at an offset, and where these end."""
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
    """The bytes of the file that comes with Perdure."""
    path = files("perdure") / "benchmarks" / "strokes" / SHIPPED
    try:
        return path.read_bytes()
    except OSError as error:
        raise PerdureError(_damaged(SHIPPED, error.strerror or str(error))) from None


def shipped() -> dict[str, Strokes]:
    """All digits of Stroke MNIST: 60 000 in `train`, 10 000 in `test`."""
    return decode(shipped_content(), SHIPPED)
