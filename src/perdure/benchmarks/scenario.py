"""What is known of the task at test time (van de Ven & Tolias 2019): three scenarios from the same data.

task: the task is told. class: it is not, and every class that has arrived is a possible answer. domain: it is
not, and all tasks have the same classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from perdure.benchmarks.task import Sequences, Task
from perdure.errors import PerdureError

Scenario = Literal["task", "class", "domain"]
"""task: told at test time; class: not told, and all classes so far are possible; domain: not told."""


def in_scenario(tasks: Sequence[Task], scenario: Scenario) -> list[Task]:
    """The tasks as they are in a scenario; in class, a task's outputs are all classes up to it."""
    if scenario == "task":
        return list(tasks)
    for task in tasks:
        if scenario == "class" and not task.target.categorical:
            raise PerdureError(
                f"benchmark.scenario: class is for tasks that predict classes, but '{task.name}' predicts "
                f"{task.target.contents_name}; use task or domain."
            )
    if scenario == "domain":
        if len({task.outputs for task in tasks}) > 1:
            raise PerdureError(
                "benchmark.scenario: domain needs tasks with equally many outputs, found "
                f"{[task.outputs for task in tasks]}; use task or class."
            )
        return [task.untold() for task in tasks]
    result, first = [], 0
    for task in tasks:
        splits = [_shifted(split, first) for split in (task.train, task.val, task.test)]
        first += task.outputs
        result.append(Task(task.name, first, *splits).untold())
    return result


def _shifted(data: Sequences, first: int) -> Sequences:
    """The same with classes counted from `first`; ignored ones stay ignored."""
    y = data.y.astype(np.int64)
    return Sequences(
        data.target, data.x, np.where(y >= 0, y + first, y), data.lengths, data.table, data.scaling
    )
