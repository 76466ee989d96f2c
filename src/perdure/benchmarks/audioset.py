"""Split-AudioSet (paper Sec. 5.3, SM "AudioSet"): classify the sound of a ten-second clip.

A clip is [10, 128]: one embedding per second, computed by a VGG network, as bytes. 100 classes are divided
among 10 tasks of 10 classes. The paper draws 1000 clips per class from all of AudioSet (subset `full`).
Without the two million clips of the unbalanced part there are about 111 per class; tasks made of these are
called AudioSet-100 balanced+eval, and their accuracies are not comparable with those of the paper's split.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from perdure.benchmarks.scenario import Scenario, in_scenario
from perdure.benchmarks.sources.cache import NamedArrays, digest, kept
from perdure.benchmarks.sources.clips import ARCHIVE, FRAMES, Form, Selected, files_of, read_parts, select
from perdure.benchmarks.sources.folder import raw
from perdure.benchmarks.sources.ontology import considered_classes
from perdure.benchmarks.task import Array, Benchmark, Need, Sequences, Task, Watch, quiet, standardisation
from perdure.errors import PerdureError
from perdure.targets.label import Label

Subset = Literal["balanced+eval", "full"]

GRID = (10, 10)
"""Number of tasks, and classes per task: all 100 classes are assigned, even if only some of them are used."""
METADATA = ("ontology.json", "class_labels_indices.csv", "confidence_data.csv")
"""Files about the classes."""
PARTS: dict[Subset, tuple[str, ...]] = {
    "balanced+eval": ("bal_train", "eval"),
    "full": ("bal_train", "eval", "unbal_train"),
}
"""The parts of AudioSet whose clips are pooled."""
TITLES: dict[Subset, str] = {"balanced+eval": "AudioSet-100 balanced+eval", "full": "Split-AudioSet-10"}
"""What tasks of a subset are called."""
MOST: dict[Subset, int] = {"balanced+eval": 120, "full": 1000}
"""Clips per class; an upper bound in balanced+eval, where one class has 1043 and most have about 111."""
SHARES: dict[Subset, tuple[float, float]] = {"balanced+eval": (0.1, 0.2), "full": (0.05, 0.2)}
"""Fractions of a class's clips for validation and test; `full` thus has 750, 50 and 200, as in the paper."""
SPLITS = ("train", "val", "test")
REVISION = 1
"""Increased whenever the same files would give different clips."""


class Audioset(Benchmark):
    """Split-AudioSet: classify ten-second sound clips; 10 tasks of 10 classes."""

    later: ClassVar[tuple[str, ...]] = ("scenario",)
    needs: ClassVar[tuple[Need, ...]] = (
        Need(
            "audioset/ontology.json",
            "AudioSet's ontology, from its repository",
            "9c685f4403eecc3ca9be37fd7285cf212feaaea6ff7229d3e7ca89e0d1f2d15d",
        ),
        Need(
            "audioset/class_labels_indices.csv",
            "the class indices, from AudioSet's page",
            "cdd1049833c4b86127c2773ac0d14a2754b6a6d0d1798002ed5c66e699708429",
        ),
        Need(
            "audioset/confidence_data.csv",
            "estimates of the labels' quality, from AudioSet's page",
            "ab44e90fc2b6eb17a6fb103f11971d93e9c0ecde9fc2987941ac814e49715aec",
        ),
        *(
            Need(
                f"audioset/{part}.npz",
                f"the clips of {part}: packed arrays, or the official TFRecord files"
                + (", for --benchmark.subset full" if part == "unbal_train" else ""),
                instead=(f"audioset/{part}", f"audioset/{ARCHIVE}"),
                optional=part == "unbal_train",
            )
            for part in PARTS["full"]
        ),
    )

    source: Literal["auto", "packed", "tfrecord"] = "auto"
    """Read clips from packed arrays or from the official TFRecord files; auto: whichever is available."""
    subset: Subset = "balanced+eval"
    """Use clips of the balanced and evaluation sets, or of all three sets as in the paper (full)."""
    tasks: Annotated[int, Field(ge=1, le=GRID[0])] = GRID[0]
    """Number of tasks."""
    classes: Annotated[int, Field(ge=2, le=GRID[1])] = GRID[1]
    """Classes per task; a smaller number selects a subset of the classes of a larger one."""
    clips: Annotated[int, Field(ge=3)] | None = None
    """Clips per class (balanced+eval: at most this many); default: 120, or 1000 for full, as in the paper."""
    scaling: Literal["raw", "standardised"] = "raw"
    """Raw inputs, 0 to 255 (the paper), or mean 0 and SD 1 over the first task's training clips."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the selection of clips and of the assignment of classes to tasks; seed: that of the run."""

    scenario: Scenario = "task"
    """task: told at test time; class: not told, all classes so far are possible; domain: not told."""

    @property
    def differs(self) -> str:
        """Whether the clips are the paper's."""
        if self.comparable:
            return ""
        return (
            "AudioSet: the clips come from the balanced and evaluation sets, at most 120 for each of the "
            "paper's 100 classes; the paper uses 1000."
        )

    @property
    def comparable(self) -> bool:
        """With all three sets, clips are selected as in the paper."""
        return self.subset == "full"

    def find_files(self) -> None:
        """The three files about classes, and the clips of all parts in some form."""
        self._files()

    def _files(self) -> tuple[Path, list[Path], Form, list[Path]]:
        """The folder, the files about classes, and the form and files of the clips."""
        folder = raw(self.name, "audioset")
        about = [raw(self.name, "audioset", name) for name in METADATA]
        return folder, about, *files_of(folder, PARTS[self.subset], self.source)

    def build(self, watch: Watch = quiet) -> list[Task]:
        """Clips stay bytes: x is uint8 [N, 10, 128], y [N] the column of a clip's class in its task's row."""
        arrays = self._arranged(watch)
        rows = class_rows(self.data_seed)[: self.tasks, : self.classes]
        parts = [{split: _part(arrays, split, row) for split in SPLITS} for row in rows]
        # One scaling for all tasks, from the first one only: nothing about a later task is known in advance.
        scaling = standardisation(parts[0]["train"][0]) if self.scaling == "standardised" else None
        tasks = [
            Task(
                f"{TITLES[self.subset]}, task {number}",
                self.classes,
                *(
                    Sequences(Label(), x, y, np.full(len(x), FRAMES), scaling=scaling)
                    for x, y in (part[split] for split in SPLITS)
                ),
            )
            for number, part in enumerate(parts, 1)
        ]
        return in_scenario(tasks, self.scenario)

    def _arranged(self, watch: Watch) -> NamedArrays:
        """The result of `arrange`, read from the cache if possible."""
        folder, about, form, files = self._files()
        most = self.clips or MOST[self.subset]

        def make() -> NamedArrays:
            considered = considered_classes(*about)
            clips = read_parts(form, files, PARTS[self.subset], watch)
            selected = select(clips, [one.label for one in considered], GRID[0] * GRID[1])
            names = [considered[place].name for place in selected.chosen]
            return arrange(selected, names, self.subset, most, self.data_seed)

        recipe = {
            "revision": REVISION,
            "files": {str(path.relative_to(folder)): digest(path) for path in [*about, *files]},
            "subset": self.subset,
            "clips": most,
            "data_seed": self.data_seed,
        }
        return kept(self.name, recipe, make)


