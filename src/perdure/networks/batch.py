"""From arrays to what a network reads: tensors on a device, and packed mini-batches with targets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.alignment import aligned
from perdure.benchmarks.task import Kind, Sequences
from perdure.networks.packing import Packing, pack_lengths, uniform


@dataclass(frozen=True)
class Batch:
    """A packed mini-batch.

    `asked` are the rows at which the network must answer (None: all), ordered as `answers` says;
    `targets` has one entry for each of them: [M, outputs] bits or [M] classes, -1 where not asked.
    """

    kind: Kind
    rows: Tensor
    packing: Packing
    asked: slice | Tensor | None
    answers: Packing
    targets: Tensor
    complete: bool
    """Whether no target is -1, so that masks can be skipped."""

    def __len__(self) -> int:
        """The number of sequences."""
        return self.packing.batch


class Data:
    """One split on a device, kept as compact as it came; a batch becomes floating point."""

    def __init__(
        self,
        sequences: Sequences,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Move the arrays to the device; numpy's are not aligned, see `aligned`."""
        self.kind = sequences.kind
        self.dtype = dtype
        self.x = aligned(torch.from_numpy(sequences.x).to(device))
        self.y = aligned(torch.from_numpy(sequences.y).to(device))
        table = sequences.table
        self.table = None if table is None else aligned(torch.from_numpy(table).to(device, dtype))
        self.scaling: tuple[Tensor, Tensor] | None = None
        if sequences.scaling is not None:
            offset, factor = (aligned(torch.from_numpy(part).to(device, dtype)) for part in sequences.scaling)
            self.scaling = offset, factor
        self.lengths = aligned(torch.from_numpy(sequences.lengths)) if sequences.ragged else None
        self.complete = bool((sequences.y >= 0).all()) or self.kind is Kind.TAGS

    def having(self, x: Tensor, y: Tensor, lengths: Tensor) -> Data:
        """Other sequences of the same kind, on the same device."""
        other = copy(self)  # with its table or scaling
        other.x, other.y = aligned(x.to(self.x.device)), aligned(y.to(self.x.device))
        other.lengths = aligned(lengths.cpu()) if bool((lengths != x.shape[1]).any()) else None
        other.complete = bool((y >= 0).all()) or self.kind is Kind.TAGS
        return other

    def reading(self, table: Tensor) -> Data:
        """The same row numbers, read through another table [V, F]."""
        other = copy(self)
        other.table = table
        return other

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.x)

    def batch(self, index: Tensor | slice) -> Batch:
        """The sequences at `index` as a packed batch."""
        if isinstance(index, Tensor):  # drawn on the CPU, wherever the data are
            where = index.to(self.x.device)
            x, y = self.x.index_select(0, where), self.y.index_select(0, where)
        else:
            x, y = self.x[index], self.y[index]
        lengths = None if self.lengths is None else self.lengths[index]
        packing = uniform(*x.shape[:2]) if lengths is None else pack_lengths(lengths)
        rows = packing.pack(x)  # first packed, then turned into floating point: it is less by the padding
        rows = rows.to(self.dtype) if self.table is None else self.table[rows.long()]
        if self.scaling is not None:
            offset, factor = self.scaling
            rows = (rows - offset) * factor
        return _packed(self.kind, rows, packing, y, complete=self.complete)


def pack_batch(
    kind: Kind, x: Tensor, y: Tensor, lengths: Tensor | None = None, *, complete: bool = False
) -> Batch:
    """Pack x [B, T, F] and y; lengths [B] or None if all are T long."""
    packing = uniform(*x.shape[:2]) if lengths is None else pack_lengths(lengths)
    return _packed(kind, packing.pack(x), packing, y, complete=complete)


def _packed(kind: Kind, rows: Tensor, packing: Packing, y: Tensor, *, complete: bool) -> Batch:
    """Packed rows [S, F] with the targets of their sequences."""
    if kind is Kind.TAGS:
        # Rows end where sequences do; a tag may still be unknown within one.
        return Batch(kind, rows, packing, None, packing, packing.pack(y).long(), True)
    count = y.shape[1] if kind is Kind.PATTERN else 1
    answers = uniform(packing.batch, count)
    targets = answers.pack(y).to(rows.dtype) if kind is Kind.PATTERN else y.long()
    return Batch(kind, rows, packing, packing.last(count, rows.device), answers, targets, complete)


def unlabelled(rows: Tensor, packing: Packing) -> Batch:
    """Packed rows [S, F] that are to be answered everywhere, and whose answers are not known."""
    unknown = torch.full((len(rows),), -1, device=rows.device)
    return Batch(Kind.TAGS, rows, packing, None, packing, unknown, False)
