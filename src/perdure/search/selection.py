"""What is chosen, and by what: validation alone.

Selection sees runs as `Validation`: plain data without any test number, made by `validation_of`, the only
place in which a search opens a record to judge it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

MARGIN = 2.0
"""Points by which the mean over reporting seeds may lie below the tuning score of a robust setting."""
CANDIDATES = 3
"""Settings that are looked at if the best is not robust: it, the second and the third (the paper)."""


@dataclass(frozen=True)
class Validation:
    """All that selection may see of a run: accuracy in percent on validation data, R[k][j]."""

    matrix: tuple[tuple[float, ...], ...]

    @property
    def phases(self) -> int:
        """Phases that are behind it."""
        return len(self.matrix)

    def final(self, phases: int | None = None) -> float:
        """Mean over the tasks so far after the last phase, or after an earlier one.

        For a whole run all tasks count; for a part of one those that were learnt.
        """
        row = self.matrix[(phases or self.phases) - 1]
        return fmean(row if phases is None else row[:phases])

    def during(self, phases: int | None = None) -> float:
        """Mean over the tasks so far, each right after it was learnt."""
        count = min(phases or self.phases, len(self.matrix[0]))
        return fmean(self.matrix[task][task] for task in range(count))


def validation_of(record: Mapping[str, Any]) -> Validation | None:
    """What selection may see of a record, given as JSON data; None if it has no validation matrix."""
    rows = record.get("validation", [])
    return validation(rows) if rows else None


def validation(rows: Sequence[Sequence[float]]) -> Validation:
    """A matrix as JSON has it."""
    return Validation(tuple(tuple(row) for row in rows))


Runs = Sequence[Validation | None]
"""Of one setting, a run for each seed; None for one that failed."""


def score(runs: Runs, phases: int | None = None) -> float | None:
    """Mean validation `final` over seeds; None if any of them failed."""
    good = [run for run in runs if run is not None]
    return fmean(run.final(phases) for run in good) if good and len(good) == len(runs) else None


def ranking(settings: Sequence[Runs], phases: int | None = None) -> list[int]:
    """Numbers of the settings, best first: by `final`, then `during`, then the order of trials.

    Settings that failed are not ranked.
    """
    scores = {number: score(runs, phases) for number, runs in enumerate(settings)}

    def key(number: int) -> tuple[float, float, int]:
        during = fmean(run.during(phases) for run in settings[number] if run is not None)
        return -(scores[number] or 0.0), -during, number

    return sorted((number for number, value in scores.items() if value is not None), key=key)


def robust(tuned: float, runs: Runs, margin: float = MARGIN) -> bool:
    """Whether a setting keeps with other seeds what it promised: no run failed, the mean is not far below."""
    reached = score(runs)
    return reached is not None and reached >= tuned - margin


def best_of(candidates: Mapping[int, Runs]) -> int | None:
    """Of the candidates that were run with reporting seeds the one with the best mean; None if all failed."""
    numbers = list(candidates)
    order = ranking([candidates[number] for number in numbers])
    return numbers[order[0]] if order else None


def survivors(settings: Sequence[Runs], phases: int) -> list[int]:
    """The better half (rounded up) of those that did not fail, in the order in which they were tried."""
    order = ranking(settings, phases)
    return sorted(order[: (len(order) + 1) // 2])
