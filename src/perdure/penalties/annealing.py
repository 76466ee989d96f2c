"""A factor that changes within each task, for penalties that start strong or weak."""

from __future__ import annotations

from pydantic import PositiveInt

from perdure.options import Options, Strength


class Annealed(Options):
    """Options of a penalty whose factor moves from one value to another."""

    strength: Strength = 0.0
    """Factor of the penalty; 0 turns it off."""
    first: Strength | None = None
    """Factor at a task's first iteration, if it is to change."""
    anneal: PositiveInt = 1000
    """Iterations over which the factor moves from `first` to `strength`, by equal ratios."""

    def at(self, iteration: int) -> float:
        """The factor at an iteration of a task."""
        if not self.first or not self.strength or iteration >= self.anneal:
            return self.strength
        return float(self.first * (self.strength / self.first) ** (iteration / self.anneal))
