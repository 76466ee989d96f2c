"""The Elman cell of the paper, with its tanh readout."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.networks.cells.matrix_cell import MatrixCell
from perdure.networks.cells.projecting import read_out, readout
from perdure.networks.cells.recurrence import backwards, recur
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights
from perdure.networks.native.library import ADDRESS, WAY
from perdure.networks.native.sweeps import CompiledSweeps, Saved, ran, require
from perdure.networks.packing import Packing, Sweep
from perdure.networks.tape import Tape


class NativeElman(CompiledSweeps):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)."""

    prefix = "elman"
    signatures = (
        (*WAY, *[ADDRESS] * 3),
        (*WAY, *[ADDRESS] * 4),
    )

    def forward(
        self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep, *, spare: bool = False
    ) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, units)
        factor = require(weight, weight, units, units)
        states = given if spare else torch.empty_like(given)
        ran(self.forwards(*way.addresses, units, given.data_ptr(), factor.data_ptr(), states.data_ptr()))
        return (states,)

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = (dL/dh_t + W_hh^T delta_{t+1}) * (1 - h_t^2)."""
        way, units = sweep.way, weight.shape[1]
        to_h, states = (require(rows, weight, way.rows, units) for rows in (grad, saved[0]))
        factor = require(weight, weight, units, units)
        delta = torch.empty_like(states)
        addresses = (tensor.data_ptr() for tensor in (to_h, factor, states, delta))
        ran(self.backwards(*way.addresses, units, *addresses))
        return delta, delta


class Elman(MatrixCell):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), y_t = tanh(W_ho h_t + b_ho)."""

    native: ClassVar[type[CompiledSweeps] | None] = NativeElman
    torch_layer: ClassVar[type[nn.RNNBase] | None] = nn.RNN
    passes_states: ClassVar[bool] = False
    continues: ClassVar[bool] = True

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """Those of the recurrence, and W_ho [H, H] and b_ho."""
        return super().weights(prefix, inputs, units, rule) | readout(prefix, units, units, rule)

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """y_t = tanh(W_ho h_t + b_ho)."""
        return read_out(weights, prefix, states, packing, tape)

    def carried(self, weights: Weights, prefix: str, states: Tensor) -> Tensor:
        """W_hh h."""
        return states @ weights[prefix + "weight_hh"].t()

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `MatrixCell`."""
        del bias
        states = torch.empty_like(projection)
        given, h = projection.split(sweep.sizes), states.split(sweep.sizes)
        transposed = weight.t()
        for step, previous, carried in sweep.moves:
            recur(h[step], given[step], h[previous], carried, transposed)
            h[step].tanh_()
        return (states,)

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = (dL/dh_t + W_hh^T delta_{t+1}) * (1 - h_t^2)."""
        (states,) = saved
        slopes = torch.addcmul(states.new_ones(()), states, states, value=-1)
        deltas = torch.empty_like(states)
        to_h, slope, delta = (rows.split(sweep.sizes) for rows in (grad, slopes, deltas))
        for step, _, _, following, taken in backwards(sweep):
            recur(delta[step], to_h[step], delta[following], taken, weight)
            delta[step].mul_(slope[step])
        return deltas, deltas
