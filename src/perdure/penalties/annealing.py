"""A factor that changes within each task, for penalties that start strong or weak."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, PositiveInt, ValidationInfo, field_validator

from perdure.options import Options, Strength


def _positive(value: float) -> float:
    """Equal ratios neither begin at 0 nor lead there."""
    if value <= 0:
        raise ValueError(
            "it must be greater than 0, since the factor moves by equal ratios; begin with a small number "
            "such as 1e-4, or write none for a factor that does not change"
        )
    return value


class Annealed(Options):
    """Options of a penalty whose factor moves from one value to another."""

    strength: Strength = 0.0
    """Factor of the penalty; 0 turns it off."""
    first: Annotated[float, AfterValidator(_positive)] | None = None
    """Factor at a task's first iteration, if it is to change."""
    anneal: PositiveInt = 1000
    """Iterations over which the factor moves from `first` to `strength`, by equal ratios."""

    @field_validator("first")
    @classmethod
    def _leads_somewhere(cls, first: float | None, info: ValidationInfo) -> float | None:
        """A factor that is to begin somewhere needs one to move to."""
        if first is not None and info.data.get("strength") == 0:
            raise ValueError("it must be none where strength is 0, which turns the penalty off")
        return first

    def at(self, iteration: int) -> float:
        """The factor at an iteration of a task."""
        if self.first is None or iteration >= self.anneal:
            return self.strength
        return float(self.first * (self.strength / self.first) ** (iteration / self.anneal))
