"""The windows of Daily and Sports Activities, from packed arrays or from the files of the UCI repository."""

from __future__ import annotations

import io
import lzma
import zipfile
from pathlib import Path

import numpy as np

from perdure.benchmarks.sources.cache import NamedArrays
from perdure.benchmarks.task import Array, Watch
from perdure.errors import PerdureError

PACKED = "dsa.npz.xz"
"""Name of the file of packed arrays."""
ACTIVITIES, LEFT_OUT = 19, 16
"""Number of activities, and the one that TSCIL leaves out."""
PEOPLE, SEGMENTS = 8, 60
STEPS, CHANNELS = 125, 45


def read_packed(path: Path) -> NamedArrays:
    """X float32 [N, 125, 45] and y [N] from packed arrays.

    They hold high and low bytes of differences along time, modulo 2^16, channel by channel.
    """
    try:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes())), allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("planes", "scale", "offset", "activity")}
    except (OSError, lzma.LZMAError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise PerdureError(f"dsa: '{path}' cannot be read ({error}); get the file again.") from None
    planes, activity = arrays["planes"], arrays["activity"]
    wanted = (2, CHANNELS, len(activity), STEPS)
    if planes.shape != wanted or arrays["scale"].shape != (CHANNELS,):
        raise PerdureError(f"dsa: '{path}' must hold planes {list(wanted)}, found {list(planes.shape)}.")
    x = np.empty((len(activity), STEPS, CHANNELS), dtype=np.float32)
    for channel in range(CHANNELS):
        moves = planes[0, channel].astype(np.uint16) * 256 + planes[1, channel]
        levels = np.cumsum(moves, axis=1, dtype=np.uint16)
        x[:, :, channel] = levels * arrays["scale"][channel] + arrays["offset"][channel]
    return {"x": x, "y": activity.astype(np.int64) - 1}


def read_folder(folder: Path, watch: Watch) -> NamedArrays:
    """The same from aNN/pN/sNN.txt: 125 lines of 45 numbers each."""
    windows: list[Array] = []
    labels: list[int] = []
    activities = [number for number in range(1, ACTIVITIES + 1) if number != LEFT_OUT]
    for label, number in enumerate(activities):
        watch("activities", label, len(activities))
        for person in range(1, PEOPLE + 1):
            for segment in range(1, SEGMENTS + 1):
                path = folder / f"a{number:02}" / f"p{person}" / f"s{segment:02}.txt"
                windows.append(_window(path))
                labels.append(label)
    watch("activities", len(activities), len(activities))
    return {"x": np.stack(windows), "y": np.array(labels)}


def _window(path: Path) -> Array:
    try:
        values = np.loadtxt(path, delimiter=",", dtype=np.float32, ndmin=2)
    except (OSError, ValueError) as error:
        raise PerdureError(f"dsa: '{path}' cannot be read ({error}); get the data again.") from None
    if values.shape != (STEPS, CHANNELS):
        raise PerdureError(
            f"dsa: '{path}' must have {STEPS} lines of {CHANNELS} numbers, found {values.shape}."
        )
    return values
