"""Shared by the Python sweeps of all cells: one step of the recurrence, and the path back through time."""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.packing import Sweep


def first(rows: Tensor, count: int) -> Tensor:
    """The first rows; all of them is the usual case and needs no new view."""
    return rows if count == len(rows) else rows[:count]


def recur(out: Tensor, given: Tensor, before: Tensor, carried: int, weight: Tensor) -> None:
    """Out = given + before W for the rows that are carried on, out = given for those that start."""
    if carried:
        torch.addmm(first(given, carried), first(before, carried), weight, out=first(out, carried))
    if carried < len(out):
        out[carried:] = given[carried:]


def backwards(sweep: Sweep) -> list[tuple[int, int, int, int, int]]:
    """The moves from last to first, each with the following step and what it took over.

    (step, previous, carried, following, taken)
    """
    moves = sweep.moves
    after = [(move.step, move.carried) for move in moves[1:]] + [(moves[-1].step, 0)]
    return [(*move, *following) for move, following in zip(moves, after, strict=True)][::-1]
