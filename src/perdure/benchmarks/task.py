"""What every benchmark provides: tasks, made of sequences with lengths and targets.

Arrays are numpy and stay compact (bits as uint8) until a mini-batch is made. Masked entries of y (-1 for
classes and bits, NaN for values) are excluded from loss, score and Fisher alike.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from perdure.errors import PerdureError
from perdure.options import Piece
from perdure.targets.finding import find_target
from perdure.targets.target import Target

Array = NDArray[Any]

Watch = Callable[[str, int, int], None]
"""Reports the progress of a long build: what is done, how much of it, out of how much."""


def quiet(what: str, done: int, total: int) -> None:
    """Ignore progress."""


Scaling = tuple[Array, Array]
"""Offset and factor of each feature [F]: a network reads (x - offset) * factor."""


def standardisation(x: Array) -> Scaling:
    """The scaling, in double precision, by which each feature of x [..., F] has mean 0 and deviation 1.

    A constant feature is only shifted.
    """
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    deviation = rows.std(axis=0)
    return rows.mean(axis=0), 1 / np.where(deviation > 0, deviation, 1)


@dataclass(frozen=True, init=False)
class Sequences:
    """N sequences of one split: x [N, T, F], y as its target defines it, lengths [N] (1 to T).

    With a table [V, F], x is [N, T] and holds row indices of the table, such as words of a vocabulary.
    With a scaling (offset [F], factor [F]), x stays as it is and a network reads (x - offset) * factor.
    """

    target: Target
    x: Array
    y: Array
    lengths: Array
    table: Array | None = None
    scaling: Scaling | None = None

    def __init__(
        self,
        target: Target | str,
        x: Array,
        y: Array,
        lengths: Array,
        table: Array | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        """Store the arrays as they are; the target may be given by its name, such as 'label'."""
        found = find_target(target)
        _check_arrays({"x": x, "y": y, "lengths": lengths}, table)
        vars(self).update(target=found, x=x, y=y, lengths=lengths, table=table, scaling=scaling)

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.x)

    @property
    def ragged(self) -> bool:
        """Whether any sequence is shorter than the array."""
        return bool((self.lengths != self.x.shape[1]).any())


def _check_arrays(each: Mapping[str, object], table: object) -> None:
    """Raise a helpful error for what is no array, or does not have an entry for each sequence."""
    for name, given in {**each, **({} if table is None else {"table": table})}.items():
        if not isinstance(given, np.ndarray) or not given.ndim:
            raise PerdureError(
                f"Sequences: {name} must be a numpy array, such as np.asarray({name}) "
                f"(given: a {type(given).__name__})."
            )
    counts = {name: len(given) for name, given in each.items() if isinstance(given, np.ndarray)}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise PerdureError(
            f"Sequences: x, y and lengths must have an entry for each sequence (given: {said})."
        )


@dataclass(frozen=True)
class Task:
    """One task of a benchmark: three splits and the number of outputs of its head."""

    name: str
    outputs: int
    train: Sequences
    val: Sequences
    test: Sequences
    told: bool = field(default=True, init=False)
    """Whether it is known at test time which task a sequence belongs to; see `untold`."""

    def untold(self) -> Task:
        """The same task, to be tested without being named."""
        other = copy(self)
        vars(other)["told"] = False
        return other

    @property
    def target(self) -> Target:
        """What is to be predicted, the same in all splits."""
        return self.train.target

    @property
    def inputs(self) -> int:
        """The number of input features."""
        table = self.train.table
        return int(self.train.x.shape[2] if table is None else table.shape[1])


@dataclass(frozen=True)
class Need:
    """A raw file or folder that a benchmark reads."""

    path: str
    """Its path below the data folder, such as audioset/ontology.json."""
    about: str
    """What it is, and where to get it."""
    sha256: str | None = None
    """The checksum of the file that Perdure was tested with, if there is one."""
    instead: tuple[str, ...] = ()
    """Alternatives, also below the data folder."""
    optional: bool = False
    """Whether the benchmark works without it."""


class Benchmark(Piece):
    """Options of a benchmark; `build` makes its tasks."""

    needs: ClassVar[tuple[Need, ...]] = ()
    """What must be below the data folder."""
    origin: ClassVar[str] = "made from a seed"
    """Where the data come from, if no files are needed."""

    @property
    def differs(self) -> str:
        """How its data differ from the paper's, in whole sentences; empty if they do not."""
        return ""

    @property
    def comparable(self) -> bool:
        """Whether its data can be expected to give the paper's numbers."""
        return True

    def for_run(self, seed: int) -> Self:
        """The benchmark of a run with this seed; the same for all, unless the seed decides about the data."""
        del seed
        return self

    def find_files(self) -> None:
        """Raise a helpful error if raw files are missing; no file is read, so this is fast."""

    @abstractmethod
    def build(self, watch: Watch = quiet) -> list[Task]:
        """The tasks in the order in which they are learnt; a long build reports its progress to `watch`."""


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise a helpful error if tasks break the contract above."""
    if not tasks:
        raise PerdureError("The benchmark has no tasks; at least one is needed.")
    for task in tasks:
        if not isinstance(task.name, str):
            told = f"such as '{task.name}' (given: {task.name!r})"
            raise PerdureError(f"tasks: the name of a task must be a text, {told}.")
        for split in ("train", "val", "test"):
            fault = fault_of(getattr(task, split), task.outputs)
            if fault:
                raise PerdureError(f"Task '{task.name}', {split} split: {fault}.")
    kinds = {split.target.name for task in tasks for split in (task.train, task.val, task.test)}
    if len(kinds) > 1:
        raise PerdureError(f"All tasks must have the same kind of target; found {', '.join(sorted(kinds))}.")
    if len({task.inputs for task in tasks}) > 1:
        raise PerdureError(
            "All tasks must have the same number of input features; found "
            + ", ".join(f"{task.name}: {task.inputs}" for task in tasks)
            + "."
        )


def fault_of(data: Sequences, outputs: int) -> str | None:
    """What is wrong with sequences for a network with so many outputs, if anything."""
    x, lengths = data.x, data.lengths
    wanted = "[N, T, F]" if data.table is None else "[N, T]"
    if x.ndim != wanted.count(",") + 1 or len(x) == 0:
        return f"x must be {wanted} with N > 0, but has shape {x.shape}"
    if x.dtype.kind not in "biuf":
        return f"x must hold real numbers, but holds {x.dtype}"
    if data.table is not None and (x.min() < 0 or x.max() >= len(data.table)):
        return f"x must hold row indices of its table, from 0 to {len(data.table) - 1}"
    whole = lengths.shape == (len(x),) and lengths.dtype.kind in "iu"
    if not whole or lengths.min() < 1 or lengths.max() > x.shape[1]:
        return f"lengths must be [N] whole numbers between 1 and T = {x.shape[1]}"
    if not np.isfinite(x if data.table is None else data.table).all():
        return "x holds NaN or infinite values"
    if data.scaling is not None and (fault := _scaling_fault(data)):
        return fault
    return data.target.fault(data.y, lengths, x.shape[1], outputs)


def _scaling_fault(data: Sequences) -> str | None:
    """What is wrong with the scaling of one split, if anything."""
    assert data.scaling is not None
    if data.table is not None:
        return "x with a table holds row indices, which cannot be scaled; scale the table itself"
    wanted = data.x.shape[2:]
    for name, values in zip(("offset", "factor"), data.scaling, strict=True):
        if values.shape != wanted or not np.isfinite(values).all():
            return f"the scaling's {name} must be {wanted[0]} finite numbers, one per feature"
    return None
