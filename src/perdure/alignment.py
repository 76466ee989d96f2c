"""Tensors aligned for the fastest loads, as all those that torch allocates itself are.

On CPUs without AVX-512 the last digits of a matrix product depend on the alignment of its operands, since MKL
takes different code paths. Arrays from numpy and tensors from files may start anywhere; a run that reads one
must not differ in the last digits from a run that computed it itself.
"""

from __future__ import annotations

from torch import Tensor

ALIGNMENT = 64
"""Alignment of torch's own tensors in bytes: a cache line, the widest vector register."""


def aligned(tensor: Tensor) -> Tensor:
    """The tensor itself if it starts at a multiple of 64 bytes, otherwise a copy that does."""
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
