"""Rehearsals: hooks that train on what they store or generate of old tasks."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.hooks import Hook, PhaseContext
from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors


class Rehearsal(Hook):
    """Rehearsal of old tasks; a method has at most one."""

    rehearses: ClassVar[bool] = True

    def examples(
        self, memory: Vectors, context: PhaseContext, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """What is rehearsed of a task, by kind: as many sequences [T, F] as in `real`; for drawings."""
        del memory, context, task, real
        return {}


def sequences_of(batch: Batch, rows: Tensor) -> list[Tensor]:
    """Packed rows as one [T, F] per sequence."""
    padded, lengths = batch.packing.unpack(rows), batch.packing.lengths.tolist()
    return [sequence[:length].cpu() for sequence, length in zip(padded, lengths, strict=True)]


def shares(size: int, tasks: list[int], generator: torch.Generator) -> dict[int, int]:
    """A batch of `size` distributed over tasks as evenly as possible; the remainder is assigned at random."""
    order = [tasks[n] for n in torch.randperm(len(tasks), generator=generator).tolist()]
    each, more = divmod(size, len(tasks))
    counts = {task: each + (place < more) for place, task in enumerate(order)}
    return {task: counts[task] for task in tasks if counts[task]}
