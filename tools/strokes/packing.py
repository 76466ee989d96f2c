"""The writing half of the compact file of strokes; the reading half is part of Perdure."""

from __future__ import annotations

import hashlib
import lzma
import struct

import numpy as np

from perdure.benchmarks.sources.strokes_file import DIRECTIONS, JUMP, MAGIC, PARTS, Strokes, decode_part
from perdure.benchmarks.task import Array


def encode(parts: dict[str, Strokes]) -> bytes:
    """The file with the digits of both parts."""
    body = b"".join(_encode_part(parts[name]) for name in PARTS)
    content = MAGIC + hashlib.sha256(body).digest() + body
    return lzma.compress(content, check=lzma.CHECK_CRC64, preset=9 | lzma.PRESET_EXTREME)


def _encode_part(strokes: Strokes) -> bytes:
    """Sizes; then labels, numbers of points, start columns and rows, codes of moves, long moves."""
    begins = strokes.offsets
    drawn = strokes.rows[:, 2] == 0
    counts = np.add.reduceat(drawn, begins, dtype=np.int64)
    starts = strokes.rows[begins, :2]
    drawn[begins] = False
    moves = strokes.rows[drawn, :2]
    codes = _codes(moves)
    jumps = moves[codes == JUMP]
    streams = [strokes.labels, counts, starts[:, 0], starts[:, 1], codes, jumps[:, 0], jumps[:, 1]]
    sizes = struct.pack("<3I", len(strokes), len(codes), len(jumps))
    encoded = sizes + b"".join(stream.astype(np.uint8).tobytes() for stream in streams)
    again, _ = decode_part(encoded, 0)
    assert np.array_equal(again.rows, strokes.rows), "these rows do not follow the rule of strokes"
    return encoded


def _codes(moves: Array) -> Array:
    """The code of each move [M, 2]."""
    table = np.full((3, 3), JUMP, dtype=np.uint8)
    table[DIRECTIONS[:, 0], DIRECTIONS[:, 1]] = np.arange(JUMP)  # -1 is the last row, or column
    near = np.abs(moves).max(axis=1) <= 1
    codes = np.full(len(moves), JUMP, dtype=np.uint8)
    codes[near] = table[moves[near, 0], moves[near, 1]]
    return codes
