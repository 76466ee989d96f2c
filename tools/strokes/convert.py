"""From MNIST's images to pen strokes, after Edwin D. de Jong's MNIST stroke sequence data.

An image is thresholded, thinned, and freed of specks; a nearest-neighbour tour visits what is left of it.
The published sequences broke ties by unknown random draws, so the points and the start of a digit are the
same here, and their order nearly always.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perdure.benchmarks.sources.strokes_file import (
    PARTS,
    Strokes,
    beginnings,
    decode,
    pen_strokes,
    shipped,
)
from perdure.benchmarks.task import Array, Watch, quiet
from perdure.errors import PerdureError
from strokes.bitmaps import (
    COLUMNS,
    pack,
    thin,
    threshold,
    tips,
    unpack,
    without_specks,
)
from strokes.idx import read_digits
from strokes.packing import encode
from strokes.tours import TOURS, best_tours

CHUNK = 5_000
"""Images that are converted together."""
SEED = 2021
"""Seed for breaking ties in the included file, together with the number of the part."""


def convert(images: Array, labels: Array, chance: np.random.Generator, watch: Watch = quiet) -> Strokes:
    """Strokes of images uint8 [N, H, W] with labels [N].

    Random numbers are drawn image by image, so the first digits of a set do not depend on what follows them.
    """
    if images.ndim != 3 or max(images.shape[1:]) > COLUMNS:
        raise PerdureError(
            f"Images must be [N, H, W] of at most {COLUMNS} x {COLUMNS} pixels; given are {images.shape}."
        )
    moves, counts = [], []
    for begin in range(0, len(images), CHUNK):
        watch("strokes", begin, len(images))
        chunk_moves, chunk_counts = _pen_moves(images[begin : begin + CHUNK], begin, chance)
        moves.append(chunk_moves)
        counts.append(chunk_counts)
    watch("strokes", len(images), len(images))
    return pen_strokes(np.concatenate(moves), np.concatenate(counts), labels)


def skeleton(images: Array) -> Array:
    """Images uint8 [N, H, W] thresholded, thinned and freed of specks: bool [N, H, W]."""
    width = images.shape[2]
    return unpack(without_specks(thin(threshold(images), width)), width)


def _pen_moves(images: Array, first: int, chance: np.random.Generator) -> tuple[Array, Array]:
    """Moves int8 [sum of counts, 2] of (dx, dy), as `pen_strokes` takes them, and counts [N]."""
    black = skeleton(images)
    image, row, column = np.nonzero(black)
    counts = np.bincount(image, minlength=len(images))
    if not counts.all():
        raise PerdureError(
            f"Image {first + int(counts.argmin())} (counted from 0) has no stroke: nothing of more than two "
            f"pixels is left of it after thinning."
        )
    start = start_points(black)
    points = np.stack([column + 1, row + 1], axis=1).astype(np.int8)
    draws = chance.random((len(points), TOURS))
    begins = beginnings(counts)
    ordered = np.empty_like(points)
    for count in np.unique(counts):
        where = begins[counts == count][:, None] + np.arange(count)
        order = best_tours(points[where], start[counts == count], draws[where])
        ordered[where] = np.take_along_axis(points[where], order[..., None], axis=1)
    moves = ordered.copy()
    moves[1:] -= ordered[:-1]
    moves[begins] = ordered[begins]
    return moves, counts


def start_points(black: Array) -> Array:
    """Where the pen starts in images bool [N, H, W]: the number of the pixel among the black ones [N].

    It is the tip nearest to the upper left corner by row + column, the upper one of two. An image without
    tips starts at its pixel nearest to that corner, the left one of two.
    """
    tip = unpack(tips(pack(black)), black.shape[2])
    image, row, column = np.nonzero(black)
    any_tip = np.asarray(tip.any(axis=(1, 2)))[image]
    candidate = tip[image, row, column] | ~any_tip
    # One number orders first by row + column, then by row (or column), and says which pixel it is.
    key = (row + column) * COLUMNS + np.where(any_tip, row, column)
    begins = beginnings(np.bincount(image, minlength=len(black)))
    number = np.arange(len(image)) - begins[image]
    key = np.where(candidate, key, np.iinfo(np.int32).max) * COLUMNS**2 + number
    start: Array = np.minimum.reduceat(key, begins) % COLUMNS**2
    return start


def regenerate(folder: Path, watch: Watch = quiet) -> bytes:
    """The content of the shipped file, made again from the four files of MNIST in a folder."""
    parts = {}
    for number, part in enumerate(PARTS):
        digits = read_digits(folder, part)
        chance = np.random.Generator(np.random.PCG64([SEED, number]))
        parts[part] = convert(digits.images, digits.labels, chance, watch)
    return encode(parts)


def differing(content: bytes, name: str = "regenerated strokes") -> int:
    """How many digits of a file's content differ from the shipped ones; 0: the content is the same.

    It compares digits, not bytes: another version of the compressor may pack the same digits differently.
    """
    made, known = decode(content, name), shipped()
    return sum(_differing(made[part], known[part]) for part in PARTS)


def _differing(one: Strokes, other: Strokes) -> int:
    """Digits that differ in length, label or rows, where both have one, and those that only one has."""
    shared = min(len(one), len(other))
    left, right = one.slice(0, shared), other.slice(0, shared)
    same = (left.lengths == right.lengths) & (left.labels == right.labels)
    kept = [strokes.rows[np.repeat(same, strokes.lengths)] for strokes in (left, right)]
    digit = np.repeat(np.flatnonzero(same), left.lengths[same])
    same[digit[(kept[0] != kept[1]).any(axis=1)]] = False
    return shared - int(same.sum()) + abs(len(one) - len(other))
