"""The recurrent sweeps of the compiled library, with the arguments and results of those in Python.

A forward sweep saves the same in both, so that either's backward sweep can follow. In single and double
precision; each sum is in a fixed order, so that the states of a sequence do not depend on other sequences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from perdure.networks.native.library import Function, Signature, function
from perdure.networks.packing import Sweep

Saved = tuple[Tensor, ...]


class Sweeps(Protocol):
    """The two sweeps of a cell, in Python or compiled."""

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """From projection [S, G], b_hh [G] or [S, G] and W_hh [G, H] to (h [S, H], what else is saved)."""

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """From dL/dh [S, H] to delta of the input part and of the hidden part, both [S, G]."""


def require(tensor: Tensor, like: Tensor, *shape: int) -> Tensor:
    """The tensor as the library reads it, contiguous; anything unexpected is an error, not a crash."""
    if tensor.shape != shape or tensor.dtype != like.dtype or not tensor.is_cpu:
        raise ValueError(
            f"native sweep: expected {list(shape)} of {like.dtype} on the CPU, "
            f"got {list(tensor.shape)} of {tensor.dtype} on {tensor.device}."
        )
    return tensor.contiguous()


def ran(done: int) -> None:
    """Raise an error if the library ran out of memory."""
    if not done:
        raise MemoryError("native sweep: not enough memory for its buffers.")


@dataclass(slots=True)
class CompiledSweeps(ABC):
    """The two sweeps of a cell in the compiled library; a cell names its own as `native`."""

    prefix: ClassVar[str]
    """The functions are called PREFIX_forward and PREFIX_backward."""
    signatures: ClassVar[tuple[Signature, Signature]]
    """Of both functions."""

    forwards: Function
    backwards: Function

    @abstractmethod
    def forward(
        self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep, *, spare: bool = False
    ) -> Saved:
        """See `Sweeps`; a `spare` projection is overwritten by what is saved, which spares a buffer."""

    @abstractmethod
    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """See `Sweeps`."""


def sweeps_for(cell: type, tensor: Tensor) -> CompiledSweeps | None:
    """The compiled sweeps of a cell for tensors like this one; None if those in Python are to be used.

    A class derived from a cell may have other equations, so it has none unless it names them itself.
    """
    native: type[CompiledSweeps] | None = vars(cell).get("native")
    if native is None:
        return None
    found = [
        function(f"{native.prefix}_{way}", tensor, signature)
        for way, signature in zip(("forward", "backward"), native.signatures, strict=True)
    ]
    return None if found[0] is None or found[1] is None else native(found[0], found[1])
