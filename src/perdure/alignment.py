"""Tensors that begin where memory allows the fastest loads, as all that torch makes itself do.

On CPUs without AVX-512 the last digits of a matrix product depend on where its operands begin: MKL takes
other paths through them. Arrays from numpy and tensors from files begin anywhere; a run that reads one
must not differ in the last digits from a run that made it itself.
"""

from __future__ import annotations

from torch import Tensor

ALIGNMENT = 64
"""Bytes at a multiple of which torch's own tensors begin: a cache line, the widest vector register."""


def aligned(tensor: Tensor) -> Tensor:
    """The tensor itself if it begins at a multiple of 64 bytes, otherwise a copy that does."""
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
