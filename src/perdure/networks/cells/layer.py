"""A recurrent layer in the compiled library: projection and sweep of all directions as one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.native.products import (
    gradient,
    layer_gradients,
    linear,
    linear_back,
    recurrent_gradient,
)
from perdure.networks.native.sweeps import CompiledSweeps, Saved, sweeps_for
from perdure.networks.packing import Packing, Sweep

if TYPE_CHECKING:
    from perdure.networks.cells.matrix_cell import MatrixCell

PARTS = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
"""The weights of one direction, in the order in which `Layer` takes them."""


class Layer(torch.autograd.Function):
    """States of a cell over packed rows; the caller has checked that the library runs."""

    @staticmethod
    def forward(ctx: Any, cell: MatrixCell, packing: Packing, rows: Tensor, *weights: Tensor) -> Tensor:
        """States [S, D H] from inputs [S, F] and the PARTS of each of D directions."""
        sweeps = _sweeps(cell, rows)
        passes = [
            _swept(cell, sweeps, sweep, rows, weights[first : first + len(PARTS)])
            for first, sweep in zip(range(0, len(weights), len(PARTS)), _ways(packing), strict=False)
        ]
        ctx.save_for_backward(rows, *weights, *(tensor for saved in passes for tensor in saved))
        ctx.cell, ctx.packing, ctx.directions = cell, packing, len(passes)
        return passes[0][0] if len(passes) == 1 else torch.cat([saved[0] for saved in passes], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Gradients of inputs and all weights from one backward sweep of each direction."""
        cell, count = ctx.cell, ctx.directions
        rows, *tensors = ctx.saved_tensors
        weights, saved = tensors[: count * len(PARTS)], tensors[count * len(PARTS) :]
        width, kept = grad.shape[1] // count, len(saved) // count
        sweeps, of_rows = _sweeps(cell, grad), None
        of_weights: list[Tensor | None] = []
        for direction, sweep in zip(range(count), _ways(ctx.packing), strict=False):
            weight_ih, _, weight_hh, _ = weights[direction * len(PARTS) : (direction + 1) * len(PARTS)]
            of_states = grad if count == 1 else grad[:, direction * width : (direction + 1) * width]
            states = tuple(saved[direction * kept : (direction + 1) * kept])
            deltas = sweeps.backward(of_states, states, weight_hh, sweep)
            if ctx.needs_input_grad[2]:
                part = linear_back(deltas[0], weight_ih)
                assert part is not None
                of_rows = part if of_rows is None else of_rows + part
            of_weights += _gradients(cell, deltas, rows, states[0], sweep)
        return (None, None, of_rows, *of_weights)


def _ways(packing: Packing) -> tuple[Sweep, Sweep]:
    """The path of each direction."""
    return packing.forward, packing.backward


def _sweeps(cell: MatrixCell, like: Tensor) -> CompiledSweeps:
    found = sweeps_for(type(cell), like)
    assert found is not None
    return found


def _swept(
    cell: MatrixCell, sweeps: CompiledSweeps, sweep: Sweep, rows: Tensor, weights: tuple[Tensor, ...]
) -> Saved:
    """States [S, H] of one direction, and what else is saved."""
    weight_ih, bias_ih, weight_hh, bias_hh = weights
    bias = cell.shifted(bias_ih if cell.hidden_bias else bias_ih + bias_hh)
    projection = linear(rows, weight_ih, bias)
    assert projection is not None
    return sweeps.forward(projection, bias_hh if cell.hidden_bias else None, weight_hh, sweep, spare=True)


def _gradients(
    cell: MatrixCell, deltas: tuple[Tensor, Tensor], rows: Tensor, states: Tensor, sweep: Sweep
) -> tuple[Tensor | None, ...]:
    """Gradients of the PARTS of one direction."""
    delta, delta_hidden = deltas
    if cell.hidden_bias:  # each bias has its own delta
        weight, bias = gradient(delta, rows) or (None, None)
        return weight, bias, recurrent_gradient(delta_hidden, states, sweep), delta_hidden.sum(0)
    found = layer_gradients(delta, rows, states, sweep)
    assert found is not None
    return found.of_input, found.of_bias, found.of_state, found.of_bias
