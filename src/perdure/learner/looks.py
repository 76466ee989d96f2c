"""What the inputs of a task look like, in a few numbers: enough to see that two tasks share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.benchmarks.task import Array
from perdure.learner.sequences import Inputs

DISTINCT = 5.0
"""Standard errors by which at least one mean must differ for two tasks to have different inputs.

With a few hundred means, noise alone exceeds this once in several thousand comparisons."""


@dataclass(frozen=True)
class Look:
    """Mean and variance over sequences of some summaries: level, spread, change, first, last step, length."""

    count: int
    mean: tuple[float, ...]
    variance: tuple[float, ...]

    @classmethod
    def of(cls, inputs: Inputs) -> Look:
        """The summaries of some sequences."""
        rows = _summaries(inputs)
        return cls(len(rows), tuple(rows.mean(0).tolist()), tuple(rows.var(0).tolist()))

    def json(self) -> dict[str, Any]:
        """As plain data."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Look:
        """The inverse of `json`."""
        return cls(data["count"], tuple(data["mean"]), tuple(data["variance"]))

    def differs(self, other: Look) -> bool:
        """Whether any summary differs by many standard errors (Welch's t)."""
        here, there = np.array(self.mean), np.array(other.mean)
        error = np.array(self.variance) / self.count + np.array(other.variance) / other.count
        apart = abs(here - there)
        scale = 1e-6 * (abs(here) + abs(there)) + 1e-12  # rounding of summaries that never vary
        return bool((apart > DISTINCT * np.sqrt(error) + scale).any())


def _summaries(inputs: Inputs) -> Array:
    """Summaries [N, D] of each sequence."""
    x, inside = inputs.x.astype(np.float64), inputs.inside[..., None]
    lengths = inputs.lengths[:, None].astype(np.float64)
    level = (x * inside).sum(1) / lengths
    spread = np.sqrt((((x - level[:, None]) * inside) ** 2).sum(1) / lengths)
    change = (abs(np.diff(x, axis=1)) * inside[:, 1:]).sum(1) / lengths
    last = x[np.arange(len(x)), inputs.lengths - 1]
    return np.concatenate([level, spread, change, x[:, 0], last, lengths], axis=1)
