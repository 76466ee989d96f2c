"""Weighted squared distances in the compiled library: the sum, and its gradient, in one pass each."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.native.library import function
from perdure.networks.native.sweeps import require


class Apart(NamedTuple):
    """Vectors [C, M] and where they should be; weights [M] are `common`, but `every` at the places `own[c]`.

    `common` is zero at all places in `own`.
    """

    made: Tensor
    target: Tensor
    common: Tensor
    every: Tensor
    own: list[Tensor]


def distance(apart: Apart) -> float | None:
    """sum_c sum_i w_ci (made_ci - target_ci)^2, in double precision; None if the library is not available."""
    run = function("weighted_distance", apart.made)
    if run is None:
        return None
    total, part = 0.0, ctypes.c_double()
    for _, arguments in _rows(apart):
        _found(run(*arguments, ctypes.byref(part)))
        total += part.value
    return total


def difference(apart: Apart, factor: float) -> Tensor | None:
    """Factor w (made - target) [C, M]; None if the library is not available."""
    run = function("weighted_difference", apart.made)
    if run is None:
        return None
    result = torch.empty_like(apart.made, memory_format=torch.contiguous_format)
    for start, arguments in _rows(apart):
        _found(run(*arguments, factor, result.data_ptr() + start))
    return result


def _rows(apart: Apart) -> Iterator[tuple[int, tuple[int, ...]]]:
    """For each vector the byte at which it starts, and its arguments."""
    made, (count, width) = apart.made, apart.made.shape
    if len(apart.own) != count:
        raise ValueError(f"distance: {count} vectors, but places of {len(apart.own)}.")
    pair = [require(each, made, count, width) for each in (made, apart.target)]
    weights = [require(each, made, width).data_ptr() for each in (apart.common, apart.every)]
    for row, own in enumerate(apart.own):
        if own.dtype != torch.int64 or not own.is_contiguous():
            raise ValueError("distance: places must be contiguous and of torch.int64.")
        start = row * width * made.itemsize
        addresses = (each.data_ptr() + start for each in pair)
        yield start, (width, *addresses, *weights, len(own), own.data_ptr())


def _found(done: int) -> None:
    if not done:
        raise IndexError("distance: a place is not within its vector.")
