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

from perdure.networks.native.rows import last_rows, pack_plan, pack_rows

FORWARDS, BACKWARDS, ITSELF = range(3)
"""Directions of a way: with time, against it, or each row from itself."""


class Way:
    """A sweep as the compiled library reads it: rows per step, and the direction."""

    def __init__(self, sizes: NDArray[np.int64], rows: int, address: int, direction: int) -> None:
        """The array [T], whose sum and address are given, must stay as it is."""
        self.sizes = sizes
        self.rows = rows
        self.addresses = len(sizes), address, direction
        """Number of steps, where the array is in memory, and the direction."""


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
    way: Way
    """The same for the compiled library."""

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The steps in order."""
        last = len(self.sizes) - 1
        if not self.backward:
            return tuple(Move(t, max(t - 1, 0), size if t else 0) for t, size in enumerate(self.sizes))
        moves = [Move(t, min(t + 1, last), self.sizes[t + 1] if t < last else 0) for t in range(last + 1)]
        return tuple(reversed(moves))


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
        return Sweep(self.sizes, False, Way(*self._rows_and_place, FORWARDS))

    @cached_property
    def backward(self) -> Sweep:
        """From each sequence's last step to the first."""
        return Sweep(self.sizes, True, Way(*self._rows_and_place, BACKWARDS))

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def _rows_and_place(self) -> tuple[NDArray[np.int64], int, int]:
        """What both ways share: numpy takes longer for a sum and an address than Python for all of it."""
        sizes = self._sizes
        return sizes, sum(self.sizes), sizes.ctypes.data

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
            rows = None if chosen is None else pack_rows(self.forward.way, chosen, padded, None)
            if rows is not None:
                return rows
            padded = padded if chosen is None else padded.index_select(0, chosen.to(padded.device))
            return padded[:, : self.steps].transpose(0, 1).reshape(-1, *padded.shape[2:])
        rows = pack_rows(self.forward.way, self.order, padded, chosen)
        if rows is not None:
            return rows
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
        rows = last_rows(self.forward.way, self.order, count)
        if rows is None:
            rank = torch.empty_like(self.order)
            rank[self.order] = torch.arange(self.batch)
            steps = self.lengths - count + torch.arange(count)[:, None]
            rows = (torch.tensor(self.offsets)[steps] + rank).reshape(-1)
        return rows.to(device)

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
    lengths = lengths.cpu().long().contiguous()
    each = lengths.tolist()  # a few numbers: Python's calls cost less than torch's
    longest = max(each)
    if min(each) == longest:
        return uniform(len(each), longest)
    order, sizes = pack_plan(lengths, longest) or _plan(lengths, longest)
    packing = Packing(tuple(sizes.tolist()), order)
    packing.__dict__["lengths"] = lengths  # so that it is not computed again
    packing.__dict__["_sizes"] = sizes
    return packing


def _plan(lengths: Tensor, longest: int) -> tuple[Tensor, NDArray[np.int64]]:
    """The sequences by decreasing length [B], and how many run at each step [T]."""
    ended = torch.bincount(lengths, minlength=longest + 1).cumsum(0)
    order = torch.argsort(lengths, descending=True, stable=True)
    return order, (len(lengths) - ended[:longest]).numpy()
