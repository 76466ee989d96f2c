"""Tables of word vectors that are trained with their task.

A task may read row numbers of a table (`Sequences.table`). The table is the task's own: it is trained in the
task's phase, if at all, and stays as it is afterwards, like an output head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from perdure.learning.splits import Splits
from perdure.networks.layout import Vectors

PREFIX = "table."
"""How the parameter vectors of tables are named: table.0, table.1, ..."""


def tables(data: Sequence[Splits]) -> Vectors:
    """The tables of all tasks that have one, as flat vectors."""
    found = {f"{PREFIX}{task}": splits.train.table for task, splits in enumerate(data)}
    return {name: table.reshape(-1).clone() for name, table in found.items() if table is not None}


def reading(data: Sequence[Splits], vectors: Mapping[str, Tensor]) -> list[Splits]:
    """The same data, read through the tables among the vectors."""
    result = list(data)
    for task, splits in enumerate(data):
        vector, table = vectors.get(f"{PREFIX}{task}"), splits.train.table
        if vector is not None and table is not None:
            through = vector.view(table.shape)
            train, val, test = (d.reading(through) for d in (splits.train, splits.val, splits.test))
            result[task] = replace(splits, train=train, val=val, test=test)
    return result