def class_rows(seed: int) -> Array:
    """All classes in random order, in rows [10, 10]: a task has the first columns of its row."""
    return np.random.RandomState(seed).permutation(GRID[0] * GRID[1]).reshape(GRID)


def arrange(selected: Selected, names: list[str], subset: Subset, most: int, seed: int) -> NamedArrays:
    """The clips of each class in random order, at most `most` of them, and the split of each clip.

    Arrays: x uint8 [N, 10, 128], class [N], split [N] (an index into `SPLITS`), video [N]. The same share of
    each class goes to each split, and the split of a clip does not depend on the number of tasks.
    """
    members = [np.flatnonzero(selected.classes == number) for number in range(len(names))]
    _check_sizes(dict(zip(names, map(len, members), strict=True)), subset, most)
    source = np.random.RandomState(seed)
    drawn = [source.permutation(one)[:most] for one in members]
    index = np.concatenate(drawn)
    return {
        "x": np.stack([selected.frames[number] for number in index]),
        "class": selected.classes[index],
        "split": np.concatenate([_splits(len(one), subset) for one in drawn]),
        "video": selected.videos[index],
    }


def _splits(count: int, subset: Subset) -> Array:
    """The split of each of a class's clips: first training, then validation, then test."""
    val, test = (max(1, round(count * share)) for share in SHARES[subset])
    return np.repeat(np.arange(3, dtype=np.uint8), [count - val - test, val, test])


def _check_sizes(sizes: dict[str, int], subset: Subset, most: int) -> None:
    least = most if subset == "full" else 3
    short = {name: size for name, size in sizes.items() if size < least}
    if short:
        worst = min(short, key=lambda name: short[name])
        raise PerdureError(
            f"audioset: {TITLES[subset]} needs {least} clips of each of {len(sizes)} classes, but "
            f"{len(short)} have fewer, '{worst}' only {short[worst]}; put all of AudioSet's "
            f"{', '.join(PARTS[subset])} in the data folder"
            + (", or use --benchmark.subset balanced+eval." if subset == "full" else ".")
        )


def _part(arrays: NamedArrays, split: str, row: Array) -> tuple[Array, Array]:
    """Clips and labels of one split of the task with the given row of classes."""
    columns = np.full(GRID[0] * GRID[1], -1)
    columns[row] = np.arange(len(row))
    labels = columns[arrays["class"]]
    own = (arrays["split"] == SPLITS.index(split)) & (labels >= 0)
    return arrays["x"][own], labels[own]
