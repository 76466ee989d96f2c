"""Selection by validation accuracy only.

Selection sees runs as `Validation`, plain data without any test number, made by `validation_of`: the only
place where a search reads a score from a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

MARGIN = 2.0
"""Percentage points by which a robust setting's mean over reporting seeds may be below its tuning score."""
CANDIDATES = 3
"""Settings to compare if the best is not robust: the first, second and third (the paper's rule)."""


@dataclass(frozen=True)
class Validation:
    """All that selection sees of a run: validation accuracy in percent, R[k][j]."""

    matrix: tuple[tuple[float, ...], ...]

    @property
    def phases(self) -> int:
        """Number of finished phases."""
        return len(self.matrix)

    def final(self, phases: int | None = None) -> float:
        """Mean accuracy after the last phase, or after an earlier one.

        Without `phases` all tasks count, otherwise only those learnt by then.
        """
        row = self.matrix[(phases or self.phases) - 1]
        return fmean(row if phases is None else row[:phases])

    def during(self, phases: int | None = None) -> float:
        """Mean accuracy of each task right after it was learnt."""
        count = min(phases or self.phases, len(self.matrix[0]))
        return fmean(self.matrix[task][task] for task in range(count))


def validation_of(record: Mapping[str, Any]) -> Validation | None:
    """The validation matrix of a record given as JSON data; None if it has none."""
    rows = record.get("validation", [])
    return validation(rows) if rows else None


def validation(rows: Sequence[Sequence[float]]) -> Validation:
    """A validation matrix from JSON data."""
    return Validation(tuple(tuple(row) for row in rows))


Runs = Sequence[Validation | None]
"""The runs of one setting, one per seed; None for a failed one."""


def score(runs: Runs, phases: int | None = None) -> float | None:
    """Mean validation `final` over seeds; None if any of them failed."""
    good = [run for run in runs if run is not None]
    return fmean(run.final(phases) for run in good) if good and len(good) == len(runs) else None


def ranking(settings: Sequence[Runs], phases: int | None = None) -> list[int]:
    """Indices of the settings, best first: by `final`, then `during`, then order.

    Failed settings are not ranked.
    """
    scores = {number: score(runs, phases) for number, runs in enumerate(settings)}

    def key(number: int) -> tuple[float, float, int]:
        during = fmean(run.during(phases) for run in settings[number] if run is not None)
        return -(scores[number] or 0.0), -during, number

    return sorted((number for number, value in scores.items() if value is not None), key=key)


def robust(tuned: float, runs: Runs, margin: float = MARGIN) -> bool:
    """Whether no run failed and the mean is at most `margin` below the tuning score."""
    reached = score(runs)
    return reached is not None and reached >= tuned - margin


def best_of(candidates: Mapping[int, Runs]) -> int | None:
    """The candidate with the best mean over reporting seeds; None if all failed."""
    numbers = list(candidates)
    order = ranking([candidates[number] for number in numbers])
    return numbers[order[0]] if order else None


def survivors(settings: Sequence[Runs], phases: int) -> list[int]:
    """Indices of the better half (rounded up) of the settings that did not fail, in order."""
    order = ranking(settings, phases)
    return sorted(order[: (len(order) + 1) // 2])
