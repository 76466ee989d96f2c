"""Matrix products in the compiled library: affine maps, weight gradients, and their per-sample measures.

Sums run in a fixed order, so that a row's result depends neither on other rows nor on its position in
memory. Every function returns None or False if the library is not available; torch's products are to be
used then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from perdure.networks.native.library import function
from perdure.networks.native.sweeps import ran, require
from perdure.networks.packing import ITSELF, Packing, Sweep, Way


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """Rows [S, F] W^T + b [S, G], with W [G, F]."""
    run = function("linear_map", rows)
    if run is None:
        return None
    count, depth = rows.shape
    units = weight.shape[0]
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


def gradient(delta: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor] | None:
    """The gradients delta^T inputs [G, F] of a weight and sum of delta [G] of its bias.

    From delta [S, G] and inputs [S, F].
    """
    bias = delta.new_empty(delta.shape[1])
    weight = _outer(delta, inputs, _one_step(delta.shape[0]), bias)
    return None if weight is None else (weight, bias)


def recurrent_gradient(delta: Tensor, states: Tensor, sweep: Sweep) -> Tensor | None:
    """The gradient of W_hh [G, H]: the sum of delta_t h_{t-1}^T over the rows that continue from a state."""
    if delta.shape[0] != sweep.way.rows:
        raise ValueError(
            f"recurrent_gradient: {len(delta)} rows of delta, but the sweep has {sweep.way.rows}."
        )
    return _outer(delta, states, sweep.way, None)


class LayerGradients(NamedTuple):
    """Gradients of a recurrent layer's weights: W_ih [G, F], its bias [G], W_hh [G, H]."""

    of_input: Tensor
    of_bias: Tensor
    of_state: Tensor


def layer_gradients(delta: Tensor, inputs: Tensor, states: Tensor, sweep: Sweep) -> LayerGradients | None:
    """`gradient` and `recurrent_gradient` in one pass over delta [S, G]."""
    run = function("layer_gradients", delta)
    if run is None:
        return None
    rows, wide = sweep.way.rows, delta.shape[1]
    width, units = inputs.shape[1], states.shape[1]
    given = require(delta, delta, rows, wide)
    x, h = require(inputs, delta, rows, width), require(states, delta, rows, units)
    result = LayerGradients(delta.new_empty(wide, width), delta.new_empty(wide), delta.new_empty(wide, units))
    addresses = [tensor.data_ptr() for tensor in (given, x, h, *result)]
    ran(run(*sweep.way.addresses, wide, width, units, *addresses))
    return result


@lru_cache(maxsize=1024)
def _one_step(rows: int) -> Way:
    """A single move in which every row continues from itself."""
    sizes = np.array([rows])
    return Way(sizes, rows, sizes.ctypes.data, ITSELF)


def _outer(delta: Tensor, inputs: Tensor, way: Way, bias: Tensor | None) -> Tensor | None:
    run = function("outer_sum", delta)
    if run is None:
        return None
    count, tall = delta.shape
    wide = inputs.shape[1]
    left, right = require(delta, delta, count, tall), require(inputs, delta, count, wide)
    out = delta.new_empty(tall, wide)
    addresses = left.data_ptr(), right.data_ptr(), out.data_ptr(), None if bias is None else bias.data_ptr()
    ran(run(*way.addresses, tall, wide, *addresses))
    return out


class MeasuredMap(NamedTuple):
    """One of the affine maps to some outputs, and where its per-sample measures are added up."""

    rows: Tensor
    """Its inputs [S, F], or the states [S, F] if it reads those of the preceding step of a sweep."""
    direction: int
    """ITSELF, or that sweep's direction."""
    total: Tensor
    """Of its weight [G, F], in float64."""


def add_measures(
    maps: Sequence[MeasuredMap], bias_total: Tensor, delta: Tensor, packing: Packing, *, magnitudes: bool
) -> bool:
    """Add each sequence's measured gradients of the maps' weights [G, F] and bias [G] to totals (float64).

    sum_n (sum_t delta_nt a_nt^T)^2, or with `magnitudes` sum_n |sum_t delta_nt a_nt^T|, from delta [S, G] and
    inputs a [S, F] as packed rows; delta is read once for all maps.
    """
    run = function("outer_measures", delta)
    if run is None:
        return False
    rows, wide = delta.shape
    if rows != packing.offsets[-1]:
        raise ValueError(f"add_measures: {rows} rows of delta, but the packing has {packing.offsets[-1]}.")
    given, kept = require(delta, delta, rows, wide), []
    for each in maps:
        kept.append(require(each.rows, delta, rows, each.rows.shape[1]))
        _require_total(each.total, wide, each.rows.shape[1])
    _require_total(bias_total, wide)
    table = np.array(
        [
            (inputs.data_ptr(), inputs.shape[1], each.direction, each.total.data_ptr())
            for inputs, each in zip(kept, maps, strict=True)
        ],
        dtype=np.int64,
    )
    sizes = packing.forward.way.sizes
    addresses = wide, given.data_ptr(), bias_total.data_ptr(), len(kept), table.ctypes.data
    ran(run(magnitudes, packing.steps, sizes.ctypes.data, *addresses))
    return True


def _require_total(total: Tensor, *shape: int) -> None:
    if total.shape != shape or total.dtype != torch.float64 or not total.is_contiguous():
        raise ValueError(f"add_measures: expected a contiguous total {list(shape)} of torch.float64.")
