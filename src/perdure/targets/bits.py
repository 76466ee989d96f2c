"""Bits at the last P valid steps: y is [N, P, outputs] of 0 and 1, or -1: ignored (SM, Eq. nll:copy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from perdure.targets.bernoulli import Bernoulli
from perdure.targets.confusion import integer_fault
from perdure.targets.target import Array, Y

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Bits(Bernoulli):
    """Bits at the last steps."""

    name: ClassVar[str] = "bits"
    recalled: ClassVar[bool] = True

    def fault(self, y: Array, lengths: Array, steps: int, outputs: int) -> str | None:
        """What is wrong with y [N, P, outputs], if anything."""
        shape = (len(lengths), y.shape[1] if y.ndim > 1 else -1, outputs)
        if y.shape != shape:
            return f"y of kind '{self.name}' must have shape {shape}, but has {y.shape}"
        if y.shape[1] > lengths.min():
            return f"{y.shape[1]} steps of bits do not fit in a sequence of length {lengths.min()}"
        return integer_fault(y, 1)

    def contents(self, y: Array, names: Sequence[Any]) -> dict[str, Any]:
        """How often each bit is 1."""
        return {
            str(name): count for name, count in zip(names, (y == 1).sum(axis=(0, 1)).tolist(), strict=True)
        }

    def answered(self, y: Array | Tensor) -> int:
        """The P steps of the pattern."""
        return int(y.shape[1])

    def by_step(self, y: Y) -> Y:
        """Unchanged."""
        return y

    def asked(self, y: Y) -> Y:
        """All but -1."""
        return y >= 0
