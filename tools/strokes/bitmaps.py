"""Many small black-and-white images at once, as bits: threshold, components, thinning.

A bitmap is uint32 [H, N]: word [r, n] holds row r of image n, its bit c the pixel in column c. One operation
on words then acts on all columns of all images, which makes 70 000 images a matter of seconds. Images may
have up to 32 columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from perdure.benchmarks.task import Array

STEP = 25
"""By how much the threshold rises in each step."""
HIGHEST = 250
"""The maximum threshold."""
KEPT = 0.5
"""The fraction of the initial pixels that must remain."""
THINNINGS = 2
"""Maximum number of full iterations of thinning."""
COLUMNS = 32
"""Bits of a word."""

Connectivity = Literal[4, 8]


def pack(images: Array) -> Array:
    """Bitmap uint32 [H, N] of images bool [N, H, W]."""
    count, height, width = images.shape
    assert width <= COLUMNS
    wide = np.zeros((count, height, COLUMNS), dtype=bool)
    wide[:, :, :width] = images
    words = np.packbits(wide, axis=-1, bitorder="little").view("<u4")[..., 0]
    return np.ascontiguousarray(words.T.astype(np.uint32, copy=False))


def unpack(bitmap: Array, width: int) -> Array:
    """Images bool [N, H, W] of a bitmap."""
    bits = np.ascontiguousarray(bitmap.T).astype("<u4", copy=False)[..., None].view(np.uint8)
    return np.unpackbits(bits, axis=-1, bitorder="little")[..., :width].astype(bool)


def pixels(bitmap: Array) -> Array:
    """The number of black pixels of each image: int64 [N]."""
    count: Array = np.bitwise_count(bitmap).sum(axis=0, dtype=np.int64)
    return count


def components(bitmap: Array, connectivity: Connectivity) -> Array:
    """The number of connected components of each image: int64 [N].

    All components shrink towards their upper left corner without parting or merging (Levialdi's rule), until
    each is a single pixel; there it is counted, and vanishes with the next step.
    """
    counts = np.zeros(bitmap.shape[1], dtype=np.int64)
    while bitmap.any():
        north, south = _moved_down(bitmap), _moved_up(bitmap)
        east, south_east = bitmap >> 1, south >> 1
        touched = north | south | east | bitmap << 1
        if connectivity == 8:
            touched |= north << 1 | north >> 1 | south << 1 | south_east
            shrunk = bitmap & (east | south | south_east) | east & south
        else:
            shrunk = bitmap & (east | south) | east & south & south_east
        counts += pixels(bitmap & ~touched)
        bitmap = shrunk
    return counts


def threshold(images: Array) -> Array:
    """Bitmap of images uint8 [N, H, W]: of the pixels above a grey level that suits each image.

    The level rises in steps as long as half of the pixels stay and no component, 4-connected or 8-connected,
    appears, parts or vanishes.
    """
    chosen = pack(images > 0)
    first = pixels(chosen), components(chosen, 4), components(chosen, 8)
    active = np.arange(len(images))
    for level in range(STEP, HIGHEST, STEP):
        bitmap = pack(images[active] > level)
        few, four, eight = (facts[active] for facts in first)
        good = pixels(bitmap) >= KEPT * few
        good &= (components(bitmap, 4) == four) & (components(bitmap, 8) == eight)
        active = active[good]
        chosen[:, active] = bitmap[:, good]
    return chosen


def thin(bitmap: Array, width: int) -> Array:
    """Bitmap after Zhang-Suen thinning; pixels at the image's border stay."""
    inner = np.zeros_like(bitmap)
    inner[1:-1] = (1 << (width - 1)) - 2
    for _ in range(THINNINGS):
        for second in (False, True):
            around = neighbours(bitmap)
            north, east, south, west = around[::2]
            _, several = _counted(around)
            _, gaps = _counted(~plane for plane in around)
            begins, begin_again = _counted(
                ~plane & following for plane, following in zip(around, around[1:] + around[:1], strict=True)
            )
            corner = north & west & (east | south) if second else east & south & (north | west)
            removed = several & gaps & begins & ~begin_again & ~corner & inner
            bitmap = bitmap & ~removed
    return bitmap


def without_specks(bitmap: Array) -> Array:
    """Bitmap without its 8-connected components of one or two pixels."""
    some, several = _counted(neighbours(bitmap))
    ends = bitmap & some & ~several
    beside_end, _ = _counted(neighbours(ends))
    return bitmap & some & ~(ends & beside_end)


def tips(bitmap: Array) -> Array:
    """Bitmap of the pixels that have at most one neighbour."""
    _, several = _counted(neighbours(bitmap))
    return bitmap & ~several


def neighbours(bitmap: Array) -> list[Array]:
    """Eight bitmaps: at each pixel its neighbour in the north, north-east, east, and so on clockwise."""
    north, south = _moved_down(bitmap), _moved_up(bitmap)
    return [
        north, north >> 1, bitmap >> 1, south >> 1,
        south, south << 1, bitmap << 1, north << 1,
    ]  # fmt: skip


def _moved_down(bitmap: Array) -> Array:
    moved = np.zeros_like(bitmap)
    moved[1:] = bitmap[:-1]
    return moved


def _moved_up(bitmap: Array) -> Array:
    moved = np.zeros_like(bitmap)
    moved[:-1] = bitmap[1:]
    return moved


def _counted(planes: Iterable[Array]) -> tuple[Array, Array]:
    """Where at least one of the bitmaps is set, and where at least two are."""
    some = several = np.zeros(1, dtype=np.uint32)
    for plane in planes:
        several = several | some & plane
        some = some | plane
    return some, several
