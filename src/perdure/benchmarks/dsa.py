"""Daily and Sports Activities under the protocol of TSCIL (Qiao et al. 2024).

Windows of five seconds from 45 body-worn sensors, 18 activities, two new ones in each task, in another order
for each run. The first three tasks are the validation stream, on which hyper-parameters are chosen; the other
six are the experiment stream, which is reported. Data: Altun, Barshan & Tuncel 2010 (UCI).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, NonNegativeInt

from perdure.benchmarks.scenario import Scenario, in_scenario
from perdure.benchmarks.sources.activities import PACKED, read_folder, read_packed
from perdure.benchmarks.sources.cache import NamedArrays, digest, kept
from perdure.benchmarks.sources.folder import raw
from perdure.benchmarks.task import Array, Benchmark, Need, Sequences, Task, Watch, quiet
from perdure.targets.label import Label

CLASSES, PER_TASK = 18, 2
VALIDATION_TASKS = 3
"""Tasks of the validation stream; the rest are the experiment stream."""
TEST, VAL = 0.25, 0.1
"""Share of a class's windows for testing, and of the others for early stopping."""
REVISION = 1
"""Increased whenever the same files would give different windows."""
NAMES = (
    "sitting",
    "standing",
    "lying on back",
    "lying on side",
    "ascending stairs",
    "descending stairs",
    "standing in a lift",
    "moving in a lift",
    "walking in a car park",
    "walking on a treadmill",
    "walking uphill on a treadmill",
    "running",
    "stepper",
    "cross trainer",
    "cycling horizontally",
    "rowing",
    "jumping",
    "basketball",
)
"""The activities, without the one that is left out: cycling vertically."""


class Dsa(Benchmark):
    """Daily and Sports Activities: classify sensor windows; class-incremental, 6 tasks of 2 activities."""

    needs: ClassVar[tuple[Need, ...]] = (
        Need(
            f"dsa/{PACKED}",
            "packed windows; or the folder a01 ... a19 of the UCI repository's Daily and Sports Activities",
            instead=("dsa/data", "dsa/a01"),
        ),
    )

    stream: Literal["experiment", "validation"] = "experiment"
    """The tasks that are reported, or those on which hyper-parameters are chosen."""
    order: NonNegativeInt | None = None
    """Seed of the order of the activities; default: the run's own seed."""
    scenario: Scenario = "class"
    """task: told at test time; class: not told, all classes so far are possible; domain: not told."""
    tasks: Annotated[int, Field(ge=1, le=CLASSES // PER_TASK - VALIDATION_TASKS)] | None = None
    """Number of tasks; default: all of the stream, 6 or 3."""
    windows: Annotated[int, Field(ge=8)] | None = None
    """Windows of each activity; default: all 480."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the split into training, validation and test windows."""

    @property
    def differs(self) -> str:
        """The split is drawn here."""
        return "DSA: orders of activities and splits of windows are drawn by this project's own seeds."

    def for_run(self, seed: int) -> Self:
        """The order of activities is the seed's."""
        return self if self.order is not None else self.model_copy(update={"order": seed})

    def find_files(self) -> None:
        """The packed arrays, or the folder."""
        self._place()

    def _place(self) -> Path:
        """The file of packed arrays, or the folder with a01, a02, ..."""
        folder = raw(self.name, "dsa")
        for place, found in ((folder / PACKED, folder / PACKED), (folder / "data" / "a01", folder / "data")):
            if place.exists():
                return found
        raw(self.name, "dsa", "a01" if (folder / "a01").exists() else PACKED)
        return folder

    def build(self, watch: Watch = quiet) -> list[Task]:
        """The tasks of the stream; x is float32 [N, 125, 45]."""
        arrays = self._windows(watch)
        order = class_order(self.order or 0)
        start = 0 if self.stream == "validation" else VALIDATION_TASKS
        end = VALIDATION_TASKS if self.stream == "validation" else CLASSES // PER_TASK
        pairs = order.reshape(-1, PER_TASK)[start:end][: self.tasks]
        return in_scenario([self._task(arrays, pair) for pair in pairs], self.scenario)

    def _windows(self, watch: Watch) -> NamedArrays:
        place = self._place()
        if place.is_file():
            recipe = {"revision": REVISION, "file": digest(place)}
            return kept(self.name, recipe, lambda: read_packed(place))
        marks = {str(path.relative_to(place)): path.stat().st_size for path in sorted(place.glob("a*/p*/*"))}
        recipe = {"revision": REVISION, "folder": str(place.resolve()), "sizes": marks}
        return kept(self.name, recipe, lambda: read_folder(place, watch))

    def _task(self, arrays: NamedArrays, pair: Array) -> Task:
        """One task: 25 % of each activity's windows are for testing, a tenth of the rest for validation."""
        parts: dict[str, list[tuple[Array, Array]]] = {"train": [], "val": [], "test": []}
        for label, activity in enumerate(pair):
            members = np.flatnonzero(arrays["y"] == activity)
            source = np.random.RandomState([self.data_seed, int(activity)])
            drawn = source.permutation(members)[: self.windows]
            test = round(len(drawn) * TEST)
            val = max(1, round((len(drawn) - test) * VAL))
            for split, chosen in (
                ("test", drawn[:test]),
                ("val", drawn[test : test + val]),
                ("train", drawn[test + val :]),
            ):
                parts[split].append((arrays["x"][chosen], np.full(len(chosen), label)))
        splits = {split: _sequences(found) for split, found in parts.items()}
        return Task(" and ".join(NAMES[activity] for activity in pair), PER_TASK, **splits)


def class_order(seed: int) -> Array:
    """The 18 activities in the order of a run."""
    # A legacy generator takes 32 bits, or a list of such words; seeds that fit stay what they were.
    words = [seed >> shift & 0xFFFFFFFF for shift in range(0, seed.bit_length(), 32)]
    order: Array = np.random.RandomState(seed if len(words) <= 1 else words).permutation(CLASSES)
    return order


def _sequences(found: list[tuple[Array, Array]]) -> Sequences:
    x, y = (np.concatenate(part) for part in zip(*found, strict=True))
    return Sequences(Label(), x, y, np.full(len(x), x.shape[1]))
