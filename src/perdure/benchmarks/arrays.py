"""Your own sequences: a folder with one file or sub-folder per task, or arrays in Python.

A run is identified by its data, not by where they are stored: the config carries a digest of the files.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from perdure.benchmarks.scenario import Scenario, in_scenario
from perdure.benchmarks.sources.own.assembling import Assembled, Rules, assemble
from perdure.benchmarks.sources.own.given import parts_of_given
from perdure.benchmarks.sources.own.layout import ORDER, FolderLayout, lay_out, read_source
from perdure.benchmarks.sources.own.parts import SPLITS, Faults, OwnSequences
from perdure.benchmarks.task import Array, Benchmark, Sequences, Task, Watch, check_tasks, quiet
from perdure.errors import PerdureError, unknown
from perdure.files import write
from perdure.options import validated
from perdure.targets.finding import find_target


def _listed(value: object) -> object:
    """Accept 'a,b' for a list of names."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _written(value: object) -> object:
    """Accept a Path for its text."""
    return str(value) if isinstance(value, Path) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Names of tasks; written a,b,c on the command line."""
Share = Annotated[float, Field(gt=0, lt=0.5)]
"""A fraction of the training sequences."""


OF_FILES = ("folder", "tasks", "content")
"""Options that only data in files have."""


@dataclass(frozen=True)
class Understood:
    """The contents of a folder: the tasks that can be used, and everything that is wrong."""

    tasks: list[Assembled]
    faults: list[str]
    layout: FolderLayout | None = None
    failed: list[str] = field(default_factory=list)
    """Names of the tasks that cannot be used."""


class Arrays(Benchmark):
    """Your own sequences, from a folder with one file or sub-folder per task."""

    later: ClassVar[tuple[str, ...]] = ("scenario",)
    origin: ClassVar[str] = "your own: --benchmark.folder DIR (docs/own-data.md, perdure data check DIR)"

    folder: Annotated[str, BeforeValidator(_written)] = ""
    """The folder; docs/own-data.md describes what it may contain."""
    tasks: Names = ()
    """The tasks to learn, in this order; by default those in tasks.txt, or all, sorted by name."""
    kind: Literal["auto", "label", "tags", "bits", "value"] = "auto"
    """What to predict: a class per sequence or per step, or bits or values at the end; auto: infer it."""
    labels: Literal["own", "shared"] = "own"
    """own: each task has its own classes, or its own scale of values; shared: the same in all tasks."""
    val_fraction: Share = 0.1
    """Fraction of the training sequences to validate on, for tasks without a validation split."""
    test_fraction: Share = 0.2
    """Fraction of the training sequences to test on, for tasks without a test split."""
    data_seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the randomly drawn splits; seed: that of the run."""
    standardise: bool = False
    """Scale all tasks alike, so that the first task's training features have mean 0 and deviation 1."""
    scenario: Scenario = "task"
    """task: told at test time; class: not told, all classes so far are possible; domain: not told."""
    content: Annotated[str, Field(validate_default=True)] = ""
    """The expected digest of the files; by default that of the files as they are now."""

    @field_validator("content")
    @classmethod
    def _as_it_is(cls, content: str, info: ValidationInfo) -> str:
        """Fill in the digest, so that different data make a different run."""
        folder, tasks = info.data.get("folder"), info.data.get("tasks")
        if content or not folder or tasks is None:
            return content
        return lay_out(_path(folder), tasks).content

    def build(self, watch: Watch = quiet) -> list[Task]:
        """Read all tasks; raises if anything is wrong with any of them."""
        found = self.understand(watch)
        faults = Faults()
        faults.found += found.faults
        faults.settle(f"; perdure data check '{self.folder}' lists all")
        return self.as_tested([each.task for each in found.tasks])

    def as_tested(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks as they are in the scenario."""
        if self.scenario == "class" and self.labels == "shared":
            raise PerdureError(
                "benchmark.scenario: class needs tasks with classes of their own; use "
                "--benchmark.labels own, or the scenario domain."
            )
        return in_scenario(tasks, self.scenario)

    def understand(self, watch: Watch = quiet) -> Understood:
        """Read everything that can be read, and collect all faults."""
        if not self.folder:
            raise PerdureError(
                "benchmark.folder: no folder is given for your data; name it with --benchmark.folder DIR."
            )
        layout = lay_out(_path(self.folder), self.tasks)
        if self.content not in ("", layout.content):
            raise PerdureError(
                f"'{self.folder}' has changed: its digest was {self.content} when this run was created, and "
                f"is {layout.content} now; restore the old files, or start a new run."
            )
        faults, parts = Faults(), dict[str, list[OwnSequences]]()
        for number, source in enumerate(layout.sources):
            watch("reading", number, len(layout.sources))
            before = len(faults.found)
            read = read_source(source, faults)
            if len(faults.found) == before:
                parts[source.name] = read
        watch("reading", len(layout.sources), len(layout.sources))
        tasks = assemble(parts, self.rules, faults)
        used = {each.task.name for each in tasks}
        failed = [source.name for source in layout.sources if source.name not in used]
        return Understood(tasks, faults.found, layout, failed)

    @property
    def rules(self) -> Rules:
        """The options that determine how parts become tasks."""
        target = None if self.kind == "auto" else find_target(self.kind)
        shared = self.labels == "shared"
        return Rules(target, shared, self.val_fraction, self.test_fraction, self.data_seed, self.standardise)


def _path(folder: str) -> Path:
    return Path(folder).expanduser()


def tasks_from(given: Mapping[str, Any] | Sequence[Any], **options: Any) -> list[Task]:
    """Make tasks from Python objects; `options` are those of `Arrays` except folder, tasks and content.

    Each task is (x, y), where x is an array [N, T, F] or a list of arrays [T_i, F], and y is as in files:
    classes [N], a class per step, bits [N, P, outputs], or floating-point values [N] or [N, outputs]; or a
    data set (anything with a length whose items are pairs of one sequence [T, F] and its target); or a
    mapping from train, val and test to either. A mapping names the tasks; those of a list are called task 1,
    task 2 and so on.
    """
    named = (
        dict(given) if isinstance(given, Mapping) else {f"task {n + 1}": one for n, one in enumerate(given)}
    )
    known = [name for name in Arrays.model_fields if name not in OF_FILES]
    for name in options:
        if name not in known:
            raise unknown("option", f"tasks_from.{name}", [f"tasks_from.{each}" for each in known])
    arrays, faults = validated(Arrays, options, "tasks_from"), Faults()
    parts = {name: parts_of_given(name, one, faults) for name, one in named.items()}
    tasks = [each.task for each in assemble(parts, arrays.rules, faults)]
    faults.settle()
    tasks = arrays.as_tested(tasks)
    check_tasks(tasks)
    return tasks


def save_tasks(tasks: Sequence[Task], folder: Path | str) -> Path:
    """Write tasks to a folder that the benchmark `arrays` reads back unchanged; returns the folder.

    Values are written in their own units and standardised when they are read.
    This way, tasks made in Python run like all others, with records and resume:
    `build("arrays", "si", benchmark__folder=save_tasks(tasks, "mine"))`.
    """
    check_tasks(tasks)
    folder = Path(folder)
    for task in tasks:
        if not re.fullmatch(r"[^\W_.#][^/\\\n]*", task.name) or task.name != task.name.strip():
            raise PerdureError(
                f"Task '{task.name}' cannot be used as a file name; choose a name that starts with a letter "
                f"or digit and contains no slash."
            )
        if not task.told:
            raise PerdureError(
                f"Task '{task.name}' is not told at test time, which no file can say; save the tasks of the "
                f"scenario 'task', and choose another one where they are read (--benchmark.scenario class)."
            )
    if len({task.name for task in tasks}) < len(tasks):
        raise PerdureError("Two tasks have the same name; give each task a unique name.")
    _check_alone(folder, [task.name for task in tasks])
    for task in tasks:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **_arrays(task))
        write(folder / f"{task.name}.npz", buffer.getvalue())
    write(folder / ORDER, "".join(f"{task.name}\n" for task in tasks).encode())
    return folder


def _check_alone(folder: Path, names: Sequence[str]) -> None:
    """Raise if something there would be read as one of these tasks too; their own files are replaced."""
    for other in sorted(folder.iterdir()) if folder.is_dir() else ():
        if other.stem in names and other.name != f"{other.stem}.npz" and not other.name.startswith("."):
            raise PerdureError(
                f"'{folder}' already has '{other.name}', which would be task '{other.stem}' as well; choose "
                f"another folder."
            )


def _arrays(task: Task) -> dict[str, Array]:
    """A task as the arrays of an npz file."""
    arrays: dict[str, Array] = {}
    for split in SPLITS:
        data: Sequences = getattr(task, split)
        steps = int(data.lengths.max())
        inside = np.arange(steps) < data.lengths[:, None]
        x, y = _as_read(data)[:, :steps], data.target.in_own_units(data.y)
        if data.target.everywhere:
            y = y[:, :steps]
        ragged = not inside.all()
        arrays[f"x_{split}"] = x[inside] if ragged else x
        arrays[f"y_{split}"] = y[inside] if ragged and data.target.everywhere else y
        arrays[f"lengths_{split}"] = data.lengths
    if task.target.categorical:
        arrays["classes"] = np.arange(task.outputs)
    if task.train.table is not None:
        arrays["table"] = task.train.table
    return arrays


def _as_read(data: Sequences) -> Array:
    """The inputs as a network reads them: scaled, if a scaling is set."""
    if data.scaling is None:
        return data.x
    offset, factor = data.scaling
    return ((data.x - offset) * factor).astype(np.float32)
