"""AudioSet's clips, from any source, and the selection made by the paper (SM "AudioSet").

AudioSet has three parts: bal_train, eval, and the large unbal_train. Each may be in the folder `audioset`
as packed arrays (`bal_train.npz`) or as the official TFRecord files: a folder `bal_train/`, or the archive
`features.tar.gz` for all parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from perdure.benchmarks.sources.archives import LARGEST, npz, tar_members
from perdure.benchmarks.sources.tfrecord import FEATURES, Clip, read_clips
from perdure.benchmarks.task import Array, Watch, quiet
from perdure.errors import PerdureError
from perdure.files import read

Form = Literal["packed", "tfrecord"]
"""How clips are stored."""
ARCHIVE = "features.tar.gz"
"""The official archive of features."""
PACKED = ("x", "lengths", "labels", "label_counts", "ids")
"""Arrays of a packed part: frames uint8 [sum of lengths, 128] of all clips, concatenated, the number of
frames of each clip, the labels of all clips, concatenated, the number of labels of each clip, its video."""
FRAMES = 10
"""Frames of a clip that lasts its full ten seconds."""
SIZES = {"bal_train": 22_160, "eval": 20_371, "unbal_train": 2_042_000}
"""Clips of each part (approximate for the last one); used only to report progress."""
TOLD = 1000
"""Clips between two progress reports."""


@dataclass(frozen=True)
class Selected:
    """N clips of one class each, ordered by the names of their videos; frames are uint8 [10, 128] each."""

    videos: Array
    classes: Array
    frames: list[Array]
    chosen: list[int]
    """The index of each class among the considered ones."""


def files_of(folder: Path, parts: Sequence[str], form: Form | Literal["auto"]) -> tuple[Form, list[Path]]:
    """The form in which a folder has all parts, and their files; packed is preferred because it is faster."""
    packed = [folder / f"{part}.npz" for part in parts]
    if form != "tfrecord" and all(path.is_file() for path in packed):
        return "packed", packed
    if form != "packed":
        if all((folder / part).is_dir() for part in parts):
            found = [path for part in parts for path in sorted((folder / part).glob("*.tfrecord"))]
            if found:
                return "tfrecord", found
        if (folder / ARCHIVE).is_file():
            return "tfrecord", [folder / ARCHIVE]
    wanted = {
        "packed": f"the packed arrays {', '.join(path.name for path in packed)}",
        "tfrecord": f"{ARCHIVE} or folders {', '.join(parts)} of *.tfrecord files",
    }
    needed = " or ".join(wanted.values()) if form == "auto" else wanted[form]
    raise PerdureError(f"audioset: '{folder}' lacks clips; it must have {needed}.")


def read_parts(
    form: Form, files: Sequence[Path], parts: Sequence[str], watch: Watch = quiet
) -> Iterator[Clip]:
    """All clips of the files found by `files_of`, in order."""
    total, number = sum(SIZES[part] for part in parts), 0
    for path in files:
        for clip in _clips(form, path, parts):
            number += 1
            if number % TOLD == 0:
                watch("AudioSet: reading clips", min(number, total), total)
            yield clip
    if number == 0:
        raise PerdureError(f"audioset: '{files[0]}' has no clips of the parts {', '.join(parts)}.")
    watch("AudioSet: reading clips", number, number)


def _clips(form: Form, path: Path, parts: Sequence[str]) -> Iterator[Clip]:
    if form == "packed":
        yield from _packed_clips(path)
    elif path.name == ARCHIVE:

        def wanted(name: str) -> bool:
            pure = PurePosixPath(name)
            return pure.suffix == ".tfrecord" and pure.parent.name in parts

        for name, content in tar_members(path, wanted):
            yield from read_clips(content, f"{path}:{name}")
    else:
        try:
            content = read(path, LARGEST)
        except OSError as error:
            raise PerdureError(f"'{path}' cannot be read ({error.strerror}).") from None
        yield from read_clips(content, str(path))


def _packed_clips(path: Path) -> Iterator[Clip]:
    """The clips of a packed part."""
    arrays = npz(path, PACKED)
    x, lengths, labels, counts, videos = (arrays[name] for name in PACKED)
    _check_packed(path, x, lengths, labels, counts, videos)
    frames = np.split(x, np.cumsum(lengths[:-1], dtype=np.int64))
    tags = np.split(labels, np.cumsum(counts[:-1], dtype=np.int64))
    for video, own, rows in zip(
        videos.tolist(), tags, frames, strict=False
    ):  # without clips, there is one empty part
        yield Clip(str(video), tuple(own.tolist()), rows)


def _check_packed(path: Path, x: Array, lengths: Array, labels: Array, counts: Array, videos: Array) -> None:
    if x.ndim != 2 or x.shape[1] != FEATURES or x.dtype != np.uint8:
        raise PerdureError(f"'{path}': x must be uint8 [frames, {FEATURES}], but is {x.dtype} {x.shape}.")
    for name, array in (("lengths", lengths), ("labels", labels), ("label_counts", counts)):
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or (array < 0).any():
            raise PerdureError(f"'{path}': {name} must be a list of non-negative integers.")
    if not videos.shape == lengths.shape == counts.shape:
        raise PerdureError(
            f"'{path}': ids, lengths and label_counts must have one entry for each clip, but have "
            f"{videos.size}, {lengths.size} and {counts.size}."
        )
    if lengths.sum() != len(x) or counts.sum() != len(labels):
        raise PerdureError(
            f"'{path}': lengths and label_counts add up to {lengths.sum()} frames and {counts.sum()} labels, "
            f"but x and labels hold {len(x)} and {len(labels)}."
        )


def select(clips: Iterable[Clip], considered: Sequence[int], count: int) -> Selected:
    """The clips of the `count` most frequent classes among the considered labels, in their order.

    A clip counts for a class if it lasts the full ten seconds and has no other considered label. The
    selection is then repeated with only the chosen classes considered. Among classes with equally many
    clips the earlier ones are chosen; a video counts once.
    """
    place = {label: number for number, label in enumerate(considered)}
    kept: dict[str, tuple[frozenset[int], Array]] = {}
    for clip in clips:
        own = frozenset(place[label] for label in clip.labels if label in place)
        if own and len(clip.frames) == FRAMES:
            kept.setdefault(clip.video, (own, clip.frames))
    sizes = Counter(next(iter(own)) for own, _ in kept.values() if len(own) == 1)
    if len(sizes) < count:
        raise PerdureError(
            f"audioset: only {len(sizes)} of the {len(considered)} considered classes have clips of their "
            f"own; {count} are needed."
        )
    chosen = sorted(sorted(sizes, key=lambda number: (-sizes[number], number))[:count])
    classes = {number: target for target, number in enumerate(chosen)}
    single: dict[str, int] = {}
    for video in sorted(kept):
        own = kept[video][0] & classes.keys()
        if len(own) == 1:
            single[video] = classes[next(iter(own))]
    frames = [kept[video][1] for video in single]
    return Selected(np.array(list(single)), np.array(list(single.values())), frames, chosen)
