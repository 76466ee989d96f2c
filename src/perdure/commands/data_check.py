"""perdure data check: what was found in your own data, what is worth knowing, and what is wrong."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.benchmarks.arrays import Arrays, Understood
from perdure.benchmarks.sources.own.assembling import Assembled
from perdure.benchmarks.task import Array, Sequences, Task
from perdure.commands.data_listing import lengths_of, span
from perdure.errors import PerdureError, sentence
from perdure.options import option_text, validated
from perdure.report.progress import Display
from perdure.report.table import Table
from perdure.report.terminal import show, tell

WIDE = 30.0
"""Values beyond this are too large for a recurrent network to learn well from."""
FEW = 6
"""Number of classes named in the table; the others are only counted."""


def check(folder: str, options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print what was found and all faults; returns 2 if there are any, otherwise 0."""
    try:
        with Display() as display:
            found = validated(Arrays, {"folder": folder, **options}, "benchmark").understand(display.built)
    except PerdureError as error:
        found = Understood([], [str(error)])
    notes = _notes(found)
    if as_json:
        print(json.dumps(_plain(folder, found, notes)))
    elif found.tasks:
        show(_table(found.tasks), *notes)
        if not found.faults:
            given = {"folder": folder, **options}
            words = [
                word for name, value in given.items() for word in (f"--benchmark.{name}", option_text(value))
            ]
            show(
                f"No faults. To train on it: {shlex.join(['perdure', 'run', 'arrays', 'online-ewc', *words])}"
            )
    for fault in found.faults:
        tell(f"perdure: {sentence(fault)}")
    return 2 if found.faults else 0


def _plain(folder: str, found: Understood, notes: Sequence[str]) -> dict[str, Any]:
    """As plain data."""
    return {
        "folder": folder,
        "content": found.layout.content if found.layout else None,
        "kind": found.tasks[0].task.target.name if found.tasks else None,
        "tasks": [
            {
                "name": each.task.name,
                "features": each.task.inputs,
                "sequences": {split: len(getattr(each.task, split)) for split in ("train", "val", "test")},
                "drawn": list(each.drawn),
                "lengths": dict(zip(("min", "median", "max"), lengths_of(each.task), strict=True)),
                each.task.target.contents_name: contents(each),
            }
            for each in found.tasks
        ],
        "failed": found.failed,
        "notes": list(notes),
        "faults": found.faults,
    }


def contents(each: Assembled) -> dict[str, Any]:
    """The contents of the training targets: how often each class or bit occurs, or the range of values."""
    return each.task.target.contents(each.task.train.y, each.classes)


def _told(name: str, held: Any) -> str:
    """One output's contents as text."""
    if isinstance(held, dict):
        return f"{name}: {', '.join(f'{what} {value:.4g}' for what, value in held.items())}"
    return f"{name}: {held}"


def _table(tasks: Sequence[Assembled]) -> Table:
    first = tasks[0].task
    table = Table(f"Targets: {first.target.name}; {first.inputs} features")
    table.add_column("task")
    for column in ("train", "val", "test", "lengths"):
        table.add_column(column, justify="right")
    table.add_column(f"{first.target.contents_name} in training")
    for each in tasks:
        counts = [
            f"{len(getattr(each.task, split))}{'*' * (split in each.drawn)}"
            for split in ("train", "val", "test")
        ]
        shares = [_told(name, held) for name, held in contents(each).items()]
        more = f", and {len(shares) - FEW} more" if len(shares) > FEW else ""
        table.add_row(each.task.name, *counts, span(each.task), ", ".join(shares[:FEW]) + more)
    return table


def _notes(found: Understood) -> list[str]:
    """What is not a fault, but worth knowing."""
    notes = []
    if any(each.drawn for each in found.tasks):
        notes.append(
            "* drawn from the training sequences (benchmark.val_fraction, test_fraction, data_seed)."
        )
    for each in found.tasks:
        copies = shared_sequences(each.task.train, each.task.test)
        if copies:
            notes.append(f"Task '{each.task.name}': {copies} test sequences are also in training.")
    notes += _range_notes([each.task for each in found.tasks])
    if found.layout:
        ignored = [*found.layout.ignored, *(path for one in found.layout.sources for path in one.ignored)]
        notes += [f"Not read: '{path}'." for path in ignored]
    return notes


def _range_notes(tasks: Sequence[Task]) -> list[str]:
    if not tasks or tasks[0].train.table is not None:
        return []
    steps = [x[np.arange(x.shape[1]) < lengths[:, None]] for x, lengths in map(_training, tasks)]
    least, most = min(float(rows.min()) for rows in steps), max(float(rows.max()) for rows in steps)
    if tasks[0].train.scaling is not None or max(-least, most) <= WIDE:
        return []
    return [
        f"Features range from {least:.4g} to {most:.4g}; networks learn better from smaller values: "
        f"--benchmark.standardise."
    ]


def _training(task: Task) -> tuple[Array, Array]:
    return task.train.x, task.train.lengths


def shared_sequences(one: Sequences, other: Sequences) -> int:
    """How many sequences of the second are also in the first."""

    def keys(data: Sequences) -> list[bytes]:
        return [_bytes(x[:length]) for x, length in zip(data.x, data.lengths, strict=True)]

    known = set(keys(one))
    return sum(key in known for key in keys(other))


def _bytes(x: Array) -> bytes:
    return np.ascontiguousarray(x).tobytes()
