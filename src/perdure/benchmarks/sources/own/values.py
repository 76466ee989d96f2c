"""Values of your own data: numbers from strings, and the scale on which a network predicts them.

The likelihood of values has variance 1, so they are standardised. Which mean and deviation are used depends
on the outputs: if tasks have their own outputs, those of each task's training sequences (which are available
when the task is learnt); if all tasks share their outputs, those of the first task, since nothing about a
later task is known in advance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perdure.benchmarks.sources.own.parts import SPLITS, OwnSequences
from perdure.benchmarks.task import Array, Sequences, Task
from perdure.errors import PerdureError
from perdure.targets.value import Value


def number_of(text: str) -> float | None:
    """The finite number that a string represents, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def as_values(part: OwnSequences) -> OwnSequences:
    """A part whose targets [N] or [N, outputs] are numbers [N, outputs]; strings are parsed."""
    if part.classes is not None:
        raise PerdureError(
            f"'{part.where}' lists classes, but its targets are values; remove one or the other."
        )
    if part.targets.dtype.kind == "U":
        return replace(part, targets=_read(part)[:, None])
    numbers: Array = part.targets.reshape(len(part), -1).astype(np.float64)
    return replace(part, targets=numbers)


def _read(part: OwnSequences) -> Array:
    """The numbers [N] given by the labels of a table."""
    numbers = [number_of(text) for text in part.targets.tolist()]
    for sequence, number in enumerate(numbers):
        if number is None:
            text, place = part.targets[sequence], part.place_of_target(sequence)
            said = f"the label '{text}' is not a finite number" if text else "the sequence has no value"
            raise PerdureError(f"'{part.where}', {place}: {said}; give it one, or leave the sequence out.")
    return np.array(numbers, dtype=np.float64)


def standardised(tasks: Sequence[Task], *, shared: bool) -> list[Task]:
    """The tasks with values of mean 0 and deviation 1 in training: each task's own, or the first task's."""
    scaled = []
    first = Value.fitted(tasks[0].train.y)
    for task in tasks:
        if shared and task.outputs != tasks[0].outputs:
            raise PerdureError(
                f"Task '{task.name}' has {task.outputs} values per sequence, but '{tasks[0].name}' has "
                f"{tasks[0].outputs}; tasks that share their outputs need the same number."
            )
        target = first if shared else Value.fitted(task.train.y)
        train, val, test = (_scaled(getattr(task, split), target) for split in SPLITS)
        scaled.append(replace(task, train=train, val=val, test=test))
    return scaled


def _scaled(data: Sequences, target: Value) -> Sequences:
    return replace(data, target=target, y=target.standardised(data.y))


def check_varied(part: OwnSequences, values: Array) -> None:
    """Raise a helpful error if an output of the training values [N, outputs] never varies."""
    for output, column in enumerate(values.T):
        seen = np.unique(column[~np.isnan(column)])
        if len(seen) < 2:
            only = f"only the value {seen[0]:g}" if len(seen) else "no value at all"
            raise PerdureError(
                f"'{part.where}' has {only} for output {output} in its training sequences; at least two are "
                f"needed."
            )
