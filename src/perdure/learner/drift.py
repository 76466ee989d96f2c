"""Drift of a stream, from the errors made on it (DDM; Gama et al. 2004).

With error rate p after n samples, s = sqrt(p (1 - p) / n). The lowest p + s so far is the level of a stable
stream; p + s > p_low + 3 s_low means that the stream has changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

LEAST = 30
"""Samples before anything is concluded."""
ALARM = 3.0
"""Deviations above the lowest error rate that count as a change."""


@dataclass(frozen=True)
class Drift:
    """Counts since the last change."""

    samples: int = 0
    errors: int = 0
    lowest: tuple[float, float] | None = None
    """p and s where their sum was lowest."""
    changed: bool = False

    def after(self, right: bool) -> Drift:
        """With one more sample."""
        samples, errors = self.samples + 1, self.errors + (not right)
        rate = (errors + 1) / (samples + 2)  # never 0, so that one error after a perfect start is no change
        spread = math.sqrt(rate * (1 - rate) / samples)
        lowest = self.lowest
        if samples >= LEAST and (lowest is None or rate + spread < sum(lowest)):
            lowest = rate, spread
        changed = lowest is not None and rate + spread > lowest[0] + ALARM * lowest[1]
        return replace(self, samples=samples, errors=errors, lowest=lowest, changed=changed)

    def json(self) -> dict[str, Any]:
        """As plain data."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Drift:
        """The inverse of `json`."""
        lowest = data["lowest"]
        return cls(**{**data, "lowest": None if lowest is None else tuple(lowest)})
