"""Sequences of different lengths as rows without padding.

Sequences are sorted by decreasing length and stored step by step: the rows of step t are those of the n_t
sequences that have not ended, and n_t never grows. Everything outside the recurrence then works on one
matrix [S, F], where S is the sum of all lengths, and the recurrence works on a batch that shrinks as
sequences end: steps beyond an end cost nothing and change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Way:
    """A sweep as the compiled library reads it: rows per step, and (step, previous, carried) of each move."""

    def __init__(self, sizes: NDArray[np.int64], moves: NDArray[np.int64]) -> None:
        """Arrays [T] and [T, 3]; they must stay as they are."""
        self.sizes, self.moves = sizes, moves
        self.rows = int(sizes.sum())
        self.addresses = len(sizes), sizes.ctypes.data, moves.ctypes.data
        """Number of steps, and where both arrays are in memory."""


class Move(NamedTuple):
    """One time step of a sweep over packed rows.

    The first `carried` rows of `step` continue from the first rows of step `previous`; the rest start
    from the zero state.
    """

    step: int
    previous: int
    carried: int


@dataclass(frozen=True, eq=False)
class Sweep:
    """The path through all rows: from the first step to the last, or backwards from each sequence's last."""

    sizes: tuple[int, ...]
    """Number of rows of each step."""
    backward: bool

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The steps in order."""
        last = len(self.sizes) - 1
        if not self.backward:
            return tuple(Move(t, max(t - 1, 0), size if t else 0) for t, size in enumerate(self.sizes))
        moves = [Move(t, min(t + 1, last), self.sizes[t + 1] if t < last else 0) for t in range(last + 1)]
        return tuple(reversed(moves))

    @cached_property
    def way(self) -> Way:
        """The same as plain arrays, for the compiled library."""
        sizes = np.array(self.sizes, dtype=np.int64)
        steps, last = np.arange(len(sizes)), len(sizes) - 1
        moves = np.empty((len(sizes), 3), dtype=np.int64)
        if self.backward:
            order = steps[::-1]
            moves[:, 0], moves[:, 1] = order, np.minimum(order + 1, last)
            moves[0, 2], moves[1:, 2] = 0, sizes[:0:-1]
        else:
            moves[:, 0], moves[:, 1] = steps, np.maximum(steps - 1, 0)
            moves[0, 2], moves[1:, 2] = 0, sizes[1:]
        return Way(sizes, moves)


@dataclass(frozen=True)
class Packing:
    """The arrangement of a batch [B, T] as packed rows: n_t per step, and the order of the sequences."""

    sizes: tuple[int, ...]
    order: Tensor | None = None
    """Sequence indices [B] by decreasing length; None if all are equally long."""

    @property
    def batch(self) -> int:
        """Number of sequences B."""
        return self.sizes[0]

    @property
    def steps(self) -> int:
        """Number of time steps T of the longest sequence."""
        return len(self.sizes)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First row of each step, followed by the number of rows S."""
        offsets = [0]
        for size in self.sizes:
            offsets.append(offsets[-1] + size)
        return tuple(offsets)

    @cached_property
    def forward(self) -> Sweep:
        """From the first step to the last."""
        return Sweep(self.sizes, backward=False)

    @cached_property
    def backward(self) -> Sweep:
        """From each sequence's last step to the first."""
        return Sweep(self.sizes, backward=True)

    @cached_property
    def _step_of_row(self) -> Tensor:
        return torch.repeat_interleave(torch.arange(self.steps), torch.tensor(self.sizes))

    @cached_property
    def _rank_of_row(self) -> Tensor:
        """Position in the sorted batch of each row's sequence [S]."""
        return torch.arange(self.offsets[-1]) - torch.tensor(self.offsets)[self._step_of_row]

    @cached_property
    def _sequence_of_row(self) -> Tensor:
        return self._rank_of_row if self.order is None else self.order[self._rank_of_row]

    @cached_property
    def lengths(self) -> Tensor:
        """Length of each sequence [B], in batch order."""
        return torch.bincount(self._sequence_of_row, minlength=self.batch)

    def pack(self, padded: Tensor, chosen: Tensor | None = None) -> Tensor:
        """Rows [S, ...] of a padded batch [B, T, ...], or of the `chosen` sequences [B] of a larger array."""
        if self.order is None:
            padded = padded if chosen is None else padded.index_select(0, chosen.to(padded.device))
            return padded[:, : self.steps].transpose(0, 1).reshape(-1, *padded.shape[2:])
        sequences = self._sequence_of_row if chosen is None else chosen[self._sequence_of_row]
        index = sequences * padded.shape[1] + self._step_of_row
        return padded.flatten(0, 1).index_select(0, index.to(padded.device))

    def unpack(self, rows: Tensor) -> Tensor:
        """The padded batch [B, T, ...] of rows [S, ...]; zero beyond the ends."""
        if self.order is None:
            return rows.view(self.steps, self.batch, *rows.shape[1:]).transpose(0, 1)
        padded = rows.new_zeros(self.batch * self.steps, *rows.shape[1:])
        index = self._sequence_of_row * self.steps + self._step_of_row
        return padded.index_copy(0, index.to(rows.device), rows).view(self.batch, self.steps, *rows.shape[1:])

    def last(self, count: int, device: torch.device | str = "cpu") -> slice | Tensor:
        """Rows of the last `count` valid steps of each sequence, step by step: [count * B]."""
        if self.order is None:
            return slice(self.offsets[-1] - count * self.batch, None)
        rank = torch.empty_like(self.order)
        rank[self.order] = torch.arange(self.batch)
        steps = self.lengths - count + torch.arange(count)[:, None]
        return (torch.tensor(self.offsets)[steps] + rank).reshape(-1).to(device)

    def rows_of(self, first: int, part: Packing) -> Tensor:
        """For each row of a smaller batch [S'] its row here; its sequences start at index `first`."""
        rank = torch.arange(self.batch)
        if self.order is not None:
            rank[self.order] = torch.arange(self.batch)
        return torch.tensor(self.offsets)[part._step_of_row] + rank[first + part._sequence_of_row]

    def before(self, rows: Tensor, *, backward: bool) -> Tensor:
        """For each row, the row of the preceding step of the sweep [S, ...]; zero at the start."""
        result = torch.zeros_like(rows)
        if self.order is None and not backward:
            result[self.batch :] = rows[: len(rows) - self.batch]
            return result
        now, then = result.split(self.sizes), rows.split(self.sizes)
        for step, previous, carried in (self.backward if backward else self.forward).moves:
            now[step][:carried] = then[previous][:carried]
        return result


@lru_cache(maxsize=64)
def uniform(batch: int, steps: int) -> Packing:
    """The packing of sequences that are all `steps` long."""
    return Packing((batch,) * steps)


def pack_lengths(lengths: Tensor) -> Packing:
    """The packing for lengths [B], all at least 1."""
    lengths = lengths.cpu().long()
    each = lengths.numpy()  # for a few numbers numpy has less overhead than torch
    longest = int(each.max())
    if int(each.min()) == longest:
        return uniform(len(each), longest)
    order = np.argsort(-each, kind="stable")
    sizes = len(each) - np.cumsum(np.bincount(each, minlength=longest + 1))[:longest]
    packing = Packing(tuple(sizes.tolist()), torch.from_numpy(order))
    steps = np.repeat(np.arange(longest), sizes)
    ranks = np.arange(len(steps)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    packing.__dict__["_step_of_row"] = torch.from_numpy(steps)  # so that it is not computed again
    packing.__dict__["_sequence_of_row"] = torch.from_numpy(order[ranks])
    packing.__dict__["lengths"] = lengths
    return packing
