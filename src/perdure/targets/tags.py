"""A class at each valid step: y is [N, T], -1 beyond the end and where the tag is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from perdure.targets.classes import Classes
from perdure.targets.confusion import integer_fault
from perdure.targets.target import Array, Y

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Tags(Classes):
    """A class for each step of the sequence."""

    name: ClassVar[str] = "tags"
    everywhere: ClassVar[bool] = True

    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y [N, T], if anything."""
        shape = (len(lengths), steps)
        if y.shape != shape:
            return f"y of kind '{self.name}' must have shape {shape}, but has {y.shape}"
        if fault := integer_fault(y, outputs - 1):
            return fault
        if (y[np.arange(steps) >= lengths[:, None]] != -1).any():
            return "tags beyond the end of a sequence must be -1"
        return None

    def answered(self, y: Array | Tensor) -> int:
        """All valid steps."""
        return 0

    def by_step(self, y: Y) -> Y:
        """Unchanged."""
        return y
