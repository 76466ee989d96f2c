"""The time limit of a search, and how much of it the reporting seeds will need."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from statistics import fmean

from perdure.search.state import Search

CAUTION = 1.2
"""Times are known roughly only, so this much more is kept free for the reporting seeds."""


ENDING, LONGEST_ENDING = 0.05, 30.0
"""The fraction of a limit, and the most seconds, kept free for stopping the last runs and writing pages."""


@dataclass
class Clock:
    """Time spent, over all sessions of a search, against its limit in hours (None: no limit)."""

    hours: float | None
    earlier: float = 0.0
    """Seconds spent in earlier sessions."""
    share: float = 1.0
    """Fraction of the time for trials at which the current rung of halving must end."""
    begun: float = field(default_factory=lambda: time.monotonic())

    @property
    def spent(self) -> float:
        """Seconds."""
        return self.earlier + time.monotonic() - self.begun

    @property
    def left(self) -> float:
        """Seconds for runs, so that all is done when the limit is reached."""
        if self.hours is None:
            return math.inf
        limit = 3600 * self.hours
        return limit - min(ENDING * limit, LONGEST_ENDING) - self.spent

    def late(self, reserve: float) -> bool:
        """Whether no more trials may run, because `reserve` seconds are needed afterwards."""
        return self.hours is not None and self.spent > self.share * (3600 * self.hours - reserve)

    def over(self) -> bool:
        """Whether the time is up."""
        return self.hours is not None and self.spent > 3600 * self.hours

    def room(self, seconds: float) -> bool:
        """Whether so many seconds are left."""
        return self.hours is None or self.spent + seconds < 3600 * self.hours


def needed(search: Search, seeds: int, workers: int) -> float:
    """Seconds that one setting needs with all reporting seeds, as far as finished runs tell.

    A setting may learn for longer than others do, so the best one so far counts as well as the mean.
    """
    times = [seen.seconds for seen in search.seen.values() if seen.whole]
    best = max(
        (trial for trial in search.trials if trial.status == "finished"),
        key=lambda trial: trial.final or 0.0,
        default=None,
    )
    if best is not None:
        times = [max(fmean([*times, best.seconds / len(best.hashes)]), best.seconds / len(best.hashes))]
    return CAUTION * fmean(times) * math.ceil(seeds / max(workers, 1)) if times else 0.0
