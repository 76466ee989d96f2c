"""Flat vectors in the compiled library: their norm, and the steps of Adam."""

from __future__ import annotations

import ctypes
import math

import torch
from torch import Tensor

from perdure.networks.native.library import function
from perdure.networks.native.sweeps import ran, require

Settings = ctypes.c_double * 8
"""Rate, beta 1, beta 2, epsilon, decay, shrink, root, factor; see adam.h."""


def norm(vectors: list[Tensor]) -> float | None:
    """The norm of all vectors together, summed in double precision and in a fixed order."""
    total, part = 0.0, ctypes.c_double()
    for vector in vectors:
        run = function("sum_of_squares", vector)
        if run is None:
            return None
        values = require(vector, vector, vector.numel())
        ran(run(values.numel(), values.data_ptr(), ctypes.byref(part)))
        total += part.value
    return math.sqrt(total)


def adam_step(
    settings: ctypes.Array[ctypes.c_double],
    weights: Tensor,
    gradients: Tensor,
    means: Tensor,
    squares: Tensor,
) -> bool:
    """Update weights, means and squares in place; False if the library is not available."""
    run = function("adam_step", weights)
    if run is None or not weights.is_contiguous():
        return False
    tensors = (weights, require(gradients, weights, weights.numel()), means, squares)
    ran(run(weights.numel(), settings, *(tensor.data_ptr() for tensor in tensors)))
    return True


def adam_move(
    settings: ctypes.Array[ctypes.c_double],
    weights: Tensor,
    gradients: Tensor,
    means: Tensor,
    squares: Tensor,
) -> Tensor | None:
    """The step that would be taken; None if the library is not available."""
    run = function("adam_move", weights)
    if run is None:
        return None
    moves = torch.empty_like(weights)
    tensors = (weights, require(gradients, weights, weights.numel()), means, squares, moves)
    ran(run(weights.numel(), settings, *(tensor.data_ptr() for tensor in tensors)))
    return moves
