"""Tables of word vectors that are trained with their task.

A task may read row indices of a table (`Sequences.table`). The table belongs to the task: it is trained in
the task's phase, if at all, and stays fixed afterwards, like an output head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from perdure.learning.splits import Splits
from perdure.networks.batch import Data
from perdure.networks.layout import Vectors

PREFIX = "table."
"""Prefix of the parameter vectors of tables: table.0, table.1, ..."""


def tables(data: Mapping[int, Splits]) -> Vectors:
    """The tables of the tasks that have one, as flat vectors."""
    found = {f"{PREFIX}{task}": splits.train.table for task, splits in data.items()}
    return {name: table.reshape(-1).clone() for name, table in found.items() if table is not None}


def read_through(data: Data, task: int, vectors: Mapping[str, Tensor]) -> Data:
    """A task's data, read through its table if that is among the vectors."""
    vector, table = vectors.get(f"{PREFIX}{task}"), data.table
    if vector is None or table is None:
        return data
    return data.reading(vector.view(table.shape))


def all_read_through(splits: Splits, task: int, vectors: Mapping[str, Tensor]) -> Splits:
    """All splits of a task, read through its table."""
    train, val, test = (read_through(each, task, vectors) for each in (splits.train, splits.val, splits.test))
    return replace(splits, train=train, val=val, test=test)
