"""Forward and backward transfer (Lopez-Paz & Ranzato 2017, "Gradient episodic memory").

With R[k][j] the accuracy on task j after task k, K the number of tasks, and b_j the accuracy on task j of the
network before it has learnt anything: backward transfer is the mean over j < K of R[K][j] - R[j][j], forward
transfer the mean over j > 1 of R[j - 1][j] - b_j. Both are in percentage points.
"""

from __future__ import annotations

from typing import NamedTuple

from perdure.storage.record import Record


class Transfer(NamedTuple):
    """What learning other tasks did to each task; the first has no forward, the last no backward transfer."""

    backward: list[float]
    """R[K][j] - R[j][j] of all tasks but the last."""
    forward: list[float]
    """R[j - 1][j] - b_j of all tasks but the first; empty in records without b."""


def transfer(record: Record) -> Transfer:
    """The transfer of each task; none if tasks are learnt together."""
    if len(record.iterations) < len(record.tasks):  # one phase
        return Transfer([], [])
    matrix, last = record.accuracy, len(record.accuracy) - 1
    backward = [matrix[last][task] - matrix[task][task] for task in range(last)]
    before = record.untrained
    forward = [matrix[task - 1][task] - before[task] for task in range(1, last + 1)] if before else []
    return Transfer(backward, forward)


def mean(values: list[float]) -> float | None:
    """The mean; None of nothing."""
    return sum(values) / len(values) if values else None
