"""One class at the last valid step: y is [N]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from perdure.targets.classes import Classes
from perdure.targets.confusion import integer_fault
from perdure.targets.target import Array, Y

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Label(Classes):
    """A class for the whole sequence; -1: ignored."""

    name: ClassVar[str] = "label"

    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y [N], if anything."""
        if y.shape != lengths.shape:
            return f"y of kind '{self.name}' must have shape {lengths.shape}, but has {y.shape}"
        return integer_fault(y, outputs - 1)

    def answered(self, y: Array | Tensor) -> int:
        """The last step."""
        return 1

    def by_step(self, y: Y) -> Y:
        """Classes [N, 1]."""
        return y[:, None]
