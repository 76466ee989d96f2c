"""Long short-term memory."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.fused import fused, fusible
from perdure.networks.cells.matrix_cell import MatrixCell
from perdure.networks.cells.recurrence import backwards, first, recur
from perdure.networks.layout import Weights
from perdure.networks.native.library import ADDRESS, WAY
from perdure.networks.native.sweeps import CompiledSweeps, Saved, ran, require
from perdure.networks.packing import Sweep


class NativeLSTM(CompiledSweeps):
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    prefix = "lstm"
    signatures = (
        (*WAY, *[ADDRESS] * 6),
        (*WAY, *[ADDRESS] * 6),
    )

    def forward(
        self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep, *, spare: bool = False
    ) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, 4 * units)
        factor = require(weight, weight, 4 * units, units)
        gates = given if spare else torch.empty_like(given)
        states, memory, squashed = (given.new_empty(way.rows, units) for _ in range(3))
        addresses = (tensor.data_ptr() for tensor in (given, factor, states, gates, memory, squashed))
        ran(self.forwards(*way.addresses, units, *addresses))
        return states, gates, memory, squashed

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = o tanh(c_t) and c_t = f c_{t-1} + i g."""
        way, units = sweep.way, weight.shape[1]
        gates = require(saved[1], weight, way.rows, 4 * units)
        to_h, memory, squashed = (
            require(rows, weight, way.rows, units) for rows in (grad, saved[2], saved[3])
        )
        factor = require(weight, weight, 4 * units, units)
        delta = torch.empty_like(gates)
        addresses = (tensor.data_ptr() for tensor in (to_h, factor, gates, memory, squashed, delta))
        ran(self.backwards(*way.addresses, units, *addresses))
        return delta, delta


class LSTM(MatrixCell):
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    native: ClassVar[type[CompiledSweeps] | None] = NativeLSTM
    torch_layer: ClassVar[type[nn.RNNBase] | None] = nn.LSTM
    gates: ClassVar[int] = 4

    forget_offset: float = 0.0
    """A constant in the forget gate's pre-activation; 2 helps to retain what was read long ago.

    A constant of the cell, not an initial value, so that it also applies to generated weights.
    """

    def shifted(self, bias: Tensor) -> Tensor:
        """The bias [4 H] with the constant added to the forget gate's part."""
        if not self.forget_offset:
            return bias
        units = len(bias) // self.gates
        offset = torch.zeros_like(bias)
        offset[units : 2 * units] = self.forget_offset
        return bias + offset

    def run(self, weights: Weights, prefixes: tuple[str, ...], given: LayerInput) -> Tensor:
        """By torch's fused kernel if all sequences are equally long; otherwise by our sweeps."""
        if not fusible(given):
            return super().run(weights, prefixes, given)
        return fused(torch.lstm, self, weights, prefixes, given)

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `MatrixCell`."""
        del bias
        n = weight.shape[1]
        gates = torch.empty_like(projection)
        states, memory, squashed = (projection.new_empty(len(projection), n) for _ in range(3))
        given, gate, h, c, tanh_c = (
            rows.split(sweep.sizes) for rows in (projection, gates, states, memory, squashed)
        )
        transposed = weight.t()
        for step, previous, carried in sweep.moves:
            recur(gate[step], given[step], h[previous], carried, transposed)
            gate[step][:, : 2 * n].sigmoid_()
            gate[step][:, 2 * n : 3 * n].tanh_()
            gate[step][:, 3 * n :].sigmoid_()
            i, f, g, o = gate[step].split(n, dim=1)
            torch.mul(i, g, out=c[step])
            if carried:
                first(c[step], carried).addcmul_(first(f, carried), first(c[previous], carried))
            torch.tanh(c[step], out=tanh_c[step])
            torch.mul(o, tanh_c[step], out=h[step])
        return states, gates, memory, squashed

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = o tanh(c_t) and c_t = f c_{t-1} + i g, step by step."""
        states, gates, memory, squashed = saved
        n = states.shape[1]
        deltas = torch.empty_like(gates)
        to_h, gate, c, tanh_c, delta = (
            rows.split(sweep.sizes) for rows in (grad, gates, memory, squashed, deltas)
        )
        to_c: Tensor | None = None  # dL/dc_t from the following step
        for step, previous, carried, following, taken in backwards(sweep):
            d_h = torch.empty_like(to_h[step])
            recur(d_h, to_h[step], delta[following], taken, weight)
            i, f, g, o = gate[step].split(n, dim=1)
            d_i, d_f, d_g, d_o = delta[step].split(n, dim=1)
            torch.mul(d_h, tanh_c[step], out=d_o)
            d_h.mul_(o)
            d_c = torch.addcmul(d_h, d_h * tanh_c[step], tanh_c[step], value=-1)
            if to_c is not None:
                d_c[: len(to_c)].add_(to_c)
            torch.mul(d_c, g, out=d_i)
            torch.mul(d_c, i, out=d_g)
            torch.mul(d_c[:carried], c[previous][:carried], out=d_f[:carried])
            d_f[carried:] = 0
            to_c = d_c[:carried] * f[:carried]
            # Slopes of the gates: s (1 - s) for the sigmoids, 1 - g^2 for the candidate.
            slope = torch.addcmul(gate[step], gate[step], gate[step], value=-1)
            torch.addcmul(g.new_ones(()), g, g, value=-1, out=slope[:, 2 * n : 3 * n])
            delta[step].mul_(slope)
        return deltas, deltas
