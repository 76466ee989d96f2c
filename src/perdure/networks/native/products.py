"""Matrix products in the compiled library: affine maps, weight gradients, and their per-sample squares.

Sums run in a fixed order, so that a row's result depends neither on other rows nor on its position in
memory. Every function returns None or False if the library is not available; torch's products are to be
used then.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from perdure.networks.native.library import function
from perdure.networks.native.sweeps import ran, require
from perdure.networks.packing import Packing, Sweep, Way


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """Rows [S, F] W^T + b [S, G], with W [G, F]."""
    run = function("linear_map", rows)
    if run is None:
        return None
    count, depth = rows.shape
    units = len(weight)
    given, factor = require(rows, rows, count, depth), require(weight, rows, units, depth)
    extra = None if bias is None else require(bias, rows, units)
    out = rows.new_empty(count, units)
    address = None if extra is None else extra.data_ptr()
    ran(run(count, depth, units, 1, given.data_ptr(), factor.data_ptr(), address, out.data_ptr()))
    return out


def linear_back(delta: Tensor, weight: Tensor) -> Tensor | None:
    """Delta [S, G] W [S, F]: the gradient of an affine map with respect to its inputs."""
    run = function("linear_map", delta)
    if run is None:
        return None
    count, depth = delta.shape
    units = weight.shape[1]
    given, factor = require(delta, delta, count, depth), require(weight, delta, depth, units)
    out = delta.new_empty(count, units)
    ran(run(count, depth, units, 0, given.data_ptr(), factor.data_ptr(), None, out.data_ptr()))
    return out


def gradient(delta: Tensor, inputs: Tensor) -> Tensor | None:
    """The gradient delta^T inputs [G, F] of a weight, from delta [S, G] and inputs [S, F]."""
    return _outer(delta, inputs, _one_step(len(delta)))


def recurrent_gradient(delta: Tensor, states: Tensor, sweep: Sweep) -> Tensor | None:
    """The gradient of W_hh [G, H]: the sum of delta_t h_{t-1}^T over the rows that continue from a state."""
    way = sweep.way
    if len(delta) != way.rows:
        raise ValueError(f"recurrent_gradient: {len(delta)} rows of delta, but the sweep has {way.rows}.")
    return _outer(delta, states, way)


@lru_cache(maxsize=1024)
def _one_step(rows: int) -> Way:
    """A single move in which every row goes on from the row of the same number."""
    return Way(np.array([rows]), np.array([[0, 0, rows]]))


def _outer(delta: Tensor, inputs: Tensor, way: Way) -> Tensor | None:
    run = function("outer_sum", delta)
    if run is None:
        return None
    count, tall = delta.shape
    wide = inputs.shape[1]
    left, right = require(delta, delta, count, tall), require(inputs, delta, count, wide)
    out = delta.new_empty(tall, wide)
    ran(run(*way.addresses, tall, wide, left.data_ptr(), right.data_ptr(), out.data_ptr()))
    return out


def add_squares(
    weight_total: Tensor, bias_total: Tensor, delta: Tensor, inputs: Tensor, packing: Packing
) -> bool:
    """Add each sequence's squared gradient of an affine map to the totals [G, F] and [G] (float64).

    sum_n (sum_t delta_nt a_nt^T)^2 from delta [S, G] and inputs a [S, F] as packed rows.
    """
    run = function("outer_squares", delta)
    if run is None:
        return False
    (rows, tall), wide = delta.shape, inputs.shape[1]
    if rows != packing.offsets[-1]:
        raise ValueError(f"add_squares: {rows} rows of delta, but the packing has {packing.offsets[-1]}.")
    left, right = require(delta, delta, rows, tall), require(inputs, delta, rows, wide)
    for total, shape in ((weight_total, (tall, wide)), (bias_total, (tall,))):
        if total.shape != shape or total.dtype != torch.float64 or not total.is_contiguous():
            raise ValueError(f"add_squares: expected a contiguous total {list(shape)} of torch.float64.")
    sizes = packing.forward.way.sizes
    addresses = (tensor.data_ptr() for tensor in (left, right, weight_total, bias_total))
    ran(run(packing.steps, sizes.ctypes.data, tall, wide, *addresses))
    return True
