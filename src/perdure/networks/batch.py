"""From arrays to network inputs: tensors on a device, and packed mini-batches with targets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.alignment import aligned
from perdure.benchmarks.task import Sequences
from perdure.networks.packing import Packing, pack_lengths, uniform
from perdure.targets.target import Target

FORWARD_BATCH = 500
"""Sequences per forward pass where nothing is learnt: enough to be fast, few enough for the cache."""


@dataclass(frozen=True)
class Batch:
    """A packed mini-batch.

    `asked` are the rows at which outputs are required (None: all), ordered as in `answers`;
    `targets` has one entry per such row, [M, outputs] or [M], and so has the `mask` of scored entries.
    """

    target: Target | None
    """What is to be predicted; None if rows only pass through a network."""
    rows: Tensor
    packing: Packing
    asked: slice | Tensor | None
    answers: Packing
    targets: Tensor
    mask: Tensor | None = None
    """Which targets are known and scored, in their shape; None: all."""
    noise: torch.Generator | None = None
    """What drops units at random, if the network does that; None: nothing is dropped, as in tests."""

    def __len__(self) -> int:
        """The number of sequences."""
        return self.packing.batch


class Data:
    """One split on a device, stored as compactly as it came; batches are floating point."""

    def __init__(
        self,
        sequences: Sequences,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        *,
        lasting: bool = True,
    ) -> None:
        """Move the arrays to the device; numpy's are not aligned, see `aligned`.

        Inputs are not copied if they are not `lasting` but read at once: batches copy from them anyway.
        """
        self.target = sequences.target
        self.dtype = dtype
        x = torch.from_numpy(sequences.x).to(device)
        self.x = aligned(x) if lasting else x
        y = torch.from_numpy(sequences.y)
        self.y = aligned(y.to(device))
        table = sequences.table
        self.table = None if table is None else aligned(torch.from_numpy(table).to(device, dtype))
        self.scaling: tuple[Tensor, Tensor] | None = None
        if sequences.scaling is not None:
            offset, factor = (aligned(torch.from_numpy(part).to(device, dtype)) for part in sequences.scaling)
            self.scaling = offset, factor
        self.lengths = aligned(torch.from_numpy(sequences.lengths)) if sequences.ragged else None
        self.complete = all_asked(self.target, y, self.lengths)

    def having(self, x: Tensor, y: Tensor, lengths: Tensor) -> Data:
        """Other sequences with the same target, on the same device."""
        other = copy(self)  # including its table or scaling
        other.x, other.y = aligned(x.to(self.x.device)), aligned(y.to(self.x.device))
        other.lengths = aligned(lengths.cpu()) if bool((lengths != x.shape[1]).any()) else None
        other.complete = all_asked(self.target, y, other.lengths)
        return other

    def joined(self, other: Data) -> Data:
        """These sequences and then those of other data of the same task; the format is that of the other."""
        return other.having(
            stacked(self.x, other.x),
            stacked(self.y, other.y, unscored=True),
            torch.cat([self.all_lengths, other.all_lengths]),
        )

    def without_samples(self) -> Data:
        """The format of these data, without any samples."""
        other = copy(self)
        other.x, other.y, other.lengths, other.complete = self.x[:0], self.y[:0], None, True
        return other

    def reading(self, table: Tensor) -> Data:
        """The same row indices, read through another table [V, F]."""
        other = copy(self)
        other.table = table
        return other

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.x)

    @property
    def all_lengths(self) -> Tensor:
        """The length of each sequence [N], on the CPU, also where all have all steps."""
        if self.lengths is None:
            return torch.full((len(self),), self.x.shape[1], dtype=torch.int64)
        return self.lengths.long()

    def batch(self, index: Tensor | slice) -> Batch:
        """The sequences at `index` as a packed batch."""
        if isinstance(index, slice):
            index = torch.arange(len(self))[index]
        # Drawn on the CPU, wherever the data are.
        y = self.y.index_select(0, index.to(self.y.device))
        if self.lengths is None:
            packing = uniform(len(index), self.x.shape[1])
        else:
            packing = pack_lengths(self.lengths.index_select(0, index))
        rows = packing.pack(self.x, index)  # then turned into floating point: it is less by the padding
        rows = rows.to(self.dtype) if self.table is None else self.table[rows.long()]
        if self.scaling is not None:
            offset, factor = self.scaling
            rows = (rows - offset) * factor
        return _packed(self.target, rows, packing, y, complete=self.complete)

    def batches(self) -> Iterator[Batch]:
        """All sequences in their order, as batches of at most `FORWARD_BATCH`."""
        for start in range(0, len(self), FORWARD_BATCH):
            yield self.batch(slice(start, start + FORWARD_BATCH))


def stacked(first: Tensor, second: Tensor, *, unscored: bool = False) -> Tensor:
    """Both along the first dimension, as if the shorter had been padded: with zeros, or as not scored."""
    dtype = torch.promote_types(first.dtype, second.dtype)
    filling = 0.0 if not unscored else math.nan if dtype.is_floating_point else -1
    size = [max(pair) for pair in zip(first.shape[1:], second.shape[1:], strict=True)]
    result = first.new_full((len(first) + len(second), *size), filling, dtype=dtype)
    for rows, start in ((first, 0), (second, len(first))):
        result[(slice(start, start + len(rows)), *(slice(n) for n in rows.shape[1:]))] = rows.to(dtype)
    return aligned(result)


def all_asked(target: Target, y: Tensor, lengths: Tensor | None) -> bool:
    """Whether every target within the sequences is scored, so that masks can be skipped."""
    asked = target.asked(y)
    if target.everywhere and lengths is not None:
        inside = torch.arange(y.shape[1]) < lengths[:, None]
        asked = asked[inside.to(asked.device)]
    return bool(asked.all())


def pack_batch(
    target: Target, x: Tensor, y: Tensor, lengths: Tensor | None = None, *, complete: bool = False
) -> Batch:
    """Pack x [B, T, F] and y; lengths are [B], or None if all are T; `complete`: all of y is scored."""
    packing = uniform(*x.shape[:2]) if lengths is None else pack_lengths(lengths)
    return _packed(target, packing.pack(x), packing, y, complete=complete)


def _packed(target: Target, rows: Tensor, packing: Packing, y: Tensor, *, complete: bool) -> Batch:
    """Packed rows [S, F] with the targets of their sequences."""
    asked, answers = _where_asked(packing, target.answered(y), rows.device)
    given = answers.pack(target.by_step(y))
    mask = None if complete else target.asked(given)
    return Batch(target, rows, packing, asked, answers, target.targets(given, mask, rows.dtype), mask)


def _where_asked(
    packing: Packing, answered: int, device: torch.device
) -> tuple[slice | Tensor | None, Packing]:
    """The rows of the last `answered` steps of each sequence (0: all), and the packing of the outputs."""
    if answered == 0:
        return None, packing
    return packing.last(answered, device), uniform(packing.batch, answered)


def asking(target: Target, rows: Tensor, packing: Packing, answered: int) -> Batch:
    """Packed rows [S, F] that require outputs at the last `answered` steps (0: all); targets are unknown."""
    asked, answers = _where_asked(packing, answered, rows.device)
    return Batch(target, rows, packing, asked, answers, rows[:0])


def unlabelled(rows: Tensor, packing: Packing) -> Batch:
    """Packed rows [S, F] that only pass through a network, without targets."""
    return Batch(None, rows, packing, None, packing, rows[:0])
